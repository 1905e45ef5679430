//! Clusters: who they are, how they are registered, listed and given up.

use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ClusterName, ClusterSpec, ClusterState, ComponentName, ConfigurationVersion, DeleteMode,
    Kubeconfig,
};
use jiff::Timestamp;

use crate::{ClusterStatus, Error, Page, PageRequest};

/// What an owner asks for.
#[derive(Clone, Debug)]
pub struct PutCluster {
    /// The id of a broker's cluster; none for one found by its name.
    pub id: Option<ClusterId>,
    /// What it should run.
    pub spec: ClusterSpec,
    /// How to reach it; none keeps the one there is.
    pub kubeconfig: Option<Kubeconfig>,
    /// Accept only if this is the newest version (`If-Match`); version 0 means: only if there is no such cluster.
    pub if_version: Option<ConfigurationVersion>,
}

impl PutCluster {
    /// `spec` alone: found by its name, its kubeconfig kept, whatever version there is.
    pub fn new(spec: ClusterSpec) -> Self {
        Self {
            id: None,
            spec,
            kubeconfig: None,
            if_version: None,
        }
    }

    /// The same with a kubeconfig.
    #[must_use]
    pub fn with_kubeconfig(mut self, kubeconfig: impl Into<Kubeconfig>) -> Self {
        self.kubeconfig = Some(kubeconfig.into());
        self
    }
}

/// What a put did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new cluster, at version 1.
    Created,
    /// A new version.
    Changed,
    /// The newest version already says so; nothing was written.
    Unchanged,
}

/// The answer to a put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutOutcome {
    /// The cluster.
    pub id: ClusterId,
    /// Its newest version, which holds what was asked for.
    pub version: ConfigurationVersion,
    /// What was done.
    pub change: Change,
}

/// That a cluster is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// How.
    pub mode: DeleteMode,
    /// Since when.
    pub requested_at: Timestamp,
}

/// The answer to a request for deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionOutcome {
    /// It is due for deletion.
    Requested,
    /// Its record is gone already: mode `forget`.
    Deleted,
}

/// What is known of one cluster, without its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Identifies this life of the cluster.
    pub id: ClusterId,
    /// Unique among live clusters, immutable.
    pub name: ClusterName,
    /// Whose it is.
    pub tenant: Option<String>,
    /// Whose settings it takes.
    pub group: Option<String>,
    /// Labels of the newest configuration.
    pub labels: BTreeMap<String, String>,
    /// The newest configuration.
    pub version: ConfigurationVersion,
    /// Whether it has a kubeconfig.
    pub has_kubeconfig: bool,
    /// The uid of its namespace `kube-system`, once it was reached.
    pub kube_system_uid: Option<String>,
    /// When it was registered.
    pub created_at: Timestamp,
    /// Set once it is to go.
    pub deletion: Option<Deletion>,
    /// When it went.
    pub deleted_at: Option<Timestamp>,
    /// How it is.
    pub status: ClusterStatus,
}

/// Which clusters are wanted; all of the given conditions hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFilter {
    /// In this state.
    pub state: Option<ClusterState>,
    /// With all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Whose newest configuration lists this component.
    pub component: Option<ComponentName>,
    /// Of this tenant.
    pub tenant: Option<String>,
    /// Of this group.
    pub group: Option<String>,
}

/// What was found when a cluster's identity was compared with the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// First contact: now recorded.
    New,
    /// As recorded.
    Same,
    /// Another cluster answers at this address; nothing was recorded.
    Changed {
        /// The uid recorded earlier.
        recorded: String,
    },
    /// Another live record has this uid; nothing was recorded.
    Taken {
        /// That record.
        by: ClusterId,
    },
}

/// The clusters of the fleet.
#[async_trait]
pub trait Clusters: Send + Sync {
    /// Registers a cluster or gives it a new configuration version, and makes it due at once when something changed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a specification that [`ClusterSpec::validate`] refuses; [`Error::ArchiveUnknown`];
    /// [`Error::VersionMismatch`] when `if_version` is not the newest; [`Error::NameTaken`] and
    /// [`Error::NameImmutable`] when an id is given; [`Error::IdUsed`]; [`Error::BeingDeleted`].
    async fn put_cluster(&self, put: PutCluster) -> Result<PutOutcome, Error>;

    /// Gives a cluster another kubeconfig: a new version with the same specification, unless it is the same.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::BeingDeleted`].
    async fn put_kubeconfig(&self, cluster: &ClusterId, kubeconfig: Kubeconfig) -> Result<PutOutcome, Error>;

    /// The kubeconfig in use, or where it is read.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none; [`Error::Unreadable`].
    async fn kubeconfig(&self, cluster: &ClusterId) -> Result<Kubeconfig, Error>;

    /// One cluster, live or deleted.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unreadable`].
    async fn cluster(&self, id: &ClusterId) -> Result<Cluster, Error>;

    /// The live cluster of that name.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unreadable`].
    async fn cluster_by_name(&self, name: &ClusterName) -> Result<Cluster, Error>;

    /// Live clusters by name.
    ///
    /// # Errors
    /// [`Error::Database`] only: rows that cannot be read are named in the page.
    async fn clusters(&self, filter: &ClusterFilter, page: &PageRequest) -> Result<Page<Cluster>, Error>;

    /// How many live clusters are in each state.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn cluster_counts(&self) -> Result<BTreeMap<ClusterState, u64>, Error>;

    /// Asks for a cluster to go. `Uninstall` and `Orphan` make it due for deletion, `Forget` removes the record at
    /// once and stops what runs. A repeated request may change the mode.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    async fn request_deletion(&self, cluster: &ClusterId, mode: DeleteMode)
    -> Result<DeletionOutcome, Error>;

    /// Compares the uid that a cluster shows with the recorded one; records it at first contact.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    async fn record_identity(&self, cluster: &ClusterId, kube_system_uid: &str) -> Result<Identity, Error>;

    /// Records a uid that a person confirmed, whatever was recorded before.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    async fn confirm_identity(&self, cluster: &ClusterId, kube_system_uid: &str) -> Result<(), Error>;
}
