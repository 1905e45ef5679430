//! Removing what is no longer kept. Clusters are walked through by id, some at a time; of each, rows go in short
//! transactions, which take locks in the usual order and pass over what others hold.

use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::ClusterId;
use jiff::{SignedDuration, Timestamp};
use uuid::{NoContext, Uuid};

use super::SqlStore;
use super::audit::{ANCHOR, end_of_chain};
use super::failures::is_foreign_key_violation;
use super::lock::Lock;
use super::rows::{millis, moment, span};
use crate::sql::{Connection, Statement, database, query, query_as, query_scalar, repeating};
use crate::{Cleaned, Error, Retention, RetentionPolicy};

const CLEANING: &str = "removing what is no longer kept";
/// Clusters looked at in one step.
const CLUSTERS_TOGETHER: i64 = 50;
/// Runs removed in one transaction.
const RUNS_TOGETHER: i64 = 20;
/// Past states, versions or audit entries removed in one transaction.
const ROWS_TOGETHER: i64 = 200;

/// The end of the runs that are older than a moment: `$2` and `$3` are UUIDs of version 7, which begin with their time.
/// A run goes when it ended well and is older than `$2`, failed and is older than `$3`, or ended well and is not among the
/// newest `$4`; the newest of a cluster never goes, nor one with an operation that still ends.
macro_rules! old_runs {
    ($clusters:literal) => {
        concat!(
            "SELECT r.id FROM clusters AS c CROSS JOIN reconciliations AS r WHERE ", $clusters,
            " AND r.cluster_id = c.id AND r.finished_at IS NOT NULL \
             AND r.id < (SELECT max(n.id) FROM reconciliations AS n WHERE n.cluster_id = c.id) \
             AND ((r.state <> 'failed' AND (r.id < c.id || '--' || $2 OR r.id < coalesce((SELECT k.id FROM reconciliations AS k \
             WHERE k.cluster_id = c.id ORDER BY k.id DESC LIMIT 1 OFFSET $4), ''))) \
             OR (r.state = 'failed' AND r.id < c.id || '--' || $3)) \
             AND NOT EXISTS (SELECT 1 FROM operations AS o WHERE o.reconciliation_id = r.id AND o.finished_at IS NULL) \
             ORDER BY r.id LIMIT $5"
        )
    };
}
pub(super) const OLD_RUNS: Statement = Statement::each(
    old_runs!("c.id IN (SELECT value FROM json_each($1))"),
    old_runs!("c.id = ANY ($1)"),
);
/// Every run of clusters that were deleted long ago.
macro_rules! all_runs {
    ($clusters:literal) => {
        concat!(
            "SELECT id FROM reconciliations WHERE cluster_id ",
            $clusters,
            " LIMIT $2"
        )
    };
}
const ALL_RUNS: Statement = Statement::each(
    all_runs!("IN (SELECT value FROM json_each($1))"),
    all_runs!("= ANY ($1)"),
);
/// Of some runs those that nobody else is at.
const LOCK_RUNS: Statement = Statement::each(
    "SELECT id FROM reconciliations WHERE id IN (SELECT value FROM json_each($1)) AND finished_at IS NOT NULL",
    "SELECT id FROM reconciliations WHERE id = ANY ($1) AND finished_at IS NOT NULL ORDER BY id FOR UPDATE SKIP LOCKED",
);
/// What belongs to runs, in the order in which it can go.
macro_rules! of_runs {
    ($($statement:literal),+ $(,)?) => {
        [$(Statement::each(
            concat!($statement, " IN (SELECT value FROM json_each($1)))"),
            concat!($statement, " = ANY ($1))"),
        )),+]
    };
}
const CONTENT_OF_RUNS: [Statement; 3] = of_runs!(
    "DELETE FROM operation_reports WHERE operation_id IN (SELECT id FROM operations WHERE reconciliation_id",
    "DELETE FROM operation_dependencies WHERE operation_id IN (SELECT id FROM operations WHERE reconciliation_id",
    "DELETE FROM operation_dependencies WHERE depends_on IN (SELECT id FROM operations WHERE reconciliation_id",
);
const RUNS: [Statement; 2] = [
    Statement::each(
        "DELETE FROM operations WHERE reconciliation_id IN (SELECT value FROM json_each($1))",
        "DELETE FROM operations WHERE reconciliation_id = ANY ($1)",
    ),
    Statement::each(
        "DELETE FROM reconciliations WHERE id IN (SELECT value FROM json_each($1))",
        "DELETE FROM reconciliations WHERE id = ANY ($1)",
    ),
];
/// Past states that ended before `$2`, the newest of each cluster kept.
pub(super) const OLD_STATES: Statement = Statement::each(
    "DELETE FROM status_history WHERE (cluster_id, seq) IN (SELECT h.cluster_id, h.seq FROM status_history AS h \
     WHERE h.cluster_id IN (SELECT value FROM json_each($1)) AND h.until < $2 LIMIT $3)",
    "DELETE FROM status_history WHERE (cluster_id, seq) IN (SELECT h.cluster_id, h.seq FROM status_history AS h \
     WHERE h.cluster_id = ANY ($1) AND h.until < $2 LIMIT $3)",
);
/// Versions that are not among the newest `$2` and that nothing kept speaks of.
macro_rules! old_versions {
    ($clusters:literal) => {
        concat!(
            "SELECT v.cluster_id, v.version FROM clusters AS c CROSS JOIN cluster_configurations AS v WHERE ", $clusters,
            " AND v.cluster_id = c.id AND v.version <= c.version - $2 \
             AND NOT EXISTS (SELECT 1 FROM cluster_status AS s WHERE s.cluster_id = c.id AND s.observed_version = v.version) \
             AND NOT EXISTS (SELECT 1 FROM components AS k WHERE k.cluster_id = c.id AND k.version = v.version) \
             AND NOT EXISTS (SELECT 1 FROM reconciliations AS r WHERE r.cluster_id = c.id AND r.version = v.version) \
             AND NOT EXISTS (SELECT 1 FROM reconciliations AS r JOIN operations AS o ON o.reconciliation_id = r.id \
             WHERE r.cluster_id = c.id AND o.version = v.version) \
             ORDER BY v.cluster_id, v.version LIMIT $3"
        )
    };
}
pub(super) const OLD_VERSIONS: Statement = Statement::each(
    old_versions!("c.id IN (SELECT value FROM json_each($1))"),
    old_versions!("c.id = ANY ($1)"),
);
/// Kubeconfigs that neither the cluster nor a version names.
macro_rules! old_kubeconfigs {
    ($clusters:literal) => {
        concat!(
            "DELETE FROM kubeconfigs WHERE (cluster_id, number) IN (SELECT k.cluster_id, k.number FROM kubeconfigs AS k \
             JOIN clusters AS c ON c.id = k.cluster_id WHERE k.cluster_id ", $clusters,
            " AND k.number < coalesce(c.kubeconfig, 0) AND NOT EXISTS (SELECT 1 FROM cluster_configurations AS v \
             WHERE v.cluster_id = k.cluster_id AND v.kubeconfig = k.number) LIMIT $2)"
        )
    };
}
pub(super) const OLD_KUBECONFIGS: Statement = Statement::each(
    old_kubeconfigs!("IN (SELECT value FROM json_each($1))"),
    old_kubeconfigs!("= ANY ($1)"),
);
/// All that is left of a cluster once its runs and history are gone, in the order in which it can go.
pub(super) const REST_OF_CLUSTER: [&str; 10] = [
    "DELETE FROM consents WHERE cluster_id = $1",
    "DELETE FROM configuration_archives WHERE cluster_id = $1",
    "DELETE FROM cluster_configurations WHERE cluster_id = $1",
    "DELETE FROM kubeconfigs WHERE cluster_id = $1",
    "DELETE FROM renders WHERE cluster_id = $1",
    "DELETE FROM components WHERE cluster_id = $1",
    "DELETE FROM cluster_labels WHERE cluster_id = $1",
    "DELETE FROM settings WHERE scope = 'cluster:' || $1",
    "DELETE FROM cluster_status WHERE cluster_id = $1",
    "DELETE FROM clusters WHERE id = $1",
];

/// The moments that a policy speaks of.
struct Limits {
    /// Runs before these go.
    run: String,
    failed_run: String,
    state: i64,
    life: i64,
}

/// The least UUID of version 7 that can be made at a moment: whatever was made before sorts before it.
fn first_uuid(at: Timestamp) -> String {
    let seconds = u64::try_from(at.as_second()).unwrap_or(0);
    let nanos = u32::try_from(at.subsec_nanosecond()).unwrap_or(0);
    let any = Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, seconds, nanos)).to_string();
    // The time is in the first twelve digits, with a hyphen among them.
    any.get(..13).unwrap_or_default().to_owned()
}

impl SqlStore {
    fn limits(&self, policy: &RetentionPolicy) -> Limits {
        let now = moment(self.now());
        let before = |age: Duration| {
            let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
            now.saturating_sub(age).unwrap_or(Timestamp::MIN)
        };
        Limits {
            run: first_uuid(before(policy.run_age)),
            failed_run: first_uuid(before(policy.failed_run_age)),
            state: millis(before(policy.history_age)),
            life: millis(before(policy.deleted_cluster_age)),
        }
    }

    /// Removes runs that `select` picks, until it finds no more.
    async fn remove_runs<F>(&self, select: impl Fn() -> F) -> Result<u64, Error>
    where
        F: Future<Output = Result<Vec<String>, sqlx::Error>>,
    {
        let mut removed = 0;
        loop {
            let runs = select().await.map_err(database(CLEANING))?;
            if runs.is_empty() {
                return Ok(removed);
            }
            let some = repeating(|| self.remove_these_runs(&runs)).await?;
            removed += some;
            // What is left of them somebody else is at: next time.
            if some < runs.len() as u64 {
                return Ok(removed);
            }
        }
    }

    /// One try.
    async fn remove_these_runs(&self, runs: &Vec<String>) -> Result<u64, Error> {
        let mut transaction = self.write(CLEANING).await?;
        let runs: Vec<String> = query_scalar(LOCK_RUNS)
            .bind(runs)
            .fetch_all(&mut *transaction)
            .await
            .map_err(database(CLEANING))?;
        if runs.is_empty() {
            return Ok(0);
        }
        for statement in CONTENT_OF_RUNS.into_iter().chain(RUNS) {
            query(statement)
                .bind(&runs)
                .execute(&mut *transaction)
                .await
                .map_err(database(CLEANING))?;
        }
        transaction.commit(CLEANING).await?;
        Ok(runs.len() as u64)
    }

    /// Runs a statement that removes some rows, until it finds no more.
    async fn remove_rows(
        &self,
        statement: Statement,
        clusters: &Vec<String>,
        before: Option<i64>,
    ) -> Result<u64, Error> {
        let mut removed = 0;
        loop {
            let some = repeating(|| async {
                let mut transaction = self.write(CLEANING).await?;
                let mut delete = query(statement).bind(clusters);
                if let Some(before) = before {
                    delete = delete.bind(before);
                }
                let some = delete
                    .bind(ROWS_TOGETHER)
                    .execute(&mut *transaction)
                    .await
                    .map_err(database(CLEANING))?;
                transaction.commit(CLEANING).await?;
                Ok(some)
            })
            .await?;
            removed += some;
            if some < ROWS_TOGETHER.unsigned_abs() {
                return Ok(removed);
            }
        }
    }

    /// Removes versions that nothing speaks of.
    async fn remove_versions(&self, clusters: &Vec<String>, kept: u32) -> Result<u64, Error> {
        let mut removed = 0;
        loop {
            let some = repeating(|| self.remove_some_versions(clusters, kept)).await?;
            removed += some;
            if some < ROWS_TOGETHER.unsigned_abs() {
                return Ok(removed);
            }
        }
    }

    /// One try.
    async fn remove_some_versions(&self, clusters: &Vec<String>, kept: u32) -> Result<u64, Error> {
        let mut transaction = self.write(CLEANING).await?;
        let versions: Vec<(String, i64)> = query_as(OLD_VERSIONS)
            .bind(clusters)
            .bind(i64::from(kept.max(1)))
            .bind(ROWS_TOGETHER)
            .fetch_all(&mut *transaction)
            .await
            .map_err(database(CLEANING))?;
        for (cluster, version) in &versions {
            for statement in [
                "DELETE FROM configuration_archives WHERE cluster_id = $1 AND version = $2",
                "DELETE FROM cluster_configurations WHERE cluster_id = $1 AND version = $2",
            ] {
                query(statement)
                    .bind(cluster)
                    .bind(*version)
                    .execute(&mut *transaction)
                    .await
                    .map_err(database(CLEANING))?;
            }
        }
        if !versions.is_empty() {
            transaction.commit(CLEANING).await?;
        }
        Ok(versions.len() as u64)
    }

    /// Removes what is left of a cluster that was deleted long ago.
    async fn remove_cluster(&self, cluster: &str) -> Result<(), Error> {
        let mut transaction = self.write(CLEANING).await?;
        transaction.lock(Lock::Cluster(cluster)).await?;
        for statement in REST_OF_CLUSTER {
            query(statement)
                .bind(cluster)
                .execute(&mut *transaction)
                .await
                .map_err(database(CLEANING))?;
        }
        transaction.commit(CLEANING).await
    }

    /// Looks at some clusters.
    async fn clean_some(
        &self,
        policy: &RetentionPolicy,
        after: Option<&ClusterId>,
    ) -> Result<Cleaned, Error> {
        let found: Vec<(String, Option<i64>)> =
            query_as("SELECT id, deleted_at FROM clusters WHERE id > $1 ORDER BY id LIMIT $2")
                .bind(after.map_or("", ClusterId::as_str))
                .bind(CLUSTERS_TOGETHER)
                .fetch_all(self.read())
                .await
                .map_err(database(CLEANING))?;
        let limits = self.limits(policy);
        let mut cleaned = Cleaned::default();
        if i64::try_from(found.len()).unwrap_or(i64::MAX) == CLUSTERS_TOGETHER {
            // An id that cannot be read is passed over like one of a cluster without anything to remove.
            cleaned.next = found.iter().rev().find_map(|(id, _)| id.parse().ok());
        }
        let (over, lasting): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|(_, deleted)| deleted.is_some_and(|at| at < limits.life));
        let ids = |clusters: Vec<(String, Option<i64>)>| -> Vec<String> {
            clusters.into_iter().map(|(id, _)| id).collect()
        };
        let (over, lasting) = (ids(over), ids(lasting));
        cleaned.runs = self
            .remove_runs(|| {
                query_scalar(OLD_RUNS)
                    .bind(&lasting)
                    .bind(limits.run.as_str())
                    .bind(limits.failed_run.as_str())
                    .bind(i64::from(policy.runs.max(1)) - 1)
                    .bind(RUNS_TOGETHER)
                    .fetch_all(self.read())
            })
            .await?;
        cleaned.states = self.remove_rows(OLD_STATES, &lasting, Some(limits.state)).await?;
        cleaned.configurations = self.remove_versions(&lasting, policy.configurations).await?;
        cleaned.kubeconfigs = self.remove_rows(OLD_KUBECONFIGS, &lasting, None).await?;
        if over.is_empty() {
            return Ok(cleaned);
        }
        cleaned.runs += self
            .remove_runs(|| {
                query_scalar(ALL_RUNS)
                    .bind(&over)
                    .bind(RUNS_TOGETHER)
                    .fetch_all(self.read())
            })
            .await?;
        cleaned.states += self.remove_rows(OLD_STATES, &over, Some(i64::MAX)).await?;
        for cluster in &over {
            match repeating(|| self.remove_cluster(cluster)).await {
                Ok(()) => cleaned.clusters += 1,
                // Something of it is still there; it keeps no other cluster from going.
                Err(error) if is_foreign_key_violation(&error) => {
                    tracing::warn!(cluster, %error, "a deleted cluster cannot be removed yet");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(cleaned)
    }

    /// One try.
    async fn clean_audit_once(&self, before: i64) -> Result<u64, Error> {
        const OLD: &str =
            "SELECT number, digest FROM audit WHERE number > $1 AND at < $2 ORDER BY number LIMIT $3";
        let mut transaction = self.write(CLEANING).await?;
        transaction.lock(Lock::Audit).await?;
        let anchor = end_of_chain(&mut transaction, ANCHOR).await?;
        let begin = anchor.map_or(0, |anchor| anchor.number);
        let old: Vec<(i64, Vec<u8>)> = query_as(OLD)
            .bind(begin)
            .bind(before)
            .bind(ROWS_TOGETHER)
            .fetch_all(&mut *transaction)
            .await
            .map_err(database(CLEANING))?;
        // Only a beginning without gaps can go; a clock that was turned back may have left a newer one before an old one.
        let gapless = old
            .into_iter()
            .zip(begin.saturating_add(1)..)
            .take_while(|((number, _), expected)| number == expected);
        let Some(((last, digest), _)) = gapless.last() else {
            return Ok(0);
        };
        self.chain()
            .write_end(&mut transaction, "anchor", last, digest)
            .await?;
        let removed = remove_audit(&mut transaction, last).await?;
        transaction.commit(CLEANING).await?;
        Ok(removed)
    }
}

async fn remove_audit(connection: &mut Connection, last: i64) -> Result<u64, Error> {
    query("DELETE FROM audit WHERE number <= $1")
        .bind(last)
        .execute(connection)
        .await
        .map_err(database(CLEANING))
}

#[async_trait]
impl Retention for SqlStore {
    async fn clean(&self, policy: &RetentionPolicy, after: Option<&ClusterId>) -> Result<Cleaned, Error> {
        self.clean_some(policy, after).await
    }

    async fn clean_audit(&self, policy: &RetentionPolicy) -> Result<u64, Error> {
        let before = self.now().saturating_sub(span(policy.audit_age));
        repeating(|| self.clean_audit_once(before)).await
    }
}
