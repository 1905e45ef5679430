//! Policies as permissions: what they do not allow, no step does (E8).

use evenkeel_steps::Guard;

use crate::resources::{CreationPolicy, DeletionPolicy};

/// Takes for good what lies outside. What can be made again, such as a key or a file, is merely deleted.
pub(crate) const ERASE: &str = "erase";

/// Puts what lies outside where it can be brought back from.
pub(crate) const ARCHIVE: &str = "archive";

/// Takes over what somebody else made.
pub(crate) const ADOPT: &str = "adopt";

/// What a deletion policy leaves undone.
pub(crate) fn deletion(policy: DeletionPolicy) -> Guard {
    match policy {
        DeletionPolicy::Delete => Guard::forbid([ARCHIVE], "the deletion policy is Delete"),
        DeletionPolicy::Archive => Guard::forbid([ERASE], "the deletion policy is Archive"),
        DeletionPolicy::Retain => Guard::forbid([ERASE, ARCHIVE], "the deletion policy is Retain"),
    }
}

/// What a creation policy leaves undone.
pub(crate) fn creation(policy: CreationPolicy) -> Guard {
    match policy {
        CreationPolicy::Adopt => Guard::Proceed,
        CreationPolicy::Create => Guard::forbid([ADOPT], "the creation policy is Create"),
    }
}
