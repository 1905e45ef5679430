//! All chance of a schedule.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Numbers at random, the same for the same seed (SplitMix64).
#[derive(Debug)]
pub(super) struct Chance(Mutex<u64>);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 for 0.
    pub(super) fn below(&self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A place in a list of `length`.
    pub(super) fn place(&self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// `true` in `percent` of all cases.
    pub(super) fn percent(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A time from `least` up to less than `most` milliseconds.
    pub(super) fn millis(&self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most.saturating_sub(least)))
    }

    /// A number in `0.0..1.0`.
    pub(super) fn share(&self) -> f64 {
        f64::from(u32::try_from(self.below(1 << 24)).unwrap_or(0)) / f64::from(1_u32 << 24)
    }
}
