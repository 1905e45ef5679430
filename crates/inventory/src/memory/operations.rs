//! What ends operations, and what follows from it; and the queue as others see it.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ComponentName, Error as CoreError, Fence, Lease, OperationId, OperationState,
    OperationStateKind, Strategy, Transition as _,
};

use super::rows::{OperationRow, Previous};
use super::{MemoryStore, Transaction};
use crate::rules::rank;
use crate::sql::rows::{moment, span};
use crate::{
    ClaimLimits, ClaimRequest, Claims, Error, Heartbeat, HeartbeatOutcome, Level, Queue, Report, Settled,
    Signal, StopReason, TimelineEntry,
};

impl OperationRow {
    /// Makes it claimable, once nothing blocks it.
    pub(super) fn queue(&mut self, now: i64) {
        self.state = OperationState::Pending;
        self.wake_at = None;
        self.previous = None;
        self.lease = None;
        self.rank = (self.blocked_by == 0).then(|| rank(now, self.lane));
    }

    /// Ends it.
    pub(super) fn end(&mut self, state: OperationState, now: i64) {
        self.state = state;
        self.finished_at = Some(now);
        self.rank = None;
        self.wake_at = None;
        self.lease = None;
        self.stop = None;
        self.previous = None;
    }

    /// The final state of one that was to stop.
    pub(super) fn stopped(&self) -> Option<OperationState> {
        self.stop.map(|stop| match stop {
            StopReason::Superseded => OperationState::Superseded,
            StopReason::Cancelled => OperationState::Cancelled,
        })
    }
}

impl Transaction<'_> {
    /// The answer about an operation as it is now.
    pub(super) fn settled(&self, id: &OperationId, skipped: Vec<ComponentName>) -> Result<Settled, Error> {
        let row = self.rows.operation(id)?;
        Ok(Settled {
            operation: id.clone(),
            reconciliation: row.run.clone(),
            cluster: id.cluster().clone(),
            component: row.component.clone(),
            state: row.kind_of_state(),
            skipped,
            open: self.rows.open_operations(&row.run),
        })
    }

    /// Ends an operation: those that waited for it go on, or are skipped when it did not succeed. Answers which those
    /// were.
    pub(super) fn end(
        &mut self,
        id: &OperationId,
        state: OperationState,
    ) -> Result<Vec<ComponentName>, Error> {
        let now = self.now;
        let row = self
            .write()
            .operations
            .get_mut(id)
            .ok_or_else(|| Error::not_found("operation", id))?;
        let succeeded = state == OperationState::Succeeded;
        let kind = state.kind();
        row.end(state, now);
        let (component, is_deletion) = (row.component.clone(), row.kind == Strategy::Delete);
        self.show(id);
        self.follow(id, succeeded);
        if !succeeded {
            return Ok(self.skip_dependents(id, &component, kind));
        }
        if is_deletion {
            self.forget_revision(id.cluster(), &component);
        }
        for row in self.write().operations.values_mut() {
            if row.depends_on.contains(id) {
                row.blocked_by = row.blocked_by.saturating_sub(1);
                if row.blocked_by == 0 && row.state == OperationState::Pending {
                    row.rank = Some(rank(now, row.lane));
                }
            }
        }
        Ok(Vec::new())
    }

    /// Lets those go on that waited for an operation of their component to end, or, when it succeeded, for what it may
    /// have brought.
    fn follow(&mut self, ended: &OperationId, succeeded: bool) {
        let now = self.now;
        let Some(run) = self.rows.operations.get(ended).map(|row| row.run.clone()) else {
            return;
        };
        let waits = |row: &OperationRow| {
            row.kind_of_state() == OperationStateKind::Waiting
                && match &row.previous {
                    Some(Previous::Operation(previous)) => previous == ended,
                    Some(Previous::Run) => succeeded && row.run == run,
                    None => false,
                }
        };
        let freed: Vec<OperationId> = self
            .rows
            .operations_of_cluster(ended.cluster())
            .filter(|(_, row)| waits(row))
            .map(|(id, _)| id.clone())
            .collect();
        for id in freed {
            if let Some(row) = self.write().operations.get_mut(&id) {
                row.queue(now);
            }
            self.show(&id);
        }
    }

    /// Skips everything that waited for an operation, directly or not, and names it as the reason.
    fn skip_dependents(
        &mut self,
        of: &OperationId,
        component: &ComponentName,
        state: OperationStateKind,
    ) -> Vec<ComponentName> {
        let mut found: BTreeSet<OperationId> = BTreeSet::new();
        let mut ahead = vec![of.clone()];
        while let Some(next) = ahead.pop() {
            for (id, row) in self.rows.operations_of_cluster(of.cluster()) {
                if row.depends_on.contains(&next) && found.insert(id.clone()) {
                    ahead.push(id.clone());
                }
            }
        }
        let reason = format!(
            "component {:?}, which it depends on, was not done: {state}",
            component.as_str()
        );
        let mut skipped = Vec::new();
        for id in found {
            let now = self.now;
            let Some(row) = self.write().operations.get_mut(&id) else {
                continue;
            };
            if !row.is_open() || row.is_running() {
                continue;
            }
            row.end(
                OperationState::Skipped {
                    reason: reason.clone(),
                },
                now,
            );
            skipped.push((row.position, row.component.clone()));
            self.show(&id);
        }
        skipped.sort();
        skipped.into_iter().map(|(_, component)| component).collect()
    }

    fn heartbeat(&mut self, operations: &[(OperationId, Fence)], lease: Duration) -> Vec<Heartbeat> {
        let until = self.now + span(lease);
        let mut answers = Vec::with_capacity(operations.len());
        for (id, fence) in operations {
            let holds = self
                .rows
                .operations
                .get(id)
                .is_some_and(|row| row.fence == *fence && row.is_running());
            let outcome = match self.rows.operations.get_mut(id).filter(|_| holds) {
                None => HeartbeatOutcome::Lost,
                Some(row) => {
                    self.wrote = true;
                    row.wake_at = Some(until);
                    if let Some((_, end)) = &mut row.lease {
                        *end = until;
                    }
                    let lease = Lease {
                        fence: *fence,
                        until: moment(until),
                    };
                    match row.stop {
                        None => HeartbeatOutcome::Renewed(lease),
                        Some(stop) => HeartbeatOutcome::Stop(lease, stop),
                    }
                }
            };
            answers.push(Heartbeat {
                operation: id.clone(),
                outcome,
            });
        }
        answers
    }

    fn resume(&mut self, id: &OperationId) -> Result<(), Error> {
        let state = self.rows.operation(id)?.kind_of_state();
        if state != OperationStateKind::Waiting {
            let allowed: Vec<_> = state.allowed().iter().map(|state| state.as_str()).collect();
            return Err(Error::Refused(CoreError::Transition {
                what: "operation state (resuming one that does not wait)",
                from: state.as_str(),
                to: OperationStateKind::Pending.as_str(),
                allowed: allowed.join(", "),
            }));
        }
        self.requeue_waiting(id);
        self.signal(Signal::OperationReady);
        Ok(())
    }

    /// Looks again for what operations miss. Answers for how many.
    fn recheck_missing(&mut self, limit: u32) -> Result<u32, Error> {
        let misses = |row: &OperationRow| {
            row.previous == Some(Previous::Run) && row.kind_of_state() == OperationStateKind::Waiting
        };
        let waiting: Vec<OperationId> = self
            .rows
            .operations
            .iter()
            .filter(|(_, row)| misses(row))
            .map(|(id, _)| id.clone())
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .collect();
        for id in &waiting {
            self.resume(id)?;
        }
        Ok(u32::try_from(waiting.len()).unwrap_or(u32::MAX))
    }

    /// Makes an operation claimable that waited: what it waited for has come.
    pub(super) fn requeue_waiting(&mut self, id: &OperationId) {
        let now = self.now;
        if let Some(row) = self.write().operations.get_mut(id) {
            row.queue(now);
        }
        self.show(id);
    }

    /// Says something in an operation's timeline.
    pub(super) fn say(&mut self, id: &OperationId, level: Level, message: String) {
        let entry = TimelineEntry {
            at: moment(self.now),
            level,
            step: None,
            message,
        };
        self.append_report(id, &[], &[entry]);
    }
}

#[async_trait]
impl Queue for MemoryStore {
    async fn claim_within(&self, request: &ClaimRequest, limits: &ClaimLimits) -> Result<Claims, Error> {
        self.call("claim", |transaction| transaction.claim(request, limits))
            .await
    }

    async fn heartbeat(
        &self,
        operations: &[(OperationId, Fence)],
        lease: Duration,
    ) -> Result<Vec<Heartbeat>, Error> {
        self.call("heartbeat", |transaction| {
            Ok(transaction.heartbeat(operations, lease))
        })
        .await
    }

    async fn report_all(&self, reports: Vec<Report>) -> Result<Vec<Result<Settled, Error>>, Error> {
        self.call("report", |transaction| Ok(transaction.report_all(&reports)))
            .await
    }

    async fn report_missing(&self, report: Report) -> Result<Settled, Error> {
        self.call("report_missing", |transaction| {
            transaction.report_missing(&report)
        })
        .await
    }

    async fn recheck_missing(&self, limit: u32) -> Result<u32, Error> {
        self.call("recheck_missing", |transaction| {
            transaction.recheck_missing(limit)
        })
        .await
    }

    async fn resume(&self, operation: &OperationId) -> Result<(), Error> {
        self.call("resume", |transaction| transaction.resume(operation))
            .await
    }

    async fn raise_fence(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        to: Fence,
    ) -> Result<(), Error> {
        self.call("raise_fence", |transaction| {
            transaction.raise_fence(cluster, component, to)
        })
        .await
    }
}
