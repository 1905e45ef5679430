//! Samples, and what stands for all of them.

use std::time::Duration;

/// The middle of `samples`; of an even number the higher of the two in the middle. Zero when there are none.
pub(super) fn median<T: Ord + Copy + Default>(mut samples: Vec<T>) -> T {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// What 99 of 100 of `times` do not pass, in milliseconds. Zero when there are none.
pub(super) fn p99(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    let place = times.len() * 99 / 100;
    let time = times.get(place.min(times.len().saturating_sub(1)));
    time.copied().map_or(0.0, millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![9, 1, 5]), 5);
        assert_eq!(median(vec![4, 1, 2, 3]), 3);
        assert_eq!(median(Vec::<u64>::new()), 0);
    }

    #[test]
    fn one_in_a_hundred_may_pass_the_ninety_ninth() {
        let mut times: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert!((p99(&mut times) - 199.0).abs() < 1e-9);
        assert!((p99(&mut [Duration::from_millis(7)]) - 7.0).abs() < 1e-9);
        assert!(p99(&mut []).abs() < 1e-9);
    }
}
