//! Claiming: first what time has decided, then the most urgent that is ready, within limits.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::{ComponentName, DueReason, Lease, OperationId, OperationState, OperationStateKind};

use super::Transaction;
use crate::rules::rank;
use crate::sql::rows::{moment, reason_of_lane, span};
use crate::{ClaimLimits, ClaimRequest, ClaimedOperation, Claims, Error, Level, Settled, Signal};

/// The most operations that one claim gives out, and the most leases and waits that it ends.
const CLAIM_MAX: usize = 256;

impl Transaction<'_> {
    pub(super) fn claim(&mut self, request: &ClaimRequest, limits: &ClaimLimits) -> Result<Claims, Error> {
        let mut claims = Claims::default();
        self.wake(&mut claims.settled)?;
        let until = self.now + span(request.lease);
        for id in self.pick(request.limit, limits) {
            claims.operations.push(self.take(&id, request, until)?);
        }
        let next = self.rows.operations.values().filter_map(|row| row.wake_at).min();
        claims.next_at = next.map(moment);
        if !claims.settled.is_empty() {
            self.signal(Signal::OperationSettled);
        }
        if !claims.operations.is_empty() {
            self.signal(Signal::ClusterChanged);
        }
        Ok(claims)
    }

    /// Ends what time has decided: leases return operations to the queue, retries become claimable, waits fail.
    fn wake(&mut self, settled: &mut Vec<Settled>) -> Result<(), Error> {
        let now = self.now;
        let mut woken: Vec<(i64, OperationId, OperationStateKind)> = self
            .rows
            .operations
            .iter()
            .filter_map(|(id, row)| {
                let at = row.wake_at.filter(|at| *at <= now)?;
                Some((at, id.clone(), row.kind_of_state()))
            })
            .collect();
        woken.sort_unstable_by(|(at, id, _), (other_at, other, _)| (at, id).cmp(&(other_at, other)));
        woken.truncate(CLAIM_MAX);
        for (_, id, was) in woken {
            let row = self.rows.operation(&id)?;
            // What one of them ends may have ended others of them, or let them go on.
            if row.kind_of_state() != was {
                continue;
            }
            let state = match (row.stopped(), &row.state) {
                (Some(state), _) => state,
                (None, OperationState::Running) => {
                    self.requeue(&id);
                    continue;
                }
                (None, OperationState::Waiting { reason, .. }) => OperationState::Failed {
                    reason: format!("waited until the deadline for: {reason}"),
                },
                (None, _) => {
                    if let Some(row) = self.write().operations.get_mut(&id) {
                        row.rank = Some(rank(now, row.lane));
                        row.wake_at = None;
                    }
                    continue;
                }
            };
            let skipped = self.end(&id, state)?;
            settled.push(self.settled(&id, skipped)?);
        }
        Ok(())
    }

    /// Returns an operation whose lease is over to the queue, and says so in its timeline.
    fn requeue(&mut self, id: &OperationId) {
        let now = self.now;
        let Some(row) = self.write().operations.get_mut(id) else {
            return;
        };
        let (worker, attempt) = (row.lease.take().map(|(worker, _)| worker), row.attempt);
        row.queue(now);
        self.show(id);
        let message = format!(
            "worker {} was not heard of until its lease ended; attempt {attempt} is over, the operation returned to the queue",
            worker.as_deref().unwrap_or("(unknown)"),
        );
        self.say(id, Level::Warning, message);
    }

    /// The most urgent operations that are ready and that there is room for, at most one of each component of a cluster.
    fn pick(&self, limit: u32, limits: &ClaimLimits) -> Vec<OperationId> {
        let mut busy = BTreeSet::new();
        let (mut total, mut tenants, mut components) = (0_u32, BTreeMap::new(), BTreeMap::new());
        for (id, row) in self.rows.operations.iter().filter(|(_, row)| row.is_running()) {
            busy.insert((id.cluster(), &row.component));
            total += 1;
            *tenants.entry(row.tenant.as_str()).or_insert(0_u32) += 1;
            *components.entry(&row.component).or_insert(0_u32) += 1;
        }
        let mut ready: Vec<_> = self
            .rows
            .operations
            .iter()
            .filter_map(|(id, row)| Some((row.rank?, id, row)))
            .collect();
        ready.sort_by_key(|(rank, id, _)| (*rank, *id));
        let below = |limit: Option<u32>, count: u32| limit.is_none_or(|limit| count < limit);
        let mut picked = Vec::new();
        for (_, id, row) in ready {
            if picked.len() >= CLAIM_MAX.min(limit as usize) || !below(limits.total, total) {
                break;
            }
            let tenant = tenants.entry(row.tenant.as_str()).or_insert(0);
            let component: &mut u32 = components.entry(&row.component).or_insert(0);
            if !below(limits.per_tenant, *tenant) || !below(limits.per_component, *component) {
                continue;
            }
            let key: (_, &ComponentName) = (id.cluster(), &row.component);
            if busy.insert(key) {
                total += 1;
                *tenant += 1;
                *component += 1;
                picked.push(id.clone());
            }
        }
        picked
    }

    fn take(
        &mut self,
        id: &OperationId,
        request: &ClaimRequest,
        until: i64,
    ) -> Result<ClaimedOperation, Error> {
        let now = self.now;
        let row = self.rows.operation(id)?;
        let (component, fence) = (row.component.clone(), row.fence);
        let fence = self.next_fence(id.cluster(), &component, fence);
        let row = self
            .write()
            .operations
            .get_mut(id)
            .ok_or_else(|| Error::not_found("operation", id))?;
        row.state = OperationState::Running;
        row.rank = None;
        row.wake_at = Some(until);
        row.attempt += 1;
        row.lease = Some((request.worker.clone(), until));
        row.started_at = row.started_at.or(Some(now));
        row.fence = fence;
        self.show(id);
        let row = self.rows.operation(id)?;
        debug_assert_eq!(row.kind_of_state(), OperationStateKind::Running);
        let run = self
            .rows
            .runs
            .get(&row.run)
            .ok_or_else(|| Error::not_found("reconciliation", &row.run))?;
        Ok(ClaimedOperation {
            id: id.clone(),
            reconciliation: row.run.clone(),
            cluster: id.cluster().clone(),
            component,
            kind: row.kind,
            strategy: run.strategy,
            due_reason: reason_of_lane(row.lane).unwrap_or(DueReason::Periodic),
            version: row.version,
            cause: row.cause.clone(),
            attempt: row.attempt,
            lease: Lease {
                fence,
                until: moment(until),
            },
            deadline: moment(run.deadline),
            request_id: run.request_id.clone(),
        })
    }
}
