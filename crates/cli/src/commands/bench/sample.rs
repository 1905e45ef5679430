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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![9, 1, 5]), 5);
        assert_eq!(median(vec![4, 1, 2, 3]), 3);
        assert_eq!(median(Vec::<u64>::new()), 0);
    }
}
