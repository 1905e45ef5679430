//! The queue's statements, and what its calls share: the end of an operation and what follows from it.

pub(super) mod carry;
pub(super) mod claim;
pub(super) mod fair;
mod limits;
mod report;

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ComponentName, Error as CoreError, Fence, Lease, OperationId, OperationStateKind,
    Transition as _,
};

use super::SqlStore;
use super::failures::is_unique_violation;
use super::rows::{int, moment, span};
use super::status::component_key;
use crate::cipher::Column;
pub(super) use crate::rules::{LANE_AGEING_MILLIS, rank};
use crate::sql::{Cells, Connection, Row, Statement, batch_at_once, database, query, query_as, repeating};
use crate::{
    ClaimLimits, ClaimRequest, Claims, Error, Heartbeat, HeartbeatOutcome, Queue, Report, Settled, Signal,
    StopReason,
};

/// How often a claim is tried that meets another over the same component.
const CLAIM_TRIES: u32 = 4;

/// What the queue needs of an operation to move it.
pub(super) struct Held {
    pub(super) id: String,
    reconciliation: String,
    cluster: String,
    component: String,
    kind: String,
    state: String,
    lane: i64,
    fence: i64,
    pub(super) attempt: i64,
    stop: Option<String>,
    pub(super) reports: i64,
    pub(super) timeline_entries: i64,
    reason: Option<Vec<u8>>,
    lease_owner: Option<String>,
}

/// The columns of [`Held`].
macro_rules! held_fields {
    () => {
        "SELECT id, reconciliation_id, cluster_id, component, kind, state, due_lane, fence, attempt, stop, reports, \
         timeline_entries, reason, lease_owner FROM operations "
    };
}
use held_fields;

/// Everything that waits for an operation, directly or not, and is not final.
pub(super) const DEPENDENTS: Statement = Statement::same(concat!(
    "WITH RECURSIVE dependent (operation) AS (SELECT operation_id FROM operation_dependencies WHERE depends_on = $1 \
     UNION SELECT d.operation_id FROM dependent JOIN operation_dependencies d ON d.depends_on = dependent.operation) ",
    held_fields!(),
    "WHERE id IN (SELECT operation FROM dependent) AND finished_at IS NULL AND state <> 'running' ORDER BY position"
));

/// The operations that are spoken of.
pub(super) const HELD: Statement = Statement::each(
    concat!(held_fields!(), "WHERE id IN (SELECT value FROM json_each($1))"),
    concat!(
        held_fields!(),
        "WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE"
    ),
);

/// Renews leases given as `[{"id": …, "fence": …}, …]`.
pub(super) const RENEW: Statement = Statement::each(
    "UPDATE operations SET lease_until = $2, wake_at = $2 \
     FROM (SELECT value ->> 'id' AS id, value ->> 'fence' AS fence FROM json_each($1)) AS h \
     WHERE operations.id = h.id AND operations.fence = h.fence AND operations.state = 'running' \
     RETURNING operations.id, operations.fence, operations.stop",
    "WITH h AS (SELECT o.id FROM json_to_recordset($1::json) AS n (id text, fence bigint) \
     JOIN operations o ON o.id = n.id AND o.fence = n.fence AND o.state = 'running' ORDER BY o.id FOR NO KEY UPDATE OF o) \
     UPDATE operations SET lease_until = $2, wake_at = $2 FROM h WHERE operations.id = h.id \
     RETURNING operations.id, operations.fence, operations.stop",
);

/// Ends operations.
pub(super) const END: Statement = Statement::each(
    "UPDATE operations SET state = n.state, reason = n.reason, finished_at = n.at, until = NULL, rank = NULL, \
     wake_at = NULL, lease_owner = NULL, lease_until = NULL, stop = NULL, previous = NULL \
     FROM (SELECT value ->> 0 AS id, value ->> 1 AS state, unhex(value ->> 2) AS reason, value ->> 3 AS at \
     FROM json_each($1)) AS n WHERE operations.id = n.id",
    "UPDATE operations o SET state = n.state, reason = n.reason, finished_at = n.at, until = NULL, rank = NULL, \
     wake_at = NULL, lease_owner = NULL, lease_until = NULL, stop = NULL, previous = NULL \
     FROM unnest($1, $2, $3, $4) AS n (id, state, reason, at) WHERE o.id = n.id",
);

/// Lets those that waited for successful operations go on.
pub(super) const UNBLOCK: Statement = Statement::each(
    "UPDATE operations SET blocked_by = blocked_by - n.done, \
     rank = CASE WHEN blocked_by = n.done AND state = 'pending' THEN $2 + due_lane * $3 ELSE rank END \
     FROM (SELECT operation_id, count(*) AS done FROM operation_dependencies \
           WHERE depends_on IN (SELECT value FROM json_each($1)) GROUP BY operation_id) AS n \
     WHERE operations.id = n.operation_id",
    "UPDATE operations SET blocked_by = blocked_by - n.done, \
     rank = CASE WHEN blocked_by = n.done AND state = 'pending' THEN $2 + due_lane * $3 ELSE rank END \
     FROM (SELECT operation_id, count(*) AS done FROM operation_dependencies \
           WHERE depends_on = ANY ($1) GROUP BY operation_id ORDER BY operation_id) AS n \
     WHERE operations.id = n.operation_id",
);

/// Shows the states of operations as their components', unless a component has a newer operation.
pub(super) const SHOW: Statement = Statement::each(
    "UPDATE components SET state = n.state, since = iif(components.state = n.state, components.since, n.at), \
     reason = n.reason, until = n.until, not_ready = iif(n.state = 'succeeded', NULL, components.not_ready) \
     FROM (SELECT value ->> 0 AS cluster_id, value ->> 1 AS component, value ->> 2 AS operation_id, value ->> 3 AS state, \
     value ->> 4 AS at, unhex(value ->> 5) AS reason, value ->> 6 AS until FROM json_each($1)) AS n \
     WHERE components.cluster_id = n.cluster_id AND components.component = n.component \
     AND components.operation_id = n.operation_id",
    "UPDATE components k SET state = n.state, since = CASE WHEN k.state = n.state THEN k.since ELSE n.at END, \
     reason = n.reason, until = n.until, not_ready = CASE WHEN n.state = 'succeeded' THEN NULL ELSE k.not_ready END \
     FROM unnest($1, $2, $3, $4, $5, $6, $7) AS n (cluster_id, component, operation_id, state, at, reason, until) \
     WHERE k.cluster_id = n.cluster_id AND k.component = n.component AND k.operation_id = n.operation_id",
);

/// How many operations of runs are not final.
pub(super) const OPEN: Statement = Statement::each(
    "SELECT reconciliation_id, count(*) FROM operations INDEXED BY operations_open \
     WHERE reconciliation_id IN (SELECT value FROM json_each($1)) AND finished_at IS NULL GROUP BY reconciliation_id",
    "SELECT reconciliation_id, count(*) FROM operations \
     WHERE reconciliation_id = ANY ($1) AND finished_at IS NULL GROUP BY reconciliation_id",
);

/// Operations that wait for a dependency which is missing: those that wait for their own run.
pub(super) const MISSING: &str = "SELECT id FROM operations \
     WHERE previous IS NOT NULL AND previous = reconciliation_id AND state = 'waiting' LIMIT $1";

/// What an operation that is reported waiting waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitsFor {
    /// A person's answer, or a moment.
    Answer,
    /// What another operation of its run may bring.
    Dependency,
}

/// What an operation comes to.
struct End<'h> {
    held: &'h Held,
    state: OperationStateKind,
    reason: Option<&'h str>,
}

impl Held {
    /// Reads the row as raw text: also one with a name nobody knows has to be movable.
    fn read(row: &Row) -> Result<Self, Error> {
        let key: String = Cells::new(row, "operations", "").get("id")?;
        let cells = Cells::new(row, "operations", key);
        Ok(Self {
            id: cells.get("id")?,
            reconciliation: cells.get("reconciliation_id")?,
            cluster: cells.get("cluster_id")?,
            component: cells.get("component")?,
            kind: cells.get("kind")?,
            state: cells.get("state")?,
            lane: cells.get("due_lane")?,
            fence: cells.get("fence")?,
            attempt: cells.get("attempt")?,
            stop: cells.get("stop")?,
            reports: cells.get("reports")?,
            timeline_entries: cells.get("timeline_entries")?,
            reason: cells.get("reason")?,
            lease_owner: cells.get("lease_owner")?,
        })
    }

    pub(super) async fn load(connection: &mut Connection, id: &str) -> Result<Self, Error> {
        Self::load_all(connection, &vec![id.to_owned()])
            .await?
            .remove(id)
            .ok_or_else(|| Error::not_found("operation", id))
    }

    /// The operations of these ids that exist, locked.
    pub(super) async fn load_all(
        connection: &mut Connection,
        ids: &Vec<String>,
    ) -> Result<HashMap<String, Self>, Error> {
        let rows = query(HELD)
            .bind(ids)
            .fetch_all(connection)
            .await
            .map_err(database("reading operations"))?;
        let held = rows
            .iter()
            .map(|row| Self::read(row).map(|held| (held.id.clone(), held)));
        held.collect()
    }

    /// The answer about it.
    fn settled(
        &self,
        state: OperationStateKind,
        skipped: Vec<ComponentName>,
        open: i64,
    ) -> Result<Settled, Error> {
        Ok(Settled {
            operation: self.id.parse().map_err(Error::Invalid)?,
            reconciliation: self.reconciliation.parse().map_err(Error::Invalid)?,
            cluster: self.cluster.parse().map_err(Error::Invalid)?,
            component: self.component.parse().map_err(Error::Invalid)?,
            state,
            skipped,
            open: u32::try_from(open).unwrap_or(u32::MAX),
        })
    }

    /// The state in its row, if it is one that is known.
    pub(super) fn state(&self) -> Option<OperationStateKind> {
        self.state.parse().ok()
    }

    /// The final state of an operation that was to stop.
    fn stopped(&self) -> Option<OperationStateKind> {
        let stop: Option<StopReason> = self
            .stop
            .as_deref()
            .and_then(|stop| super::rows::named(stop).ok());
        // A word that cannot be read is still an order to stop.
        self.stop.as_ref().map(|_| match stop {
            Some(StopReason::Superseded) => OperationStateKind::Superseded,
            Some(StopReason::Cancelled) | None => OperationStateKind::Cancelled,
        })
    }
}

impl SqlStore {
    /// Ends operations: those that waited for one become claimable, or are skipped when it did not succeed. Answers the
    /// components that were skipped because of each.
    async fn end_all(
        &self,
        connection: &mut Connection,
        ends: &[End<'_>],
    ) -> Result<Vec<Vec<ComponentName>>, Error> {
        let doing = || database("ending operations");
        if ends.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.now();
        let mut finals = batch_at_once(END);
        let mut shown = Vec::with_capacity(ends.len());
        let mut done = Vec::new();
        for End { held, state, reason } in ends {
            let sealed = self
                .cipher
                .seal_text(Column::OPERATION_REASON, &held.id, *reason)?;
            finals.push([
                held.id.clone().into(),
                state.as_str().into(),
                sealed.into(),
                now.into(),
            ]);
            shown.push((*held, *state, *reason, None));
            if *state == OperationStateKind::Succeeded {
                done.push(held.id.clone());
            }
        }
        finals.execute(connection).await.map_err(doing())?;
        self.show_components(connection, &shown).await?;
        let mut ended: Vec<String> = ends.iter().map(|end| end.held.id.clone()).collect();
        // What another operation of the run missed may be there now.
        let brings = ends
            .iter()
            .filter(|end| end.state == OperationStateKind::Succeeded);
        ended.extend(brings.map(|end| end.held.reconciliation.clone()));
        self.follow(connection, &ended).await?;
        if !done.is_empty() {
            query(UNBLOCK)
                .bind(done)
                .bind(now)
                .bind(LANE_AGEING_MILLIS)
                .execute(&mut *connection)
                .await
                .map_err(doing())?;
        }
        let mut skipped = Vec::with_capacity(ends.len());
        for End { held, state, .. } in ends {
            if *state != OperationStateKind::Succeeded {
                skipped.push(self.skip_dependents(connection, held, *state).await?);
                continue;
            }
            if held.kind == "delete" {
                self.forget_revision(connection, &held.cluster, &held.component)
                    .await?;
            }
            skipped.push(Vec::new());
        }
        Ok(skipped)
    }

    /// Ends one operation.
    async fn settle(
        &self,
        connection: &mut Connection,
        held: &Held,
        state: OperationStateKind,
        reason: Option<&str>,
    ) -> Result<Settled, Error> {
        let skipped = self.end_all(connection, &[End { held, state, reason }]).await?;
        let open = self
            .open_operations(connection, vec![held.reconciliation.clone()])
            .await?;
        let open = open.get(&held.reconciliation).copied().unwrap_or(0);
        held.settled(state, skipped.into_iter().flatten().collect(), open)
    }

    /// How many operations of runs are not final; runs without one are not in the answer.
    async fn open_operations(
        &self,
        connection: &mut Connection,
        runs: Vec<String>,
    ) -> Result<HashMap<String, i64>, Error> {
        let counts: Vec<(String, i64)> = query_as(OPEN)
            .bind(runs)
            .fetch_all(connection)
            .await
            .map_err(database("counting open operations"))?;
        Ok(counts.into_iter().collect())
    }

    /// Skips everything that waited for an operation, directly or not, and names it as the reason.
    async fn skip_dependents(
        &self,
        connection: &mut Connection,
        held: &Held,
        state: OperationStateKind,
    ) -> Result<Vec<ComponentName>, Error> {
        let doing = || database("skipping operations");
        let rows = query(DEPENDENTS)
            .bind(&held.id)
            .fetch_all(&mut *connection)
            .await
            .map_err(doing())?;
        let reason = format!(
            "component {:?}, which it depends on, was not done: {state}",
            held.component
        );
        let dependents = rows.iter().map(Held::read).collect::<Result<Vec<_>, _>>()?;
        let now = self.now();
        let mut finals = batch_at_once(END);
        for dependent in &dependents {
            let sealed = self
                .cipher
                .seal(Column::OPERATION_REASON, &dependent.id, reason.as_bytes())?;
            finals.push([
                dependent.id.clone().into(),
                OperationStateKind::Skipped.as_str().into(),
                Some(sealed).into(),
                now.into(),
            ]);
        }
        finals.execute(connection).await.map_err(doing())?;
        let shown: Vec<_> = dependents
            .iter()
            .map(|held| (held, OperationStateKind::Skipped, Some(&*reason), None))
            .collect();
        self.show_components(connection, &shown).await?;
        Ok(dependents
            .iter()
            .filter_map(|dependent| dependent.component.parse().ok())
            .collect())
    }

    /// Shows operations' states as their components', unless a component has a newer operation.
    async fn show_components(
        &self,
        connection: &mut Connection,
        shown: &[(&Held, OperationStateKind, Option<&str>, Option<i64>)],
    ) -> Result<(), Error> {
        let now = self.now();
        let mut shown: Vec<_> = shown.iter().collect();
        shown.sort_by_key(|(held, ..)| (&held.cluster, &held.component));
        let mut states = batch_at_once(SHOW);
        for (held, state, reason, until) in shown {
            let key = component_key(&held.cluster, &held.component);
            let sealed = self.cipher.seal_text(Column::COMPONENT_REASON, &key, *reason)?;
            states.push([
                held.cluster.clone().into(),
                held.component.clone().into(),
                held.id.clone().into(),
                state.as_str().into(),
                now.into(),
                sealed.into(),
                (*until).into(),
            ]);
        }
        states
            .execute(connection)
            .await
            .map(drop)
            .map_err(database("recording components' states"))
    }
}

impl SqlStore {
    /// One try.
    async fn heartbeat_once(
        &self,
        operations: &[(OperationId, Fence)],
        lease: Duration,
    ) -> Result<Vec<Heartbeat>, Error> {
        let doing = "renewing leases";
        if operations.is_empty() {
            return Ok(Vec::new());
        }
        let held: Vec<_> = operations
            .iter()
            .map(|(id, fence)| (id.to_string(), int(fence.0)))
            .collect();
        let question: Vec<_> = held
            .iter()
            .map(|(id, fence)| serde_json::json!({"id": id, "fence": fence}))
            .collect();
        let question = serde_json::Value::from(question).to_string();
        let until = self.now().saturating_add(span(lease));
        let mut transaction = self.write(doing).await?;
        let renewed: Vec<(String, i64, Option<String>)> = query_as(RENEW)
            .bind(question)
            .bind(until)
            .fetch_all(&mut *transaction)
            .await
            .map_err(database(doing))?;
        transaction.commit(doing).await?;
        let answers = operations
            .iter()
            .zip(held)
            .map(|((operation, fence), (id, number))| {
                let lease = Lease {
                    fence: *fence,
                    until: moment(until),
                };
                let outcome = match renewed
                    .iter()
                    .find(|(other, fence, _)| *other == id && *fence == number)
                {
                    None => HeartbeatOutcome::Lost,
                    Some((_, _, None)) => HeartbeatOutcome::Renewed(lease),
                    Some((_, _, Some(stop))) => {
                        let why = super::rows::named(stop).unwrap_or(StopReason::Cancelled);
                        HeartbeatOutcome::Stop(lease, why)
                    }
                };
                Heartbeat {
                    operation: operation.clone(),
                    outcome,
                }
            });
        Ok(answers.collect())
    }

    /// One try.
    async fn resume_once(&self, operation: &OperationId) -> Result<(), Error> {
        let doing = "resuming an operation";
        let mut transaction = self.write(doing).await?;
        let held = Held::load(&mut transaction, &operation.to_string()).await?;
        let state: OperationStateKind = held.state.parse().map_err(Error::Refused)?;
        if state != OperationStateKind::Waiting {
            let allowed: Vec<_> = state.allowed().iter().map(|state| state.as_str()).collect();
            return Err(Error::Refused(CoreError::Transition {
                what: "operation state (resuming one that does not wait)",
                from: state.as_str(),
                to: OperationStateKind::Pending.as_str(),
                allowed: allowed.join(", "),
            }));
        }
        self.requeue_waiting(&mut transaction, &held).await?;
        transaction.commit(doing).await?;
        self.signal(Signal::OperationReady);
        Ok(())
    }

    /// Makes an operation claimable that waited: what it waited for has come.
    pub(super) async fn requeue_waiting(
        &self,
        connection: &mut Connection,
        held: &Held,
    ) -> Result<(), Error> {
        query(
            "UPDATE operations SET state = 'pending', reason = NULL, until = NULL, wake_at = NULL, previous = NULL, \
             rank = CASE WHEN blocked_by = 0 THEN $2 END WHERE id = $1",
        )
        .bind(&held.id)
        .bind(rank(self.now(), held.lane))
        .execute(&mut *connection)
        .await
        .map_err(database("resuming an operation"))?;
        self.show_components(connection, &[(held, OperationStateKind::Pending, None, None)])
            .await
    }

    /// One try.
    async fn raise_fence_once(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        to: Fence,
    ) -> Result<(), Error> {
        let doing = "raising a fence";
        let mut transaction = self.write(doing).await?;
        let done = query(
            "UPDATE components SET fence = CASE WHEN fence < $3 THEN $3 ELSE fence END WHERE cluster_id = $1 AND component = $2",
        )
        .bind(cluster.as_str())
        .bind(component.as_str())
        .bind(int(to.0))
        .execute(&mut *transaction)
        .await
        .map_err(database(doing))?;
        if done == 0 {
            return Err(Error::not_found("component", format!("{cluster}/{component}")));
        }
        transaction.commit(doing).await
    }
}

#[async_trait]
impl Queue for SqlStore {
    async fn claim_within(&self, request: &ClaimRequest, limits: &ClaimLimits) -> Result<Claims, Error> {
        // Two that claim operations of one component at the same time: the index lets one of them have it.
        for _ in 1..CLAIM_TRIES {
            match repeating(|| self.claim_ready(request, limits)).await {
                Err(error) if is_unique_violation(&error) => {}
                answer => return answer,
            }
        }
        repeating(|| self.claim_ready(request, limits)).await
    }

    async fn heartbeat(
        &self,
        operations: &[(OperationId, Fence)],
        lease: Duration,
    ) -> Result<Vec<Heartbeat>, Error> {
        repeating(|| self.heartbeat_once(operations, lease)).await
    }

    async fn report_all(&self, reports: Vec<Report>) -> Result<Vec<Result<Settled, Error>>, Error> {
        repeating(|| self.take_reports(&reports)).await
    }

    async fn report_missing(&self, report: Report) -> Result<Settled, Error> {
        let operation = report.operation.clone();
        let reports = [report];
        match repeating(|| self.take_batch(&reports, WaitsFor::Dependency))
            .await?
            .pop()
        {
            Some(answer) => answer,
            None => Err(Error::not_found("operation", operation)),
        }
    }

    async fn recheck_missing(&self, limit: u32) -> Result<u32, Error> {
        let waiting: Vec<(String,)> = query_as(MISSING)
            .bind(i64::from(limit))
            .fetch_all(self.read())
            .await
            .map_err(database("looking for missing dependencies"))?;
        let mut resumed = 0;
        for (id,) in &waiting {
            let id: OperationId = id.parse().map_err(Error::Invalid)?;
            match self.resume(&id).await {
                Ok(()) => resumed += 1,
                // Somebody else saw to it in between.
                Err(Error::Refused(_) | Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(resumed)
    }

    async fn resume(&self, operation: &OperationId) -> Result<(), Error> {
        repeating(|| self.resume_once(operation)).await
    }

    async fn raise_fence(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        to: Fence,
    ) -> Result<(), Error> {
        repeating(|| self.raise_fence_once(cluster, component, to)).await
    }
}
