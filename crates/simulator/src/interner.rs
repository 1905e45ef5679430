//! Shared storage for what many objects have in common.
//!
//! Thousands of simulated clusters run the same charts: names, labels, specs and field sets are equal all over the
//! fleet and are kept once. An entry goes when the last object that uses it is gone.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// Shards keep writers of different clusters from waiting for each other.
const SHARDS: usize = 16;
/// A shard is not searched for dead entries before it holds this many.
const FIRST_SWEEP: usize = 256;

#[derive(Debug)]
struct Shard<T: ?Sized> {
    entries: HashSet<Arc<T>>,
    sweep_at: usize,
}

/// Gives equal values one address.
#[derive(Debug)]
pub(crate) struct Interner<T: ?Sized> {
    shards: Vec<Mutex<Shard<T>>>,
    hasher: RandomState,
}

impl<T: ?Sized + Hash + Eq> Interner<T> {
    pub(crate) fn new() -> Self {
        let shard = || {
            Mutex::new(Shard {
                entries: HashSet::new(),
                sweep_at: FIRST_SWEEP,
            })
        };
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            hasher: RandomState::new(),
        }
    }

    /// The shared copy of `value`.
    pub(crate) fn intern<Q>(&self, value: &Q) -> Arc<T>
    where
        Q: ?Sized + Hash + Eq + Borrow<T>,
        Arc<T>: for<'q> From<&'q Q>,
    {
        self.intern_with(value.borrow(), || Arc::from(value))
    }

    /// The shared copy of `value`, made by `make` where there is none.
    pub(crate) fn intern_with(&self, value: &T, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let position = usize::try_from(self.hasher.hash_one(value) % SHARDS as u64).unwrap_or(0);
        let Some(shard) = self.shards.get(position) else {
            return make();
        };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = shard.entries.get(value) {
            return shared.clone();
        }
        if shard.entries.len() >= shard.sweep_at {
            shard.entries.retain(|entry| Arc::strong_count(entry) > 1);
            shard.sweep_at = (shard.entries.len() * 2).max(FIRST_SWEEP);
        }
        let shared = make();
        shard.entries.insert(shared.clone());
        shared
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().unwrap().entries.len())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_one_address() {
        let interner: Interner<str> = Interner::new();
        assert!(Arc::ptr_eq(&interner.intern("a"), &interner.intern("a")));
        assert!(!Arc::ptr_eq(&interner.intern("a"), &interner.intern("b")));
    }

    #[test]
    fn values_nobody_uses_are_swept() {
        let interner: Interner<str> = Interner::new();
        let kept = interner.intern("kept");
        for n in 0..100_000 {
            interner.intern(format!("{n}").as_str());
        }
        assert!(
            interner.len() <= SHARDS * FIRST_SWEEP,
            "{} entries",
            interner.len()
        );
        assert!(Arc::ptr_eq(&kept, &interner.intern("kept")));
    }
}
