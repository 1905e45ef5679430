//! How often tokens that open nothing may be tried.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

/// How many may be tried at once.
const BURST: u32 = 20;
/// How long until one more may be.
const EVERY_MS: i64 = 100;

/// Counts attempts that failed. Those that succeed are never held up: whoever has a good token gets through.
#[derive(Debug, Default)]
pub(super) struct Attempts(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    used: u32,
    since: Option<Timestamp>,
}

impl Attempts {
    /// Notes one that failed at `now`. Whether that was one too many.
    pub(super) fn is_one_too_many(&self, now: Timestamp) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *state.since.get_or_insert(now);
        // A clock that went back frees nothing.
        let passed = (now.as_millisecond() - since.as_millisecond()).max(0) / EVERY_MS;
        if passed > 0 || now < since {
            state.used = state
                .used
                .saturating_sub(u32::try_from(passed).unwrap_or(u32::MAX));
            state.since = Some(now);
        }
        if state.used >= BURST {
            return true;
        }
        state.used += 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn a_burst_is_let_through_and_then_one_at_a_time() {
        let attempts = Attempts::default();
        let start = Timestamp::UNIX_EPOCH;
        assert!((0..BURST).all(|_| !attempts.is_one_too_many(start)));
        assert!(attempts.is_one_too_many(start));
        let later = start + SignedDuration::from_millis(EVERY_MS);
        assert!(!attempts.is_one_too_many(later));
        assert!(attempts.is_one_too_many(later));
        // Backwards frees nothing, and stops nothing for good.
        assert!(attempts.is_one_too_many(start));
        assert!(!attempts.is_one_too_many(later));
    }
}
