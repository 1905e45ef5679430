//! What came of a pass.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::slot::{AnyArc, SlotId};
use crate::{Change, Due, Failure, Guard, Mode, Name, ProgressLine, Slot};

/// What came of a pass: one entry per step, whatever happened, and when the next pass is due.
#[must_use = "the report says when the next pass is due"]
pub struct Report<S> {
    /// The pipeline.
    pub pipeline: Name,
    /// Whether steps acted. A guard can turn a live pass into a dry run.
    pub mode: Mode,
    /// When the pass began.
    pub started: Timestamp,
    /// How long it took: up to publishing while publish reads the report, all of it afterwards.
    pub duration: Duration,
    /// The snapshot, unless gathering failed.
    pub state: Option<Arc<S>>,
    /// How gathering went.
    pub gather: Phase,
    /// What the guard said; `None` when it was not asked or broke, in which case [`Report::guard_trouble`] says why.
    pub guard: Option<Guard>,
    /// What is wrong with the guard itself.
    pub guard_trouble: Option<Trouble>,
    /// One entry per step, in the order in which one worker runs them.
    pub steps: Vec<Entry>,
    /// How publishing went; `None` while it runs.
    pub publish: Option<Phase>,
    pub(crate) values: Vec<(SlotId, Option<AnyArc>)>,
    pub(crate) cancelled: bool,
    pub(crate) attempt: u32,
}

/// A phase that can fail.
#[derive(Debug, Clone)]
pub struct Phase {
    /// How long it took.
    pub duration: Duration,
    /// What went wrong.
    pub trouble: Option<Trouble>,
}

/// A failure with the moment at which it is due again.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// The failure.
    pub failure: Failure,
    /// When to try again; `None` when only a change can help, or when the pass was cancelled.
    pub retry_at: Option<Timestamp>,
}

/// The timeline entry of one step.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The step.
    pub name: Name,
    /// When it started; `None` when it did not.
    pub started: Option<Timestamp>,
    /// How long it ran.
    pub duration: Duration,
    /// How it ended.
    pub ending: Ending,
    /// What it planned to change. In a live pass it then did so, as far as `ending` says.
    pub changes: Vec<Change>,
    /// What it reported while it ran; the last
    /// [`MAX_PROGRESS_LINES`](crate::MAX_PROGRESS_LINES) lines.
    pub progress: Vec<ProgressLine>,
    /// How many earlier lines were dropped.
    pub progress_dropped: usize,
    /// When the step wants another pass because of how it ended.
    pub retry_at: Option<Timestamp>,
    /// What is due later, however it ended.
    pub due: Option<Due>,
    /// The condition that people see of it.
    pub condition: Option<&'static str>,
}

/// How a step ended, or why it did not run.
#[derive(Debug, Clone)]
pub enum Ending {
    /// It found all in order.
    Done,
    /// It changed something.
    Changed {
        /// What, for people.
        summary: String,
    },
    /// It would change something: see [`Entry::changes`].
    Planned,
    /// It waits.
    Waiting {
        /// Until when, at the latest.
        until: Timestamp,
        /// For what.
        reason: String,
    },
    /// It ended the pass.
    Stopped {
        /// Why.
        reason: String,
    },
    /// It failed.
    Failed(Failure),
    /// It was dropped while it ran.
    Interrupted(Interruption),
    /// It did not run.
    Skipped(Skip),
}

/// What cuts a pass short from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// The caller cancelled.
    Cancelled,
    /// The budget for work was used up.
    OutOfTime,
}

/// Why a step did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skip {
    /// Its predicate does not hold.
    NotSelected {
        /// The predicate.
        predicate: String,
        /// Its parts that are to blame.
        because: String,
    },
    /// The guard leaves it out.
    Restricted {
        /// The guard's reason.
        reason: String,
    },
    /// The guard stopped the pass.
    GuardStopped {
        /// The guard's reason.
        reason: String,
    },
    /// There is no snapshot to work on.
    NotGathered {
        /// What went wrong.
        reason: String,
    },
    /// A step it depends on failed or waits.
    Blocked {
        /// The culprit, which may be several steps up.
        by: Name,
        /// What is the matter with it.
        because: String,
    },
    /// It wants a step to have succeeded that did not run.
    NeedsSuccess {
        /// That step.
        of: Name,
        /// Why that one did not run.
        because: String,
    },
    /// A slot it needs is empty.
    EmptySlot {
        /// The slot.
        slot: &'static str,
        /// Why it is empty.
        because: String,
    },
    /// A step ended the pass.
    PassStopped {
        /// That step.
        by: Name,
        /// Its reason.
        reason: String,
    },
    /// It planned a change that the guard forbids. Nothing was written; see [`Entry::changes`].
    Forbidden {
        /// The change.
        change: String,
        /// The guard's reason.
        reason: String,
    },
    /// The pass was cut short.
    Interrupted(Interruption),
    /// It has nothing to do in a dry run.
    DryRun,
}

/// The pass in one word: the strongest of what its parts say. Later variants are stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conclusion {
    /// All is as it should be, and was before.
    Unchanged,
    /// Changes would be made (dry run).
    Planned,
    /// Changes were made, nothing is open.
    Changed,
    /// A step or the guard ended the pass.
    Stopped,
    /// A step waits.
    Waiting,
    /// The budget was used up.
    OutOfTime,
    /// The caller cancelled.
    Cancelled,
    /// A step, gathering, the guard or publishing failed.
    Failed,
}

/// When the next pass is due, and because of whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requeue {
    /// When.
    pub at: Timestamp,
    /// Who wants it: a step's name, or `gather`, `guard`, `publish`.
    pub wanted_by: String,
    /// Why.
    pub reason: String,
}

// === impl Report ===

impl<S> Report<S> {
    /// The entry of a step.
    pub fn step(&self, name: &str) -> Option<&Entry> {
        self.steps.iter().find(|entry| entry.name == *name)
    }

    /// The value that a step provided or the caller gave.
    pub fn value<T: Send + Sync + 'static>(&self, slot: Slot<T>) -> Option<Arc<T>> {
        let id = slot.id();
        let (_, value) = self
            .values
            .iter()
            .find(|(known, _)| known.name == id.name && known.type_id == id.type_id)?;
        Arc::clone(value.as_ref()?).downcast::<T>().ok()
    }

    /// The steps that failed.
    pub fn failures(&self) -> impl Iterator<Item = (&Name, &Failure)> {
        self.steps.iter().filter_map(|entry| match &entry.ending {
            Ending::Failed(failure) => Some((&entry.name, failure)),
            _ => None,
        })
    }

    /// All changes that steps planned, in order.
    pub fn changes(&self) -> impl Iterator<Item = (&Name, &Change)> {
        self.steps
            .iter()
            .flat_map(|entry| entry.changes.iter().map(|change| (&entry.name, change)))
    }

    /// The pass in one word.
    pub fn conclusion(&self) -> Conclusion {
        let frame = [
            self.gather.trouble.is_some().then_some(Conclusion::Failed),
            self.guard_trouble.is_some().then_some(Conclusion::Failed),
            self.publish
                .as_ref()
                .and_then(|publish| publish.trouble.as_ref())
                .map(|_| Conclusion::Failed),
            matches!(self.guard, Some(Guard::Stop { .. })).then_some(Conclusion::Stopped),
            self.cancelled.then_some(Conclusion::Cancelled),
        ];
        let steps = self.steps.iter().map(|entry| entry.ending.conclusion());
        frame
            .into_iter()
            .flatten()
            .chain(steps)
            .max()
            .unwrap_or(Conclusion::Unchanged)
    }

    /// When the next pass is due: the earliest wish of all. `None` means at the next change or periodic pass.
    pub fn requeue(&self) -> Option<Requeue> {
        let trouble = |who: &'static str, trouble: Option<&Trouble>| {
            let trouble = trouble?;
            Some((trouble.retry_at?, who.to_owned(), trouble.failure.to_string()))
        };
        let guard_stop = match &self.guard {
            Some(Guard::Stop {
                reason,
                until: Some(until),
            }) => Some((*until, "guard".to_owned(), reason.clone())),
            _ => None,
        };
        let frame = [
            trouble("gather", self.gather.trouble.as_ref()),
            trouble("guard", self.guard_trouble.as_ref()),
            guard_stop,
            trouble(
                "publish",
                self.publish.as_ref().and_then(|publish| publish.trouble.as_ref()),
            ),
        ];
        let steps = self
            .steps
            .iter()
            .filter_map(|entry| Some((entry.retry_at?, entry.name.to_string(), entry.ending.to_string())));
        let dues = self.steps.iter().filter_map(|entry| {
            let due = entry.due.as_ref()?;
            Some((due.at, entry.name.to_string(), due.reason.clone()))
        });
        let (at, wanted_by, reason) = frame
            .into_iter()
            .flatten()
            .chain(steps)
            .chain(dues)
            .min_by_key(|(at, ..)| *at)?;
        Some(Requeue {
            at,
            wanted_by,
            reason,
        })
    }
}

/// The timeline as text, one line per step.
impl<S> fmt::Display for Report<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.pipeline, self.conclusion().label())?;
        if let Some(trouble) = &self.gather.trouble {
            writeln!(f, "  (gather)  failed: {}", trouble.failure)?;
        }
        if let Some(trouble) = &self.guard_trouble {
            writeln!(f, "  (guard)  failed: {}", trouble.failure)?;
        }
        for entry in &self.steps {
            writeln!(f, "  {}  {}", entry.name, entry.ending)?;
            for change in &entry.changes {
                writeln!(f, "    {change}")?;
            }
        }
        if let Some(trouble) = self.publish.as_ref().and_then(|publish| publish.trouble.as_ref()) {
            writeln!(f, "  (publish)  failed: {}", trouble.failure)?;
        }
        Ok(())
    }
}

impl<S> fmt::Debug for Report<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("pipeline", &self.pipeline)
            .field("conclusion", &self.conclusion())
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

// === impl Ending ===

impl Ending {
    /// One word for metrics and logs.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Changed { .. } => "changed",
            Self::Planned => "planned",
            Self::Waiting { .. } => "waiting",
            Self::Stopped { .. } => "stopped",
            Self::Failed(_) => "failed",
            Self::Interrupted(_) => "interrupted",
            Self::Skipped(_) => "skipped",
        }
    }

    /// Whether the step ran and did what it is there for (in a dry run: planned it).
    pub const fn succeeded(&self) -> bool {
        matches!(self, Self::Done | Self::Changed { .. } | Self::Planned)
    }

    /// Whether steps that depend on this one must not run.
    pub(crate) const fn blocks(&self) -> bool {
        matches!(
            self,
            Self::Waiting { .. } | Self::Failed(_) | Self::Interrupted(_)
        )
    }

    fn conclusion(&self) -> Conclusion {
        match self {
            Self::Done => Conclusion::Unchanged,
            Self::Changed { .. } => Conclusion::Changed,
            Self::Planned => Conclusion::Planned,
            Self::Waiting { .. } => Conclusion::Waiting,
            Self::Stopped { .. } => Conclusion::Stopped,
            Self::Failed(_) => Conclusion::Failed,
            Self::Interrupted(interruption) | Self::Skipped(Skip::Interrupted(interruption)) => {
                match interruption {
                    Interruption::Cancelled => Conclusion::Cancelled,
                    Interruption::OutOfTime => Conclusion::OutOfTime,
                }
            }
            Self::Skipped(Skip::Forbidden { .. }) => Conclusion::Planned,
            Self::Skipped(_) => Conclusion::Unchanged,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Changed { summary } => write!(f, "changed: {summary}"),
            Self::Planned => f.write_str("planned"),
            Self::Waiting { reason, .. } => write!(f, "waiting: {reason}"),
            Self::Stopped { reason } => write!(f, "stopped: {reason}"),
            Self::Failed(failure) => write!(f, "failed: {failure}"),
            Self::Interrupted(interruption) => write!(f, "interrupted: {interruption}"),
            Self::Skipped(skip) => write!(f, "skipped: {skip}"),
        }
    }
}

// === impl Skip ===

impl Skip {
    /// One word for metrics and logs.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::NotSelected { .. } => "not_selected",
            Self::Restricted { .. } => "restricted",
            Self::GuardStopped { .. } => "guard_stopped",
            Self::NotGathered { .. } => "not_gathered",
            Self::Blocked { .. } => "blocked",
            Self::NeedsSuccess { .. } => "needs_success",
            Self::EmptySlot { .. } => "empty_slot",
            Self::PassStopped { .. } => "pass_stopped",
            Self::Forbidden { .. } => "forbidden",
            Self::Interrupted(Interruption::Cancelled) => "cancelled",
            Self::Interrupted(Interruption::OutOfTime) => "out_of_time",
            Self::DryRun => "dry_run",
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSelected { predicate, because } if *because == format!("{predicate} is false") => {
                f.write_str(because)
            }
            Self::NotSelected { predicate, because } => write!(f, "only when {predicate}, but {because}"),
            Self::Restricted { reason } => write!(f, "left out: {reason}"),
            Self::GuardStopped { reason } => write!(f, "no step may run: {reason}"),
            Self::NotGathered { reason } => write!(f, "the state could not be read: {reason}"),
            Self::Blocked { by, because } => write!(f, "blocked by {by}: {because}"),
            Self::NeedsSuccess { of, because } => write!(f, "only after success of {of}: {because}"),
            Self::EmptySlot { slot, because } => write!(f, "no {slot}: {because}"),
            Self::PassStopped { by, reason } => write!(f, "{by} ended the pass: {reason}"),
            Self::Forbidden { change, reason } => write!(f, "not permitted to {change}: {reason}"),
            Self::Interrupted(interruption) => interruption.fmt(f),
            Self::DryRun => f.write_str("nothing to do in a dry run"),
        }
    }
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "the pass was cancelled",
            Self::OutOfTime => "the time of the pass was used up",
        })
    }
}

// === impl Conclusion ===

impl Conclusion {
    /// One word for metrics and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Planned => "planned",
            Self::Changed => "changed",
            Self::Stopped => "stopped",
            Self::Waiting => "waiting",
            Self::OutOfTime => "out_of_time",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}
