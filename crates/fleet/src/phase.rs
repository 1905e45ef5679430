//! When an unchanged cluster is looked at again.

use std::time::Duration;

use evenkeel_core::{ClusterId, Digest};
use jiff::{SignedDuration, Timestamp};

/// The next moment, later than `now`, at which `cluster` is due by interval.
///
/// Every cluster has its own phase inside the interval, from a stable hash of its id: the checks of a fleet spread
/// evenly, and a restart does not align them.
pub(crate) fn next_check(cluster: &ClusterId, interval: Duration, now: Timestamp) -> Timestamp {
    let interval = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
    let [a, b, c, d, ..] = *Digest::of(cluster.as_str()).as_bytes();
    let phase = i64::from(u32::from_be_bytes([a, b, c, d])) % interval;
    let since = (now.as_millisecond() - phase).rem_euclid(interval);
    now.saturating_add(SignedDuration::from_millis(interval - since))
        .unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> ClusterId {
        ClusterId::new(text).expect("an id")
    }

    proptest! {
        #[test]
        fn it_is_ahead_by_at_most_an_interval(now in 0i64..4_000_000_000_000, seconds in 1u64..86_400, name in "[a-z]{1,8}") {
            let now = Timestamp::from_millisecond(now).expect("a moment");
            let next = next_check(&id(&name), Duration::from_secs(seconds), now);
            let ahead = next.duration_since(now).as_millis();
            prop_assert!(ahead > 0 && ahead <= i128::from(seconds) * 1_000);
        }

        #[test]
        fn it_does_not_depend_on_when_it_is_asked(offset in 0i64..299_000) {
            let interval = Duration::from_secs(300);
            let start = next_check(&id("c1"), interval, Timestamp::UNIX_EPOCH);
            let later = start.saturating_add(SignedDuration::from_millis(offset)).expect("a moment");
            let expected = start.saturating_add(SignedDuration::from_secs(300)).expect("a moment");
            prop_assert_eq!(next_check(&id("c1"), interval, later), expected);
        }
    }

    #[test]
    fn a_fleet_spreads() {
        let interval = Duration::from_secs(100);
        let mut buckets = [0; 10];
        for number in 0..1_000 {
            let next = next_check(&id(&format!("c{number}")), interval, Timestamp::UNIX_EPOCH);
            buckets[(next.as_millisecond() as usize - 1) / 10_000] += 1;
        }
        assert!(
            buckets.iter().all(|count| (60..140).contains(count)),
            "{buckets:?}"
        );
    }
}
