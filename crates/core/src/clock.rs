//! Time is passed in: whoever needs it holds a [`Clock`].

use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};

/// The one source of wall-clock time. The real one lives in `evenkeel-telemetry`, tests use [`ManualClock`].
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<Timestamp>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { now: Mutex::new(now) }
    }

    /// Moves the clock by `by`; backwards when negative, as real clocks sometimes do.
    pub fn advance(&self, by: SignedDuration) {
        let mut now = self.now.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *now = now.saturating_add(by).unwrap_or(*now);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
