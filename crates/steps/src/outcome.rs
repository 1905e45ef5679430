//! How a step can end, and what it may want to change.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;

/// How a step ended without failing. `T` is what it provides: a step that is done must hand it over.
#[must_use = "an outcome that is dropped is work that nobody hears of"]
#[derive(Clone, PartialEq, Eq)]
pub enum Outcome<T = ()> {
    /// All is as it should be; nothing was written.
    Done(T),
    /// Something outside was written.
    Changed {
        /// What the step provides.
        value: T,
        /// What changed, for people: `3 objects updated`.
        summary: String,
    },
    /// Not an error, but not done either: look again later. Steps that depend on this one are blocked.
    Wait {
        /// When to look again.
        delay: Delay,
        /// For what it waits.
        reason: String,
    },
    /// Ends the pass cleanly: no further step starts, publish still runs.
    Stop {
        /// Why.
        reason: String,
    },
}

/// Why a step failed, in the classes that decide what happens next.
#[must_use = "a failure that is dropped is an error that nobody hears of"]
#[derive(Clone)]
pub struct Failure {
    class: FailureClass,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The classes of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// May be gone next time: network, overload, timeout. Retried with back-off.
    Transient,
    /// The other side named a time before which it does not want to be asked again.
    RateLimited {
        /// That time.
        until: Delay,
    },
    /// Somebody else wrote at the same time. Retried at once, quietly.
    Conflict,
    /// The input is wrong; no retry helps before it changes.
    Invalid,
    /// The other side does not let us. Retried rarely.
    Forbidden,
    /// A mistake in Evenkeel itself, such as a panic. Retried rarely.
    Bug,
}

/// When to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delay {
    /// This long after the step ended.
    After(Duration),
    /// At this moment.
    Until(Timestamp),
}

/// One thing a step is going to change, as shown by a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What is done: `create`, `update`, `delete`.
    pub verb: Cow<'static, str>,
    /// To what: `Deployment apps/web`.
    pub target: String,
    /// How, in words or as a diff. Must hold no secret.
    pub detail: Option<String>,
}

/// What a step has decided after it observed and planned.
#[must_use = "a decision that is dropped is work that nobody does"]
pub enum Decision<'a, T = ()> {
    /// Nothing outside has to be written by this step; it has ended.
    End(Outcome<T>),
    /// These changes are to be made, by this future. A dry run shows the changes and never polls the future.
    Act {
        /// What will change.
        changes: Vec<Change>,
        /// The writing itself.
        act: BoxFuture<'a, Result<Outcome<T>, Failure>>,
    },
}

// === impl Outcome ===

impl Outcome<()> {
    /// All is as it should be.
    pub const fn done() -> Self {
        Self::Done(())
    }

    /// Something outside was written.
    pub fn changed(summary: impl Into<String>) -> Self {
        Self::Changed {
            value: (),
            summary: summary.into(),
        }
    }
}

impl<T> Outcome<T> {
    /// Something outside was written, and `value` is handed on.
    pub fn changed_with(value: T, summary: impl Into<String>) -> Self {
        Self::Changed {
            value,
            summary: summary.into(),
        }
    }

    /// Look again after a [`Duration`] or at a [`Timestamp`].
    pub fn wait(delay: impl Into<Delay>, reason: impl Into<String>) -> Self {
        Self::Wait {
            delay: delay.into(),
            reason: reason.into(),
        }
    }

    /// End the pass cleanly.
    pub fn stop(reason: impl Into<String>) -> Self {
        Self::Stop {
            reason: reason.into(),
        }
    }

    /// The same outcome with another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Done(value) => Outcome::Done(f(value)),
            Self::Changed { value, summary } => Outcome::Changed {
                value: f(value),
                summary,
            },
            Self::Wait { delay, reason } => Outcome::Wait { delay, reason },
            Self::Stop { reason } => Outcome::Stop { reason },
        }
    }
}

/// Without the value: it may be secret.
impl<T> fmt::Debug for Outcome<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(_) => f.write_str("Done"),
            Self::Changed { summary, .. } => write!(f, "Changed({summary:?})"),
            Self::Wait { delay, reason } => write!(f, "Wait({delay:?}, {reason:?})"),
            Self::Stop { reason } => write!(f, "Stop({reason:?})"),
        }
    }
}

// === impl Failure ===

impl Failure {
    /// A failure of the given class. `message` says what failed, on what, and what to do; it holds no secret.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            source: None,
        }
    }

    /// See [`FailureClass::Transient`].
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(FailureClass::Transient, message)
    }

    /// See [`FailureClass::RateLimited`].
    pub fn rate_limited(until: impl Into<Delay>, message: impl Into<String>) -> Self {
        Self::new(FailureClass::RateLimited { until: until.into() }, message)
    }

    /// See [`FailureClass::Conflict`].
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(FailureClass::Conflict, message)
    }

    /// See [`FailureClass::Invalid`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(FailureClass::Invalid, message)
    }

    /// See [`FailureClass::Forbidden`].
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(FailureClass::Forbidden, message)
    }

    /// See [`FailureClass::Bug`].
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(FailureClass::Bug, message)
    }

    /// Keeps the error that led here, for logs.
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// The class.
    pub fn class(&self) -> FailureClass {
        self.class
    }

    /// What failed.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failure({}: {:?})", self.class.label(), self.message)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

// === impl FailureClass ===

impl FailureClass {
    /// One word for metrics and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::RateLimited { .. } => "rate_limited",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
            Self::Forbidden => "forbidden",
            Self::Bug => "bug",
        }
    }
}

// === impl Delay ===

impl Delay {
    /// The moment meant, seen from `now`. A moment beyond what a timestamp can hold is the last one.
    pub fn moment(self, now: Timestamp) -> Timestamp {
        match self {
            Self::After(delay) => now.checked_add(delay).unwrap_or(Timestamp::MAX),
            Self::Until(moment) => moment,
        }
    }
}

impl From<Duration> for Delay {
    fn from(delay: Duration) -> Self {
        Self::After(delay)
    }
}

impl From<Timestamp> for Delay {
    fn from(moment: Timestamp) -> Self {
        Self::Until(moment)
    }
}

// === impl Change ===

impl Change {
    /// A change without detail.
    pub fn new(verb: impl Into<Cow<'static, str>>, target: impl Into<String>) -> Self {
        Self {
            verb: verb.into(),
            target: target.into(),
            detail: None,
        }
    }

    /// Adds how it changes.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.target)?;
        if let Some(detail) = &self.detail {
            write!(f, ": {detail}")?;
        }
        Ok(())
    }
}

// === impl Decision ===

impl<'a, T> Decision<'a, T> {
    /// Changes to make, and the future that makes them.
    pub fn act(
        changes: Vec<Change>,
        act: impl Future<Output = Result<Outcome<T>, Failure>> + Send + 'a,
    ) -> Self {
        Self::Act {
            changes,
            act: Box::pin(act),
        }
    }
}

impl<T> From<Outcome<T>> for Decision<'_, T> {
    fn from(outcome: Outcome<T>) -> Self {
        Self::End(outcome)
    }
}

impl<T> fmt::Debug for Decision<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End(outcome) => outcome.fmt(f),
            Self::Act { changes, .. } => f.debug_tuple("Act").field(changes).finish(),
        }
    }
}
