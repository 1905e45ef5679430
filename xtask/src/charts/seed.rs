//! Numbers for the generator of values: the same seed, the same numbers, on every machine and with every release.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
pub(super) struct Seed(u64);

impl Seed {
    /// A stream of its own for each text, so that one chart's sets do not depend on which others are rendered.
    pub(super) fn new(seed: u64, text: &str) -> Self {
        // FNV-1a.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(seed ^ hash)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// True in so many of a hundred cases.
    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// One of these; none of none.
    pub(super) fn choose<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(from.len()).ok().filter(|count| *count > 0)?;
        usize::try_from(self.next() % count)
            .ok()
            .and_then(|index| from.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let numbers = |seed, text| {
            let mut seed = Seed::new(seed, text);
            [seed.next(), seed.next(), seed.next()]
        };
        assert_eq!(numbers(1, "redis"), numbers(1, "redis"));
        assert_ne!(numbers(1, "redis"), numbers(2, "redis"));
        assert_ne!(numbers(1, "redis"), numbers(1, "kafka"));
        let mut seed = Seed::new(1, "");
        let often = (0..1000).filter(|_| seed.percent(30)).count();
        assert!((200..400).contains(&often), "{often}");
        assert_eq!(seed.choose::<u8>(&[]), None);
    }
}
