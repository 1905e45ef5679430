//! What a caller brings to a pass: how to gather, guard and publish, and under which conditions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::observer::Announcer;
use crate::{
    Cancel, Change, Failure, Never, Observer, Report, RetryPolicy, Runtime, Slot, Unobserved, Values,
};

/// How long gathering may take when the pass has no budget.
pub const DEFAULT_GATHER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long publishing may take when the pass has no budget.
pub const DEFAULT_PUBLISH_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a running step may go on after the pass was cancelled, before it is dropped.
pub const DEFAULT_CANCEL_GRACE: Duration = Duration::from_secs(10);

/// The frame around the steps: gather → guard → (select → run) → publish.
pub trait Pass: Send + Sync {
    /// The snapshot.
    type State: Send + Sync + 'static;

    /// Reads all that the steps decide by. Writes nothing.
    fn gather(&self) -> impl Future<Output = Result<Arc<Self::State>, Failure>> + Send;

    /// Whether the steps may run: deletion, protection, suspension.
    fn guard(&self, state: &Self::State) -> Guard {
        let _ = state;
        Guard::Proceed
    }

    /// Says what came of it, and is the only writer of status. Always called, also after failures, timeouts,
    /// panics and cancellation.
    fn publish(&self, report: &Report<Self::State>) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// What the guard lets through.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// Everything.
    Proceed,
    /// Not everything. All restrictions hold together. Never empty when made by the functions below.
    Restrict(Vec<Restriction>),
    /// Nothing.
    Stop {
        /// Why, for people.
        reason: String,
        /// When to look again, if not at the next change.
        until: Option<Timestamp>,
    },
}

/// One restriction of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restriction {
    /// Why, for people.
    pub reason: String,
    /// What.
    pub kind: RestrictionKind,
}

/// What a restriction leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestrictionKind {
    /// Only these steps.
    Only(Vec<String>),
    /// All steps but these.
    Except(Vec<String>),
    /// All steps, but they plan and do not act: the pass becomes a dry run.
    PlanOnly,
    /// All steps, but none acts whose plan holds a [change](crate::Change) with one of these verbs: what a policy
    /// does not permit, checked here and not by each step (E8).
    Forbid(Vec<String>),
    /// All steps, but one acts only when it plans exactly what was approved for it: a plan that somebody has seen is carried out, and
    /// nothing else, also when the world has changed since (E12).
    Approved(Vec<(String, Vec<Change>)>),
}

/// Whether a pass writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Steps act.
    #[default]
    Live,
    /// Steps stop after their plan; the report holds the planned changes.
    DryRun,
}

/// How much time a pass has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// For gathering and all steps. When it is used up, no step starts and running ones are dropped.
    pub work: Duration,
    /// For publishing, on top: work cannot eat it.
    pub publish: Duration,
}

/// The conditions of one pass.
#[must_use]
#[derive(Clone)]
pub struct PassOptions {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) announcer: Announcer,
    pub(crate) cancel: Arc<dyn Cancel>,
    pub(crate) cancel_grace: Duration,
    pub(crate) mode: Mode,
    pub(crate) parallelism: usize,
    pub(crate) budget: Option<Budget>,
    pub(crate) retry: RetryPolicy,
    pub(crate) attempt: u32,
    pub(crate) jitter: f64,
    pub(crate) given: Arc<Values>,
}

// === impl Guard ===

impl Guard {
    /// Only these steps run.
    pub fn only<N: Into<String>>(steps: impl IntoIterator<Item = N>, reason: impl Into<String>) -> Self {
        Self::restrict(
            RestrictionKind::Only(steps.into_iter().map(Into::into).collect()),
            reason,
        )
    }

    /// These steps do not run.
    pub fn except<N: Into<String>>(steps: impl IntoIterator<Item = N>, reason: impl Into<String>) -> Self {
        Self::restrict(
            RestrictionKind::Except(steps.into_iter().map(Into::into).collect()),
            reason,
        )
    }

    /// No step makes changes with these verbs: `Guard::forbid(["delete"], "spec.deletionPolicy is Retain")`.
    pub fn forbid<N: Into<String>>(verbs: impl IntoIterator<Item = N>, reason: impl Into<String>) -> Self {
        Self::restrict(
            RestrictionKind::Forbid(verbs.into_iter().map(Into::into).collect()),
            reason,
        )
    }

    /// Each step acts only when it plans exactly these changes; steps that are not named do not act.
    pub fn approved(
        changes: impl IntoIterator<Item = (String, Vec<Change>)>,
        reason: impl Into<String>,
    ) -> Self {
        Self::restrict(RestrictionKind::Approved(changes.into_iter().collect()), reason)
    }

    /// Steps plan and do not act.
    pub fn plan_only(reason: impl Into<String>) -> Self {
        Self::restrict(RestrictionKind::PlanOnly, reason)
    }

    /// No step runs.
    pub fn stop(reason: impl Into<String>) -> Self {
        Self::Stop {
            reason: reason.into(),
            until: None,
        }
    }

    /// No step runs before `until`.
    pub fn stop_until(until: Timestamp, reason: impl Into<String>) -> Self {
        Self::Stop {
            reason: reason.into(),
            until: Some(until),
        }
    }

    /// Both guards hold: a stop beats all, restrictions add up.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (stop @ Self::Stop { .. }, _) | (_, stop @ Self::Stop { .. }) => stop,
            (Self::Proceed, one) | (one, Self::Proceed) => one,
            (Self::Restrict(mut all), Self::Restrict(more)) => {
                all.extend(more);
                Self::Restrict(all)
            }
        }
    }

    fn restrict(kind: RestrictionKind, reason: impl Into<String>) -> Self {
        Self::Restrict(vec![Restriction {
            reason: reason.into(),
            kind,
        }])
    }
}

// === impl PassOptions ===

impl PassOptions {
    /// A live pass: one step at a time, no budget beyond the steps' own timeouts, never cancelled, unobserved.
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self {
            runtime,
            announcer: Announcer(Arc::new(Unobserved)),
            cancel: Arc::new(Never),
            cancel_grace: DEFAULT_CANCEL_GRACE,
            mode: Mode::Live,
            parallelism: 1,
            budget: None,
            retry: RetryPolicy::default(),
            attempt: 0,
            jitter: 0.0,
            given: Arc::default(),
        }
    }

    /// Who watches.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.announcer = Announcer(observer);
        self
    }

    /// The sign to stop. No step starts after it was given; running ones have [`cancel_grace`](Self::cancel_grace).
    pub fn cancel(mut self, cancel: impl Cancel + 'static) -> Self {
        self.cancel = Arc::new(cancel);
        self
    }

    /// How long running steps may go on after cancellation. [`DEFAULT_CANCEL_GRACE`] when not set.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// Whether steps act.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// How many steps may run at once; 0 counts as 1.
    pub fn parallelism(mut self, steps: usize) -> Self {
        self.parallelism = steps.max(1);
        self
    }

    /// The time there is.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// When failures are due again.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// How many passes in a row have failed before this one, and a random number in `0.0..1.0`, from which the
    /// back-off of transient failures is made.
    pub fn attempt(mut self, failed_before: u32, jitter: f64) -> Self {
        self.attempt = failed_before;
        self.jitter = jitter;
        self
    }

    /// Values for the slots that the pipeline declares as given.
    pub fn give(mut self, values: Values) -> Self {
        self.given = Arc::new(values);
        self
    }

    /// The value for one slot; shorthand for [`give`](Self::give).
    pub fn give_one<T: Send + Sync + 'static>(self, slot: Slot<T>, value: T) -> Self {
        self.give(Values::new().with(slot, value))
    }
}

impl fmt::Debug for PassOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassOptions")
            .field("mode", &self.mode)
            .field("parallelism", &self.parallelism)
            .field("budget", &self.budget)
            .field("cancel_grace", &self.cancel_grace)
            .field("retry", &self.retry)
            .field("attempt", &self.attempt)
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}
