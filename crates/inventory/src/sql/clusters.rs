//! Clusters: registering, reading and giving up.

use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ClusterName, ClusterState, ConfigurationVersion, DeleteMode, DueReason, Kubeconfig,
    Transition as _,
};
use evenkeel_telemetry::request;

use super::SqlStore;
use super::kubeconfigs::{KUBECONFIG, read_kubeconfig};
use super::list::cluster_fields;
use super::lock::Lock;
use super::rows::lane;
use super::status::{Next, Present};
use crate::cipher::Column;
use crate::rules::DueWrite;
use crate::sql::{Cells, Connection, Row, database, query, query_scalar, repeating};
use crate::{
    AuditAction, Cluster, ClusterFilter, ClusterStatus, Clusters, Deletion, DeletionOutcome, DueStamp, Error,
    FailureCount, Identity, Page, PageRequest, PutCluster, PutOutcome, Signal, StopReason,
};

const BY_ID: &str = concat!(
    cluster_fields!(),
    "clusters c JOIN cluster_status s ON s.cluster_id = c.id WHERE c.id = $1"
);
const BY_NAME: &str = concat!(
    cluster_fields!(),
    "clusters c JOIN cluster_status s ON s.cluster_id = c.id WHERE c.name = $1 AND c.deleted_at IS NULL"
);

impl SqlStore {
    /// A cluster's row, with its status.
    pub(super) fn cluster_row(&self, row: &Row) -> Result<Cluster, Error> {
        let id: String = Cells::new(row, "clusters", "").get("id")?;
        let cells = Cells::new(row, "clusters", &*id);
        let labels: &str = cells.get("labels")?;
        let labels: BTreeMap<String, String> = serde_json::from_str(labels)
            .map_err(|_| cells.unreadable("labels", "it is no object of texts"))?;
        let deletion = match cells.time_option("deletion_requested_at")? {
            None => None,
            Some(requested_at) => Some(Deletion {
                mode: cells.named("deletion_mode")?,
                requested_at,
            }),
        };
        let status = Cells::new(row, "cluster_status", &*id);
        let due = match status.time_option("next_due_at")? {
            None => None,
            Some(at) => Some((at, status.due_reason("due_lane")?)),
        };
        Ok(Cluster {
            name: cells.parse("name")?,
            tenant: cells.get("tenant")?,
            group: cells.get("cluster_group")?,
            labels,
            version: ConfigurationVersion(cells.number("version")?),
            has_kubeconfig: cells.get::<Option<i64>>("kubeconfig")?.is_some(),
            kube_system_uid: cells.get("kube_system_uid")?,
            created_at: cells.time("created_at")?,
            deletion,
            deleted_at: cells.time_option("deleted_at")?,
            status: ClusterStatus {
                state: status.parse("state")?,
                since: status.time("since")?,
                observed_version: ConfigurationVersion(status.number("observed_version")?),
                reason: status.secret_text(&self.cipher, Column::STATUS_REASON, &id)?,
                due,
                stamp: DueStamp(status.get("due_stamp")?),
                failures: status.count("failures")?,
                suspended_until: status.time_option("suspended_until")?,
                asked: super::due::asked(&status)?,
                last_check_at: status.time_option("last_check_at")?,
            },
            id: cells.parse("id")?,
        })
    }

    /// Refuses an id that no cluster has.
    pub(super) async fn must_exist(&self, cluster: &ClusterId) -> Result<(), Error> {
        query("SELECT 1 FROM clusters WHERE id = $1")
            .bind(cluster.as_str())
            .fetch_optional(self.read())
            .await
            .map_err(database("looking for a cluster"))?
            .map(drop)
            .ok_or_else(|| Error::not_found("cluster", cluster))
    }
}

/// What ends with a cluster's life: its place among names and labels, its credentials, renders and components, its
/// settings. What it was told and what was done stays as history.
pub(super) async fn end_of_life(
    connection: &mut Connection,
    cluster: &ClusterId,
    now: i64,
) -> Result<(), Error> {
    let doing = || database("ending a cluster's life");
    query("UPDATE clusters SET deleted_at = $2 WHERE id = $1")
        .bind(cluster.as_str())
        .bind(now)
        .execute(&mut *connection)
        .await
        .map_err(doing())?;
    for statement in [
        "UPDATE cluster_status SET next_due_at = NULL, suspended_until = NULL WHERE cluster_id = $1",
        "DELETE FROM cluster_labels WHERE cluster_id = $1",
        "DELETE FROM kubeconfigs WHERE cluster_id = $1",
        "DELETE FROM renders WHERE cluster_id = $1",
        "DELETE FROM consents WHERE cluster_id = $1",
        "DELETE FROM components WHERE cluster_id = $1",
        "DELETE FROM settings WHERE scope = 'cluster:' || $1",
    ] {
        query(statement)
            .bind(cluster.as_str())
            .execute(&mut *connection)
            .await
            .map_err(doing())?;
    }
    Ok(())
}

impl SqlStore {
    /// One try.
    async fn request_deletion_once(
        &self,
        cluster: &ClusterId,
        mode: DeleteMode,
    ) -> Result<DeletionOutcome, Error> {
        let doing = "requesting a deletion";
        let mut transaction = self.write(doing).await?;
        let present = Present::load(&mut transaction, cluster.as_str()).await?;
        if present.state == ClusterState::Deleted {
            return Err(Error::not_found("cluster", cluster));
        }
        query(
            "UPDATE clusters SET deletion_mode = $2, deletion_requested_at = coalesce(deletion_requested_at, $3) WHERE id = $1",
        )
        .bind(cluster.as_str())
        .bind(mode.as_str())
        .bind(self.now())
        .execute(&mut *transaction)
        .await
        .map_err(database(doing))?;
        let forget = mode == DeleteMode::Forget;
        if forget {
            self.stop_running(&mut transaction, cluster, StopReason::Cancelled)
                .await?;
        }
        let next = Next {
            state: if forget {
                ClusterState::Deleted
            } else {
                ClusterState::Deleting
            },
            observed_version: present.version,
            reason: None,
            due: if forget {
                DueWrite::Set(None)
            } else {
                DueWrite::Set(Some((self.now(), lane(DueReason::Deletion))))
            },
            failures: FailureCount::Reset,
        };
        self.write_status(&mut transaction, &present, next).await?;
        if forget {
            end_of_life(&mut transaction, cluster, self.now()).await?;
        }
        self.audit_cluster(
            &mut transaction,
            AuditAction::DeleteCluster,
            cluster,
            serde_json::json!({"mode": mode.as_str()}),
        )
        .await?;
        transaction.commit(doing).await?;
        self.signal(Signal::ClusterChanged);
        self.signal(if forget {
            Signal::OperationStop
        } else {
            Signal::ClusterDue
        });
        Ok(if forget {
            DeletionOutcome::Deleted
        } else {
            DeletionOutcome::Requested
        })
    }

    /// One try.
    async fn record_identity_once(
        &self,
        cluster: &ClusterId,
        kube_system_uid: &str,
    ) -> Result<Identity, Error> {
        let doing = "recording a cluster's identity";
        let mut transaction = self.write(doing).await?;
        transaction.lock(Lock::Cluster(cluster.as_str())).await?;
        // Two records that meet the same cluster for the first time do not both get it.
        transaction.lock(Lock::Name(kube_system_uid)).await?;
        let row = query(
            "SELECT kube_system_uid, (SELECT id FROM clusters WHERE kube_system_uid = $2 AND deleted_at IS NULL AND id <> $1) AS holder \
             FROM clusters WHERE id = $1 AND deleted_at IS NULL",
        )
        .bind(cluster.as_str())
        .bind(kube_system_uid)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(database(doing))?
        .ok_or_else(|| Error::not_found("cluster", cluster))?;
        let cells = Cells::new(&row, "clusters", cluster.as_str());
        let recorded: Option<String> = cells.get("kube_system_uid")?;
        let holder: Option<&str> = cells.get("holder")?;
        match (recorded, holder) {
            (Some(recorded), _) if recorded == kube_system_uid => Ok(Identity::Same),
            (Some(recorded), _) => Ok(Identity::Changed { recorded }),
            (None, Some(_)) => Ok(Identity::Taken {
                by: cells.parse("holder")?,
            }),
            (None, None) => {
                query("UPDATE clusters SET kube_system_uid = $2 WHERE id = $1")
                    .bind(cluster.as_str())
                    .bind(kube_system_uid)
                    .execute(&mut *transaction)
                    .await
                    .map_err(database(doing))?;
                transaction.commit(doing).await?;
                Ok(Identity::New)
            }
        }
    }

    /// One try.
    async fn confirm_identity_once(&self, cluster: &ClusterId, kube_system_uid: &str) -> Result<(), Error> {
        let doing = "confirming a cluster's identity";
        let mut transaction = self.write(doing).await?;
        let done = query("UPDATE clusters SET kube_system_uid = $2 WHERE id = $1 AND deleted_at IS NULL")
            .bind(cluster.as_str())
            .bind(kube_system_uid)
            .execute(&mut *transaction)
            .await
            .map_err(database(doing))?;
        if done == 0 {
            return Err(Error::not_found("cluster", cluster));
        }
        self.audit_cluster(
            &mut transaction,
            AuditAction::ConfirmIdentity,
            cluster,
            serde_json::json!({"uid": kube_system_uid}),
        )
        .await?;
        transaction.commit(doing).await
    }

    /// Writes down what an API call did to a cluster, by the cluster's name.
    pub(super) async fn audit_cluster(
        &self,
        connection: &mut Connection,
        action: AuditAction,
        cluster: &ClusterId,
        detail: serde_json::Value,
    ) -> Result<(), Error> {
        if request::current().is_none() {
            return Ok(());
        }
        let name: Option<String> = query_scalar("SELECT name FROM clusters WHERE id = $1")
            .bind(cluster.as_str())
            .fetch_optional(&mut *connection)
            .await
            .map_err(database("reading a cluster's name"))?;
        let target = format!("cluster/{}", name.as_deref().unwrap_or(cluster.as_str()));
        self.audit(connection, action, &target, detail).await
    }
}

#[async_trait]
impl Clusters for SqlStore {
    async fn put_cluster(&self, put: PutCluster) -> Result<PutOutcome, Error> {
        repeating(|| self.put(&put)).await
    }

    async fn put_kubeconfig(&self, cluster: &ClusterId, kubeconfig: Kubeconfig) -> Result<PutOutcome, Error> {
        repeating(|| self.replace_kubeconfig(cluster, &kubeconfig)).await
    }

    async fn kubeconfig(&self, cluster: &ClusterId) -> Result<Kubeconfig, Error> {
        let row = query(KUBECONFIG)
            .bind(cluster.as_str())
            .fetch_optional(self.read())
            .await
            .map_err(database("reading a kubeconfig"))?
            .ok_or_else(|| Error::not_found("kubeconfig of cluster", cluster))?;
        read_kubeconfig(&self.cipher, &row, cluster)
    }

    async fn cluster(&self, id: &ClusterId) -> Result<Cluster, Error> {
        let row = query(BY_ID)
            .bind(id.as_str())
            .fetch_optional(self.read())
            .await
            .map_err(database("reading a cluster"))?
            .ok_or_else(|| Error::not_found("cluster", id))?;
        self.cluster_row(&row)
    }

    async fn cluster_by_name(&self, name: &ClusterName) -> Result<Cluster, Error> {
        let row = query(BY_NAME)
            .bind(name.as_str())
            .fetch_optional(self.read())
            .await
            .map_err(database("reading a cluster"))?
            .ok_or_else(|| Error::not_found("cluster", name))?;
        self.cluster_row(&row)
    }

    async fn clusters(&self, filter: &ClusterFilter, page: &PageRequest) -> Result<Page<Cluster>, Error> {
        self.list(filter, page).await
    }

    async fn cluster_counts(&self) -> Result<BTreeMap<ClusterState, u64>, Error> {
        let doing = "counting clusters";
        let rows =
            query("SELECT state, count(*) FROM cluster_status WHERE state <> 'deleted' GROUP BY state")
                .fetch_all(self.read())
                .await
                .map_err(database(doing))?;
        let mut counts = BTreeMap::new();
        for row in rows {
            let state: String = row.at(0).map_err(database(doing))?;
            let count: i64 = row.at(1).map_err(database(doing))?;
            // A state this release does not know is that row's trouble, told when the row is read.
            if let Ok(state) = state.parse() {
                counts.insert(state, super::rows::uint(count));
            }
        }
        Ok(counts)
    }

    async fn request_deletion(
        &self,
        cluster: &ClusterId,
        mode: DeleteMode,
    ) -> Result<DeletionOutcome, Error> {
        repeating(|| self.request_deletion_once(cluster, mode)).await
    }

    async fn record_identity(&self, cluster: &ClusterId, kube_system_uid: &str) -> Result<Identity, Error> {
        repeating(|| self.record_identity_once(cluster, kube_system_uid)).await
    }

    async fn confirm_identity(&self, cluster: &ClusterId, kube_system_uid: &str) -> Result<(), Error> {
        repeating(|| self.confirm_identity_once(cluster, kube_system_uid)).await
    }
}

/// Whether a put may move a cluster to `pending`.
pub(super) fn accepts_changes(state: ClusterState) -> bool {
    state.check(ClusterState::Pending).is_ok()
}
