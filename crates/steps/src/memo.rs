//! What a step remembers of an expensive look, so that it need not look again while nothing changed (E10).

use std::time::Duration;

use jiff::Timestamp;

/// The result of a look, with what it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memo<T> {
    /// A digest of the inputs.
    pub input: String,
    /// When the look was taken.
    pub seen_at: Timestamp,
    /// What was seen.
    pub value: T,
}

/// How long a look counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Freshness {
    /// At most this long.
    pub ttl: Duration,
    /// The share of `ttl`, from 0 to 1, by which it may count shorter, so that looks taken together are not all
    /// repeated together.
    pub spread: f64,
}

impl<T> Memo<T> {
    /// What was seen, when the inputs are the same and it is not too old. A memo from the future counts as too old:
    /// the clock was set back, and nobody knows how far.
    pub fn fresh(&self, input: &str, freshness: Freshness, now: Timestamp) -> Option<&T> {
        let same = self.input == input;
        let young = self.seen_at <= now && now < self.expires(freshness);
        (same && young).then_some(&self.value)
    }

    /// When it no longer counts; the same for the same memo, whoever asks.
    pub fn expires(&self, freshness: Freshness) -> Timestamp {
        let spread = freshness.spread.clamp(0.0, 1.0) * self.share();
        let counts = freshness.ttl.mul_f64(1.0 - spread);
        self.seen_at.checked_add(counts).unwrap_or(Timestamp::MAX)
    }

    /// A number from 0 to 1 that differs from memo to memo (FNV-1a over inputs and time).
    fn share(&self) -> f64 {
        const BASIS: u32 = 0x811c_9dc5;
        const PRIME: u32 = 0x0100_0193;
        let moment = self.seen_at.as_nanosecond().to_be_bytes();
        let hash = self
            .input
            .bytes()
            .chain(moment)
            .fold(BASIS, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(PRIME));
        f64::from(hash) / f64::from(u32::MAX)
    }
}
