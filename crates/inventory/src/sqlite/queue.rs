//! The queue's statements, and what its calls share: the end of an operation and what follows from it.

pub(super) mod claim;
mod report;

use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ComponentName, Error as CoreError, Fence, Lease, OperationId, OperationStateKind,
    Transition as _,
};
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::SqliteStore;
use super::rows::{Cells, database, int, moment};
use super::status::component_key;
use crate::cipher::Column;
use crate::{
    ClaimRequest, Claims, Error, Heartbeat, HeartbeatOutcome, Queue, Report, Settled, Signal, StopReason,
};

/// How much longer an operation has to have waited to go before one of the next more urgent lane. Lanes order what is
/// there at the same time; nothing starves.
const LANE_AGEING_MILLIS: i64 = 60 * 60 * 1_000;

/// The place in the queue of an operation that becomes claimable now.
pub(super) fn rank(now: i64, lane: i64) -> i64 {
    now.saturating_add(lane.saturating_mul(LANE_AGEING_MILLIS))
}

/// A duration in the database's unit.
fn span(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

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
pub(super) const DEPENDENTS: &str = concat!(
    "WITH RECURSIVE dependent (operation) AS (SELECT operation_id FROM operation_dependencies WHERE depends_on = ?1 \
     UNION SELECT d.operation_id FROM dependent JOIN operation_dependencies d ON d.depends_on = dependent.operation) ",
    held_fields!(),
    "WHERE id IN (SELECT operation FROM dependent) AND finished_at IS NULL AND state <> 'running' ORDER BY position"
);

/// Renews leases given as `[[operation, fence], …]`.
pub(super) const RENEW: &str = "UPDATE operations SET lease_until = ?2, wake_at = ?2 \
             FROM (SELECT value ->> 0 AS id, value ->> 1 AS fence FROM json_each(?1)) AS h \
             WHERE operations.id = h.id AND operations.fence = h.fence AND operations.state = 'running' \
             RETURNING operations.id, operations.fence, operations.stop";

impl Held {
    /// Reads the row as raw text: also one with a name nobody knows has to be movable.
    fn read(row: &SqliteRow) -> Result<Self, Error> {
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

    async fn load(connection: &mut SqliteConnection, id: &str) -> Result<Self, Error> {
        const BY_ID: &str = concat!(held_fields!(), "WHERE id = ?1");
        let row = sqlx::query(BY_ID)
            .bind(id)
            .fetch_optional(connection)
            .await
            .map_err(database("reading an operation"))?
            .ok_or_else(|| Error::not_found("operation", id))?;
        Self::read(&row)
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

impl SqliteStore {
    /// Ends an operation: those that waited for it become claimable, or are skipped when it did not succeed.
    async fn settle(
        &self,
        connection: &mut SqliteConnection,
        held: &Held,
        state: OperationStateKind,
        reason: Option<&str>,
    ) -> Result<Settled, Error> {
        let doing = || database("ending an operation");
        let now = self.now();
        let sealed = self
            .cipher
            .seal_text(Column::OPERATION_REASON, &held.id, reason)?;
        sqlx::query(
            "UPDATE operations SET state = ?2, reason = ?3, finished_at = ?4, until = NULL, rank = NULL, wake_at = NULL, \
             lease_owner = NULL, lease_until = NULL, stop = NULL WHERE id = ?1",
        )
        .bind(&held.id)
        .bind(state.as_str())
        .bind(sealed)
        .bind(now)
        .execute(&mut *connection)
        .await
        .map_err(doing())?;
        self.show_component(connection, held, state, reason, None).await?;
        let mut skipped = Vec::new();
        if state == OperationStateKind::Succeeded {
            sqlx::query(
                "UPDATE operations SET blocked_by = blocked_by - 1, \
                 rank = iif(blocked_by = 1 AND state = 'pending', ?2 + due_lane * ?3, rank) \
                 WHERE id IN (SELECT operation_id FROM operation_dependencies WHERE depends_on = ?1)",
            )
            .bind(&held.id)
            .bind(now)
            .bind(LANE_AGEING_MILLIS)
            .execute(&mut *connection)
            .await
            .map_err(doing())?;
            if held.kind == "delete" {
                self.forget_revision(connection, &held.cluster, &held.component)
                    .await?;
            }
        } else {
            skipped = self.skip_dependents(connection, held, state).await?;
        }
        self.settled(connection, held, state, skipped).await
    }

    /// The answer about an operation as it is now.
    async fn settled(
        &self,
        connection: &mut SqliteConnection,
        held: &Held,
        state: OperationStateKind,
        skipped: Vec<ComponentName>,
    ) -> Result<Settled, Error> {
        let open: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM operations INDEXED BY operations_open WHERE reconciliation_id = ? AND finished_at IS NULL",
        )
        .bind(&held.reconciliation)
        .fetch_one(connection)
        .await
        .map_err(database("counting open operations"))?;
        Ok(Settled {
            operation: held.id.parse().map_err(Error::Invalid)?,
            reconciliation: held.reconciliation.parse().map_err(Error::Invalid)?,
            cluster: held.cluster.parse().map_err(Error::Invalid)?,
            component: held.component.parse().map_err(Error::Invalid)?,
            state,
            skipped,
            open: u32::try_from(open).unwrap_or(u32::MAX),
        })
    }

    /// Skips everything that waited for an operation, directly or not, and names it as the reason.
    async fn skip_dependents(
        &self,
        connection: &mut SqliteConnection,
        held: &Held,
        state: OperationStateKind,
    ) -> Result<Vec<ComponentName>, Error> {
        let doing = || database("skipping operations");
        let rows = sqlx::query(DEPENDENTS)
            .bind(&held.id)
            .fetch_all(&mut *connection)
            .await
            .map_err(doing())?;
        let reason = format!(
            "component {:?}, which it depends on, was not done: {state}",
            held.component
        );
        let mut skipped = Vec::with_capacity(rows.len());
        for row in &rows {
            let dependent = Held::read(row)?;
            let sealed = self
                .cipher
                .seal(Column::OPERATION_REASON, &dependent.id, reason.as_bytes())?;
            sqlx::query(
                "UPDATE operations SET state = 'skipped', reason = ?2, finished_at = ?3, until = NULL, rank = NULL, \
                 wake_at = NULL WHERE id = ?1",
            )
            .bind(&dependent.id)
            .bind(sealed)
            .bind(self.now())
            .execute(&mut *connection)
            .await
            .map_err(doing())?;
            self.show_component(
                connection,
                &dependent,
                OperationStateKind::Skipped,
                Some(&reason),
                None,
            )
            .await?;
            skipped.extend(dependent.component.parse::<ComponentName>().ok());
        }
        Ok(skipped)
    }

    /// Shows an operation's state as its component's, unless the component has a newer operation.
    async fn show_component(
        &self,
        connection: &mut SqliteConnection,
        held: &Held,
        state: OperationStateKind,
        reason: Option<&str>,
        until: Option<i64>,
    ) -> Result<(), Error> {
        let key = component_key(&held.cluster, &held.component);
        let sealed = self.cipher.seal_text(Column::COMPONENT_REASON, &key, reason)?;
        sqlx::query(
            "UPDATE components SET state = ?4, since = iif(state = ?4, since, ?5), reason = ?6, until = ?7, \
             not_ready = iif(?4 = 'succeeded', NULL, not_ready) \
             WHERE cluster_id = ?1 AND component = ?2 AND operation_id = ?3",
        )
        .bind(&held.cluster)
        .bind(&held.component)
        .bind(&held.id)
        .bind(state.as_str())
        .bind(self.now())
        .bind(sealed)
        .bind(until)
        .execute(connection)
        .await
        .map(drop)
        .map_err(database("recording a component's state"))
    }
}

#[async_trait]
impl Queue for SqliteStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claims, Error> {
        self.claim_ready(request).await
    }

    async fn heartbeat(
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
        let until = self.now().saturating_add(span(lease));
        let mut transaction = self.write(doing).await?;
        let renewed: Vec<(String, i64, Option<String>)> = sqlx::query_as(RENEW)
            .bind(serde_json::json!(held).to_string())
            .bind(until)
            .fetch_all(&mut *transaction)
            .await
            .map_err(database(doing))?;
        transaction.commit().await.map_err(database(doing))?;
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

    async fn report_all(&self, reports: Vec<Report>) -> Result<Vec<Result<Settled, Error>>, Error> {
        self.take_reports(reports).await
    }

    async fn resume(&self, operation: &OperationId) -> Result<(), Error> {
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
        sqlx::query(
            "UPDATE operations SET state = 'pending', reason = NULL, until = NULL, wake_at = NULL, rank = ?2 WHERE id = ?1",
        )
        .bind(&held.id)
        .bind(rank(self.now(), held.lane))
        .execute(&mut *transaction)
        .await
        .map_err(database(doing))?;
        self.show_component(&mut transaction, &held, OperationStateKind::Pending, None, None)
            .await?;
        transaction.commit().await.map_err(database(doing))?;
        self.signals.send(Signal::OperationReady);
        Ok(())
    }

    async fn raise_fence(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        to: Fence,
    ) -> Result<(), Error> {
        let doing = "raising a fence";
        let mut transaction = self.write(doing).await?;
        let done = sqlx::query(
            "UPDATE components SET fence = max(fence, ?3) WHERE cluster_id = ?1 AND component = ?2",
        )
        .bind(cluster.as_str())
        .bind(component.as_str())
        .bind(int(to.0))
        .execute(&mut *transaction)
        .await
        .map_err(database(doing))?;
        if done.rows_affected() == 0 {
            return Err(Error::not_found("component", format!("{cluster}/{component}")));
        }
        transaction.commit().await.map_err(database(doing))
    }
}
