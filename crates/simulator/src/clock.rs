//! Time as Kubernetes writes it.

use jiff::Timestamp;

/// `2026-12-01T14:49:32Z`; empty for a time that no calendar has.
pub(crate) fn format_seconds(seconds: i64) -> String {
    Timestamp::from_second(seconds)
        .map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default()
}

/// `2026-12-01T14:49:32.000000Z`, as MicroTime is written.
pub(crate) fn format_micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Reads an RFC 3339 time, in whole seconds.
pub(crate) fn parse_seconds(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(|time| time.as_second())
}

/// How long ago something was, as `kubectl get` shows it (`human duration` of apimachinery).
pub(crate) fn age(seconds: i64) -> String {
    let (minute, hour, day, year) = (60, 3600, 86_400, 365 * 86_400);
    match seconds {
        s if s < 0 => "0s".into(),
        s if s < 2 * minute => format!("{s}s"),
        s if s < 10 * minute => match s % minute {
            0 => format!("{}m", s / minute),
            rest => format!("{}m{rest}s", s / minute),
        },
        s if s < 3 * hour => format!("{}m", s / minute),
        s if s < 8 * hour => match s % hour / minute {
            0 => format!("{}h", s / hour),
            rest => format!("{}h{rest}m", s / hour),
        },
        s if s < 2 * day => format!("{}h", s / hour),
        s if s < 8 * day => match s % day / hour {
            0 => format!("{}d", s / day),
            rest => format!("{}d{rest}h", s / day),
        },
        s if s < 2 * year => format!("{}d", s / day),
        s if s < 8 * year => match s % year / day {
            0 => format!("{}y", s / year),
            rest => format!("{}y{rest}d", s / year),
        },
        s => format!("{}y", s / year),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_trip() {
        assert_eq!(parse_seconds("2026-12-01T14:49:32Z"), Some(1_796_136_572));
        assert_eq!(format_seconds(1_796_136_572), "2026-12-01T14:49:32Z");
        assert_eq!(parse_seconds("yesterday"), None);
    }

    #[test]
    fn ages_are_short() {
        for (seconds, text) in [
            (5, "5s"),
            (119, "119s"),
            (150, "2m30s"),
            (3600, "60m"),
            (4 * 3600 + 60, "4h1m"),
            (86_400 * 3, "3d"),
        ] {
            assert_eq!(age(seconds), text);
        }
    }
}
