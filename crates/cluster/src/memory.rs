//! What a client has looked at and found to be as it should, so that the next check need not look again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::mark::short;

/// The most objects remembered; when full, all are forgotten and looked at once more.
const REMEMBERED_MAX: usize = 20_000;

/// Short stand-ins of resource versions at which objects were found good, by those of their uids. Lost with the client,
/// which costs one GET each.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<HashMap<u64, u64>>);

impl Memory {
    /// Whether the object was found good at this very resource version.
    pub(crate) fn vouches(&self, uid: &str, resource_version: &str) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&short(uid))
            .is_some_and(|known| *known == short(resource_version))
    }

    /// Notes that the object is good at this resource version.
    pub(crate) fn note(&self, uid: &str, resource_version: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(short(uid), short(resource_version));
    }

    /// How many bytes it takes, about: a table of pairs, at most seven eighths full, with a byte of its own for each.
    pub(crate) fn bytes(&self) -> usize {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.capacity() * 8 / 7 * (size_of::<(u64, u64)>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_version_is_vouched_for() {
        let memory = Memory::default();
        memory.note("u", "7");
        assert!(memory.vouches("u", "7") && !memory.vouches("u", "8") && !memory.vouches("v", "7"));
    }

    #[test]
    fn it_is_bounded() {
        let memory = Memory::default();
        for index in 0..=REMEMBERED_MAX {
            memory.note(&index.to_string(), "1");
        }
        assert!(memory.vouches(&REMEMBERED_MAX.to_string(), "1") && !memory.vouches("0", "1"));
    }
}
