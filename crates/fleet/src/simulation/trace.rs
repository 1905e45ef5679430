//! What happened, as a digest and, if wanted, in words.

use std::fmt::Write as _;

/// FNV-1a, which is enough to tell one schedule from another.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The trace of one schedule.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) digest: u64,
    pub(super) steps: u64,
    pub(super) lines: Option<Vec<String>>,
}

/// One thing that happened.
pub(super) struct Event<'e> {
    /// Virtual milliseconds since the beginning.
    pub(super) at: u64,
    /// The process, or 0 for what is outside of all.
    pub(super) process: u64,
    /// What.
    pub(super) what: &'e str,
    /// To what.
    pub(super) about: &'e str,
    /// A number that belongs to it, like a fence.
    pub(super) number: u64,
}

impl Trace {
    pub(super) fn new(keep: bool) -> Self {
        Self {
            digest: BASIS,
            steps: 0,
            lines: keep.then(Vec::new),
        }
    }

    fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    pub(super) fn note(&mut self, event: &Event<'_>) {
        self.steps += 1;
        self.mix(&event.at.to_le_bytes());
        self.mix(&[u8::try_from(event.process).unwrap_or(u8::MAX)]);
        self.mix(event.what.as_bytes());
        self.mix(event.about.as_bytes());
        self.mix(&event.number.to_le_bytes());
        if let Some(lines) = &mut self.lines {
            let mut line = format!("{:>9.3} s  ", event.at as f64 / 1_000.0);
            let _ = match event.process {
                0 => write!(line, "        "),
                process => write!(line, "p{process:<6} "),
            };
            let _ = write!(line, "{} {}", event.what, event.about);
            if event.number > 0 {
                let _ = write!(line, " ({})", event.number);
            }
            lines.push(line);
        }
    }
}
