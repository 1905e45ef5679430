//! How long to wait before another try, and waiting for one of several things.

use std::time::Duration;

use evenkeel_core::Clock;
use evenkeel_steps::{Backoff, RetryPolicy};
use jiff::{SignedDuration, Timestamp};

use crate::Settings;

/// The share of a pause that chance may take away.
const JITTER_SHARE: f64 = 0.25;

/// Where random numbers in `0.0..1.0` come from, so that what failed together does not come back together.
pub(crate) type Jitter = std::sync::Arc<dyn Fn() -> f64 + Send + Sync>;

/// What the system's random numbers give.
pub(crate) fn jitter() -> f64 {
    rand::random::<f64>()
}

/// `now` and `pause`.
pub(crate) fn after(now: Timestamp, pause: Duration) -> Timestamp {
    let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
    now.saturating_add(pause).unwrap_or(Timestamp::MAX)
}

/// How long from `clock`'s now until `moment`; nothing when it has passed.
pub(crate) fn until(clock: &dyn Clock, moment: Timestamp) -> Duration {
    Duration::try_from(moment.duration_since(clock.now())).unwrap_or(Duration::ZERO)
}

/// The pause after `failures` failures in a row, doubling from the first up to the longest.
pub(crate) fn backoff(settings: &Settings, failures: u32, jitter: f64) -> Duration {
    doubling(settings).delay(failures.saturating_sub(1), jitter)
}

/// The pause before something that has failed for `since` is tried again: as long as it has failed already, so that it
/// doubles without anybody counting, and survives a restart.
pub(crate) fn backoff_since(settings: &Settings, since: Duration, jitter: f64) -> Duration {
    let longest = settings.retry_longest.max(settings.retry_first);
    since
        .clamp(settings.retry_first, longest)
        .mul_f64(1.0 - JITTER_SHARE * jitter)
}

/// When a failed attempt at an operation is due again.
pub(crate) fn retry_policy(settings: &Settings) -> RetryPolicy {
    let defaults = RetryPolicy::default();
    RetryPolicy {
        backoff: doubling(settings),
        conflict: defaults.conflict,
        forbidden: defaults.forbidden.min(settings.retry_longest),
        bug: defaults.bug.min(settings.retry_longest),
    }
}

fn doubling(settings: &Settings) -> Backoff {
    Backoff {
        first: settings.retry_first,
        steady: 1,
        cap: settings.retry_longest.max(settings.retry_first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let settings = Settings {
            retry_first: Duration::from_secs(2),
            retry_longest: Duration::from_secs(10),
            ..Settings::default()
        };
        let pauses: Vec<_> = (1..6)
            .map(|failures| backoff(&settings, failures, 0.0).as_secs())
            .collect();
        assert_eq!(pauses, [2, 4, 8, 10, 10]);
        let since = |seconds| backoff_since(&settings, Duration::from_secs(seconds), 0.0).as_secs();
        assert_eq!([since(0), since(3), since(60)], [2, 3, 10]);
    }

    #[test]
    fn the_policy_never_waits_longer_than_the_settings() {
        let settings = Settings {
            retry_longest: Duration::from_secs(10),
            ..Settings::default()
        };
        let policy = retry_policy(&settings);
        assert!(policy.forbidden <= settings.retry_longest && policy.bug <= settings.retry_longest);
    }

    #[test]
    fn moments_do_not_overflow() {
        assert_eq!(after(Timestamp::MAX, Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(after(Timestamp::UNIX_EPOCH, Duration::MAX), Timestamp::MAX);
    }
}
