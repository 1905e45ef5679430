//! The decisions that a generator makes, recorded, so that a case can be made again with fewer of them.
//!
//! Every generator draws from [`Choices`] and prefers the small: with zeros it makes its simplest case. That is all
//! that shrinking needs to know, whatever the case is.

/// A source of decisions: random, or a recording.
pub(crate) struct Choices {
    made: Vec<u32>,
    recording: Option<Vec<u32>>,
    state: u64,
}

impl Choices {
    /// Random ones. Case `index` of a seed is the same whatever came before it.
    pub(crate) fn random(seed: u64, index: u64) -> Self {
        Self {
            made: Vec::new(),
            recording: None,
            state: mix(seed ^ mix(index.wrapping_add(0x9e37_79b9_7f4a_7c15))),
        }
    }

    /// Those of a recording, then zeros.
    pub(crate) fn replay(recording: Vec<u32>) -> Self {
        Self {
            made: Vec::new(),
            recording: Some(recording),
            state: 0,
        }
    }

    /// What was decided so far.
    pub(crate) fn into_made(self) -> Vec<u32> {
        self.made
    }

    /// A number below `bound`, and 0 when there is none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let last = u32::try_from(bound.saturating_sub(1)).unwrap_or(u32::MAX);
        let choice = match &self.recording {
            Some(recording) => recording.get(self.made.len()).copied().unwrap_or(0).min(last),
            None => {
                self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let range = u64::from(last) + 1;
                u32::try_from((mix(self.state) >> 16) % range).unwrap_or(0)
            }
        };
        self.made.push(choice);
        choice as usize
    }

    /// True once in that many times. The simple answer is no.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) + 1 == times.max(2)
    }

    /// One of these. The simplest comes first.
    pub(crate) fn pick<'p, T: ?Sized>(&mut self, from: &'p [&'p T]) -> &'p T
    where
        &'p T: Default,
    {
        let index = self.below(from.len());
        from.get(index).copied().unwrap_or_default()
    }

    /// The index of a weight, as often as it weighs.
    pub(crate) fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut rest = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            if rest < *weight {
                return index;
            }
            rest -= weight;
        }
        0
    }

    /// How many of something: mostly few.
    pub(crate) fn count(&mut self, least: usize, most: usize) -> usize {
        let mut count = least;
        while count < most && self.below(3) > 0 {
            count += 1;
        }
        count
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Recordings that are simpler than this one: parts left out, set to zero, or lowered.
pub(crate) fn simpler(recording: &[u32]) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    let mut size = recording.len().next_power_of_two();
    while size > 0 {
        for start in (0..recording.len()).step_by(size) {
            let end = (start + size).min(recording.len());
            let (Some(before), Some(part), Some(after)) = (
                recording.get(..start),
                recording.get(start..end),
                recording.get(end..),
            ) else {
                continue;
            };
            all.push([before, after].concat());
            if part.iter().any(|choice| *choice > 0) {
                all.push([before, &vec![0; part.len()], after].concat());
            }
        }
        size /= 2;
    }
    for (index, choice) in recording.iter().enumerate() {
        for lower in [choice / 2, choice.saturating_sub(1)] {
            if lower < *choice && lower > 0 {
                let mut lowered = recording.to_vec();
                if let Some(place) = lowered.get_mut(index) {
                    *place = lower;
                }
                all.push(lowered);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_makes_the_same_decisions() {
        let decide = |choices: &mut Choices| {
            let numbers: Vec<usize> = (1..50).map(|bound| choices.below(bound)).collect();
            (
                numbers,
                choices.once_in(3),
                choices.weighted(&[1, 2, 3]),
                choices.count(1, 5),
            )
        };
        let mut random = Choices::random(1, 2);
        let first = decide(&mut random);
        let mut replayed = Choices::replay(random.into_made());
        assert_eq!(decide(&mut replayed), first);
        assert_eq!(decide(&mut Choices::random(1, 2)), first);
        assert_ne!(decide(&mut Choices::random(1, 3)), first);
    }

    #[test]
    fn zeros_make_the_simplest_case() {
        let mut zeros = Choices::replay(Vec::new());
        assert_eq!(zeros.below(10), 0);
        assert!(!zeros.once_in(2) && !zeros.once_in(1));
        assert_eq!(zeros.weighted(&[5, 5]), 0);
        assert_eq!(zeros.count(1, 9), 1);
        assert_eq!(zeros.pick(&["a", "b"]), "a");
    }

    #[test]
    fn simpler_recordings_are_shorter_or_smaller() {
        let recording = [3, 0, 7];
        let weight = |recording: &[u32]| recording.iter().map(|choice| u64::from(*choice) + 1).sum::<u64>();
        let all = simpler(&recording);
        assert!(all.contains(&vec![]) && all.contains(&vec![3, 7]) && all.contains(&vec![3, 0, 6]));
        assert!(
            all.iter().all(|other| weight(other) < weight(&recording)),
            "{all:?}"
        );
    }
}
