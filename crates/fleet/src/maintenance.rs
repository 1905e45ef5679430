//! Maintenance windows: when something that runs may be changed. Pure, but for the database of time zones.

use evenkeel_core::{Day, FieldError, MaintenanceWindow, Schedule};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};

/// How many days before and after today a window may begin that counts: the longest lasts a week, and comes again after
/// one.
const DAYS_AROUND: i64 = 8;

/// Whether a cluster may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// It may.
    Open,
    /// Not before then.
    Opens(Timestamp),
}

/// Refuses a schedule whose time zones are not known here.
pub(crate) fn check(schedule: &Schedule) -> Vec<FieldError> {
    let unknown = |(index, window): (usize, &MaintenanceWindow)| {
        TimeZone::get(&window.time_zone).is_err().then(|| {
            let field = format!("schedule.windows[{index}].timeZone");
            let message = format!(
                "{:?} is not in the database of time zones: expected a name like Europe/Berlin",
                window.time_zone
            );
            FieldError::new(field, message)
        })
    };
    schedule.windows.iter().enumerate().filter_map(unknown).collect()
}

/// Whether one of the windows is open at `now`. A zone that is no longer known counts as UTC: the window stays, and does
/// not stay shut for ever.
pub(crate) fn opening(windows: &[MaintenanceWindow], now: Timestamp) -> Opening {
    let mut next: Option<Timestamp> = None;
    for window in windows {
        for (from, to) in occurrences(window, now) {
            if from <= now && now < to {
                return Opening::Open;
            }
            if from > now && next.is_none_or(|next| from < next) {
                next = Some(from);
            }
        }
    }
    next.map_or(Opening::Open, Opening::Opens)
}

/// When `window` is open, around `now`.
fn occurrences(window: &MaintenanceWindow, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    let zone = TimeZone::get(&window.time_zone).unwrap_or(TimeZone::UTC);
    let today = now.to_zoned(zone.clone()).date();
    let length = SignedDuration::try_from(window.duration.0).unwrap_or(SignedDuration::MAX);
    let days = (-DAYS_AROUND..=DAYS_AROUND).filter_map(|offset| today.checked_add(offset.days()).ok());
    days.filter(|day| window.days.is_empty() || window.days.contains(&Day::from(day.weekday())))
        .filter_map(|day| {
            // A time that the clocks jump over is taken as the one after it.
            let from = day
                .to_datetime(window.start)
                .to_zoned(zone.clone())
                .ok()?
                .timestamp();
            Some((from, from.saturating_add(length).unwrap_or(Timestamp::MAX)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(json: serde_json::Value) -> Vec<MaintenanceWindow> {
        serde_json::from_value(json).expect("windows")
    }

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a moment")
    }

    /// How long from `now` until the windows open; nothing when they are open.
    fn hours(windows: &[MaintenanceWindow], now: &str) -> f64 {
        match opening(windows, at(now)) {
            Opening::Open => 0.0,
            Opening::Opens(opens) => opens.duration_since(at(now)).as_secs_f64() / 3_600.0,
        }
    }

    #[test]
    fn without_windows_it_is_open() {
        assert_eq!(opening(&[], at("2026-03-01T00:00:00Z")), Opening::Open);
    }

    #[test]
    fn a_window_goes_past_midnight_and_comes_again() {
        let nightly = windows(serde_json::json!([{"start": "22:00", "duration": "4h"}]));
        for (now, expected) in [
            ("2026-03-01T21:00:00Z", 1.0),
            ("2026-03-01T22:00:00Z", 0.0),
            ("2026-03-02T01:59:59Z", 0.0),
            ("2026-03-02T02:00:00Z", 20.0),
        ] {
            assert!((hours(&nightly, now) - expected).abs() < 1e-9, "{now}");
        }
        // 2026-03-01 is a Sunday.
        let weekly = windows(serde_json::json!([{"days": ["sat"], "start": "22:00", "duration": "4h"}]));
        assert!(
            hours(&weekly, "2026-03-01T01:00:00Z").abs() < 1e-9,
            "Saturday's window is still open"
        );
        assert!((hours(&weekly, "2026-03-01T02:00:00Z") - (6.0 * 24.0 + 20.0)).abs() < 1e-9);
        let whole_week =
            windows(serde_json::json!([{"days": ["mon"], "start": "00:00", "duration": "168h"}]));
        assert!(hours(&whole_week, "2026-03-01T23:59:59Z").abs() < 1e-9);
    }

    #[test]
    fn the_clock_on_the_wall_counts() {
        let berlin = windows(serde_json::json!([
            {"start": "22:00", "duration": "1h", "timeZone": "Europe/Berlin"}
        ]));
        if check(&Schedule {
            windows: berlin.clone(),
            ..Schedule::default()
        })
        .is_empty()
        {
            assert!(
                hours(&berlin, "2026-01-15T21:00:00Z").abs() < 1e-9,
                "winter: UTC+1"
            );
            assert!(
                hours(&berlin, "2026-07-15T20:00:00Z").abs() < 1e-9,
                "summer: UTC+2"
            );
            // 02:30 on the day when the clocks jump from 02:00 to 03:00.
            let skipped = windows(serde_json::json!([
                {"start": "02:30", "duration": "1h", "timeZone": "Europe/Berlin"}
            ]));
            assert!(hours(&skipped, "2026-03-29T01:30:00Z").abs() < 1e-9);
        }
    }

    #[test]
    fn an_unknown_zone_is_refused_and_does_no_harm_later() {
        let nowhere = windows(serde_json::json!([
            {"start": "22:00", "duration": "1h"},
            {"start": "22:00", "duration": "1h", "timeZone": "Nowhere/City"}
        ]));
        let errors = check(&Schedule {
            windows: nowhere.clone(),
            ..Schedule::default()
        });
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].path, "schedule.windows[1].timeZone");
        assert!(hours(&nowhere[1..], "2026-03-01T22:30:00Z").abs() < 1e-9);
    }
}
