//! What came of an operation.

use evenkeel_cluster::Stop;
use evenkeel_core::{ComponentRevision, ConsentNeeded, Fence, ObjectChange, ObjectDiff, Plan};
use evenkeel_steps::{Conclusion, Ending, Entry, Report};
use jiff::Timestamp;

use crate::operation::Operation;

/// What came of an operation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// Every object it touched, complete also after a failure.
    pub changes: Vec<ObjectChange>,
    /// What it wanted to do; none when it did not get that far.
    pub plan: Option<Plan>,
    /// How the fields of objects that exist would change; of dry runs alone.
    pub diffs: Vec<ObjectDiff>,
    /// The component revision it rendered; none when it did not get that far.
    pub revision: Option<ComponentRevision>,
    /// Whether it ended because objects were not ready, or not gone, and not because a call failed.
    pub not_ready: bool,
    /// What its steps said, oldest first.
    pub lines: Vec<Line>,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All is as asked for.
    Succeeded,
    /// Nothing was done; this is what would be.
    Planned,
    /// It waits for something named.
    Waiting {
        /// What for.
        reason: String,
        /// When to look again, at the latest.
        until: Timestamp,
    },
    /// Something that it needs is not at the cluster: a kind that nobody serves yet. Whoever brings it may be on the way.
    Missing {
        /// What, and where it is needed.
        reason: String,
    },
    /// A try failed; another one may help.
    Retry {
        /// Why.
        reason: String,
        /// When the next try is due.
        at: Timestamp,
    },
    /// No retry helps before somebody changes something.
    Failed {
        /// Why: what failed, on what, and what to do.
        reason: String,
    },
    /// It was told to stop, at an object boundary.
    Stopped(Stop),
    /// It would delete what is deleted only with consent; nothing was done.
    NeedsConsent(Box<ConsentNeeded>),
    /// A newer attempt was at the target, or a database that knew a higher number.
    Fenced {
        /// The number found there.
        at_target: Fence,
    },
}

/// One line of what an operation said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub at: Timestamp,
    /// How serious.
    pub level: Level,
    /// The step that said it.
    pub step: String,
    /// The words.
    pub text: String,
}

/// How serious a [`Line`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What goes on.
    Info,
    /// Worth a look.
    Warning,
    /// What failed.
    Error,
}

impl Outcome {
    pub(crate) fn of(report: &Report<Operation>, changes: Vec<ObjectChange>, plan: Option<Plan>) -> Self {
        Self {
            end: end(report),
            changes,
            plan,
            diffs: report
                .state
                .as_ref()
                .map(|operation| operation.diffs())
                .unwrap_or_default(),
            revision: None,
            not_ready: report
                .state
                .as_ref()
                .is_some_and(|operation| operation.not_ready()),
            lines: lines(report),
        }
    }
}

fn end(report: &Report<Operation>) -> End {
    if let Some(operation) = &report.state {
        if let Some(at_target) = operation.fenced() {
            return End::Fenced { at_target };
        }
        if let Some(needed) = operation.needs_consent() {
            return End::NeedsConsent(Box::new(needed.clone()));
        }
        if let Some(stop) = operation.stopped() {
            return End::Stopped(stop);
        }
        if operation.misses_something() && report.conclusion() == Conclusion::Failed {
            return End::Missing {
                reason: reason(report),
            };
        }
    }
    match report.conclusion() {
        Conclusion::Unchanged | Conclusion::Changed => End::Succeeded,
        Conclusion::Planned => End::Planned,
        Conclusion::Cancelled => End::Stopped(Stop::Cancelled),
        Conclusion::Stopped | Conclusion::Waiting | Conclusion::OutOfTime | Conclusion::Failed => {
            let reason = reason(report);
            match (report.requeue(), report.conclusion()) {
                (Some(requeue), Conclusion::Waiting) => End::Waiting {
                    reason,
                    until: requeue.at,
                },
                (Some(requeue), _) => End::Retry {
                    reason,
                    at: requeue.at,
                },
                (None, _) => End::Failed { reason },
            }
        }
    }
}

/// The first thing that went wrong, in the words of the step it went wrong in.
fn reason(report: &Report<Operation>) -> String {
    if let Some(trouble) = &report.gather.trouble {
        return trouble.failure.message().to_owned();
    }
    let telling = report.steps.iter().find_map(|entry| match &entry.ending {
        Ending::Failed(failure) => Some(failure.message().to_owned()),
        Ending::Waiting { reason, .. } | Ending::Stopped { reason } => Some(reason.clone()),
        Ending::Interrupted(_) => Some(format!("{} did not end in time", entry.name)),
        Ending::Done | Ending::Changed { .. } | Ending::Planned | Ending::Skipped(_) => None,
    });
    telling.unwrap_or_else(|| report.conclusion().label().to_owned())
}

fn lines(report: &Report<Operation>) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(trouble) = &report.gather.trouble {
        let text = trouble.failure.message().to_owned();
        lines.push(Line {
            at: report.started,
            level: Level::Error,
            step: "gather".to_owned(),
            text,
        });
    }
    for entry in &report.steps {
        let Some(started) = entry.started else { continue };
        let step = entry.name.to_string();
        for line in &entry.progress {
            lines.push(Line {
                at: line.at,
                level: Level::Info,
                step: step.clone(),
                text: line.text.clone(),
            });
        }
        let at = started.checked_add(entry.duration).unwrap_or(started);
        lines.push(Line {
            at,
            level: level(&entry.ending),
            step,
            text: ending(entry),
        });
    }
    lines
}

fn ending(entry: &Entry) -> String {
    format!("{} ({} ms)", entry.ending, entry.duration.as_millis())
}

fn level(ending: &Ending) -> Level {
    match ending {
        Ending::Failed(_) => Level::Error,
        Ending::Waiting { .. } | Ending::Stopped { .. } | Ending::Interrupted(_) => Level::Warning,
        Ending::Done | Ending::Changed { .. } | Ending::Planned | Ending::Skipped(_) => Level::Info,
    }
}
