//! How many calls a system gets in a second.

use std::num::NonZeroU32;
use std::time::Duration;

use jiff::Timestamp;

/// Hands out moments, evenly, and as many as fit into a second at once after a rest.
#[derive(Debug)]
pub(super) struct Budget {
    /// From one call to the next.
    step: Duration,
    /// When the next call has its turn.
    next: Timestamp,
}

impl Budget {
    pub(super) fn new(rate: NonZeroU32, now: Timestamp) -> Self {
        Self {
            step: Duration::from_secs(1) / rate.get(),
            next: now,
        }
    }

    /// Takes the next turn: how long it is until then. Callers are as many as passes run at once, so it is never long.
    pub(super) fn take(&mut self, now: Timestamp) -> Duration {
        const REST: Duration = Duration::from_secs(1);
        let rested = now.checked_sub(REST).unwrap_or(now);
        let turn = self.next.max(rested);
        self.next = turn.checked_add(self.step).unwrap_or(turn);
        Duration::try_from(turn.duration_since(now)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_has_more_than_its_rate_but_for_what_was_left_of_the_one_before() {
        let begin = Timestamp::UNIX_EPOCH;
        let mut budget = Budget::new(NonZeroU32::new(4).unwrap(), begin);
        let waits = |budget: &mut Budget, now| -> Vec<u128> {
            (0..6).map(|_| budget.take(now).as_millis()).collect()
        };
        assert_eq!(waits(&mut budget, begin), [0, 250, 500, 750, 1000, 1250]);
        // After a rest, a second's worth at once.
        let later = begin + jiff::SignedDuration::from_secs(60);
        assert_eq!(waits(&mut budget, later), [0, 0, 0, 0, 0, 250]);
    }
}
