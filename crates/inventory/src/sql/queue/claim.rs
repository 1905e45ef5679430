//! Claiming: first what time has decided, then the most urgent that is ready.

use std::collections::{HashMap, HashSet};

use evenkeel_core::{ConfigurationVersion, Fence, Lease, OperationStateKind, Strategy};
use jiff::Timestamp;

use super::{Held, SqlStore, held_fields, rank};
use crate::cipher::Column;
use crate::sql::rows::{list, moment, named, span};
use crate::sql::{Cells, Connection, Row, Statement, database, query, query_scalar};
use crate::{
    ClaimLimits, ClaimRequest, ClaimedOperation, Claims, Error, Level, Settled, Signal, TimelineEntry,
};

const CLAIMING: &str = "claiming operations";
/// The most operations that one claim gives out.
const CLAIM_MAX: u32 = 256;
/// The most leases and waits that one claim ends, so that a claim stays short after a long standstill.
const WAKE_MAX: i64 = 256;

pub(in crate::sql) const FIRST_WAKE: Statement =
    Statement::same("SELECT min(wake_at) FROM operations WHERE wake_at IS NOT NULL");
/// On PostgreSQL with their runs: ending an operation counts what is left of its run.
pub(in crate::sql) const WOKEN: Statement = Statement::each(
    concat!(held_fields!(), "WHERE wake_at <= $1 ORDER BY wake_at LIMIT $2"),
    "SELECT o.id, o.reconciliation_id, o.cluster_id, o.component, o.kind, o.state, o.due_lane, o.fence, o.attempt, o.stop, \
     o.reports, o.timeline_entries, o.reason, o.lease_owner FROM operations o \
     JOIN reconciliations r ON r.id = o.reconciliation_id \
     WHERE o.wake_at <= $1 ORDER BY o.wake_at LIMIT $2 FOR NO KEY UPDATE OF r, o SKIP LOCKED",
);
/// SQLite, step 1: what is ready.
pub(in crate::sql) const READY: &str = "SELECT o.id, o.cluster_id, o.component, r.strategy, r.deadline, r.request_id \
     FROM operations o CROSS JOIN reconciliations r ON r.id = o.reconciliation_id \
     WHERE o.rank IS NOT NULL AND NOT EXISTS (SELECT 1 FROM operations other \
     WHERE other.cluster_id = o.cluster_id AND other.component = o.component AND other.state = 'running') \
     ORDER BY o.rank LIMIT $1";
/// Step 2; those that were chosen are locked already.
pub(in crate::sql) const RAISE_FENCES: Statement = Statement::each(
    "UPDATE components SET fence = fence + 1, \
     state = iif(operation_id IN (SELECT value FROM json_each($1)), 'running', state), \
     since = iif(operation_id IN (SELECT value FROM json_each($1)), $2, since), \
     until = iif(operation_id IN (SELECT value FROM json_each($1)), NULL, until), \
     reason = iif(operation_id IN (SELECT value FROM json_each($1)), NULL, reason) \
     WHERE (cluster_id, component) IN \
     (SELECT o.cluster_id, o.component FROM json_each($1) j CROSS JOIN operations o ON o.id = j.value)",
    "UPDATE components k SET fence = k.fence + 1, \
     state = CASE WHEN k.operation_id = o.id THEN 'running' ELSE k.state END, \
     since = CASE WHEN k.operation_id = o.id THEN $2 ELSE k.since END, \
     until = CASE WHEN k.operation_id = o.id THEN NULL ELSE k.until END, \
     reason = CASE WHEN k.operation_id = o.id THEN NULL ELSE k.reason END \
     FROM operations o WHERE o.id = ANY ($1) AND k.cluster_id = o.cluster_id AND k.component = o.component",
);
/// Step 3.
pub(in crate::sql) const TAKE: Statement = Statement::each(
    "UPDATE operations SET state = 'running', reason = NULL, until = NULL, rank = NULL, wake_at = $2, \
     attempt = attempt + 1, lease_owner = $3, lease_until = $2, started_at = coalesce(started_at, $4), \
     fence = coalesce((SELECT c.fence FROM components c WHERE c.cluster_id = operations.cluster_id \
                       AND c.component = operations.component), fence + 1) \
     WHERE id IN (SELECT value FROM json_each($1)) \
     RETURNING id, reconciliation_id, cluster_id, component, kind, version, due_lane, cause, attempt, fence",
    "UPDATE operations o SET state = 'running', reason = NULL, until = NULL, rank = NULL, wake_at = $2, \
     attempt = o.attempt + 1, lease_owner = $3, lease_until = $2, started_at = coalesce(o.started_at, $4), \
     fence = coalesce((SELECT k.fence FROM components k WHERE k.cluster_id = o.cluster_id AND k.component = o.component), \
     o.fence + 1) WHERE o.id = ANY ($1) \
     RETURNING o.id, o.reconciliation_id, o.cluster_id, o.component, o.kind, o.version, o.due_lane, o.cause, o.attempt, o.fence",
);
/// PostgreSQL, all of it at once: what others are claiming is passed over, and what is passed over stays ready.
pub(in crate::sql) const CLAIM: &str = "WITH picked AS (SELECT o.id, o.cluster_id, o.component, o.rank FROM operations o \
     WHERE o.rank IS NOT NULL AND NOT EXISTS (SELECT 1 FROM operations other \
     WHERE other.cluster_id = o.cluster_id AND other.component = o.component AND other.state = 'running') \
     ORDER BY o.rank LIMIT $1 FOR NO KEY UPDATE OF o SKIP LOCKED), \
     chosen AS (SELECT DISTINCT ON (cluster_id, component) id, cluster_id, component, rank FROM picked \
     ORDER BY cluster_id, component, rank), \
     fenced AS (UPDATE components k SET fence = k.fence + 1, \
     state = CASE WHEN k.operation_id = c.id THEN 'running' ELSE k.state END, \
     since = CASE WHEN k.operation_id = c.id THEN $4 ELSE k.since END, \
     until = CASE WHEN k.operation_id = c.id THEN NULL ELSE k.until END, \
     reason = CASE WHEN k.operation_id = c.id THEN NULL ELSE k.reason END \
     FROM chosen c WHERE k.cluster_id = c.cluster_id AND k.component = c.component \
     RETURNING k.cluster_id, k.component, k.fence) \
     UPDATE operations o SET state = 'running', reason = NULL, until = NULL, rank = NULL, wake_at = $2, \
     attempt = o.attempt + 1, lease_owner = $3, lease_until = $2, started_at = coalesce(o.started_at, $4), \
     fence = coalesce(f.fence, o.fence + 1) \
     FROM chosen c LEFT JOIN fenced f ON f.cluster_id = c.cluster_id AND f.component = c.component, reconciliations r \
     WHERE o.id = c.id AND r.id = o.reconciliation_id \
     RETURNING o.id, o.reconciliation_id, o.cluster_id, o.component, o.kind, o.version, o.due_lane, o.cause, o.attempt, \
     o.fence, r.strategy, r.deadline, r.request_id, c.rank";

/// What a claim knows of a picked operation before it is taken.
#[derive(Clone)]
pub(super) struct Picked {
    pub(super) order: usize,
    strategy: String,
    deadline: Timestamp,
    request_id: Option<String>,
}

impl Picked {
    pub(super) fn read(cells: &Cells<'_>, order: usize) -> Result<Self, Error> {
        Ok(Self {
            order,
            strategy: cells.get("strategy")?,
            deadline: cells.time("deadline")?,
            request_id: cells.get("request_id")?,
        })
    }
}

impl SqlStore {
    /// One claim.
    pub(super) async fn claim_ready(
        &self,
        request: &ClaimRequest,
        limits: &ClaimLimits,
    ) -> Result<Claims, Error> {
        let mut claims = Claims::default();
        let now = self.now();
        let mut transaction = self.write(CLAIMING).await?;
        let mut next_at = first_wake(&mut transaction).await?;
        let mut returned = false;
        if next_at.is_some_and(|at| at <= now) {
            returned = self.wake(&mut transaction, &mut claims.settled).await?;
            next_at = first_wake(&mut transaction).await?;
        }
        let until = now.saturating_add(span(request.lease));
        let limit = request.limit.min(CLAIM_MAX);
        let took = match (limit, transaction.is_shared()) {
            (0, _) => false,
            (_, _) if *limits != ClaimLimits::default() => {
                self.claim_limited(&mut transaction, limit, (request, limits), until, &mut claims)
                    .await?
            }
            (_, true) => {
                self.claim_at_once(&mut transaction, limit, request, until, &mut claims)
                    .await?
            }
            (_, false) => {
                let picked = pick(&mut transaction, limit).await?;
                if !picked.is_empty() {
                    self.take(&mut transaction, &picked, request, until, &mut claims)
                        .await?;
                }
                !picked.is_empty()
            }
        };
        if took {
            next_at = Some(next_at.map_or(until, |at| at.min(until)));
        }
        if returned || took || !claims.settled.is_empty() {
            transaction.commit(CLAIMING).await?;
        } else {
            transaction.rollback(CLAIMING).await?;
        }
        claims.next_at = next_at.map(moment);
        if !claims.settled.is_empty() {
            self.signal(Signal::OperationSettled);
        }
        // Whoever watches a cluster sees its components begin.
        if !claims.operations.is_empty() {
            self.signal(Signal::ClusterChanged);
        }
        Ok(claims)
    }

    /// Ends what time has decided: leases return operations to the queue, retries become claimable, waits fail.
    /// Answers whether anything was written.
    async fn wake(&self, connection: &mut Connection, settled: &mut Vec<Settled>) -> Result<bool, Error> {
        let now = self.now();
        let rows = query(WOKEN)
            .bind(now)
            .bind(WAKE_MAX)
            .fetch_all(&mut *connection)
            .await
            .map_err(database(CLAIMING))?;
        // What one of them ends may have ended others of them, or let them go on.
        let mut others_may_have_moved = false;
        for row in &rows {
            let held = Held::read(row)?;
            if others_may_have_moved && Held::load(connection, &held.id).await?.state != held.state {
                continue;
            }
            match held.state.parse() {
                Ok(OperationStateKind::Running) if held.stop.is_none() => {
                    self.requeue(connection, &held).await?;
                    continue;
                }
                Ok(OperationStateKind::Retrying) => {
                    query("UPDATE operations SET rank = $2, wake_at = NULL WHERE id = $1")
                        .bind(&held.id)
                        .bind(rank(now, held.lane))
                        .execute(&mut *connection)
                        .await
                        .map_err(database(CLAIMING))?;
                    continue;
                }
                _ => {}
            }
            let (state, reason) = match (held.stopped(), held.state.parse()) {
                (Some(state), _) => (state, None),
                (None, Ok(OperationStateKind::Waiting)) => {
                    let waited_for = self
                        .cipher
                        .open_text(Column::OPERATION_REASON, &held.id, held.reason.as_deref())
                        .unwrap_or(None)
                        .unwrap_or_else(|| "(unreadable)".to_owned());
                    let reason = format!("waited until the deadline for: {waited_for}");
                    (OperationStateKind::Failed, Some(reason))
                }
                (None, _) => {
                    let reason = format!("its state {:?} is not known to this release", held.state);
                    (OperationStateKind::Failed, Some(reason))
                }
            };
            self.end_badly(connection, &held, state, reason.as_deref(), settled)
                .await?;
            others_may_have_moved = true;
        }
        Ok(!rows.is_empty())
    }

    /// Returns an operation whose lease is over to the queue, and says so in its timeline.
    async fn requeue(&self, connection: &mut Connection, held: &Held) -> Result<(), Error> {
        let now = self.now();
        query(
            "UPDATE operations SET state = 'pending', rank = $2, wake_at = NULL, lease_owner = NULL, lease_until = NULL \
             WHERE id = $1",
        )
        .bind(&held.id)
        .bind(rank(now, held.lane))
        .execute(&mut *connection)
        .await
        .map_err(database(CLAIMING))?;
        self.show_components(connection, &[(held, OperationStateKind::Pending, None, None)])
            .await?;
        let entry = TimelineEntry {
            at: moment(now),
            level: Level::Warning,
            step: None,
            message: format!(
                "worker {} was not heard of until its lease ended; attempt {} is over, the operation returned to the queue",
                held.lease_owner.as_deref().unwrap_or("(unknown)"),
                held.attempt
            ),
        };
        self.append_reports(connection, &[(held, &[], &[entry])]).await
    }

    /// Ends an operation by itself. Whatever cannot be read of it is told to the log: there is nobody else to tell.
    async fn end_badly(
        &self,
        connection: &mut Connection,
        held: &Held,
        state: OperationStateKind,
        reason: Option<&str>,
        settled: &mut Vec<Settled>,
    ) -> Result<(), Error> {
        match self.settle(connection, held, state, reason).await {
            Ok(done) => settled.push(done),
            Err(error @ Error::Database { .. }) => return Err(error),
            Err(error) => {
                tracing::error!(operation = %held.id, %error, "an operation ended with names that cannot be read")
            }
        }
        Ok(())
    }

    pub(super) async fn take(
        &self,
        connection: &mut Connection,
        picked: &HashMap<String, Picked>,
        request: &ClaimRequest,
        until: i64,
        claims: &mut Claims,
    ) -> Result<(), Error> {
        let ids = list(picked.keys());
        let now = self.now();
        query(RAISE_FENCES)
            .bind(&ids)
            .bind(now)
            .execute(&mut *connection)
            .await
            .map_err(database(CLAIMING))?;
        let rows = query(TAKE)
            .bind(&ids)
            .bind(until)
            .bind(&request.worker)
            .bind(now)
            .fetch_all(&mut *connection)
            .await
            .map_err(database(CLAIMING))?;
        let mut taken = Vec::with_capacity(rows.len());
        for row in &rows {
            let id: String = Cells::new(row, "operations", "").get("id")?;
            let Some(pick) = picked.get(&id) else {
                continue;
            };
            let order = i64::try_from(pick.order).unwrap_or(i64::MAX);
            taken.push((order, row, pick.clone()));
        }
        self.hand_out(connection, taken, until, claims).await
    }

    /// Picks and takes in one statement. Answers whether anything was taken.
    async fn claim_at_once(
        &self,
        connection: &mut Connection,
        limit: u32,
        request: &ClaimRequest,
        until: i64,
        claims: &mut Claims,
    ) -> Result<bool, Error> {
        let rows = query(CLAIM)
            .bind(i64::from(limit))
            .bind(until)
            .bind(&request.worker)
            .bind(self.now())
            .fetch_all(&mut *connection)
            .await
            .map_err(database(CLAIMING))?;
        let mut taken = Vec::with_capacity(rows.len());
        for row in &rows {
            let cells = Cells::new(row, "operations", "");
            taken.push((cells.get("rank")?, row, Picked::read(&cells, 0)?));
        }
        self.hand_out(connection, taken, until, claims).await?;
        Ok(!rows.is_empty())
    }

    /// Turns rows that were taken into claims, in their order.
    pub(super) async fn hand_out(
        &self,
        connection: &mut Connection,
        taken: Vec<(i64, &Row, Picked)>,
        until: i64,
        claims: &mut Claims,
    ) -> Result<(), Error> {
        let mut operations = Vec::with_capacity(taken.len());
        for (order, row, pick) in &taken {
            let id: String = Cells::new(row, "operations", "").get("id")?;
            match self.claimed(row, &id, pick, until) {
                Ok(operation) => operations.push((*order, operation)),
                // Left running it would be claimed again for ever.
                Err(error) => {
                    let held = Held::load(connection, &id).await?;
                    let reason = error.to_string();
                    self.end_badly(
                        connection,
                        &held,
                        OperationStateKind::Failed,
                        Some(&reason),
                        &mut claims.settled,
                    )
                    .await?;
                }
            }
        }
        operations.sort_by_key(|(order, _)| *order);
        claims
            .operations
            .extend(operations.into_iter().map(|(_, operation)| operation));
        Ok(())
    }

    fn claimed(&self, row: &Row, id: &str, pick: &Picked, until: i64) -> Result<ClaimedOperation, Error> {
        let cells = Cells::new(row, "operations", id);
        let strategy: Strategy = named(&pick.strategy).map_err(|error| Error::Unreadable {
            table: "reconciliations",
            column: "strategy",
            row: cells.get("reconciliation_id").unwrap_or_default(),
            reason: error.to_string(),
        })?;
        Ok(ClaimedOperation {
            id: cells.parse("id")?,
            reconciliation: cells.parse("reconciliation_id")?,
            cluster: cells.parse("cluster_id")?,
            component: cells.parse("component")?,
            kind: cells.named("kind")?,
            strategy,
            due_reason: cells.due_reason("due_lane")?,
            version: ConfigurationVersion(cells.number("version")?),
            cause: cells
                .secret_text(&self.cipher, Column::OPERATION_CAUSE, id)?
                .unwrap_or_default(),
            attempt: cells.count("attempt")?,
            lease: Lease {
                fence: Fence(cells.number("fence")?),
                until: moment(until),
            },
            deadline: pick.deadline,
            request_id: pick.request_id.clone(),
        })
    }
}

/// When the first operation wakes by itself.
async fn first_wake(connection: &mut Connection) -> Result<Option<i64>, Error> {
    query_scalar(FIRST_WAKE)
        .fetch_one(connection)
        .await
        .map_err(database(CLAIMING))
}

/// The most urgent operations that are ready, at most one of each component of a cluster.
async fn pick(connection: &mut Connection, limit: u32) -> Result<HashMap<String, Picked>, Error> {
    if limit == 0 {
        return Ok(HashMap::new());
    }
    let rows = query(READY)
        .bind(i64::from(limit))
        .fetch_all(connection)
        .await
        .map_err(database(CLAIMING))?;
    let mut components = HashSet::new();
    let mut picked = HashMap::with_capacity(rows.len());
    for (order, row) in rows.iter().enumerate() {
        let cells = Cells::new(row, "operations", "");
        let component: (String, String) = (cells.get("cluster_id")?, cells.get("component")?);
        if components.insert(component) {
            picked.insert(cells.get("id")?, Picked::read(&cells, order)?);
        }
    }
    Ok(picked)
}
