//! Due times: who is due, and how a due time changes.

use evenkeel_core::{ClusterId, ClusterState, ConfigurationVersion, DueReason};
use evenkeel_telemetry::request;
use jiff::Timestamp;

use super::SqlStore;
use super::rows::{lane, millis, moment};
use super::status::Present;
use crate::rules::{DueTime, DueWrite};
use crate::sql::{Cells, Connection, Row, Statement, database, query, query_scalar};
use crate::{Asked, AuditAction, CheckNote, DueBatch, DueCluster, DueStamp, Error, RowFailure, Signal};

/// The columns of a due time.
pub(super) fn due_columns(due: Option<DueTime>) -> (Option<i64>, i64) {
    match due {
        Some((at, lane)) => (Some(at), lane),
        None => (None, lane(DueReason::Periodic)),
    }
}

/// One lane's share of [`DUE`].
macro_rules! due_lane {
    ($lane:literal) => {
        concat!(
            "SELECT * FROM (SELECT cluster_id, name, due_lane, next_due_at, due_stamp, request_id FROM cluster_status \
             WHERE due_lane = ",
            $lane,
            " AND next_due_at <= $1 ORDER BY next_due_at LIMIT $2) AS l"
        )
    };
}

/// The most urgent due clusters; each lane gives its oldest, so that no lane is walked through for another's. One that has
/// waited for an hour longer comes before one of the next more urgent lane: nobody starves.
pub(super) const DUE: &str = concat!(
    "SELECT d.cluster_id, d.name, d.due_lane, d.next_due_at, d.due_stamp, d.request_id, c.tenant, c.version FROM (",
    due_lane!("0"),
    " UNION ALL ",
    due_lane!("1"),
    " UNION ALL ",
    due_lane!("2"),
    " UNION ALL ",
    due_lane!("3"),
    " UNION ALL ",
    due_lane!("4"),
    ") d JOIN clusters c ON c.id = d.cluster_id ORDER BY d.next_due_at + d.due_lane * 3600000, d.due_lane LIMIT $2"
);
/// When the next cluster becomes due.
pub(super) const NEXT_DUE: &str = "SELECT min(next_due_at) FROM cluster_status WHERE next_due_at > $1";
/// Notes checks given as `[{"id": …, "stamp": …, "checked": …, "next": …}, …]`.
pub(super) const NOTE_CHECKS: Statement = Statement::each(
    "UPDATE cluster_status SET last_check_at = n.checked, \
     next_due_at = CASE WHEN due_stamp = n.stamp THEN max(n.next, coalesce(suspended_until, 0)) ELSE next_due_at END, \
     due_lane = CASE WHEN due_stamp = n.stamp THEN $2 ELSE due_lane END, \
     request_id = CASE WHEN due_stamp = n.stamp THEN NULL ELSE request_id END, \
     asked = CASE WHEN due_stamp = n.stamp THEN NULL ELSE asked END, \
     due_stamp = CASE WHEN due_stamp = n.stamp THEN due_stamp + 1 ELSE due_stamp END \
     FROM (SELECT value ->> 'id' AS id, value ->> 'stamp' AS stamp, value ->> 'checked' AS checked, value ->> 'next' AS next \
           FROM json_each($1)) AS n WHERE cluster_status.cluster_id = n.id AND cluster_status.state <> 'deleted'",
    "WITH n AS (SELECT n.* FROM json_to_recordset($1::json) AS n (id text, stamp bigint, checked bigint, next bigint) \
     JOIN cluster_status s ON s.cluster_id = n.id WHERE s.state <> 'deleted' ORDER BY s.cluster_id FOR NO KEY UPDATE OF s) \
     UPDATE cluster_status SET last_check_at = n.checked, \
     next_due_at = CASE WHEN due_stamp = n.stamp THEN greatest(n.next, coalesce(suspended_until, 0)) ELSE next_due_at END, \
     due_lane = CASE WHEN due_stamp = n.stamp THEN $2 ELSE due_lane END, \
     request_id = CASE WHEN due_stamp = n.stamp THEN NULL ELSE request_id END, \
     asked = CASE WHEN due_stamp = n.stamp THEN NULL ELSE asked END, \
     due_stamp = CASE WHEN due_stamp = n.stamp THEN due_stamp + 1 ELSE due_stamp END \
     FROM n WHERE cluster_status.cluster_id = n.id",
);

fn due_cluster(row: &Row) -> Result<DueCluster, Error> {
    let key: String = Cells::new(row, "cluster_status", "").get("cluster_id")?;
    let cells = Cells::new(row, "cluster_status", key);
    Ok(DueCluster {
        id: cells.parse("cluster_id")?,
        name: cells.parse("name")?,
        tenant: cells.get("tenant")?,
        version: ConfigurationVersion(cells.number("version")?),
        reason: cells.due_reason("due_lane")?,
        due_at: cells.time("next_due_at")?,
        stamp: DueStamp(cells.get("due_stamp")?),
        request_id: cells.get("request_id")?,
    })
}

/// What a person asked for, in a row with column `asked`. What cannot be read asks for nothing: it only said more than
/// "look now".
pub(super) fn asked(cells: &Cells<'_>) -> Result<Asked, Error> {
    let text: Option<&str> = cells.get("asked")?;
    Ok(text
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default())
}

/// What was asked for is acted upon.
pub(super) async fn forget_asked(connection: &mut Connection, present: &Present) -> Result<(), Error> {
    if present.asked.is_none() {
        return Ok(());
    }
    query("UPDATE cluster_status SET asked = NULL WHERE cluster_id = $1")
        .bind(&present.id)
        .execute(connection)
        .await
        .map(drop)
        .map_err(database("acting upon a request"))
}

impl SqlStore {
    /// One try.
    pub(super) async fn ask_once(&self, cluster: &ClusterId, asked: &Asked) -> Result<(), Error> {
        let doing = "asking for a reconciliation";
        let mut transaction = self.write(doing).await?;
        let present = Present::load(&mut transaction, cluster.as_str()).await?;
        if present.state == ClusterState::Deleted {
            return Err(Error::not_found("cluster", cluster));
        }
        if !asked.is_nothing() {
            let before: Asked = present
                .asked
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default();
            let all = Asked {
                force: before.force || asked.force,
                components: before.components.union(&asked.components).cloned().collect(),
            };
            query("UPDATE cluster_status SET asked = $2 WHERE cluster_id = $1")
                .bind(cluster.as_str())
                .bind(serde_json::json!(all).to_string())
                .execute(&mut *transaction)
                .await
                .map_err(database(doing))?;
        }
        let due = DueWrite::Merge((self.now(), lane(DueReason::Change)));
        self.write_due(&mut transaction, &present, due).await?;
        let detail = serde_json::json!({"force": asked.force, "components": asked.components});
        self.audit_cluster(&mut transaction, AuditAction::Reconcile, cluster, detail)
            .await?;
        transaction.commit(doing).await?;
        self.signal(Signal::ClusterDue);
        Ok(())
    }

    /// Clusters due now.
    pub(super) async fn due_batch(&self, limit: u32) -> Result<DueBatch, Error> {
        let doing = "looking for due clusters";
        let limit = limit.clamp(1, crate::PAGE_MAX);
        let now = self.now();
        let mut snapshot = self.snapshot(doing).await?;
        let rows = query(DUE)
            .bind(now)
            .bind(i64::from(limit))
            .fetch_all(&mut *snapshot)
            .await
            .map_err(database(doing))?;
        let next: Option<i64> = query_scalar(NEXT_DUE)
            .bind(now)
            .fetch_one(&mut *snapshot)
            .await
            .map_err(database(doing))?;
        let full = rows.len() >= limit as usize;
        let mut batch = DueBatch {
            next_at: if full { Some(moment(now)) } else { next.map(moment) },
            ..DueBatch::default()
        };
        for row in &rows {
            match due_cluster(row) {
                Ok(due) => batch.due.push(due),
                Err(error) => batch.failed.push(RowFailure {
                    row: Cells::new(row, "cluster_status", "")
                        .get("cluster_id")
                        .unwrap_or_default(),
                    error,
                }),
            }
        }
        Ok(batch)
    }

    /// Makes a cluster due.
    pub(super) async fn merge_due(
        &self,
        cluster: &ClusterId,
        at: Timestamp,
        reason: DueReason,
    ) -> Result<(), Error> {
        let doing = "making a cluster due";
        let mut transaction = self.write(doing).await?;
        let present = Present::load(&mut transaction, cluster.as_str()).await?;
        if present.state == ClusterState::Deleted {
            return Err(Error::not_found("cluster", cluster));
        }
        self.write_due(
            &mut transaction,
            &present,
            DueWrite::Merge((millis(at), lane(reason))),
        )
        .await?;
        let detail = serde_json::json!({"reason": reason.as_str()});
        self.audit_cluster(&mut transaction, AuditAction::Reconcile, cluster, detail)
            .await?;
        transaction.commit(doing).await?;
        self.signal(Signal::ClusterDue);
        Ok(())
    }

    /// Suspends a cluster, or ends the suspension.
    pub(super) async fn suspend_until(
        &self,
        cluster: &ClusterId,
        until: Option<Timestamp>,
    ) -> Result<(), Error> {
        let doing = "suspending a cluster";
        let mut transaction = self.write(doing).await?;
        let mut present = Present::load(&mut transaction, cluster.as_str()).await?;
        if present.state == ClusterState::Deleted {
            return Err(Error::not_found("cluster", cluster));
        }
        query("UPDATE cluster_status SET suspended_until = $2 WHERE cluster_id = $1")
            .bind(cluster.as_str())
            .bind(until.map(millis))
            .execute(&mut *transaction)
            .await
            .map_err(database(doing))?;
        present.suspended_until = until.map(millis);
        let due = match (until, present.due) {
            (Some(_), due) => DueWrite::Set(due),
            (None, _) => DueWrite::Merge((self.now(), lane(DueReason::Change))),
        };
        self.write_due(&mut transaction, &present, due).await?;
        let detail = serde_json::json!({"until": until.map(|until| until.to_string())});
        self.audit_cluster(&mut transaction, AuditAction::SuspendCluster, cluster, detail)
            .await?;
        transaction.commit(doing).await?;
        self.signal(Signal::ClusterDue);
        self.signal(Signal::ClusterChanged);
        Ok(())
    }

    /// Notes many checks.
    pub(super) async fn note(&self, notes: &[CheckNote]) -> Result<(), Error> {
        if notes.is_empty() {
            return Ok(());
        }
        let notes: Vec<_> = notes
            .iter()
            .map(|note| {
                serde_json::json!({
                    "id": note.cluster.as_str(),
                    "stamp": note.stamp.0,
                    "checked": millis(note.checked_at),
                    "next": millis(note.next_due_at),
                })
            })
            .collect();
        let notes = serde_json::Value::from(notes).to_string();
        let doing = "noting checks";
        let mut transaction = self.write(doing).await?;
        query(NOTE_CHECKS)
            .bind(notes)
            .bind(lane(DueReason::Periodic))
            .execute(&mut *transaction)
            .await
            .map_err(database(doing))?;
        transaction.commit(doing).await
    }

    /// Sets the due time alone.
    pub(super) async fn write_due(
        &self,
        connection: &mut Connection,
        present: &Present,
        write: DueWrite,
    ) -> Result<(), Error> {
        let (due, _) = present.standing().due_after(write, self.now());
        let (next_due_at, due_lane) = due_columns(due);
        let request = request::current();
        // A due time that stays belongs to the call that set it.
        let asked = due != present.due || request.is_some();
        query(
            "UPDATE cluster_status SET next_due_at = $2, due_lane = $3, due_stamp = $4, \
             request_id = CASE WHEN $5 THEN $6 ELSE request_id END WHERE cluster_id = $1",
        )
        .bind(&present.id)
        .bind(next_due_at)
        .bind(due_lane)
        .bind(present.stamp.saturating_add(1))
        .bind(asked)
        .bind(request)
        .execute(connection)
        .await
        .map(drop)
        .map_err(database("setting a due time"))
    }
}
