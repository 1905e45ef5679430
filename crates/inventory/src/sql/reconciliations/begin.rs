//! How a run begins: the one before makes place, what it was doing already is carried over, the rest is inserted.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::{OperationId, ReconciliationId};

use crate::cipher::Column;
use crate::rules::DueWrite;
use crate::sql::SqlStore;
use crate::sql::due::forget_asked;
use crate::sql::failures::is_unique_violation;
use crate::sql::queue::carry::{Carried, Former};
use crate::sql::rows::{int, lane, millis};
use crate::sql::status::{Next, Present};
use crate::sql::{Connection, Statement, batch, database, query, query_scalar};
use crate::{Begun, Error, FailureCount, NewReconciliation, Signal, StopReason};

const BEGINNING: &str = "beginning a reconciliation";

const INSERT_OPERATION: Statement = Statement::each(
    "INSERT INTO operations (id, reconciliation_id, position, cluster_id, component, kind, version, due_lane, \
     cause, state, blocked_by, rank, attempt, fence, reports, timeline_entries, created_at, tenant) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $10, $11, 0, 0, 0, 0, $12, $13)",
    "INSERT INTO operations (id, reconciliation_id, position, cluster_id, component, kind, version, due_lane, \
     cause, state, blocked_by, rank, attempt, fence, reports, timeline_entries, created_at, tenant) \
     SELECT n.id, n.run, n.position, n.cluster, n.component, n.kind, n.version, n.lane, n.cause, 'pending', n.blocked_by, \
     n.rank, 0, 0, 0, 0, n.at, n.tenant FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
     AS n (id, run, position, cluster, component, kind, version, lane, cause, blocked_by, rank, at, tenant)",
);
const INSERT_DEPENDENCY: Statement = Statement::each(
    "INSERT INTO operation_dependencies (operation_id, depends_on) VALUES ($1, $2)",
    "INSERT INTO operation_dependencies (operation_id, depends_on) SELECT * FROM unnest($1, $2)",
);
/// Makes new operations those of their components; where a component has two, the later one.
const SHOW_OPERATIONS: Statement = Statement::each(
    "INSERT INTO components (cluster_id, component, name, listed, revision, fence, operation_id, kind, version, state, since) \
     SELECT o.cluster_id, o.component, c.name, 0, 0, 0, o.id, o.kind, o.version, o.state, o.created_at \
     FROM operations o JOIN clusters c ON c.id = o.cluster_id WHERE o.id IN (SELECT value FROM json_each($1)) \
     ORDER BY o.position \
     ON CONFLICT (cluster_id, component) DO UPDATE SET operation_id = excluded.operation_id, kind = excluded.kind, \
     version = excluded.version, state = excluded.state, since = excluded.since, until = NULL, reason = NULL",
    "INSERT INTO components (cluster_id, component, name, listed, revision, fence, operation_id, kind, version, state, since) \
     SELECT DISTINCT ON (o.component) o.cluster_id, o.component, c.name, 0, 0, 0, o.id, o.kind, o.version, o.state, o.created_at \
     FROM operations o JOIN clusters c ON c.id = o.cluster_id WHERE o.id = ANY ($1) \
     ORDER BY o.component, o.position DESC \
     ON CONFLICT (cluster_id, component) DO UPDATE SET operation_id = excluded.operation_id, kind = excluded.kind, \
     version = excluded.version, state = excluded.state, since = excluded.since, until = NULL, reason = NULL",
);

impl SqlStore {
    /// Inserts the operations of a run, and gives those that were carried over their place in it.
    async fn insert_operations(
        &self,
        connection: &mut Connection,
        id: &ReconciliationId,
        new: &NewReconciliation,
        carried: &BTreeMap<usize, Carried>,
        tenant: &str,
    ) -> Result<Vec<OperationId>, Error> {
        let now = self.now();
        let reconciliation = id.to_string();
        let lane = lane(new.reason);
        let mut ids = Vec::with_capacity(new.operations.len());
        for position in 0..new.operations.len() {
            ids.push(match carried.get(&position) {
                Some(carried) => carried.id()?,
                None => OperationId::new(new.cluster.clone(), self.new_uuid()),
            });
        }
        let mut rows = batch(INSERT_OPERATION);
        let mut edges = batch(INSERT_DEPENDENCY);
        let mut ready = self.places(connection, tenant, lane).await?;
        let mut places = Vec::with_capacity(carried.len());
        let mut fresh = Vec::with_capacity(ids.len());
        for (position, (operation, id)) in new.operations.iter().zip(&ids).enumerate() {
            let key = id.to_string();
            let mut dependencies: BTreeSet<_> = operation
                .depends_on
                .iter()
                .filter_map(|other| ids.get(*other))
                .collect();
            let carried = carried.get(&position);
            // One that runs has what it waited for.
            if carried.is_some_and(Carried::is_under_way) {
                dependencies.clear();
            }
            for other in &dependencies {
                edges.push([key.clone().into(), other.to_string().into()]);
            }
            let position = i64::try_from(position).unwrap_or(i64::MAX);
            let blocked_by = i64::try_from(dependencies.len()).unwrap_or(i64::MAX);
            if let Some(carried) = carried {
                places.push((carried, position, blocked_by));
                continue;
            }
            let cause = self
                .cipher
                .seal(Column::OPERATION_CAUSE, &key, operation.cause.as_bytes())?;
            fresh.push(key.clone());
            rows.push([
                key.into(),
                reconciliation.clone().into(),
                position.into(),
                new.cluster.to_string().into(),
                operation.component.to_string().into(),
                operation.kind.as_str().into(),
                int(operation.version.0).into(),
                lane.into(),
                cause.into(),
                blocked_by.into(),
                dependencies.is_empty().then(|| ready.take()).into(),
                now.into(),
                tenant.to_owned().into(),
            ]);
        }
        rows.execute(connection).await.map_err(database(BEGINNING))?;
        self.place_carried(connection, &reconciliation, lane, &places)
            .await?;
        edges.execute(connection).await.map_err(database(BEGINNING))?;
        if !fresh.is_empty() {
            query(SHOW_OPERATIONS)
                .bind(&fresh)
                .execute(&mut *connection)
                .await
                .map_err(database(BEGINNING))?;
            let former = Former {
                cluster: new.cluster.as_str(),
                run: &reconciliation,
                until: millis(new.deadline),
            };
            self.wait_for_former(connection, &former).await?;
        }
        Ok(ids)
    }

    /// One try.
    pub(super) async fn begin_reconciliation_once(&self, new: &NewReconciliation) -> Result<Begun, Error> {
        new.check()?;
        let cluster = &new.cluster;
        let mut transaction = self.write(BEGINNING).await?;
        let present = Present::load(&mut transaction, cluster.as_str()).await?;
        present.standing().admits(new)?;
        let version = int(new.version.0);
        let running: Option<String> =
            query_scalar("SELECT id FROM reconciliations WHERE cluster_id = $1 AND state = 'running'")
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
            .end_running(&mut transaction, cluster, StopReason::Superseded)
            .await?;
        let id = ReconciliationId::new(cluster.clone(), self.new_uuid());
        let inserted = query(
            "INSERT INTO reconciliations (id, cluster_id, version, strategy, due_lane, state, created_at, deadline, request_id) \
             SELECT $1, cluster_id, $2, $3, $4, 'running', $5, $6, request_id FROM cluster_status WHERE cluster_id = $7",
        )
        .bind(id.to_string())
        .bind(version)
        .bind(new.strategy.as_str())
        .bind(lane(new.reason))
        .bind(self.now())
        .bind(millis(new.deadline))
        .bind(cluster.as_str())
        .execute(&mut *transaction)
        .await
        .map_err(database(BEGINNING));
        match inserted {
            Ok(_) => {}
            // Unreachable behind the cluster's lock; the index decides all the same.
            Err(error) if is_unique_violation(&error) => {
                return Err(Error::ReconciliationRunning { running: id });
            }
            Err(error) => return Err(error),
        }
        let mut carried = BTreeMap::new();
        if let Some(former) = &superseded {
            let former = former.to_string();
            carried = self.carry(&mut transaction, &former, new).await?;
            let kept: Vec<String> = carried.values().map(|carried| carried.key().to_owned()).collect();
            self.take_over(&mut transaction, &former, &id.to_string(), &kept)
                .await?;
            self.stop_operations(&mut transaction, &former, StopReason::Superseded)
                .await?;
        }
        let operations = self
            .insert_operations(&mut transaction, &id, new, &carried, &present.tenant)
            .await?;
        let failing = new.failing.as_ref();
        let next = Next {
            state: new.state(),
            observed_version: version,
            reason: failing.map(|failing| failing.reason.as_str()),
            due: DueWrite::Set(None),
            failures: FailureCount::Keep,
        };
        self.write_status(&mut transaction, &present, next).await?;
        if let Some(not_ready) = new.not_ready() {
            self.write_not_ready(&mut transaction, cluster, &not_ready)
                .await?;
        }
        forget_asked(&mut transaction, &present).await?;
        transaction.commit(BEGINNING).await?;
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
}
