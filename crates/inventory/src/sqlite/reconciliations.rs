//! Runs over clusters: beginning, ending, reading.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ClusterState, ConfigurationVersion, Error as CoreError, Fence, ObjectChange, OperationId,
    ReconciliationId, ReconciliationState, Strategy, Transition as _,
};
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::SqliteStore;
use super::due::DueWrite;
use super::queue::rank;
use super::rows::{Cells, database, int, is_unique_violation, lane, millis};
use super::status::{Next, Present, operation_state};
use crate::cipher::Column;
use crate::{
    Begun, Cursor, Error, FailureCount, Finish, NewReconciliation, OPERATIONS_MAX, Operation, Page,
    PageRequest, Reconciliation, Reconciliations, Recorded, Signal, StopReason, TimelineEntry,
};

const BEGINNING: &str = "beginning a reconciliation";
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
    "WHERE cluster_id = ?1 AND (?2 IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3"
);
/// The operations of a run, as they were given.
pub(super) const OPERATIONS_OF_RUN: &str = concat!(
    operation_fields!(),
    "WHERE reconciliation_id = ?1 ORDER BY position"
);
/// Live runs whose operations are all final.
pub(super) const SETTLED: &str = "SELECT id FROM reconciliations AS r WHERE state = 'running' AND NOT EXISTS \
             (SELECT 1 FROM operations INDEXED BY operations_open WHERE reconciliation_id = r.id AND finished_at IS NULL) ORDER BY deadline LIMIT ?1";
/// Live runs past their deadline.
pub(super) const OVERDUE: &str =
    "SELECT id FROM reconciliations WHERE state = 'running' AND deadline <= ?2 ORDER BY deadline LIMIT ?1";

/// Shows the operations of a run that were stopped as the state of their components.
pub(super) const STOP_COMPONENTS: &str = "UPDATE components SET state = ?2, since = ?3, reason = NULL, until = NULL \
     WHERE (cluster_id, component) IN (SELECT cluster_id, component FROM operations WHERE reconciliation_id = ?1 AND state = ?2) \
     AND operation_id IN (SELECT id FROM operations WHERE reconciliation_id = ?1 AND state = ?2)";

impl StopReason {
    /// The state of a run, and of its operations, stopped for this reason.
    pub(super) fn state(self) -> &'static str {
        match self {
            Self::Superseded => "superseded",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Refuses positions that do not exist, cycles and too many operations.
fn check_plan(new: &NewReconciliation) -> Result<(), Error> {
    let refused = |reason: String| {
        Err(Error::Plan {
            cluster: new.cluster.clone(),
            reason,
        })
    };
    let count = new.operations.len();
    if count > OPERATIONS_MAX {
        return refused(format!(
            "there are {count}, at most {OPERATIONS_MAX} are accepted"
        ));
    }
    let mut waiting: Vec<BTreeSet<usize>> = Vec::with_capacity(count);
    for (position, operation) in new.operations.iter().enumerate() {
        if let Some(missing) = operation.depends_on.iter().find(|other| **other >= count) {
            return refused(format!(
                "operation {position} depends on {missing}, which does not exist"
            ));
        }
        waiting.push(operation.depends_on.iter().copied().collect());
    }
    // Takes away what waits for nothing until nothing is left, or only a cycle.
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (position, edges) in waiting.iter().enumerate() {
        for edge in edges {
            if let Some(list) = dependents.get_mut(*edge) {
                list.push(position);
            }
        }
    }
    let mut ready: Vec<usize> = (0..count)
        .filter(|position| waiting.get(*position).is_some_and(BTreeSet::is_empty))
        .collect();
    let mut ordered = 0;
    while let Some(position) = ready.pop() {
        ordered += 1;
        for dependent in dependents.get(position).into_iter().flatten() {
            if let Some(edges) = waiting.get_mut(*dependent)
                && edges.remove(&position)
                && edges.is_empty()
            {
                ready.push(*dependent);
            }
        }
    }
    if ordered < count {
        return refused("their dependencies have a cycle".to_owned());
    }
    Ok(())
}

impl SqliteStore {
    /// Ends the live run of a cluster, if any, and stops its operations.
    pub(super) async fn stop_running(
        &self,
        connection: &mut SqliteConnection,
        cluster: &ClusterId,
        why: StopReason,
    ) -> Result<Option<ReconciliationId>, Error> {
        let doing = "stopping a reconciliation";
        let stopped: Option<String> = sqlx::query_scalar(
            "UPDATE reconciliations SET state = ?2, finished_at = ?3 WHERE cluster_id = ?1 AND state = 'running' RETURNING id",
        )
        .bind(cluster.as_str())
        .bind(why.state())
        .bind(self.now())
        .fetch_optional(&mut *connection)
        .await
        .map_err(database(doing))?;
        match stopped {
            None => Ok(None),
            Some(id) => {
                self.stop_operations(connection, &id, why).await?;
                id.parse().map(Some).map_err(Error::Invalid)
            }
        }
    }

    /// Ends the operations of a run that are not final; one that runs is asked to stop and ends when its worker says
    /// so, or its lease is over. Until then nobody else gets its component.
    pub(super) async fn stop_operations(
        &self,
        connection: &mut SqliteConnection,
        reconciliation: &str,
        why: StopReason,
    ) -> Result<(), Error> {
        for statement in [
            "UPDATE operations SET state = ?2, finished_at = ?3, reason = NULL, until = NULL, rank = NULL, wake_at = NULL \
             WHERE reconciliation_id = ?1 AND finished_at IS NULL AND state <> 'running'",
            "UPDATE operations SET stop = ?2 WHERE reconciliation_id = ?1 AND finished_at IS NULL AND stop IS NULL",
            STOP_COMPONENTS,
        ] {
            sqlx::query(statement)
                .bind(reconciliation)
                .bind(why.state())
                .bind(self.now())
                .execute(&mut *connection)
                .await
                .map_err(database("stopping operations"))?;
        }
        Ok(())
    }

    async fn insert_operations(
        &self,
        connection: &mut SqliteConnection,
        id: &ReconciliationId,
        new: &NewReconciliation,
    ) -> Result<Vec<OperationId>, Error> {
        let now = self.now();
        let reconciliation = id.to_string();
        let ids: Vec<_> = new
            .operations
            .iter()
            .map(|_| OperationId::new(new.cluster.clone(), self.new_uuid()))
            .collect();
        let mut edges = Vec::new();
        for (position, (operation, id)) in new.operations.iter().zip(&ids).enumerate() {
            let key = id.to_string();
            let dependencies: BTreeSet<_> = operation
                .depends_on
                .iter()
                .filter_map(|other| ids.get(*other))
                .collect();
            let cause = self
                .cipher
                .seal(Column::OPERATION_CAUSE, &key, operation.cause.as_bytes())?;
            let lane = lane(new.reason);
            sqlx::query(
                "INSERT INTO operations (id, reconciliation_id, position, cluster_id, component, kind, version, due_lane, \
                 cause, state, blocked_by, rank, attempt, fence, reports, timeline_entries, created_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'pending', ?10, ?11, 0, 0, 0, 0, ?12)",
            )
            .bind(&key)
            .bind(&reconciliation)
            .bind(i64::try_from(position).unwrap_or(i64::MAX))
            .bind(new.cluster.as_str())
            .bind(operation.component.as_str())
            .bind(operation.kind.as_str())
            .bind(int(operation.version.0))
            .bind(lane)
            .bind(cause)
            .bind(i64::try_from(dependencies.len()).unwrap_or(i64::MAX))
            .bind(dependencies.is_empty().then(|| rank(now, lane)))
            .bind(now)
            .execute(&mut *connection)
            .await
            .map_err(database(BEGINNING))?;
            edges.extend(
                dependencies
                    .into_iter()
                    .map(|other| (key.clone(), other.to_string())),
            );
        }
        if !edges.is_empty() {
            sqlx::query(
                "INSERT INTO operation_dependencies (operation_id, depends_on) \
                 SELECT value ->> 0, value ->> 1 FROM json_each(?)",
            )
            .bind(serde_json::json!(edges).to_string())
            .execute(&mut *connection)
            .await
            .map_err(database(BEGINNING))?;
        }
        sqlx::query(
            "INSERT INTO components (cluster_id, component, name, listed, revision, fence, operation_id, kind, version, state, since) \
             SELECT o.cluster_id, o.component, c.name, 0, 0, 0, o.id, o.kind, o.version, o.state, o.created_at \
             FROM operations o JOIN clusters c ON c.id = o.cluster_id WHERE o.reconciliation_id = ? ORDER BY o.position \
             ON CONFLICT (cluster_id, component) DO UPDATE SET operation_id = excluded.operation_id, kind = excluded.kind, \
             version = excluded.version, state = excluded.state, since = excluded.since, until = NULL, reason = NULL",
        )
        .bind(&reconciliation)
        .execute(connection)
        .await
        .map_err(database(BEGINNING))?;
        Ok(ids)
    }

    fn reconciliation_row(&self, row: &SqliteRow) -> Result<Reconciliation, Error> {
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

    fn operation_row(&self, row: &SqliteRow, depends_on: Vec<OperationId>) -> Result<Operation, Error> {
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
        sqlx::query(statement)
            .bind(key)
            .fetch_optional(self.read())
            .await
            .map_err(database("reading a reconciliation"))?
            .map(|row| self.reconciliation_row(&row))
            .transpose()
    }

    async fn reconciliation_ids(
        &self,
        statement: &'static str,
        limit: u32,
    ) -> Result<Vec<ReconciliationId>, Error> {
        let ids: Vec<String> = sqlx::query_scalar(statement)
            .bind(i64::from(limit))
            .bind(self.now())
            .fetch_all(self.read())
            .await
            .map_err(database("looking for reconciliations"))?;
        // An id that cannot be read belongs to no cluster: nobody can act on it.
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }
}

#[async_trait]
impl Reconciliations for SqliteStore {
    async fn begin_reconciliation(&self, new: NewReconciliation) -> Result<Begun, Error> {
        check_plan(&new)?;
        let cluster = &new.cluster;
        let mut transaction = self.write(BEGINNING).await?;
        let present = Present::load(&mut transaction, cluster.as_str()).await?;
        if present.state == ClusterState::Deleted {
            return Err(Error::not_found("cluster", cluster));
        }
        let version = int(new.version.0);
        if version > present.version {
            let id = format!("{cluster}/{version}");
            return Err(Error::not_found("configuration version", id));
        }
        if present.deleting && new.strategy != Strategy::Delete {
            return Err(Error::BeingDeleted(cluster.clone()));
        }
        let unwanted = !present.deleting && new.strategy == Strategy::Delete;
        let acted_upon = new.stamp.is_some_and(|stamp| stamp.0 != present.stamp);
        if version < present.version || unwanted || acted_upon {
            return Err(Error::Outdated(cluster.clone()));
        }
        let running: Option<String> =
            sqlx::query_scalar("SELECT id FROM reconciliations WHERE cluster_id = ? AND state = 'running'")
                .bind(cluster.as_str())
                .fetch_optional(&mut *transaction)
                .await
                .map_err(database(BEGINNING))?;
        if let (Some(running), false) = (&running, new.supersede) {
            return Err(Error::ReconciliationRunning {
                running: running.parse().map_err(Error::Invalid)?,
            });
        }
        let superseded = self
            .stop_running(&mut transaction, cluster, StopReason::Superseded)
            .await?;
        let id = ReconciliationId::new(cluster.clone(), self.new_uuid());
        let inserted = sqlx::query(
            "INSERT INTO reconciliations (id, cluster_id, version, strategy, due_lane, state, created_at, deadline, request_id) \
             SELECT ?, cluster_id, ?, ?, ?, 'running', ?, ?, request_id FROM cluster_status WHERE cluster_id = ?",
        )
        .bind(id.to_string())
        .bind(version)
        .bind(new.strategy.as_str())
        .bind(lane(new.reason))
        .bind(self.now())
        .bind(millis(new.deadline))
        .bind(cluster.as_str())
        .execute(&mut *transaction)
        .await;
        match inserted {
            Ok(_) => {}
            // Unreachable behind one writer; the index decides all the same.
            Err(error) if is_unique_violation(&error) => {
                return Err(Error::ReconciliationRunning { running: id });
            }
            Err(error) => return Err(database(BEGINNING)(error)),
        }
        let operations = self.insert_operations(&mut transaction, &id, &new).await?;
        let next = Next {
            state: if new.strategy == Strategy::Delete {
                ClusterState::Deleting
            } else {
                ClusterState::Reconciling
            },
            observed_version: version,
            reason: None,
            due: DueWrite::Set(None),
            failures: FailureCount::Keep,
        };
        self.write_status(&mut transaction, &present, next).await?;
        transaction.commit().await.map_err(database(BEGINNING))?;
        self.signals.send(Signal::OperationReady);
        self.signals.send(Signal::ClusterChanged);
        if superseded.is_some() {
            self.signals.send(Signal::OperationStop);
        }
        Ok(Begun {
            id,
            operations,
            superseded,
        })
    }

    async fn finish_reconciliation(&self, id: &ReconciliationId, finish: Finish) -> Result<Recorded, Error> {
        let key = id.to_string();
        let mut transaction = self.write(FINISHING).await?;
        let row = sqlx::query(
            "SELECT state, (SELECT count(*) FROM operations INDEXED BY operations_open WHERE reconciliation_id = ?1 AND finished_at IS NULL) AS open \
             FROM reconciliations WHERE id = ?1",
        )
        .bind(&key)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(database(FINISHING))?
        .ok_or_else(|| Error::not_found("reconciliation", id))?;
        let cells = Cells::new(&row, "reconciliations", &*key);
        let state: ReconciliationState = cells.parse("state")?;
        let open = cells.count("open")?;
        state.check(finish.state).map_err(Error::Refused)?;
        if state.is_final() {
            return Ok(Recorded::Unchanged);
        }
        let stops = match finish.state {
            ReconciliationState::Succeeded if open > 0 => {
                return Err(Error::OperationsOpen {
                    reconciliation: id.clone(),
                    open,
                });
            }
            ReconciliationState::Running | ReconciliationState::Superseded => {
                return Err(Error::Refused(CoreError::Transition {
                    what: "reconciliation state",
                    from: state.as_str(),
                    to: finish.state.as_str(),
                    allowed: "succeeded, failed, cancelled; superseded when another one begins".to_owned(),
                }));
            }
            _ => open > 0,
        };
        if stops {
            self.stop_operations(&mut transaction, &key, StopReason::Cancelled)
                .await?;
        }
        let reason = self
            .cipher
            .seal_text(Column::RECONCILIATION_REASON, &key, finish.reason.as_deref())?;
        sqlx::query("UPDATE reconciliations SET state = ?2, reason = ?3, finished_at = ?4 WHERE id = ?1")
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
        transaction.commit().await.map_err(database(FINISHING))?;
        self.signals.send(Signal::ClusterChanged);
        self.signals.send(Signal::ClusterDue);
        if stops {
            self.signals.send(Signal::OperationStop);
        }
        Ok(recorded)
    }

    async fn reconciliation(&self, id: &ReconciliationId) -> Result<Reconciliation, Error> {
        const BY_ID: &str = concat!(reconciliation_fields!(), "WHERE id = ?1");
        self.reconciliation_where(BY_ID, &id.to_string())
            .await?
            .ok_or_else(|| Error::not_found("reconciliation", id))
    }

    async fn running_reconciliation(&self, cluster: &ClusterId) -> Result<Option<Reconciliation>, Error> {
        const RUNNING: &str = concat!(
            reconciliation_fields!(),
            "WHERE cluster_id = ?1 AND state = 'running'"
        );
        self.reconciliation_where(RUNNING, cluster.as_str()).await
    }

    async fn reconciliations(
        &self,
        cluster: &ClusterId,
        page: &PageRequest,
    ) -> Result<Page<Reconciliation>, Error> {
        let limit = page.limit();
        let rows = sqlx::query(OF_CLUSTER)
            .bind(cluster.as_str())
            .bind(page.after.as_ref().map(|cursor| cursor.0.as_str()))
            .bind(i64::from(limit) + 1)
            .fetch_all(self.read())
            .await
            .map_err(database("listing reconciliations"))?;
        if rows.is_empty() {
            self.must_exist(cluster).await?;
        }
        let read = |row: &SqliteRow| {
            let id: String = Cells::new(row, "reconciliations", "")
                .get("id")
                .unwrap_or_default();
            (Cursor(id.clone()), id, self.reconciliation_row(row))
        };
        Ok(Page::collect(&rows, limit, read))
    }

    async fn settled_reconciliations(&self, limit: u32) -> Result<Vec<ReconciliationId>, Error> {
        self.reconciliation_ids(SETTLED, limit).await
    }

    async fn overdue_reconciliations(&self, limit: u32) -> Result<Vec<ReconciliationId>, Error> {
        self.reconciliation_ids(OVERDUE, limit).await
    }

    async fn operations(&self, id: &ReconciliationId) -> Result<Page<Operation>, Error> {
        let doing = "listing operations";
        let key = id.to_string();
        let mut snapshot = self.snapshot(doing).await?;
        let rows = sqlx::query(OPERATIONS_OF_RUN)
            .bind(&key)
            .fetch_all(&mut *snapshot)
            .await
            .map_err(database(doing))?;
        let edges: Vec<(String, String)> = sqlx::query_as(
            "SELECT d.operation_id, d.depends_on FROM operations o JOIN operation_dependencies d ON d.operation_id = o.id \
             WHERE o.reconciliation_id = ?1",
        )
        .bind(&key)
        .fetch_all(&mut *snapshot)
        .await
        .map_err(database(doing))?;
        if rows.is_empty() {
            self.reconciliation(id).await?;
        }
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
        const BY_ID: &str = concat!(operation_fields!(), "WHERE id = ?1");
        let doing = "reading an operation";
        let key = id.to_string();
        let mut snapshot = self.snapshot(doing).await?;
        let row = sqlx::query(BY_ID)
            .bind(&key)
            .fetch_optional(&mut *snapshot)
            .await
            .map_err(database(doing))?
            .ok_or_else(|| Error::not_found("operation", id))?;
        let edges: Vec<String> =
            sqlx::query_scalar("SELECT depends_on FROM operation_dependencies WHERE operation_id = ?1")
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
