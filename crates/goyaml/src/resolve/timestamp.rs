//! Which texts go-yaml takes for timestamps: the four layouts it hands to Go's `time.Parse`.

/// Days of the months of a common year.
const MONTH_DAYS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// Largest offset of a time zone that `time.Parse` accepts, in hours and in minutes.
const MAX_ZONE_HOURS: u32 = 24;
const MAX_ZONE_MINUTES: u32 = 60;

/// Whether the text is `YYYY-M-D`, `YYYY-M-D h:m:s` or `YYYY-M-DTh:m:s` with a zone, parts in range.
pub(super) fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let [a, b, c, d, b'-', rest @ ..] = bytes else {
        return false;
    };
    if ![a, b, c, d].into_iter().all(u8::is_ascii_digit) {
        return false;
    }
    let year = [a, b, c, d]
        .into_iter()
        .fold(0, |y, digit| y * 10 + u32::from(digit - b'0'));
    let Some((month, rest)) = one_or_two_digits(rest) else {
        return false;
    };
    let [b'-', rest @ ..] = rest else { return false };
    let Some((day, rest)) = one_or_two_digits(rest) else {
        return false;
    };
    if !(1..=12).contains(&month) || day < 1 || day > days_in(month, year) {
        return false;
    }
    match rest {
        [] => true,
        [b' ', time @ ..] => clock(time).is_some_and(<[u8]>::is_empty),
        [b'T' | b't', time @ ..] => clock(time).is_some_and(is_zone),
        _ => false,
    }
}

fn days_in(month: u32, year: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let index = usize::try_from(month).unwrap_or(0).saturating_sub(1);
    MONTH_DAYS
        .get(index)
        .map_or(0, |days| days + u32::from(month == 2 && leap))
}

fn one_or_two_digits(bytes: &[u8]) -> Option<(u32, &[u8])> {
    match bytes {
        [a, b, rest @ ..] if a.is_ascii_digit() && b.is_ascii_digit() => Some((two(*a, *b), rest)),
        [a, rest @ ..] if a.is_ascii_digit() => Some((u32::from(a - b'0'), rest)),
        _ => None,
    }
}

fn two(a: u8, b: u8) -> u32 {
    u32::from(a - b'0') * 10 + u32::from(b - b'0')
}

/// `h:m:s` with an optional fraction; gives what follows.
fn clock(bytes: &[u8]) -> Option<&[u8]> {
    let (hour, rest) = one_or_two_digits(bytes)?;
    let (minute, rest) = one_or_two_digits(rest.strip_prefix(b":")?)?;
    let (second, rest) = one_or_two_digits(rest.strip_prefix(b":")?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    if let [b'.' | b',', digit, ..] = rest
        && digit.is_ascii_digit()
    {
        let fraction = rest.get(1..)?;
        let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
        return fraction.get(digits..);
    }
    Some(rest)
}

fn is_zone(bytes: &[u8]) -> bool {
    match bytes {
        [b'Z'] => true,
        [b'+' | b'-', a, b, b':', c, d] if [a, b, c, d].into_iter().all(u8::is_ascii_digit) => {
            two(*a, *b) <= MAX_ZONE_HOURS && two(*c, *d) <= MAX_ZONE_MINUTES
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_timestamp;

    #[test]
    fn layouts_of_go_yaml() {
        for good in [
            "2001-01-01",
            "2001-1-1",
            "2001-01-01T00:00:00Z",
            "2001-01-01t1:2:3.5+02:00",
            "2001-01-01 00:00:00",
            "2001-01-01 1:2:3,25",
            "2004-02-29",
        ] {
            assert!(is_timestamp(good), "{good}");
        }
        for bad in [
            "2001-13-01",
            "2001-02-29",
            "2001-00-01",
            "2001-01",
            "2001-01-01T00:00:00",
            "2001-01-01 00:00:00Z",
            "2001-01-01 24:00:00",
            "2001-01-01T00:00:00+0200",
            "01-01-2001",
            "2001-01-01 ",
            "20011-01-01",
        ] {
            assert!(!is_timestamp(bad), "{bad}");
        }
    }
}
