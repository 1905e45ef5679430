//! When a failed pass is due again.

use std::time::Duration;

use jiff::Timestamp;

use crate::{Failure, FailureClass};

/// How long to wait after each class of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// After a transient failure, by the number of attempts made so far.
    pub backoff: Backoff,
    /// After a conflict: soon, but not in a busy loop.
    pub conflict: Duration,
    /// After a refusal for lack of rights: somebody has to grant them first.
    pub forbidden: Duration,
    /// After a bug.
    pub bug: Duration,
}

/// A delay that stays the same for some attempts, then doubles up to a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failed attempt.
    pub first: Duration,
    /// How many attempts keep that delay before it starts to double.
    pub steady: u32,
    /// The longest delay.
    pub cap: Duration,
}

/// The share of a delay that jitter may take away, so that what failed together does not come back together.
const JITTER_SHARE: f64 = 0.25;

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            backoff: Backoff {
                first: Duration::from_secs(2),
                steady: 3,
                cap: Duration::from_secs(300),
            },
            conflict: Duration::from_millis(100),
            forbidden: Duration::from_secs(300),
            bug: Duration::from_secs(300),
        }
    }
}

impl RetryPolicy {
    /// When to try again after `failure`, or `None` when only a change of the input can help. `attempt` counts
    /// failed passes in a row before this one; `jitter` is a random number in `0.0..1.0`.
    pub fn retry_at(
        &self,
        failure: &Failure,
        attempt: u32,
        jitter: f64,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let after = |delay: Duration| Some(now.checked_add(delay).unwrap_or(Timestamp::MAX));
        match failure.class() {
            FailureClass::Transient => after(self.backoff.delay(attempt, jitter)),
            FailureClass::RateLimited { until } => Some(until.moment(now).max(now)),
            FailureClass::Conflict => after(self.conflict),
            FailureClass::Invalid => None,
            FailureClass::Forbidden => after(self.forbidden),
            FailureClass::Bug => after(self.bug),
        }
    }
}

impl Backoff {
    /// The delay after `attempt` earlier failures. `jitter` in `0.0..1.0` shortens it by up to a quarter.
    pub fn delay(&self, attempt: u32, jitter: f64) -> Duration {
        let doublings = attempt.saturating_sub(self.steady.saturating_sub(1)).min(31);
        let full = self.first.saturating_mul(1 << doublings).min(self.cap);
        let jitter = if jitter.is_finite() {
            jitter.clamp(0.0, 1.0)
        } else {
            0.0
        };
        full.mul_f64(1.0 - JITTER_SHARE * jitter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_is_steady_then_doubles_then_stays_at_its_cap() {
        let backoff = Backoff {
            first: Duration::from_secs(2),
            steady: 3,
            cap: Duration::from_secs(60),
        };
        let delays: Vec<u64> = (0..10).map(|n| backoff.delay(n, 0.0).as_secs()).collect();
        assert_eq!(delays, [2, 2, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(backoff.delay(u32::MAX, 0.0), Duration::from_secs(60));
        assert_eq!(backoff.delay(0, 1.0), Duration::from_millis(1500));
        assert_eq!(backoff.delay(0, f64::NAN), Duration::from_secs(2));
    }

    #[test]
    fn each_class_has_its_delay() {
        let policy = RetryPolicy::default();
        let now = Timestamp::UNIX_EPOCH;
        let at = |failure: Failure| {
            policy
                .retry_at(&failure, 0, 0.0, now)
                .map(|at| at.as_millisecond())
        };
        assert_eq!(at(Failure::transient("x")), Some(2_000));
        assert_eq!(at(Failure::conflict("x")), Some(100));
        assert_eq!(at(Failure::invalid("x")), None);
        assert_eq!(at(Failure::forbidden("x")), Some(300_000));
        assert_eq!(at(Failure::bug("x")), Some(300_000));
        assert_eq!(
            at(Failure::rate_limited(Duration::from_secs(7), "x")),
            Some(7_000)
        );
        assert_eq!(
            at(Failure::rate_limited(Timestamp::MIN, "x")),
            Some(0),
            "never before now"
        );
        assert_eq!(
            at(Failure::rate_limited(Duration::MAX, "x")),
            Some(Timestamp::MAX.as_millisecond())
        );
    }
}
