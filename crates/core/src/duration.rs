//! Durations as people and Kubernetes write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A length of time written `30s`, `5m`, `1h30m`, `250ms` or `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HumanDuration(pub Duration);

/// Units from large to small; `ms` stands before `m` and `s` so that the longest name matches first when reading.
const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
];

impl FromStr for HumanDuration {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = || Error::Duration(text.to_owned());
        let mut rest = text.trim();
        let mut millis: u64 = 0;
        if rest.is_empty() {
            return Err(refused());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(refused)?;
            let (number, tail) = rest.split_at(digits);
            let number: u64 = number.parse().map_err(|_| refused())?;
            let (unit, factor) = UNITS
                .iter()
                .find(|(unit, _)| tail.starts_with(unit))
                .ok_or_else(refused)?;
            let part = number.checked_mul(*factor).ok_or_else(refused)?;
            millis = millis.checked_add(part).ok_or_else(refused)?;
            rest = tail.get(unit.len()..).unwrap_or_default();
        }
        Ok(Self(Duration::from_millis(millis)))
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if millis == 0 {
            return write!(f, "0s");
        }
        for (unit, factor) in [
            ("d", 86_400_000),
            ("h", 3_600_000),
            ("m", 60_000),
            ("s", 1_000),
            ("ms", 1),
        ] {
            if millis >= factor {
                write!(f, "{}{unit}", millis / factor)?;
                millis %= factor;
            }
        }
        Ok(())
    }
}

impl Serialize for HumanDuration {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_the_usual_forms() {
        for (text, millis) in [
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("7d", 604_800_000),
        ] {
            assert_eq!(
                text.parse(),
                Ok(HumanDuration(Duration::from_millis(millis))),
                "{text}"
            );
        }
    }

    #[test]
    fn refuses_what_has_no_unit_or_number() {
        for text in [
            "",
            "5",
            "m",
            "-5m",
            "1.5h",
            "5 m",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert!(text.parse::<HumanDuration>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(millis in 0..u64::MAX / 2) {
            let duration = HumanDuration(Duration::from_millis(millis));
            prop_assert_eq!(duration.to_string().parse::<HumanDuration>(), Ok(duration));
        }
    }
}
