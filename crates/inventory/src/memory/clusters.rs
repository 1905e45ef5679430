//! Clusters and their configurations.

use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ClusterName, ClusterSpec, ClusterState, ConfigurationVersion, DeleteMode, Digest, DueReason,
    Kubeconfig, SourceRef, Transition as _,
};
use evenkeel_telemetry::request;

use super::rows::{ClusterRow, ConfigurationRow, Rows, StatusRow};
use super::status::Next;
use super::{MemoryStore, Transaction};
use crate::canonical::canonical;
use crate::rules::DueWrite;
use crate::sql::rows::{int, lane, moment, reason_of_lane, refuse_nul, uint};
use crate::{
    AuditAction, Change, Cluster, ClusterFilter, ClusterStatus, Clusters, Configuration,
    ConfigurationSummary, Configurations, Cursor, Deletion, DeletionOutcome, DueStamp, Error, FailureCount,
    Identity, Page, PageRequest, PutCluster, PutOutcome, Signal, StopReason,
};

const ACCEPTING: &str = "accepting a configuration";

/// What names a specification's content.
fn hash(spec: &ClusterSpec) -> Result<Digest, Error> {
    let text = canonical(spec).map_err(|error| Error::Database {
        doing: ACCEPTING,
        transient: false,
        source: Box::new(error),
    })?;
    Ok(Digest::of(text.as_slice()))
}

fn view(id: &ClusterId, row: &ClusterRow) -> Cluster {
    let status = &row.status;
    Cluster {
        id: id.clone(),
        name: row.name.clone(),
        tenant: row.tenant.clone(),
        group: row.group.clone(),
        labels: row.labels.clone(),
        version: ConfigurationVersion(uint(row.version)),
        has_kubeconfig: row.kubeconfig.is_some(),
        kube_system_uid: row.uid.clone(),
        created_at: moment(row.created_at),
        deletion: row.deletion.map(|(mode, at)| Deletion {
            mode,
            requested_at: moment(at),
        }),
        deleted_at: row.deleted_at.map(moment),
        status: ClusterStatus {
            state: status.state,
            since: moment(status.since),
            observed_version: ConfigurationVersion(uint(status.observed_version)),
            reason: status.reason.clone(),
            due: status
                .due
                .and_then(|(at, lane)| Some((moment(at), reason_of_lane(lane)?))),
            stamp: DueStamp(status.stamp),
            failures: status.failures,
            suspended_until: status.suspended_until.map(moment),
            asked: status.asked.clone().unwrap_or_default(),
            last_check_at: status.last_check_at.map(moment),
        },
    }
}

impl Rows {
    fn live_by_name(&self, name: &ClusterName) -> Option<(&ClusterId, &ClusterRow)> {
        self.clusters
            .iter()
            .find(|(_, row)| row.name == *name && row.deleted_at.is_none())
    }

    fn configuration(&self, cluster: &ClusterId, version: i64) -> Result<Configuration, Error> {
        let row = self.configurations.get(&(cluster.clone(), version));
        let row =
            row.ok_or_else(|| Error::not_found("configuration version", format!("{cluster}/{version}")))?;
        Ok(Configuration {
            cluster: cluster.clone(),
            version: ConfigurationVersion(uint(version)),
            spec: row.spec.clone(),
            kubeconfig: row.kubeconfig.map(uint),
            created_at: moment(row.created_at),
        })
    }
}

impl Transaction<'_> {
    fn put(&mut self, put: &PutCluster) -> Result<PutOutcome, Error> {
        let spec = &put.spec;
        spec.validate().map_err(Error::Invalid)?;
        for (what, text) in [("the tenant", &spec.tenant), ("the group", &spec.group)] {
            refuse_nul(what, text.as_deref().unwrap_or_default())?;
        }
        for (key, value) in &spec.labels {
            refuse_nul("a label's key", key)?;
            refuse_nul("a label's value", value)?;
        }
        let found = match &put.id {
            Some(id) => self.rows.clusters.get_key_value(id),
            None => self.rows.live_by_name(&spec.name),
        };
        let present = found.map_or(0, |(_, row)| row.version);
        if let Some(expected) = put.if_version
            && int(expected.0) != present
        {
            return Err(Error::VersionMismatch {
                expected,
                found: ConfigurationVersion(uint(present)),
            });
        }
        let outcome = match found {
            Some((id, row)) => {
                if row.deleted_at.is_some() {
                    return Err(Error::IdUsed(id.clone()));
                }
                if row.name != spec.name {
                    return Err(Error::NameImmutable {
                        cluster: id.clone(),
                        name: row.name.clone(),
                    });
                }
                let id = id.clone();
                self.change(&id, spec, put.kubeconfig.as_ref())?
            }
            None => {
                if let Some((owner, _)) = self.rows.live_by_name(&spec.name) {
                    return Err(Error::NameTaken {
                        name: spec.name.clone(),
                        owner: owner.clone(),
                    });
                }
                self.archives_must_exist(spec)?;
                let id = put.id.clone().unwrap_or_else(|| ClusterId::from(self.new_uuid()));
                self.create(&id, spec, put.kubeconfig.as_ref())?
            }
        };
        self.accepted(AuditAction::PutCluster, &outcome)?;
        Ok(outcome)
    }

    /// Writes down and tells that a configuration was accepted.
    fn accepted(&mut self, action: AuditAction, outcome: &PutOutcome) -> Result<(), Error> {
        let change = match outcome.change {
            Change::Unchanged => return Ok(()),
            Change::Created => "created",
            Change::Changed => "changed",
        };
        let key = (outcome.id.clone(), int(outcome.version.0));
        let hash = self.rows.configurations.get(&key).map(|row| row.hash.to_string());
        let detail = serde_json::json!({
            "id": outcome.id.as_str(), "version": outcome.version.0, "change": change, "configuration": hash,
        });
        self.audit_cluster(action, &outcome.id, &detail);
        self.signal(Signal::ClusterDue);
        self.signal(Signal::ClusterChanged);
        Ok(())
    }

    fn archives_must_exist(&self, spec: &ClusterSpec) -> Result<(), Error> {
        for component in &spec.components {
            if let SourceRef::Archive { digest } = &component.source
                && !self.rows.archives.contains_key(digest)
            {
                return Err(Error::ArchiveUnknown {
                    component: component.name.clone(),
                    digest: *digest,
                });
            }
        }
        Ok(())
    }

    fn create(
        &mut self,
        id: &ClusterId,
        spec: &ClusterSpec,
        kubeconfig: Option<&Kubeconfig>,
    ) -> Result<PutOutcome, Error> {
        let now = self.now;
        let row = ClusterRow {
            name: spec.name.clone(),
            tenant: None,
            group: None,
            labels: BTreeMap::new(),
            version: 0,
            kubeconfig: None,
            uid: None,
            created_at: now,
            deletion: None,
            deleted_at: None,
            status: StatusRow {
                state: ClusterState::Pending,
                since: now,
                observed_version: 1,
                reason: None,
                due: Some((now, lane(DueReason::Change))),
                stamp: 1,
                request_id: request::current(),
                failures: 0,
                suspended_until: None,
                asked: None,
                last_check_at: None,
                changes: 0,
            },
        };
        self.write().clusters.insert(id.clone(), row);
        let kubeconfig = kubeconfig.map(|kubeconfig| self.kubeconfig_number(id, kubeconfig));
        self.insert_version(id, spec, 1, kubeconfig)?;
        Ok(PutOutcome {
            id: id.clone(),
            version: ConfigurationVersion(1),
            change: Change::Created,
        })
    }

    fn change(
        &mut self,
        id: &ClusterId,
        spec: &ClusterSpec,
        kubeconfig: Option<&Kubeconfig>,
    ) -> Result<PutOutcome, Error> {
        let row = self.rows.cluster(id)?;
        let (before, number) = (row.version, row.kubeconfig);
        if row.deletion.is_some() || row.status.state.check(ClusterState::Pending).is_err() {
            return Err(Error::BeingDeleted(id.clone()));
        }
        self.archives_must_exist(spec)?;
        let kubeconfig = match kubeconfig {
            None => number,
            Some(kubeconfig) => Some(self.kubeconfig_number(id, kubeconfig)),
        };
        let same = self
            .rows
            .configurations
            .get(&(id.clone(), before))
            .map(|row| row.hash)
            == Some(hash(spec)?);
        if kubeconfig == number && same {
            return Ok(PutOutcome {
                id: id.clone(),
                version: ConfigurationVersion(uint(before)),
                change: Change::Unchanged,
            });
        }
        let version = before + 1;
        self.insert_version(id, spec, version, kubeconfig)?;
        let next = Next {
            state: ClusterState::Pending,
            observed_version: version,
            reason: None,
            due: DueWrite::Merge((self.now, lane(DueReason::Change))),
            failures: FailureCount::Reset,
        };
        self.write_status(id, &next)?;
        Ok(PutOutcome {
            id: id.clone(),
            version: ConfigurationVersion(uint(version)),
            change: Change::Changed,
        })
    }

    /// The number of a kubeconfig: the newest one's when it is the same, else a new one's.
    fn kubeconfig_number(&mut self, id: &ClusterId, kubeconfig: &Kubeconfig) -> i64 {
        let of_cluster = (id.clone(), i64::MIN)..=(id.clone(), i64::MAX);
        let newest = self.rows.kubeconfigs.range(of_cluster).next_back();
        let number = match newest {
            Some(((_, number), known)) if known == kubeconfig => return *number,
            Some(((_, number), _)) => number + 1,
            None => 1,
        };
        self.write()
            .kubeconfigs
            .insert((id.clone(), number), kubeconfig.clone());
        number
    }

    fn insert_version(
        &mut self,
        id: &ClusterId,
        spec: &ClusterSpec,
        version: i64,
        kubeconfig: Option<i64>,
    ) -> Result<(), Error> {
        let row = ConfigurationRow {
            spec: spec.clone(),
            hash: hash(spec)?,
            kubeconfig,
            created_at: self.now,
        };
        self.write().configurations.insert((id.clone(), version), row);
        let cluster = self.write().cluster_mut(id)?;
        cluster.tenant = spec.tenant.clone();
        cluster.group = spec.group.clone();
        cluster.labels = spec.labels.clone().into_iter().collect();
        cluster.version = version;
        cluster.kubeconfig = kubeconfig;
        self.list_components(id, spec);
        Ok(())
    }

    fn replace_kubeconfig(&mut self, id: &ClusterId, kubeconfig: &Kubeconfig) -> Result<PutOutcome, Error> {
        let row = self.rows.cluster(id)?;
        if row.deleted_at.is_some() {
            return Err(Error::not_found("cluster", id));
        }
        let spec = self.rows.configuration(id, row.version)?.spec;
        let outcome = self.change(id, &spec, Some(kubeconfig))?;
        self.accepted(AuditAction::PutKubeconfig, &outcome)?;
        Ok(outcome)
    }

    /// What ends with a cluster's life; what it was told and what was done stays as history.
    pub(super) fn end_of_life(&mut self, id: &ClusterId) -> Result<(), Error> {
        let now = self.now;
        let rows = self.write();
        let cluster = rows.cluster_mut(id)?;
        cluster.deleted_at = Some(now);
        cluster.status.due = None;
        cluster.status.suspended_until = None;
        rows.kubeconfigs.retain(|(of, _), _| of != id);
        rows.renders.retain(|(of, ..), _| of != id);
        rows.consents.retain(|consent| consent.cluster != *id);
        rows.components.retain(|(of, _), _| of != id);
        rows.settings
            .retain(|(scope, _), _| *scope != format!("cluster:{id}"));
        Ok(())
    }

    fn request_deletion(&mut self, id: &ClusterId, mode: DeleteMode) -> Result<DeletionOutcome, Error> {
        let now = self.now;
        let version = self.rows.live_cluster(id)?.version;
        let forget = mode == DeleteMode::Forget;
        let row = self.write().cluster_mut(id)?;
        let since = row.deletion.map_or(now, |(_, since)| since);
        row.deletion = Some((mode, since));
        if forget {
            self.stop_running(id, StopReason::Cancelled);
        }
        let (state, due) = match forget {
            true => (ClusterState::Deleted, None),
            false => (ClusterState::Deleting, Some((now, lane(DueReason::Deletion)))),
        };
        let next = Next {
            state,
            observed_version: version,
            reason: None,
            due: DueWrite::Set(due),
            failures: FailureCount::Reset,
        };
        self.write_status(id, &next)?;
        if forget {
            self.end_of_life(id)?;
        }
        let detail = serde_json::json!({"mode": mode.as_str()});
        self.audit_cluster(AuditAction::DeleteCluster, id, &detail);
        self.signal(Signal::ClusterChanged);
        Ok(match forget {
            true => {
                self.signal(Signal::OperationStop);
                DeletionOutcome::Deleted
            }
            false => {
                self.signal(Signal::ClusterDue);
                DeletionOutcome::Requested
            }
        })
    }

    fn record_identity(&mut self, id: &ClusterId, uid: &str) -> Result<Identity, Error> {
        let row = self.rows.live_cluster(id)?;
        match &row.uid {
            Some(recorded) if recorded == uid => return Ok(Identity::Same),
            Some(recorded) => {
                return Ok(Identity::Changed {
                    recorded: recorded.clone(),
                });
            }
            None => {}
        }
        let is_holder = |row: &ClusterRow| row.uid.as_deref() == Some(uid) && row.deleted_at.is_none();
        if let Some((by, _)) = self.rows.clusters.iter().find(|(_, row)| is_holder(row)) {
            return Ok(Identity::Taken { by: by.clone() });
        }
        self.write().cluster_mut(id)?.uid = Some(uid.to_owned());
        Ok(Identity::New)
    }

    fn confirm_identity(&mut self, id: &ClusterId, uid: &str) -> Result<(), Error> {
        self.rows.live_cluster(id)?;
        self.write().cluster_mut(id)?.uid = Some(uid.to_owned());
        let detail = serde_json::json!({"uid": uid});
        self.audit_cluster(AuditAction::ConfirmIdentity, id, &detail);
        Ok(())
    }

    fn clusters(&self, filter: &ClusterFilter, page: &PageRequest) -> Page<Cluster> {
        let after = page.text_cursor().unwrap_or_default();
        let has = |own: &Option<String>, wanted: &Option<String>| wanted.is_none() || own == wanted;
        let mut found: Vec<_> = self
            .rows
            .clusters
            .iter()
            .filter(|(id, row)| {
                row.deleted_at.is_none()
                    && row.name.as_str() > after
                    && filter.state.is_none_or(|state| row.status.state == state)
                    && has(&row.tenant, &filter.tenant)
                    && has(&row.group, &filter.group)
                    && filter
                        .labels
                        .iter()
                        .all(|(key, value)| row.labels.get(key) == Some(value))
                    && filter.component.as_ref().is_none_or(|name| {
                        let component = self.rows.components.get(&((*id).clone(), name.clone()));
                        component.is_some_and(|component| component.listed)
                    })
            })
            .collect();
        found.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        found.truncate(page.limit() as usize + 1);
        Page::collect(&found, page.limit(), |(id, row)| {
            (Cursor(row.name.to_string()), id.to_string(), Ok(view(id, row)))
        })
    }
}

#[async_trait]
impl Clusters for MemoryStore {
    async fn put_cluster(&self, put: PutCluster) -> Result<PutOutcome, Error> {
        self.call("put_cluster", |transaction| transaction.put(&put))
            .await
    }

    async fn put_kubeconfig(&self, cluster: &ClusterId, kubeconfig: Kubeconfig) -> Result<PutOutcome, Error> {
        self.call("put_kubeconfig", |transaction| {
            transaction.replace_kubeconfig(cluster, &kubeconfig)
        })
        .await
    }

    async fn kubeconfig(&self, cluster: &ClusterId) -> Result<Kubeconfig, Error> {
        self.call("kubeconfig", |transaction| {
            let number = transaction
                .rows
                .clusters
                .get(cluster)
                .and_then(|row| row.kubeconfig);
            number
                .and_then(|number| transaction.rows.kubeconfigs.get(&(cluster.clone(), number)))
                .cloned()
                .ok_or_else(|| Error::not_found("kubeconfig of cluster", cluster))
        })
        .await
    }

    async fn cluster(&self, id: &ClusterId) -> Result<Cluster, Error> {
        self.call("cluster", |transaction| {
            transaction.rows.cluster(id).map(|row| view(id, row))
        })
        .await
    }

    async fn cluster_by_name(&self, name: &ClusterName) -> Result<Cluster, Error> {
        self.call("cluster_by_name", |transaction| {
            let found = transaction.rows.live_by_name(name);
            let (id, row) = found.ok_or_else(|| Error::not_found("cluster", name))?;
            Ok(view(id, row))
        })
        .await
    }

    async fn clusters(&self, filter: &ClusterFilter, page: &PageRequest) -> Result<Page<Cluster>, Error> {
        self.call("clusters", |transaction| Ok(transaction.clusters(filter, page)))
            .await
    }

    async fn cluster_counts(&self) -> Result<BTreeMap<ClusterState, u64>, Error> {
        self.call("cluster_counts", |transaction| {
            let mut counts = BTreeMap::new();
            for row in transaction.rows.clusters.values() {
                if row.status.state != ClusterState::Deleted {
                    *counts.entry(row.status.state).or_insert(0) += 1;
                }
            }
            Ok(counts)
        })
        .await
    }

    async fn request_deletion(
        &self,
        cluster: &ClusterId,
        mode: DeleteMode,
    ) -> Result<DeletionOutcome, Error> {
        self.call("request_deletion", |transaction| {
            transaction.request_deletion(cluster, mode)
        })
        .await
    }

    async fn record_identity(&self, cluster: &ClusterId, kube_system_uid: &str) -> Result<Identity, Error> {
        self.call("record_identity", |transaction| {
            transaction.record_identity(cluster, kube_system_uid)
        })
        .await
    }

    async fn confirm_identity(&self, cluster: &ClusterId, kube_system_uid: &str) -> Result<(), Error> {
        self.call("confirm_identity", |transaction| {
            transaction.confirm_identity(cluster, kube_system_uid)
        })
        .await
    }
}

#[async_trait]
impl Configurations for MemoryStore {
    async fn configuration(
        &self,
        cluster: &ClusterId,
        version: ConfigurationVersion,
    ) -> Result<Configuration, Error> {
        self.call("configuration", |transaction| {
            transaction.rows.configuration(cluster, int(version.0))
        })
        .await
    }

    async fn newest_configuration(&self, cluster: &ClusterId) -> Result<Configuration, Error> {
        self.call("newest_configuration", |transaction| {
            let version = transaction.rows.cluster(cluster)?.version;
            transaction.rows.configuration(cluster, version)
        })
        .await
    }

    async fn configurations(
        &self,
        cluster: &ClusterId,
        page: &PageRequest,
    ) -> Result<Page<ConfigurationSummary>, Error> {
        self.call("configurations", |transaction| {
            let before = page.number_cursor()?;
            transaction.rows.cluster(cluster)?;
            let limit = page.limit();
            let versions = (cluster.clone(), i64::MIN)..(cluster.clone(), before);
            let found = transaction.rows.configurations.range(versions).rev();
            let found: Vec<_> = found.take(limit as usize + 1).collect();
            Ok(Page::collect(&found, limit, |((_, version), row)| {
                let summary = ConfigurationSummary {
                    version: ConfigurationVersion(uint(*version)),
                    kubeconfig: row.kubeconfig.map(uint),
                    created_at: moment(row.created_at),
                };
                (Cursor(version.to_string()), version.to_string(), Ok(summary))
            }))
        })
        .await
    }
}
