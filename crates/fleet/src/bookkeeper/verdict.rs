//! What the states of operations say about their reconciliation and cluster. Pure.

use std::collections::BTreeMap;

use evenkeel_core::{
    ClusterState, ComponentName, ConfigurationVersion, DueReason, OperationState, ReconciliationState,
    Strategy, Transition as _,
};
use evenkeel_inventory::{Due, FailureCount, Finish, Operation, Reconciliation, StatusChange};
use jiff::Timestamp;

use crate::Settings;

/// What to do about a cluster that is gone and cannot be cleaned up.
pub(crate) const FORGET_HINT: &str =
    "if the cluster no longer exists, delete it with mode forget, which removes the record alone";

/// How a cluster is while its reconciliation goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Whatever was recorded stays: something that failed is being tried again.
    Unknown,
    /// This, with its reason.
    Is(ClusterState, Option<String>),
}

/// When a cluster could be due again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// After a failure.
    pub(super) retry: Timestamp,
    /// When nothing happens.
    pub(super) periodic: Timestamp,
}

/// A reconciliation that is to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended<'a> {
    pub(super) run: &'a Reconciliation,
    pub(super) operations: &'a [Operation],
    /// Failed reconciliations of this version, should this one have failed too.
    pub(super) failures: u32,
    pub(super) settings: &'a Settings,
    pub(super) timing: Timing,
}

/// `component web: reason`, and how many more.
pub(crate) fn component_reason(component: &ComponentName, reason: &str, more: usize) -> String {
    // Some reasons name their component already, as they must where they stand alone.
    let named = format!("component {component} ");
    let reason = reason.strip_prefix(&*named).unwrap_or(reason);
    match more {
        0 => format!("component {component}: {reason}"),
        1 => format!("component {component}: {reason}; and 1 more component"),
        more => format!("component {component}: {reason}; and {more} more components"),
    }
}

/// The status of a cluster that will not be deleted by itself any more.
pub(crate) fn deletion_failed(version: ConfigurationVersion, failures: u32, reason: &str) -> StatusChange {
    StatusChange {
        reason: Some(format!(
            "{reason}; given up after {failures} tries: delete it again once that is put right, or, {FORGET_HINT}"
        )),
        due: Due::Never,
        failures: FailureCount::Add,
        ..StatusChange::new(ClusterState::DeleteFailed, version)
    }
}

/// The first component that fails, with its reason and how many more do. `before` are those that failed before the run, with
/// why: they fail until their operations have succeeded.
fn failing(operations: &[Operation], before: &BTreeMap<ComponentName, String>) -> Option<String> {
    let failing: Vec<(&ComponentName, &str)> = operations
        .iter()
        .filter_map(|operation| {
            let component = &operation.component;
            let reason = match &operation.state {
                OperationState::Failed { reason } | OperationState::Retrying { reason, .. } => Some(reason),
                state if state.kind().is_final() => None,
                _ => before.get(component),
            };
            Some((component, reason?.as_str()))
        })
        .collect();
    let (component, reason) = failing.first()?;
    Some(component_reason(component, reason, failing.len() - 1))
}

/// How the cluster of a reconciliation that goes on is. `before` are the components that failed before it, with why.
pub(super) fn standing(
    strategy: Strategy,
    operations: &[Operation],
    before: &BTreeMap<ComponentName, String>,
) -> Standing {
    let working = if strategy == Strategy::Delete {
        ClusterState::Deleting
    } else {
        ClusterState::Reconciling
    };
    if let Some(reason) = failing(operations, before) {
        let state = if strategy == Strategy::Delete {
            ClusterState::Deleting
        } else {
            ClusterState::Degraded
        };
        return Standing::Is(state, Some(reason));
    }
    // Also one that was given back in between, or waits for the one before it.
    let tried_again = |operation: &Operation| operation.attempt > 1 && operation.finished_at.is_none();
    if operations.iter().any(tried_again) {
        return Standing::Unknown;
    }
    Standing::Is(working, waiting(operations))
}

/// The first component that waits for something named, and how many more do.
fn waiting(operations: &[Operation]) -> Option<String> {
    let waiting: Vec<(&ComponentName, &str)> = operations
        .iter()
        .filter_map(|operation| match &operation.state {
            OperationState::Waiting { reason, .. } => Some((&operation.component, reason.as_str())),
            _ => None,
        })
        .collect();
    let (component, reason) = waiting.first()?;
    let reason = format!("waits for {reason}");
    Some(component_reason(component, &reason, waiting.len() - 1))
}

/// How a reconciliation ends whose operations have all ended.
pub(super) fn ended(ended: &Ended<'_>) -> Finish {
    let done = |operation: &Operation| operation.state == OperationState::Succeeded;
    if ended.operations.iter().all(done) {
        return succeeded(ended);
    }
    let reason = failing(ended.operations, &BTreeMap::new()).unwrap_or_else(|| not_done(ended.operations));
    failed(ended, reason)
}

/// How a reconciliation ends that has run out of time.
pub(super) fn overdue(ended: &Ended<'_>) -> Finish {
    let limit = evenkeel_core::HumanDuration(ended.settings.deadline);
    let open = ended
        .operations
        .iter()
        .filter(|operation| operation.finished_at.is_none());
    let open: Vec<_> = open.map(|operation| operation.component.as_str()).collect();
    let open = match open.as_slice() {
        [] => String::new(),
        names => format!(" (not done: {})", shortened(names)),
    };
    let late = format!("not done within {limit}{open}");
    let reason = match failing(ended.operations, &BTreeMap::new()) {
        Some(reason) => format!("{reason}; {late}"),
        None => late,
    };
    failed(ended, reason)
}

/// The most names that one text lists.
const NAMES_TOLD: usize = 5;

fn shortened(names: &[&str]) -> String {
    let told = names
        .iter()
        .take(NAMES_TOLD)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > NAMES_TOLD {
        format!("{told} and {} more", names.len() - NAMES_TOLD)
    } else {
        told
    }
}

/// No operation failed, and yet some were not done: stopped by a person.
fn not_done(operations: &[Operation]) -> String {
    let undone: Vec<_> = operations
        .iter()
        .filter(|operation| operation.state != OperationState::Succeeded)
        .map(|operation| format!("{} is {}", operation.component, operation.state.kind()))
        .collect();
    let undone: Vec<&str> = undone.iter().map(String::as_str).collect();
    shortened(&undone)
}

fn succeeded(ended: &Ended<'_>) -> Finish {
    let version = ended.run.version;
    let status = if ended.run.strategy == Strategy::Delete {
        StatusChange {
            due: Due::Never,
            ..StatusChange::new(ClusterState::Deleted, version)
        }
    } else {
        StatusChange {
            due: Due::At(ended.timing.periodic, DueReason::Periodic),
            failures: FailureCount::Reset,
            not_ready: Some(BTreeMap::new()),
            ..StatusChange::new(ClusterState::Ready, version)
        }
    };
    Finish {
        state: ReconciliationState::Succeeded,
        reason: None,
        status,
    }
}

fn failed(ended: &Ended<'_>, reason: String) -> Finish {
    let Ended {
        run,
        failures,
        settings,
        timing,
        ..
    } = *ended;
    let status = match run.strategy {
        Strategy::Delete if failures >= settings.delete_failures_max => {
            deletion_failed(run.version, failures, &reason)
        }
        Strategy::Delete => StatusChange {
            reason: Some(reason.clone()),
            due: Due::At(timing.retry, DueReason::Deletion),
            failures: FailureCount::Add,
            ..StatusChange::new(ClusterState::Deleting, run.version)
        },
        _ if failures >= settings.failures_max => StatusChange {
            reason: Some(format!(
                "{reason}; given up after {failures} reconciliations: change it or ask for another one"
            )),
            due: Due::Never,
            failures: FailureCount::Add,
            ..StatusChange::new(ClusterState::Failed, run.version)
        },
        _ => StatusChange {
            reason: Some(reason.clone()),
            due: Due::At(timing.retry, DueReason::Retry),
            failures: FailureCount::Add,
            ..StatusChange::new(ClusterState::Degraded, run.version)
        },
    };
    Finish {
        state: ReconciliationState::Failed,
        reason: Some(reason),
        status,
    }
}

#[cfg(test)]
mod tests;
