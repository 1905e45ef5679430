//! Runs over clusters: ending and reading them; how they begin is a file of its own.

mod begin;

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ComponentName, ConfigurationVersion, Fence, ObjectChange, OperationId, ReconciliationId,
    ReconciliationState,
};

use super::SqlStore;
use super::lock::Lock;
use super::status::operation_state;
use crate::cipher::Column;
use crate::rules;
use crate::sql::{Cells, Connection, Row, Statement, database, query, query_as, query_scalar, repeating};
use crate::{
    Begun, Cursor, Error, Finish, NewReconciliation, Operation, Page, PageRequest, Reconciliation,
    Reconciliations, Recorded, Signal, StopReason, TimelineEntry,
};

const FINISHING: &str = "finishing a reconciliation";
/// The columns of a run.
macro_rules! reconciliation_fields {
    () => {
        "SELECT id, version, strategy, due_lane, state, reason, created_at, deadline, finished_at FROM reconciliations "
    };
}
/// The columns of an operation.
macro_rules! operation_fields {
    () => {
        "SELECT id, reconciliation_id, component, kind, version, cause, state, reason, until, attempt, fence, \
         lease_owner, lease_until, stop, created_at, started_at, finished_at FROM operations "
    };
}

/// The runs of a cluster, newest first.
pub(super) const OF_CLUSTER: &str = concat!(
    reconciliation_fields!(),
    "WHERE cluster_id = $1 AND ($2 IS NULL OR id < $2) ORDER BY id DESC LIMIT $3"
);
/// The operations of a run, as they were given.
pub(super) const OPERATIONS_OF_RUN: &str = concat!(
    operation_fields!(),
    "WHERE reconciliation_id = $1 ORDER BY position"
);
/// The operations that a later run has carried over from a run.
pub(super) const CARRIED_FROM_RUN: &str = concat!(
    operation_fields!(),
    "WHERE id IN (SELECT operation_id FROM carried_operations WHERE reconciliation_id = $1) ORDER BY id"
);
/// The components of a cluster with an operation that runs, whatever became of its run.
pub(super) const WORKED_ON: &str =
    "SELECT component FROM operations WHERE cluster_id = $1 AND state = 'running'";
/// Live runs whose operations are all final.
pub(super) const SETTLED: Statement = Statement::each(
    "SELECT id FROM reconciliations AS r WHERE state = 'running' AND NOT EXISTS \
     (SELECT 1 FROM operations INDEXED BY operations_open WHERE reconciliation_id = r.id AND finished_at IS NULL) \
     ORDER BY deadline LIMIT $1",
    "SELECT id FROM reconciliations AS r WHERE state = 'running' AND NOT EXISTS \
     (SELECT 1 FROM operations WHERE reconciliation_id = r.id AND finished_at IS NULL) ORDER BY deadline LIMIT $1",
);
/// Live runs past their deadline. An operation that waits for a person has a deadline of its own, and its run goes on with it.
pub(super) const OVERDUE: Statement = Statement::each(
    "SELECT id FROM reconciliations AS r WHERE state = 'running' AND deadline <= $2 AND NOT EXISTS \
     (SELECT 1 FROM operations INDEXED BY operations_open \
      WHERE reconciliation_id = r.id AND finished_at IS NULL AND state = 'waiting' AND until > $2) ORDER BY deadline LIMIT $1",
    "SELECT id FROM reconciliations AS r WHERE state = 'running' AND deadline <= $2 AND NOT EXISTS \
     (SELECT 1 FROM operations \
      WHERE reconciliation_id = r.id AND finished_at IS NULL AND state = 'waiting' AND until > $2) ORDER BY deadline LIMIT $1",
);

const OPEN_OF_RUN: Statement = Statement::each(
    "SELECT state, (SELECT count(*) FROM operations INDEXED BY operations_open \
     WHERE reconciliation_id = $1 AND finished_at IS NULL) AS open FROM reconciliations WHERE id = $1",
    "SELECT state, (SELECT count(*) FROM operations WHERE reconciliation_id = $1 AND finished_at IS NULL) AS open \
     FROM reconciliations WHERE id = $1",
);

/// Shows the operations of a run that were stopped as the state of their components.
pub(super) const STOP_COMPONENTS: &str = "UPDATE components SET state = $2, since = $3, reason = NULL, until = NULL \
     WHERE (cluster_id, component) IN (SELECT cluster_id, component FROM operations WHERE reconciliation_id = $1 AND state = $2) \
     AND operation_id IN (SELECT id FROM operations WHERE reconciliation_id = $1 AND state = $2)";

impl StopReason {
    /// The state of a run, and of its operations, stopped for this reason.
    pub(super) fn state(self) -> &'static str {
        match self {
            Self::Superseded => "superseded",
            Self::Cancelled => "cancelled",
        }
    }
}

impl SqlStore {
    /// Ends the live run of a cluster, if any, and stops its operations.
    pub(super) async fn stop_running(
        &self,
        connection: &mut Connection,
        cluster: &ClusterId,
        why: StopReason,
    ) -> Result<Option<ReconciliationId>, Error> {
        let stopped = self.end_running(connection, cluster, why).await?;
        if let Some(id) = &stopped {
            self.stop_operations(connection, &id.to_string(), why).await?;
        }
        Ok(stopped)
    }

    /// Ends the live run of a cluster, if any; its operations are another matter.
    async fn end_running(
        &self,
        connection: &mut Connection,
        cluster: &ClusterId,
        why: StopReason,
    ) -> Result<Option<ReconciliationId>, Error> {
        let stopped: Option<String> = query_scalar(
            "UPDATE reconciliations SET state = $2, finished_at = $3 WHERE cluster_id = $1 AND state = 'running' RETURNING id",
        )
        .bind(cluster.as_str())
        .bind(why.state())
        .bind(self.now())
        .fetch_optional(connection)
        .await
        .map_err(database("stopping a reconciliation"))?;
        stopped.map(|id| id.parse().map_err(Error::Invalid)).transpose()
    }

    /// Ends the operations of a run that are not final; one that runs is asked to stop and ends when its worker says
    /// so, or its lease is over. Until then nobody else gets its component.
    pub(super) async fn stop_operations(
        &self,
        connection: &mut Connection,
        reconciliation: &str,
        why: StopReason,
    ) -> Result<(), Error> {
        let doing = || database("stopping operations");
        query(
            "UPDATE operations SET state = $2, finished_at = $3, reason = NULL, until = NULL, rank = NULL, wake_at = NULL, \
             previous = NULL WHERE reconciliation_id = $1 AND finished_at IS NULL AND state <> 'running'",
        )
        .bind(reconciliation)
        .bind(why.state())
        .bind(self.now())
        .execute(&mut *connection)
        .await
        .map_err(doing())?;
        query("UPDATE operations SET stop = $2 WHERE reconciliation_id = $1 AND finished_at IS NULL AND stop IS NULL")
            .bind(reconciliation)
            .bind(why.state())
            .execute(&mut *connection)
            .await
            .map_err(doing())?;
        query(STOP_COMPONENTS)
            .bind(reconciliation)
            .bind(why.state())
            .bind(self.now())
            .execute(&mut *connection)
            .await
            .map_err(doing())?;
        Ok(())
    }

    fn reconciliation_row(&self, row: &Row) -> Result<Reconciliation, Error> {
        let key: String = Cells::new(row, "reconciliations", "").get("id")?;
        let cells = Cells::new(row, "reconciliations", &*key);
        Ok(Reconciliation {
            id: cells.parse("id")?,
            version: ConfigurationVersion(cells.number("version")?),
            strategy: cells.named("strategy")?,
            due_reason: cells.due_reason("due_lane")?,
            state: cells.parse("state")?,
            reason: cells.secret_text(&self.cipher, Column::RECONCILIATION_REASON, &key)?,
            created_at: cells.time("created_at")?,
            deadline: cells.time("deadline")?,
            finished_at: cells.time_option("finished_at")?,
        })
    }

    fn operation_row(&self, row: &Row, depends_on: Vec<OperationId>) -> Result<Operation, Error> {
        let key: String = Cells::new(row, "operations", "").get("id")?;
        let cells = Cells::new(row, "operations", &*key);
        let reason = cells.secret_text(&self.cipher, Column::OPERATION_REASON, &key)?;
        let owner: Option<String> = cells.get("lease_owner")?;
        Ok(Operation {
            id: cells.parse("id")?,
            reconciliation: cells.parse("reconciliation_id")?,
            component: cells.parse("component")?,
            kind: cells.named("kind")?,
            version: ConfigurationVersion(cells.number("version")?),
            cause: cells
                .secret_text(&self.cipher, Column::OPERATION_CAUSE, &key)?
                .unwrap_or_default(),
            state: operation_state(cells.parse("state")?, reason, cells.time_option("until")?),
            attempt: cells.count("attempt")?,
            fence: Fence(cells.number("fence")?),
            lease: owner.zip(cells.time_option("lease_until")?),
            stop: cells.named_option("stop")?,
            depends_on,
            created_at: cells.time("created_at")?,
            started_at: cells.time_option("started_at")?,
            finished_at: cells.time_option("finished_at")?,
        })
    }

    async fn reconciliation_where(
        &self,
        statement: &'static str,
        key: &str,
    ) -> Result<Option<Reconciliation>, Error> {
        query(statement)
            .bind(key)
            .fetch_optional(self.read())
            .await
            .map_err(database("reading a reconciliation"))?
            .map(|row| self.reconciliation_row(&row))
            .transpose()
    }

    async fn reconciliation_ids(
        &self,
        statement: impl Into<Statement>,
        limit: u32,
        now: Option<i64>,
    ) -> Result<Vec<ReconciliationId>, Error> {
        let mut ids = query_scalar::<String>(statement).bind(i64::from(limit));
        if let Some(now) = now {
            ids = ids.bind(now);
        }
        let ids = ids
            .fetch_all(self.read())
            .await
            .map_err(database("looking for reconciliations"))?;
        // An id that cannot be read belongs to no cluster: nobody can act on it.
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }
}

impl SqlStore {
    /// One try.
    async fn finish_reconciliation_once(
        &self,
        id: &ReconciliationId,
        finish: &Finish,
    ) -> Result<Recorded, Error> {
        let key = id.to_string();
        let mut transaction = self.write(FINISHING).await?;
        transaction.lock(Lock::Cluster(id.cluster().as_str())).await?;
        transaction.lock(Lock::Run(&key)).await?;
        let row = query(OPEN_OF_RUN)
            .bind(&key)
            .fetch_optional(&mut *transaction)
            .await
            .map_err(database(FINISHING))?
            .ok_or_else(|| Error::not_found("reconciliation", id))?;
        let cells = Cells::new(&row, "reconciliations", &*key);
        let state: ReconciliationState = cells.parse("state")?;
        let open = cells.count("open")?;
        let Some(stops) = rules::finish(id, state, finish.state, open)? else {
            return Ok(Recorded::Unchanged);
        };
        if stops {
            self.stop_operations(&mut transaction, &key, StopReason::Cancelled)
                .await?;
        }
        let reason = self
            .cipher
            .seal_text(Column::RECONCILIATION_REASON, &key, finish.reason.as_deref())?;
        query("UPDATE reconciliations SET state = $2, reason = $3, finished_at = $4 WHERE id = $1")
            .bind(&key)
            .bind(finish.state.as_str())
            .bind(reason)
            .bind(self.now())
            .execute(&mut *transaction)
            .await
            .map_err(database(FINISHING))?;
        let recorded = self
            .apply_status(&mut transaction, id.cluster(), &finish.status)
            .await?;
        transaction.commit(FINISHING).await?;
        self.signal(Signal::ClusterChanged);
        self.signal(Signal::ClusterDue);
        if stops {
            self.signal(Signal::OperationStop);
        }
        Ok(recorded)
    }
}

#[async_trait]
impl Reconciliations for SqlStore {
    async fn begin_reconciliation(&self, new: NewReconciliation) -> Result<Begun, Error> {
        repeating(|| self.begin_reconciliation_once(&new)).await
    }

    async fn finish_reconciliation(&self, id: &ReconciliationId, finish: Finish) -> Result<Recorded, Error> {
        repeating(|| self.finish_reconciliation_once(id, &finish)).await
    }

    async fn reconciliation(&self, id: &ReconciliationId) -> Result<Reconciliation, Error> {
        const BY_ID: &str = concat!(reconciliation_fields!(), "WHERE id = $1");
        self.reconciliation_where(BY_ID, &id.to_string())
            .await?
            .ok_or_else(|| Error::not_found("reconciliation", id))
    }

    async fn running_reconciliation(&self, cluster: &ClusterId) -> Result<Option<Reconciliation>, Error> {
        const RUNNING: &str = concat!(
            reconciliation_fields!(),
            "WHERE cluster_id = $1 AND state = 'running'"
        );
        self.reconciliation_where(RUNNING, cluster.as_str()).await
    }

    async fn worked_on(&self, cluster: &ClusterId) -> Result<BTreeSet<ComponentName>, Error> {
        let components = query_scalar::<String>(WORKED_ON)
            .bind(cluster.as_str())
            .fetch_all(self.read())
            .await
            .map_err(database("looking for what is worked on"))?;
        components
            .iter()
            .map(|component| component.parse().map_err(Error::Invalid))
            .collect()
    }

    async fn reconciliations(
        &self,
        cluster: &ClusterId,
        page: &PageRequest,
    ) -> Result<Page<Reconciliation>, Error> {
        let limit = page.limit();
        let rows = query(OF_CLUSTER)
            .bind(cluster.as_str())
            .bind(page.text_cursor())
            .bind(i64::from(limit) + 1)
            .fetch_all(self.read())
            .await
            .map_err(database("listing reconciliations"))?;
        if rows.is_empty() {
            self.must_exist(cluster).await?;
        }
        let read = |row: &Row| {
            let id: String = Cells::new(row, "reconciliations", "")
                .get("id")
                .unwrap_or_default();
            (Cursor(id.clone()), id, self.reconciliation_row(row))
        };
        Ok(Page::collect(&rows, limit, read))
    }

    async fn settled_reconciliations(&self, limit: u32) -> Result<Vec<ReconciliationId>, Error> {
        self.reconciliation_ids(SETTLED, limit, None).await
    }

    async fn overdue_reconciliations(&self, limit: u32) -> Result<Vec<ReconciliationId>, Error> {
        self.reconciliation_ids(OVERDUE, limit, Some(self.now())).await
    }

    async fn operations(&self, id: &ReconciliationId) -> Result<Page<Operation>, Error> {
        let doing = "listing operations";
        let key = id.to_string();
        let mut snapshot = self.snapshot(doing).await?;
        let rows = query(OPERATIONS_OF_RUN)
            .bind(&key)
            .fetch_all(&mut *snapshot)
            .await
            .map_err(database(doing))?;
        let edges: Vec<(String, String)> = query_as(
            "SELECT d.operation_id, d.depends_on FROM operations o JOIN operation_dependencies d ON d.operation_id = o.id \
             WHERE o.reconciliation_id = $1",
        )
        .bind(&key)
        .fetch_all(&mut *snapshot)
        .await
        .map_err(database(doing))?;
        let carried = query(CARRIED_FROM_RUN)
            .bind(&key)
            .fetch_all(&mut *snapshot)
            .await
            .map_err(database(doing))?;
        if rows.is_empty() && carried.is_empty() {
            self.reconciliation(id).await?;
        }
        let rows: Vec<Row> = rows.into_iter().chain(carried).collect();
        let mut dependencies: HashMap<String, Vec<OperationId>> = HashMap::new();
        for (operation, depends_on) in edges {
            dependencies
                .entry(operation)
                .or_default()
                .extend(depends_on.parse::<OperationId>().ok());
        }
        Ok(Page::collect(&rows, u32::MAX, |row| {
            let id: String = Cells::new(row, "operations", "").get("id").unwrap_or_default();
            let depends_on = dependencies.remove(&id).unwrap_or_default();
            (Cursor(id.clone()), id, self.operation_row(row, depends_on))
        }))
    }

    async fn operation(&self, id: &OperationId) -> Result<Operation, Error> {
        const BY_ID: &str = concat!(operation_fields!(), "WHERE id = $1");
        let doing = "reading an operation";
        let key = id.to_string();
        let mut snapshot = self.snapshot(doing).await?;
        let row = query(BY_ID)
            .bind(&key)
            .fetch_optional(&mut *snapshot)
            .await
            .map_err(database(doing))?
            .ok_or_else(|| Error::not_found("operation", id))?;
        let edges: Vec<String> =
            query_scalar("SELECT depends_on FROM operation_dependencies WHERE operation_id = $1")
                .bind(&key)
                .fetch_all(&mut *snapshot)
                .await
                .map_err(database(doing))?;
        self.operation_row(&row, edges.iter().filter_map(|id| id.parse().ok()).collect())
    }

    async fn operation_changes(&self, id: &OperationId) -> Result<Vec<ObjectChange>, Error> {
        self.read_changes(id).await
    }

    async fn operation_timeline(&self, id: &OperationId) -> Result<Vec<TimelineEntry>, Error> {
        self.read_timeline(id).await
    }
}
