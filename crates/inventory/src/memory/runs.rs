//! Runs over clusters.

use std::collections::BTreeSet;

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ComponentName, Fence, ObjectChange, OperationId, OperationState, OperationStateKind,
    ReconciliationId, ReconciliationState,
};

use super::rows::{OperationRow, Previous, RunRow};
use super::status::Next;
use super::{MemoryStore, Transaction};
use crate::rules::{self, DueWrite, Places, rank};
use crate::sql::rows::{int, lane, millis, moment};
use crate::{
    Begun, ComponentOperation, Cursor, Error, FailureCount, Finish, NewReconciliation, Operation, Page,
    PageRequest, Reconciliation, Reconciliations, Recorded, Signal, StopReason, TimelineEntry,
};

fn view(id: &ReconciliationId, row: &RunRow) -> Reconciliation {
    Reconciliation {
        id: id.clone(),
        version: row.version,
        strategy: row.strategy,
        due_reason: row.due_reason,
        state: row.state,
        reason: row.reason.clone(),
        created_at: moment(row.created_at),
        deadline: moment(row.deadline),
        finished_at: row.finished_at.map(moment),
    }
}

fn operation_view(id: &OperationId, row: &OperationRow) -> Operation {
    Operation {
        id: id.clone(),
        reconciliation: row.run.clone(),
        component: row.component.clone(),
        kind: row.kind,
        version: row.version,
        cause: row.cause.clone(),
        state: row.state.clone(),
        attempt: row.attempt,
        fence: row.fence,
        lease: row.lease.clone().map(|(owner, until)| (owner, moment(until))),
        stop: row.stop,
        depends_on: row.depends_on.iter().cloned().collect(),
        created_at: moment(row.created_at),
        started_at: row.started_at.map(moment),
        finished_at: row.finished_at.map(moment),
    }
}

impl Transaction<'_> {
    /// Ends the live run of a cluster, if any, and stops its operations.
    pub(super) fn stop_running(&mut self, cluster: &ClusterId, why: StopReason) -> Option<ReconciliationId> {
        let stopped = self.end_running(cluster, why)?;
        self.stop_operations(&stopped, why);
        Some(stopped)
    }

    /// Ends the live run of a cluster, if any; its operations are another matter.
    fn end_running(&mut self, cluster: &ClusterId, why: StopReason) -> Option<ReconciliationId> {
        let now = self.now;
        let id = self.rows.running(cluster)?.clone();
        let row = self.write().runs.get_mut(&id)?;
        row.state = match why {
            StopReason::Superseded => ReconciliationState::Superseded,
            StopReason::Cancelled => ReconciliationState::Cancelled,
        };
        row.finished_at = Some(now);
        Some(id)
    }

    /// Ends the operations of a run that are not final; one that runs is asked to stop.
    fn stop_operations(&mut self, run: &ReconciliationId, why: StopReason) {
        let now = self.now;
        let open: Vec<OperationId> = self
            .rows
            .operations_of(run)
            .into_iter()
            .filter(|(_, row)| row.is_open())
            .map(|(id, _)| id.clone())
            .collect();
        for id in open {
            let Some(row) = self.write().operations.get_mut(&id) else {
                continue;
            };
            if row.is_running() {
                row.stop = row.stop.or(Some(why));
                continue;
            }
            let state = match why {
                StopReason::Superseded => OperationState::Superseded,
                StopReason::Cancelled => OperationState::Cancelled,
            };
            row.end(state, now);
            self.show(&id);
        }
    }

    fn begin(&mut self, new: &NewReconciliation) -> Result<Begun, Error> {
        new.check()?;
        let now = self.now;
        let cluster = &new.cluster;
        let row = self.rows.cluster(cluster)?;
        row.standing().admits(new)?;
        let version = int(new.version.0);
        let (tenant, request_id) = (
            row.tenant.clone().unwrap_or_default(),
            row.status.request_id.clone(),
        );
        if let (Some(running), false) = (self.rows.running(cluster), new.supersede) {
            return Err(Error::ReconciliationRunning {
                running: running.clone(),
            });
        }
        let superseded = self.end_running(cluster, StopReason::Superseded);
        let id = ReconciliationId::new(cluster.clone(), self.new_uuid());
        let run = RunRow {
            version: new.version,
            strategy: new.strategy,
            due_reason: new.reason,
            state: ReconciliationState::Running,
            reason: None,
            created_at: now,
            deadline: millis(new.deadline),
            finished_at: None,
            request_id,
            carried: BTreeSet::new(),
        };
        self.write().runs.insert(id.clone(), run);
        let mut carried = vec![None; new.operations.len()];
        if let Some(former) = &superseded {
            for (place, operation) in carried.iter_mut().zip(&new.operations) {
                *place = operation
                    .carries
                    .clone()
                    .filter(|of| self.can_carry(former, of, &operation.component));
            }
            self.take_over(former, &id, carried.iter().flatten());
            self.stop_operations(former, StopReason::Superseded);
        }
        let operations = self.insert_operations(&id, new, &carried, &tenant);
        let failing = new.failing.as_ref();
        let next = Next {
            state: new.state(),
            observed_version: version,
            reason: failing.map(|failing| failing.reason.as_str()),
            due: DueWrite::Set(None),
            failures: FailureCount::Keep,
        };
        self.write_status(cluster, &next)?;
        if let Some(not_ready) = new.not_ready() {
            self.write_not_ready(cluster, &not_ready);
        }
        self.write().cluster_mut(cluster)?.status.asked = None;
        self.signal(Signal::OperationReady);
        self.signal(Signal::ClusterChanged);
        if superseded.is_some() {
            self.signal(Signal::OperationStop);
        }
        Ok(Begun {
            id,
            operations,
            superseded,
        })
    }

    /// Whether an operation of run `former` can go on in another; one that ended, or was told to stop, cannot.
    fn can_carry(&self, former: &ReconciliationId, id: &OperationId, component: &ComponentName) -> bool {
        self.rows.operations.get(id).is_some_and(|row| {
            row.is_open() && row.stop.is_none() && row.run == *former && row.component == *component
        })
    }

    /// Gives operations of run `from` to run `to`.
    fn take_over<'i>(
        &mut self,
        from: &ReconciliationId,
        to: &ReconciliationId,
        ids: impl Iterator<Item = &'i OperationId>,
    ) {
        let rows = self.write();
        for id in ids {
            if let Some(row) = rows.operations.get_mut(id) {
                row.run = to.clone();
                row.depends_on.clear();
            }
            if let Some(run) = rows.runs.get_mut(from) {
                run.carried.insert(id.clone());
            }
        }
    }

    /// Inserts the operations of a run, and gives those that were carried over their place in it.
    fn insert_operations(
        &mut self,
        run: &ReconciliationId,
        new: &NewReconciliation,
        carried: &[Option<OperationId>],
        tenant: &str,
    ) -> Vec<OperationId> {
        let (now, lane) = (self.now, lane(new.reason));
        let ids: Vec<OperationId> = carried
            .iter()
            .map(|carried| match carried {
                Some(id) => id.clone(),
                None => OperationId::new(new.cluster.clone(), self.new_uuid()),
            })
            .collect();
        let mut places = self.places(tenant, lane);
        for (position, ((operation, id), carried)) in new.operations.iter().zip(&ids).zip(carried).enumerate()
        {
            let depends_on: BTreeSet<OperationId> = operation
                .depends_on
                .iter()
                .filter_map(|other| ids.get(*other).cloned())
                .collect();
            if carried.is_some() {
                self.place_carried(id, position, lane, depends_on);
                continue;
            }
            let row = OperationRow {
                run: run.clone(),
                position,
                component: operation.component.clone(),
                kind: operation.kind,
                version: operation.version,
                lane,
                cause: operation.cause.clone(),
                state: OperationState::Pending,
                blocked_by: depends_on.len(),
                rank: depends_on.is_empty().then(|| places.take()),
                attempt: 0,
                fence: Fence(0),
                stop: None,
                lease: None,
                wake_at: None,
                previous: None,
                depends_on,
                created_at: now,
                started_at: None,
                finished_at: None,
                tenant: tenant.to_owned(),
                reports: Vec::new(),
            };
            self.write().operations.insert(id.clone(), row);
            let shown = ComponentOperation {
                id: id.clone(),
                kind: operation.kind,
                version: operation.version,
                state: OperationState::Pending,
                since: moment(now),
            };
            self.show_new(&new.cluster, &operation.component, shown);
        }
        if carried.iter().any(Option::is_none) {
            self.wait_for_former(run, new);
        }
        ids
    }

    /// Gives a carried operation its place among those of its new run.
    fn place_carried(
        &mut self,
        id: &OperationId,
        position: usize,
        lane: i64,
        depends_on: BTreeSet<OperationId>,
    ) {
        let now = self.now;
        let Some(row) = self.write().operations.get_mut(id) else {
            return;
        };
        row.position = position;
        row.lane = lane;
        // One that runs has what it waited for.
        if row.is_running() {
            row.depends_on.clear();
            row.blocked_by = 0;
            row.rank = None;
            return;
        }
        row.blocked_by = depends_on.len();
        row.depends_on = depends_on;
        if row.kind_of_state() == OperationStateKind::Waiting {
            row.rank = None;
            return;
        }
        let before = row.rank;
        // One that waited for its next try is tried at once: what made it fail may be what was changed.
        row.queue(now);
        row.rank = row
            .rank
            .map(|rank| before.map_or(rank, |before| before.min(rank)));
        self.show(id);
    }

    /// Lets the new operations of a run wait whose component has one that still runs.
    fn wait_for_former(&mut self, run: &ReconciliationId, new: &NewReconciliation) {
        let former: Vec<(ComponentName, OperationId)> = self
            .rows
            .operations_of_cluster(&new.cluster)
            .filter(|(_, row)| row.is_running() && row.run != *run)
            .map(|(id, row)| (row.component.clone(), id.clone()))
            .collect();
        for (component, previous) in former {
            let is_first = |row: &OperationRow| {
                row.component == component && row.state == OperationState::Pending && row.attempt == 0
            };
            let first = self
                .rows
                .operations_of(run)
                .into_iter()
                .find(|(_, row)| is_first(row));
            let Some(id) = first.map(|(id, _)| id.clone()) else {
                continue;
            };
            let reason = format!(
                "operation {previous} of this component was told to stop and has not ended; it is let go on to the end of what \
                 it is doing"
            );
            if let Some(row) = self.write().operations.get_mut(&id) {
                row.state = OperationState::Waiting {
                    reason,
                    deadline: new.deadline,
                };
                row.wake_at = Some(millis(new.deadline));
                row.rank = None;
                row.previous = Some(Previous::Operation(previous));
            }
            self.show(&id);
        }
    }

    /// Places in a lane for operations of a tenant, behind those that it has there.
    fn places(&self, tenant: &str, lane: i64) -> Places {
        let first = rank(self.now, lane);
        let of_tenant = self
            .rows
            .operations
            .values()
            .filter(|row| row.tenant == tenant && row.lane == lane);
        let last = of_tenant.filter_map(|row| row.rank).max();
        Places::behind(first, last)
    }

    fn finish(&mut self, id: &ReconciliationId, finish: &Finish) -> Result<Recorded, Error> {
        let now = self.now;
        let run = self
            .rows
            .runs
            .get(id)
            .ok_or_else(|| Error::not_found("reconciliation", id))?;
        let open = self.rows.open_operations(id);
        let state = run.state;
        let Some(stops) = rules::finish(id, state, finish.state, open)? else {
            return Ok(Recorded::Unchanged);
        };
        // What may be refused, before anything is written.
        let recorded = self.apply_status(id.cluster(), &finish.status)?;
        if stops {
            self.stop_operations(id, StopReason::Cancelled);
        }
        if let Some(run) = self.write().runs.get_mut(id) {
            run.state = finish.state;
            run.reason = finish.reason.clone();
            run.finished_at = Some(now);
        }
        self.signal(Signal::ClusterChanged);
        self.signal(Signal::ClusterDue);
        if stops {
            self.signal(Signal::OperationStop);
        }
        Ok(recorded)
    }

    /// Live runs, the nearest deadline first.
    fn live_runs(
        &self,
        limit: u32,
        wanted: impl Fn(&ReconciliationId, &RunRow) -> bool,
    ) -> Vec<ReconciliationId> {
        let live = self
            .rows
            .runs
            .iter()
            .filter(|(_, run)| run.state == ReconciliationState::Running);
        let mut found: Vec<_> = live.filter(|(id, run)| wanted(id, run)).collect();
        found.sort_by_key(|(id, run)| (run.deadline, *id));
        found
            .into_iter()
            .take(limit as usize)
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Whether a run has an operation that waits with a deadline of its own.
    fn waits(&self, id: &ReconciliationId) -> bool {
        self.rows.operations_of(id).iter().any(|(_, row)| {
            row.kind_of_state() == OperationStateKind::Waiting
                && row.wake_at.is_some_and(|until| until > self.now)
        })
    }

    fn operations(&self, id: &ReconciliationId) -> Result<Vec<Operation>, Error> {
        let run = self
            .rows
            .runs
            .get(id)
            .ok_or_else(|| Error::not_found("reconciliation", id))?;
        let own = self.rows.operations_of(id);
        let carried = run
            .carried
            .iter()
            .filter_map(|id| self.rows.operations.get_key_value(id));
        let all = own.into_iter().chain(carried);
        Ok(all.map(|(id, row)| operation_view(id, row)).collect())
    }
}

#[async_trait]
impl Reconciliations for MemoryStore {
    async fn begin_reconciliation(&self, new: NewReconciliation) -> Result<Begun, Error> {
        self.call("begin_reconciliation", |transaction| transaction.begin(&new))
            .await
    }

    async fn finish_reconciliation(&self, id: &ReconciliationId, finish: Finish) -> Result<Recorded, Error> {
        self.call("finish_reconciliation", |transaction| {
            transaction.finish(id, &finish)
        })
        .await
    }

    async fn reconciliation(&self, id: &ReconciliationId) -> Result<Reconciliation, Error> {
        self.call("reconciliation", |transaction| {
            let run = transaction.rows.runs.get(id);
            run.map(|run| view(id, run))
                .ok_or_else(|| Error::not_found("reconciliation", id))
        })
        .await
    }

    async fn running_reconciliation(&self, cluster: &ClusterId) -> Result<Option<Reconciliation>, Error> {
        self.call("running_reconciliation", |transaction| {
            let rows = &transaction.rows;
            let running = rows.running(cluster).and_then(|id| rows.runs.get_key_value(id));
            Ok(running.map(|(id, run)| view(id, run)))
        })
        .await
    }

    async fn worked_on(&self, cluster: &ClusterId) -> Result<BTreeSet<ComponentName>, Error> {
        self.call("worked_on", |transaction| {
            let running = transaction.rows.running_operations(cluster);
            Ok(running.map(|row| row.component.clone()).collect())
        })
        .await
    }

    async fn reconciliations(
        &self,
        cluster: &ClusterId,
        page: &PageRequest,
    ) -> Result<Page<Reconciliation>, Error> {
        self.call("reconciliations", |transaction| {
            transaction.rows.cluster(cluster)?;
            let limit = page.limit();
            let before = page.text_cursor();
            let mut found: Vec<_> = transaction
                .rows
                .runs_of(cluster)
                .filter(|(id, _)| before.is_none_or(|before| *id.to_string() < *before))
                .collect();
            found.reverse();
            found.truncate(limit as usize + 1);
            Ok(Page::collect(&found, limit, |(id, run)| {
                (Cursor(id.to_string()), id.to_string(), Ok(view(id, run)))
            }))
        })
        .await
    }

    async fn settled_reconciliations(&self, limit: u32) -> Result<Vec<ReconciliationId>, Error> {
        self.call("settled_reconciliations", |transaction| {
            Ok(transaction.live_runs(limit, |id, _| transaction.rows.open_operations(id) == 0))
        })
        .await
    }

    async fn overdue_reconciliations(&self, limit: u32) -> Result<Vec<ReconciliationId>, Error> {
        self.call("overdue_reconciliations", |transaction| {
            let is_overdue = |id: &ReconciliationId, run: &RunRow| {
                run.deadline <= transaction.now && !transaction.waits(id)
            };
            Ok(transaction.live_runs(limit, is_overdue))
        })
        .await
    }

    async fn operations(&self, id: &ReconciliationId) -> Result<Page<Operation>, Error> {
        self.call("operations", |transaction| {
            Ok(Page {
                items: transaction.operations(id)?,
                ..Page::default()
            })
        })
        .await
    }

    async fn operation(&self, id: &OperationId) -> Result<Operation, Error> {
        self.call("operation", |transaction| {
            transaction.rows.operation(id).map(|row| operation_view(id, row))
        })
        .await
    }

    async fn operation_changes(&self, id: &OperationId) -> Result<Vec<ObjectChange>, Error> {
        self.call("operation_changes", |transaction| transaction.changes_of(id))
            .await
    }

    async fn operation_timeline(&self, id: &OperationId) -> Result<Vec<TimelineEntry>, Error> {
        self.call("operation_timeline", |transaction| transaction.timeline_of(id))
            .await
    }
}
