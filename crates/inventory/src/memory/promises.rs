//! What is promised of the rows after every call (DESIGN §4, invariants 4 and 5).

use std::collections::BTreeSet;

use evenkeel_core::{
    ClusterId, ClusterState, DeleteMode, OperationId, OperationState, OperationStateKind,
    ReconciliationState, Transition as _,
};

use super::rows::{ClusterRow, OperationRow, Rows, RunRow};

impl Rows {
    /// The first promise that is broken, if any.
    pub(super) fn broken_promise(&self) -> Option<String> {
        let clusters = self
            .clusters
            .iter()
            .find_map(|(id, row)| self.broken_by_cluster(id, row));
        let operations = || {
            let mut running = BTreeSet::new();
            self.operations.iter().find_map(|(id, row)| {
                let alone = !row.is_running() || running.insert((id.cluster(), &row.component));
                match alone {
                    true => self.broken_by_operation(id, row),
                    false => Some(format!(
                        "component {} of {} is run twice at once",
                        row.component,
                        id.cluster()
                    )),
                }
            })
        };
        clusters.or_else(operations)
    }

    /// Every cluster either waits for a moment, is worked on, or has come to an end.
    fn broken_by_cluster(&self, id: &ClusterId, row: &ClusterRow) -> Option<String> {
        let live: Vec<&RunRow> = self
            .runs_of(id)
            .map(|(_, run)| run)
            .filter(|run| run.state == ReconciliationState::Running)
            .collect();
        let state = row.status.state;
        if live.len() > 1 {
            return Some(format!("cluster {id} has {} live reconciliations", live.len()));
        }
        let is_over = match state {
            ClusterState::Deleted | ClusterState::DeleteFailed | ClusterState::Failed => true,
            _ => row.status.due.is_some() || !live.is_empty(),
        };
        if !is_over {
            return Some(format!(
                "cluster {id} is {state}, never due, and nothing works on it"
            ));
        }
        if state == ClusterState::Deleted && !live.is_empty() {
            return Some(format!("cluster {id} is deleted and worked on"));
        }
        // Who forgets a cluster leaves everything at it as it is.
        let forgotten = row.deletion.is_some_and(|(mode, _)| mode == DeleteMode::Forget);
        if state == ClusterState::Deleted
            && !forgotten
            && let Some(operation) = self.running_operations(id).next()
        {
            let component = &operation.component;
            return Some(format!(
                "cluster {id} is deleted, and a worker is at its component {component}"
            ));
        }
        if row.status.observed_version > row.version {
            return Some(format!(
                "the status of cluster {id} is about a version that does not exist"
            ));
        }
        None
    }

    /// Every operation has ended, or something is known to move it.
    fn broken_by_operation(&self, id: &OperationId, row: &OperationRow) -> Option<String> {
        let kind = row.kind_of_state();
        let told = |problem: &str| {
            Some(format!(
                "operation {id} of component {}, {kind}: {problem}",
                row.component
            ))
        };
        if kind.is_final() != row.finished_at.is_some() {
            return told("its end and its state do not agree");
        }
        if row.lease.is_some() != row.is_running() || (row.stop.is_some() && !row.is_running()) {
            return told("only what runs has a lease, and only that can be told to stop");
        }
        if kind.is_final() {
            let stirs = row.rank.is_some() || row.wake_at.is_some();
            return stirs
                .then(|| told("it has ended and is still in the queue"))
                .flatten();
        }
        let Some(run) = self.runs.get(&row.run) else {
            return told("its run does not exist");
        };
        // One that was told to stop ends after its run.
        if run.state != ReconciliationState::Running && row.stop.is_none() {
            return told("its run has ended");
        }
        let unmet = row.depends_on.iter().filter(|other| {
            let other = self.operations.get(other);
            other.is_some_and(|other| other.state != OperationState::Succeeded)
        });
        let unmet = unmet.count();
        match kind {
            OperationStateKind::Pending if row.blocked_by == 0 && row.rank.is_none() => {
                told("nothing blocks it, and it is not in the queue")
            }
            OperationStateKind::Pending if row.blocked_by > 0 && row.rank.is_some() => {
                told("something blocks it, and it is in the queue")
            }
            OperationStateKind::Pending | OperationStateKind::Waiting if row.blocked_by != unmet => told(
                &format!("it counts {} it depends on, {unmet} are not done", row.blocked_by),
            ),
            OperationStateKind::Running | OperationStateKind::Waiting | OperationStateKind::Retrying
                if row.wake_at.is_none() && row.rank.is_none() =>
            {
                told("no moment ends it")
            }
            _ => self
                .broken_chain(row)
                .and_then(|other| told(&format!("it depends on {other}, which did not succeed"))),
        }
    }

    /// What an open operation depends on that has ended and can never succeed.
    fn broken_chain<'r>(&'r self, row: &'r OperationRow) -> Option<&'r OperationId> {
        row.depends_on.iter().find(|other| {
            self.operations.get(other).is_some_and(|other| {
                other.kind_of_state().is_final() && other.state != OperationState::Succeeded
            })
        })
    }
}
