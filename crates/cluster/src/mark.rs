//! What is kept of an object to tell whether it still is as we left it: a few words each, since a fleet has millions.
//!
//! This is the one judge of drift from metadata alone: a check asks it about what a LIST showed, live watches about what
//! an event showed.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

use evenkeel_core::ObjectRef;

use crate::applyset::record::RecordedObject;
use crate::check::Difference;
use crate::fingerprint::Fingerprint;
use crate::live::LiveObject;

/// Keys of this process alone: nobody can choose names or uids that are taken for one another.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Set in versions that are no numbers.
const NO_NUMBER: u64 = 1 << 63;

/// A short stand-in for a text, the same for as long as the process lives.
pub(crate) fn short(text: &str) -> u64 {
    KEYS.hash_one(text)
}

fn half(uid: &str) -> u32 {
    (short(uid) >> 32) as u32
}

/// A short stand-in for an object's place inside its kind.
pub(crate) fn place(namespace: Option<&str>, name: &str) -> u64 {
    KEYS.hash_one((namespace.unwrap_or_default(), name))
}

/// A resource version in eight bytes. API servers number them (KEP-5504); whatever else one is, it can be told from
/// others and not ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Version(u64);

impl Version {
    /// Of an object that is not there, or whose version is not known: equal to no real one.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn of(text: &str) -> Self {
        if text.is_empty() {
            return Self::NONE;
        }
        match text.parse::<u64>() {
            Ok(number) if number != 0 && number & NO_NUMBER == 0 => Self(number),
            _ => Self(short(text) | NO_NUMBER),
        }
    }

    /// Whether it is known to be `other` or one before it. `false` where that cannot be said.
    pub(crate) fn is_at_most(self, other: Self) -> bool {
        let is_number = |version: Self| version != Self::NONE && version.0 & NO_NUMBER == 0;
        self == other || is_number(self) && is_number(other) && self.0 < other.0
    }
}

/// How an object departs from what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// It is gone, or going.
    Missing,
    /// It was made anew by somebody else.
    Replaced,
    /// Fields of ours were changed.
    Changed,
}

impl Departure {
    pub(crate) fn of(self, object: ObjectRef) -> Difference {
        match self {
            Self::Missing => Difference::Missing(object),
            Self::Replaced => Difference::Replaced(object),
            Self::Changed => Difference::Changed(object),
        }
    }
}

/// One object as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The fields that are ours, where [`Mark::OWNS`] says that there are any.
    owned: u64,
    /// A version at which it was found as it should be.
    pub(crate) version: Version,
    /// Half a stand-in for its uid: it only has to differ for an object that was made anew with the very same fields.
    uid: u32,
    /// Which component it is of, where that matters.
    pub(crate) component: u16,
    flags: u8,
}

impl Mark {
    /// There are fields of ours.
    const OWNS: u8 = 1;
    /// It only stays because nothing may delete it.
    const KEPT: u8 = 2;
    /// It may be gone because it was done.
    const DONE: u8 = 4;

    /// What is recorded of an object.
    pub(crate) fn of(entry: &RecordedObject) -> Self {
        let owned = entry.owned.as_ref().map(Fingerprint::number);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        Self {
            owned: owned.unwrap_or_default(),
            version: Version::of(&entry.resource_version),
            uid: half(&entry.uid),
            component: 0,
            flags: flag(owned.is_some(), Self::OWNS)
                | flag(entry.kept, Self::KEPT)
                | flag(entry.done, Self::DONE),
        }
    }

    /// An object of ours that nobody else writes: any other version is a departure.
    pub(crate) fn exactly(uid: &str, resource_version: &str) -> Self {
        Self {
            owned: 0,
            version: Version::of(resource_version),
            uid: half(uid),
            component: 0,
            flags: 0,
        }
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether nobody cares how it is.
    pub(crate) fn is_kept(&self) -> bool {
        self.has(Self::KEPT)
    }

    /// How `live` departs from it, as far as metadata tells: an equal resource version, or else the same fields owned by
    /// us, prove that what we set is as we set it.
    pub(crate) fn departs(&self, live: Option<&LiveObject>) -> Option<Departure> {
        let Some(live) = live else {
            return (!self.has(Self::DONE) && !self.is_kept()).then_some(Departure::Missing);
        };
        if self.is_kept() || Version::of(&live.resource_version) == self.version {
            return None;
        }
        if half(&live.uid) != self.uid {
            return Some(Departure::Replaced);
        }
        if live.is_deleting() {
            return Some(Departure::Missing);
        }
        let same = self.has(Self::OWNS) && live.owned().is_some_and(|owned| owned.number() == self.owned);
        (!same).then_some(Departure::Changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart_and_ordered_where_they_are_numbers() {
        let version = Version::of;
        assert_eq!(version("7"), version("7"));
        assert_ne!(version("7"), version("8"));
        assert!(version("7").is_at_most(version("7")) && version("7").is_at_most(version("8")));
        assert!(!version("8").is_at_most(version("7")));
        for (a, b) in [("x", "7"), ("7", "x"), ("x", "y"), ("", "7")] {
            assert!(!version(a).is_at_most(version(b)), "{a} {b}");
        }
        assert!(version("x").is_at_most(version("x")));
        for text in ["0", "9223372036854775809", "007x"] {
            assert_ne!(version(text), Version::NONE, "{text}");
        }
    }

    #[test]
    fn it_is_small() {
        assert_eq!(size_of::<Mark>(), 24);
    }
}
