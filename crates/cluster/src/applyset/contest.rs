//! Fields that somebody else sets anew each time that we correct them.
//!
//! Two controllers that want different things would write for ever, and wake each other with every write. So the third
//! correction of the same fields in a row is the last for a while: whoever else sets them is named, the object counts as
//! not being as it should, and it is tried again after a pause that doubles.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::FieldConflict;

/// After so many equal corrections there is a pause.
const CORRECTIONS: u32 = 3;
/// The first pause; it doubles with every further correction.
const PAUSE_FIRST: Duration = Duration::from_secs(10 * 60);
/// The longest pause.
const PAUSE_LONGEST: Duration = Duration::from_secs(6 * 60 * 60);
/// Corrections further apart than this, beyond a pause, have nothing to do with each other.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60 * 60);
/// The longest text of fields or managers that is kept, in characters.
const TEXT_MAX: usize = 200;

/// How often the same fields of an object were corrected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contest {
    /// Paths of the fields, for people; never a value.
    #[serde(rename = "f")]
    fields: String,
    /// The field managers that had set them.
    #[serde(rename = "by")]
    managers: String,
    /// How often in a row.
    #[serde(rename = "n")]
    times: u32,
    /// When last, in seconds since 1970.
    #[serde(rename = "t")]
    last: i64,
}

impl Contest {
    /// What is to be remembered after `fields` were corrected once more, at the moment `now` in seconds since 1970.
    pub(crate) fn after(before: Option<&Self>, fields: &str, taken: &[FieldConflict], now: i64) -> Self {
        let fields = cut(fields);
        let again = before.filter(|before| before.fields == fields && !before.is_forgotten(now));
        let mut managers: Vec<&str> = taken.iter().map(|conflict| conflict.manager.as_str()).collect();
        managers.sort_unstable();
        managers.dedup();
        Self {
            managers: if managers.is_empty() {
                "somebody".to_owned()
            } else {
                cut(&managers.join(", "))
            },
            times: again.map_or(0, |before| before.times).saturating_add(1),
            fields,
            last: now,
        }
    }

    fn pause(&self) -> Duration {
        match self.times.checked_sub(CORRECTIONS) {
            None => Duration::ZERO,
            Some(more) => PAUSE_FIRST.saturating_mul(1 << more.min(16)).min(PAUSE_LONGEST),
        }
    }

    fn until(&self) -> i64 {
        self.last.saturating_add(seconds(self.pause()))
    }

    fn is_forgotten(&self, now: i64) -> bool {
        now > self.until().saturating_add(seconds(FORGOTTEN_AFTER))
    }

    /// Why the object is not corrected now, if it is not.
    pub(crate) fn holds(&self, now: i64) -> Option<String> {
        let Self {
            fields,
            managers,
            times,
            ..
        } = self;
        let left = self.until().checked_sub(now).filter(|left| *left > 0)?;
        Some(format!(
            "contested: {fields} was corrected {times} times and set again each time by {managers}; corrected once more in \
             {} min, unless whoever sets it stops, or the manifest leaves it out",
            left.div_euclid(60) + 1
        ))
    }

    /// The same, if it is these fields that differ.
    pub(crate) fn holds_for(&self, fields: &str, now: i64) -> Option<String> {
        (self.fields == cut(fields)).then(|| self.holds(now))?
    }
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_correction_in_a_row_is_the_last_for_a_while() {
        let taken = [FieldConflict {
            manager: "webhook".to_owned(),
            field: ".spec.x".to_owned(),
        }];
        let mut contest: Option<Contest> = None;
        for (at, held) in [(0, false), (60, false), (120, true)] {
            contest = Some(Contest::after(contest.as_ref(), "spec.x", &taken, at));
            let holds = contest
                .as_ref()
                .and_then(|contest| contest.holds_for("spec.x", at + 1));
            assert_eq!(holds.is_some(), held, "{at}");
        }
        let third = contest.expect("a contest");
        let told = third.holds(121).expect("it holds");
        assert!(
            told.contains("spec.x") && told.contains("webhook") && told.contains("3 times"),
            "{told}"
        );
        assert_eq!(
            third.holds_for("spec.y", 121),
            None,
            "other fields are another matter"
        );
        assert!(third.holds(120 + 599).is_some() && third.holds(120 + 601).is_none());
        // Still contested after the pause: a longer one.
        let fourth = Contest::after(Some(&third), "spec.x", &taken, 730);
        assert!(fourth.holds(730 + 1_100).is_some() && fourth.holds(730 + 1_300).is_none());
        // Long afterwards, or other fields: it begins anew.
        let later = Contest::after(Some(&fourth), "spec.x", &[], 1_000_000);
        assert_eq!((later.times, later.managers.as_str()), (1, "somebody"));
        assert_eq!(Contest::after(Some(&third), "spec.y", &taken, 130).times, 1);
    }

    #[test]
    fn pauses_are_bounded() {
        let contest = Contest {
            fields: "x".to_owned(),
            managers: "y".to_owned(),
            times: u32::MAX,
            last: 0,
        };
        assert_eq!(contest.pause(), PAUSE_LONGEST);
    }
}
