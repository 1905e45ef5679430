//! What a render may see of the outside: the time, randomness, the local zone, and its bounds.

use std::fmt;

use crate::keys::KeyMaker;

/// A source of random bytes for `randAlphaNum`, `uuidv4` and their like.
pub trait RandomSource {
    /// Fills the buffer with random bytes.
    fn fill(&mut self, buffer: &mut [u8]);
}

/// A point in time, given as a value: the engine reads no clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instant {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
}

/// What a map gives for a key it does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// The zero value of the map's element type (`missingkey=zero`, Helm's choice).
    #[default]
    Zero,
    /// No value at all, printed as `<no value>` (Go's default).
    Invalid,
    /// An error (`helm lint --strict`).
    Error,
}

/// Bounds that turn a hostile or broken template into an error. Go has only the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Templates within templates, counting `template`, `include` and `tpl`.
    pub call_depth: usize,
    /// Bytes that one executor may write over all its executions.
    pub output_bytes: usize,
    /// Bytes that functions may make over all executions, of which most never reach the output.
    pub work_bytes: usize,
    /// Passes through `range` over all executions.
    pub iterations: usize,
    /// How deep lists and maps may nest when they are printed, copied or converted; a map can hold itself.
    pub value_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_depth: 10_000,
            output_bytes: 64 << 20,
            work_bytes: 1 << 30,
            iterations: 10_000_000,
            value_depth: 1_000,
        }
    }
}

/// The bound that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::call_depth`]
    CallDepth(usize),
    /// [`Limits::output_bytes`]
    OutputBytes(usize),
    /// [`Limits::work_bytes`]
    WorkBytes(usize),
    /// [`Limits::iterations`]
    Iterations(usize),
    /// [`Limits::value_depth`]
    ValueDepth(usize),
    /// The caller's deadline.
    Deadline,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CallDepth(limit) => write!(f, "exceeded maximum template depth ({limit})"),
            Self::OutputBytes(limit) => write!(f, "the output is larger than the limit of {limit} bytes"),
            Self::WorkBytes(limit) => {
                write!(
                    f,
                    "the functions made more than the limit of {limit} bytes of intermediate text"
                )
            }
            Self::Iterations(limit) => write!(f, "more than {limit} passes through range"),
            Self::ValueDepth(limit) => write!(f, "a value nests deeper than {limit} levels or holds itself"),
            Self::Deadline => write!(f, "the time limit of the render has passed"),
        }
    }
}

/// What makes a render's result depend on more than its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taint {
    /// Random bytes were used.
    Random,
    /// The current time was used.
    Time,
    /// The target cluster was asked (`lookup`).
    Lookup,
}

/// The taints of a render.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taints {
    /// Random bytes were used.
    pub random: bool,
    /// The current time was used.
    pub time: bool,
    /// The target cluster was asked.
    pub lookup: bool,
}

impl Taints {
    /// Whether the render would give the same bytes again.
    pub const fn is_clean(self) -> bool {
        !self.random && !self.time && !self.lookup
    }

    /// Marks the render.
    pub fn add(&mut self, taint: Taint) {
        match taint {
            Taint::Random => self.random = true,
            Taint::Time => self.time = true,
            Taint::Lookup => self.lookup = true,
        }
    }
}

/// Everything outside the templates and their values that a render depends on.
pub struct Env {
    /// The current time for `now` and `ago`.
    pub now: Instant,
    /// Name of the local time zone for `date` and its like (IANA name; `UTC` where unknown).
    pub zone: String,
    /// Randomness.
    pub random: Box<dyn RandomSource>,
    /// Private keys for `genCA` and its like; without a maker these functions fail.
    pub keys: Option<Box<dyn KeyMaker>>,
    /// What a missing map key gives.
    pub missing_key: MissingKey,
    /// Bounds.
    pub limits: Limits,
    /// Asked now and then; true stops the render.
    pub deadline: Option<Box<dyn Fn() -> bool>>,
}

impl Env {
    /// An environment with Helm's settings, UTC, default limits, and nobody to make keys.
    pub fn new(now: Instant, random: Box<dyn RandomSource>) -> Self {
        Self {
            now,
            zone: "UTC".to_owned(),
            random,
            keys: None,
            missing_key: MissingKey::Zero,
            limits: Limits::default(),
            deadline: None,
        }
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("now", &self.now)
            .field("zone", &self.zone)
            .field("makes_keys", &self.keys.is_some())
            .field("missing_key", &self.missing_key)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
