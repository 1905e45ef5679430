//! What people are told of a pass: one condition for each group of steps that means something to them (E11).

use std::collections::BTreeMap;
use std::fmt;

use crate::report::{Ending, Entry, Interruption, Skip};
use crate::{FailureClass, Name, Report};

/// How many failed passes in a row leave a condition as it stands while the failure may go away by itself. The first
/// hiccup of a network is no news.
pub const TOLERATED_ATTEMPTS: u32 = 2;

/// A condition over all steps that name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its name: `RepoReady`.
    pub name: &'static str,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Why, for programs.
    pub reason: ConditionReason,
    /// Why, for people: the steps that are to blame and what they say.
    pub message: String,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It holds.
    Met,
    /// This pass does not say; what stood before stays.
    Undecided,
    /// It does not hold.
    NotMet,
}

/// Why a condition is as it is. Later ones outweigh earlier ones when steps of one condition differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionReason {
    /// No step had anything to do.
    NotApplicable,
    /// All is as it should be.
    Converged,
    /// Changes are planned and not made.
    Planned,
    /// The pass ended before the step.
    NotReached,
    /// A step it depends on is in the way.
    Blocked,
    /// A step waits.
    Waiting,
    /// A step failed, and may succeed by itself.
    Failing,
    /// The other side does not let us.
    Forbidden,
    /// The input is wrong.
    Invalid,
    /// A mistake in Evenkeel.
    Bug,
}

impl<S> Report<S> {
    /// The conditions of the pass, by name. A step that names none counts for none.
    pub fn conditions(&self) -> Vec<Condition> {
        let mut groups: BTreeMap<&'static str, Vec<&Entry>> = BTreeMap::new();
        for entry in &self.steps {
            if let Some(condition) = entry.condition {
                groups.entry(condition).or_default().push(entry);
            }
        }
        groups
            .into_iter()
            .map(|(name, entries)| condition(name, &entries, self.attempt))
            .collect()
    }
}

fn condition(name: &'static str, entries: &[&Entry], attempt: u32) -> Condition {
    let judged: Vec<(Verdict, ConditionReason, &Name, &Ending)> = entries
        .iter()
        .map(|entry| {
            let (verdict, reason) = judge(&entry.ending, attempt);
            (verdict, reason, &entry.name, &entry.ending)
        })
        .collect();
    let (verdict, reason) = judged
        .iter()
        .map(|(verdict, reason, ..)| (*verdict, *reason))
        .max()
        .unwrap_or((Verdict::Met, ConditionReason::NotApplicable));
    let message = judged
        .iter()
        .filter(|(_, reason, ..)| *reason > ConditionReason::Converged)
        .map(|(.., name, ending)| format!("{name} {ending}"))
        .collect::<Vec<_>>()
        .join("; ");
    Condition {
        name,
        verdict,
        reason,
        message,
    }
}

fn judge(ending: &Ending, attempt: u32) -> (Verdict, ConditionReason) {
    use ConditionReason as Reason;
    match ending {
        Ending::Done | Ending::Changed { .. } => (Verdict::Met, Reason::Converged),
        Ending::Planned | Ending::Skipped(Skip::Forbidden { .. }) => (Verdict::NotMet, Reason::Planned),
        Ending::Waiting { .. } => (Verdict::NotMet, Reason::Waiting),
        Ending::Failed(failure) => match failure.class() {
            FailureClass::Conflict => (Verdict::Undecided, Reason::Failing),
            FailureClass::Transient | FailureClass::RateLimited { .. } if attempt < TOLERATED_ATTEMPTS => {
                (Verdict::Undecided, Reason::Failing)
            }
            FailureClass::Transient | FailureClass::RateLimited { .. } => (Verdict::NotMet, Reason::Failing),
            FailureClass::Forbidden => (Verdict::NotMet, Reason::Forbidden),
            FailureClass::Invalid => (Verdict::NotMet, Reason::Invalid),
            FailureClass::Bug => (Verdict::NotMet, Reason::Bug),
        },
        Ending::Skipped(Skip::Blocked { .. } | Skip::NeedsSuccess { .. }) => {
            (Verdict::Undecided, Reason::Blocked)
        }
        Ending::Stopped { .. }
        | Ending::Interrupted(Interruption::Cancelled | Interruption::OutOfTime)
        | Ending::Skipped(
            Skip::NotGathered { .. }
            | Skip::GuardStopped { .. }
            | Skip::PassStopped { .. }
            | Skip::Interrupted(_)
            | Skip::Restricted { .. }
            | Skip::DryRun,
        ) => (Verdict::Undecided, Reason::NotReached),
        Ending::Skipped(Skip::NotSelected { .. } | Skip::EmptySlot { .. }) => {
            (Verdict::Met, Reason::NotApplicable)
        }
    }
}

// === impl ConditionReason ===

impl ConditionReason {
    /// The stable word for status conditions.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotApplicable => "NotApplicable",
            Self::Converged => "Converged",
            Self::Planned => "Planned",
            Self::NotReached => "NotReached",
            Self::Blocked => "Blocked",
            Self::Waiting => "Waiting",
            Self::Failing => "Failing",
            Self::Forbidden => "Forbidden",
            Self::Invalid => "Invalid",
            Self::Bug => "Bug",
        }
    }
}

impl fmt::Display for ConditionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
