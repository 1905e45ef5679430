//! The tables.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::{
    ClusterId, ClusterName, ClusterSpec, ClusterState, ComponentName, ComponentRevision,
    ConfigurationVersion, DeleteMode, Digest, DueReason, Fence, Kubeconfig, ObjectChange, OperationId,
    OperationState, OperationStateKind, ReconciliationId, ReconciliationState, Sensitive, Strategy,
};

use crate::rules::{DueTime, Standing};
use crate::{Asked, AuditEntry, ComponentOperation, Consent, Error, Setting, StopReason, TimelineEntry};

/// All rows.
#[derive(Default)]
pub(super) struct Rows {
    /// Stores that were opened.
    pub(super) stores: u16,
    pub(super) clusters: BTreeMap<ClusterId, ClusterRow>,
    pub(super) configurations: BTreeMap<(ClusterId, i64), ConfigurationRow>,
    pub(super) kubeconfigs: BTreeMap<(ClusterId, i64), Kubeconfig>,
    pub(super) history: BTreeMap<(ClusterId, i64), HistoryRow>,
    pub(super) components: BTreeMap<(ClusterId, ComponentName), ComponentRow>,
    pub(super) runs: BTreeMap<ReconciliationId, RunRow>,
    pub(super) operations: BTreeMap<OperationId, OperationRow>,
    pub(super) consents: Vec<ConsentRow>,
    pub(super) archives: BTreeMap<Digest, ArchiveRow>,
    pub(super) renders: BTreeMap<(ClusterId, ComponentName, ComponentRevision), Sensitive<Vec<u8>>>,
    pub(super) settings: BTreeMap<(String, String), Setting>,
    pub(super) instances: BTreeMap<uuid::Uuid, InstanceRow>,
    pub(super) chores: BTreeMap<&'static str, ChoreRow>,
    pub(super) audit: BTreeMap<u64, AuditEntry>,
    pub(super) audit_anchor: (u64, Option<Digest>),
    pub(super) audit_head: (u64, Option<Digest>),
}

/// A cluster with its one row of status.
pub(super) struct ClusterRow {
    pub(super) name: ClusterName,
    pub(super) tenant: Option<String>,
    pub(super) group: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) version: i64,
    pub(super) kubeconfig: Option<i64>,
    pub(super) uid: Option<String>,
    pub(super) created_at: i64,
    pub(super) deletion: Option<(DeleteMode, i64)>,
    pub(super) deleted_at: Option<i64>,
    pub(super) status: StatusRow,
}

pub(super) struct StatusRow {
    pub(super) state: ClusterState,
    pub(super) since: i64,
    pub(super) observed_version: i64,
    pub(super) reason: Option<String>,
    pub(super) due: Option<DueTime>,
    pub(super) stamp: i64,
    pub(super) request_id: Option<String>,
    pub(super) failures: u32,
    pub(super) suspended_until: Option<i64>,
    pub(super) asked: Option<Asked>,
    pub(super) last_check_at: Option<i64>,
    pub(super) changes: i64,
}

pub(super) struct ConfigurationRow {
    pub(super) spec: ClusterSpec,
    pub(super) hash: Digest,
    pub(super) kubeconfig: Option<i64>,
    pub(super) created_at: i64,
}

pub(super) struct HistoryRow {
    pub(super) state: ClusterState,
    pub(super) observed_version: i64,
    pub(super) reason: Option<String>,
    pub(super) since: i64,
    pub(super) until: i64,
}

#[derive(Default)]
pub(super) struct ComponentRow {
    pub(super) listed: bool,
    pub(super) revision: ComponentRevision,
    pub(super) inputs: Option<Digest>,
    pub(super) fence: Fence,
    pub(super) operation: Option<ComponentOperation>,
    pub(super) not_ready: Option<String>,
}

pub(super) struct RunRow {
    pub(super) version: ConfigurationVersion,
    pub(super) strategy: Strategy,
    pub(super) due_reason: DueReason,
    pub(super) state: ReconciliationState,
    pub(super) reason: Option<String>,
    pub(super) created_at: i64,
    pub(super) deadline: i64,
    pub(super) finished_at: Option<i64>,
    pub(super) request_id: Option<String>,
    /// Operations that a later run has carried over.
    pub(super) carried: BTreeSet<OperationId>,
}

pub(super) struct OperationRow {
    pub(super) run: ReconciliationId,
    pub(super) position: usize,
    pub(super) component: ComponentName,
    pub(super) kind: Strategy,
    pub(super) version: ConfigurationVersion,
    pub(super) lane: i64,
    pub(super) cause: String,
    pub(super) state: OperationState,
    /// Dependencies that have not succeeded.
    pub(super) blocked_by: usize,
    /// The place in the queue; none when it cannot be claimed.
    pub(super) rank: Option<i64>,
    pub(super) attempt: u32,
    pub(super) fence: Fence,
    pub(super) stop: Option<StopReason>,
    pub(super) lease: Option<(String, i64)>,
    /// When time decides about it: a lease, a retry or a wait ends.
    pub(super) wake_at: Option<i64>,
    /// What it waits for, where that is not an answer or a moment.
    pub(super) previous: Option<Previous>,
    pub(super) depends_on: BTreeSet<OperationId>,
    pub(super) created_at: i64,
    pub(super) started_at: Option<i64>,
    pub(super) finished_at: Option<i64>,
    pub(super) tenant: String,
    pub(super) reports: Vec<ReportRow>,
}

/// What a waiting operation waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Previous {
    /// The end of an operation of its component.
    Operation(OperationId),
    /// What another operation of its run may bring.
    Run,
}

pub(super) struct ReportRow {
    pub(super) attempt: u32,
    pub(super) changes: Vec<ObjectChange>,
    pub(super) timeline: Vec<TimelineEntry>,
}

pub(super) struct ConsentRow {
    pub(super) cluster: ClusterId,
    pub(super) consent: Consent,
    pub(super) used: bool,
}

pub(super) struct ArchiveRow {
    pub(super) content: Vec<u8>,
    pub(super) created_at: i64,
}

pub(super) struct InstanceRow {
    pub(super) instance: crate::Instance,
    pub(super) started_at: i64,
    pub(super) last_seen_at: i64,
}

pub(super) struct ChoreRow {
    pub(super) fence: Fence,
    pub(super) lease_until: i64,
    pub(super) done_at: Option<i64>,
}

impl ClusterRow {
    /// What of it decides what may be written.
    pub(super) fn standing(&self) -> Standing {
        Standing {
            state: self.status.state,
            observed_version: self.status.observed_version,
            version: self.version,
            deleting: self.deletion.is_some(),
            due: self.status.due,
            stamp: self.status.stamp,
            suspended_until: self.status.suspended_until,
        }
    }
}

impl OperationRow {
    pub(super) fn kind_of_state(&self) -> OperationStateKind {
        self.state.kind()
    }

    pub(super) fn is_open(&self) -> bool {
        self.finished_at.is_none()
    }

    pub(super) fn is_running(&self) -> bool {
        self.kind_of_state() == OperationStateKind::Running
    }
}

impl Rows {
    /// A cluster, live or deleted.
    pub(super) fn cluster(&self, id: &ClusterId) -> Result<&ClusterRow, Error> {
        self.clusters
            .get(id)
            .ok_or_else(|| Error::not_found("cluster", id))
    }

    /// The same, to be written.
    pub(super) fn cluster_mut(&mut self, id: &ClusterId) -> Result<&mut ClusterRow, Error> {
        self.clusters
            .get_mut(id)
            .ok_or_else(|| Error::not_found("cluster", id))
    }

    /// A cluster whose life has not ended.
    pub(super) fn live_cluster(&self, id: &ClusterId) -> Result<&ClusterRow, Error> {
        let cluster = self.cluster(id)?;
        match cluster.status.state {
            ClusterState::Deleted => Err(Error::not_found("cluster", id)),
            _ => Ok(cluster),
        }
    }

    pub(super) fn operation(&self, id: &OperationId) -> Result<&OperationRow, Error> {
        self.operations
            .get(id)
            .ok_or_else(|| Error::not_found("operation", id))
    }

    /// The live run of a cluster.
    pub(super) fn running(&self, cluster: &ClusterId) -> Option<&ReconciliationId> {
        self.runs_of(cluster)
            .find(|(_, run)| run.state == ReconciliationState::Running)
            .map(|(id, _)| id)
    }

    /// The runs of a cluster, oldest first.
    pub(super) fn runs_of<'r>(
        &'r self,
        cluster: &ClusterId,
    ) -> impl Iterator<Item = (&'r ReconciliationId, &'r RunRow)> + use<'r> {
        let of = cluster.clone();
        let first = ReconciliationId::new(of.clone(), uuid::Uuid::nil());
        self.runs
            .range(first..)
            .take_while(move |(id, _)| *id.cluster() == of)
    }

    /// The operations of a run, as they were given.
    pub(super) fn operations_of(&self, run: &ReconciliationId) -> Vec<(&OperationId, &OperationRow)> {
        let mut operations: Vec<_> = self
            .operations_of_cluster(run.cluster())
            .filter(|(_, row)| row.run == *run)
            .collect();
        operations.sort_by_key(|(_, row)| row.position);
        operations
    }

    /// All operations of a cluster.
    pub(super) fn operations_of_cluster<'r>(
        &'r self,
        cluster: &ClusterId,
    ) -> impl Iterator<Item = (&'r OperationId, &'r OperationRow)> + use<'r> {
        let of = cluster.clone();
        let first = OperationId::new(of.clone(), uuid::Uuid::nil());
        self.operations
            .range(first..)
            .take_while(move |(id, _)| *id.cluster() == of)
    }

    /// The operations of a cluster that a worker is at, of whichever run.
    pub(super) fn running_operations<'r>(
        &'r self,
        cluster: &ClusterId,
    ) -> impl Iterator<Item = &'r OperationRow> + use<'r> {
        let operations = self.operations_of_cluster(cluster);
        operations.map(|(_, row)| row).filter(|row| row.is_running())
    }

    /// How many operations of a run are not final.
    pub(super) fn open_operations(&self, run: &ReconciliationId) -> u32 {
        let open = self
            .operations_of_cluster(run.cluster())
            .filter(|(_, row)| row.run == *run && row.is_open());
        u32::try_from(open.count()).unwrap_or(u32::MAX)
    }
}
