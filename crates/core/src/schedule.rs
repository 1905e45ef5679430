//! When a cluster may be worked at: on what occasions, and in which hours.

use jiff::civil::Time;
use serde::{Deserialize, Serialize};

use crate::{FieldError, HumanDuration};

/// The most windows of one cluster.
const WINDOWS_MAX: usize = 64;
/// The longest window, in seconds: a week, after which the next one of the same day begins.
const WINDOW_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;

/// When a cluster may be worked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Schedule {
    /// On what occasions.
    #[serde(default)]
    pub reconcile_on: ReconcileOn,
    /// In which hours something that runs is changed; at any time when there are none. Installing into an empty cluster
    /// and deleting the cluster wait for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<MaintenanceWindow>,
}

/// On what occasions a cluster is worked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReconcileOn {
    /// Whenever it differs from what is asked for.
    #[default]
    Always,
    /// Only after its configuration changed, or when a person asks: what others change stays as it is.
    Change,
}

/// Hours that come again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MaintenanceWindow {
    /// The days on which it begins; every day when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<Day>,
    /// When it begins, by the clock on the wall: `22:00`.
    pub start: Time,
    /// How long it lasts; it may go past midnight.
    pub duration: HumanDuration,
    /// The clock on which wall: a name of the IANA time zone database, like `Europe/Berlin`.
    #[serde(default = "utc")]
    pub time_zone: String,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the days of the week")]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl From<jiff::civil::Weekday> for Day {
    fn from(day: jiff::civil::Weekday) -> Self {
        use jiff::civil::Weekday;
        match day {
            Weekday::Monday => Self::Mon,
            Weekday::Tuesday => Self::Tue,
            Weekday::Wednesday => Self::Wed,
            Weekday::Thursday => Self::Thu,
            Weekday::Friday => Self::Fri,
            Weekday::Saturday => Self::Sat,
            Weekday::Sunday => Self::Sun,
        }
    }
}

impl Schedule {
    /// Whether it says nothing.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// What is wrong with it; whether a time zone exists is for whoever has the database of zones.
    pub(crate) fn field_errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if self.windows.len() > WINDOWS_MAX {
            let message = format!(
                "expected at most {WINDOWS_MAX} windows, found {}",
                self.windows.len()
            );
            errors.push(FieldError::new("schedule.windows", message));
        }
        for (index, window) in self.windows.iter().enumerate() {
            let seconds = window.duration.0.as_secs();
            if window.duration.0.is_zero() || seconds > WINDOW_SECONDS_MAX {
                let field = format!("schedule.windows[{index}].duration");
                errors.push(FieldError::new(field, "expected more than 0s and at most 168h"));
            }
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: serde_json::Value) -> Result<Schedule, serde_json::Error> {
        serde_json::from_value(json)
    }

    #[test]
    fn the_documented_shape_is_read_and_written() -> Result<(), Box<dyn std::error::Error>> {
        let json = serde_json::json!({
            "reconcileOn": "change",
            "windows": [{"days": ["sat", "sun"], "start": "22:00", "duration": "4h", "timeZone": "Europe/Berlin"}],
        });
        let schedule = read(json)?;
        assert_eq!(schedule.windows[0].start, Time::constant(22, 0, 0, 0));
        assert!(schedule.field_errors().is_empty());
        assert_eq!(read(serde_json::to_value(&schedule)?)?, schedule);
        assert!(!schedule.is_default() && read(serde_json::json!({}))?.is_default());
        Ok(())
    }

    #[test]
    fn what_makes_no_sense_is_refused() -> Result<(), Box<dyn std::error::Error>> {
        for wrong in [
            serde_json::json!({"windows": [{"start": "25:00", "duration": "1h"}]}),
            serde_json::json!({"windows": [{"start": "22:00", "duration": "soon"}]}),
            serde_json::json!({"windows": [{"start": "22:00", "duration": "1h", "days": ["someday"]}]}),
            serde_json::json!({"window": []}),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
        for duration in ["0s", "169h"] {
            let schedule = read(serde_json::json!({"windows": [{"start": "22:00", "duration": duration}]}))?;
            let errors = schedule.field_errors();
            assert_eq!(errors[0].path, "schedule.windows[0].duration", "{duration}");
        }
        Ok(())
    }
}
