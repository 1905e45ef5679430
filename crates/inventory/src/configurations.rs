//! Configurations: numbered, immutable, encrypted.

use async_trait::async_trait;
use evenkeel_core::{ClusterId, ClusterSpec, ConfigurationVersion};
use jiff::Timestamp;

use crate::{Error, Page, PageRequest};

/// One version of what a cluster should run.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The cluster.
    pub cluster: ClusterId,
    /// The version, from 1.
    pub version: ConfigurationVersion,
    /// What it says; holds secret values.
    pub spec: ClusterSpec,
    /// Which of the cluster's kubeconfigs it was accepted with, from 1.
    pub kubeconfig: Option<u64>,
    /// When it was accepted.
    pub created_at: Timestamp,
}

/// One version in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationSummary {
    /// The version.
    pub version: ConfigurationVersion,
    /// Which of the cluster's kubeconfigs it was accepted with.
    pub kubeconfig: Option<u64>,
    /// When it was accepted.
    pub created_at: Timestamp,
}

/// The configurations of clusters. They are made by [`Clusters::put_cluster`](crate::Clusters::put_cluster).
#[async_trait]
pub trait Configurations: Send + Sync {
    /// One version.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unreadable`].
    async fn configuration(
        &self,
        cluster: &ClusterId,
        version: ConfigurationVersion,
    ) -> Result<Configuration, Error>;

    /// The newest version.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unreadable`].
    async fn newest_configuration(&self, cluster: &ClusterId) -> Result<Configuration, Error>;

    /// The versions of a cluster, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Database`].
    async fn configurations(
        &self,
        cluster: &ClusterId,
        page: &PageRequest,
    ) -> Result<Page<ConfigurationSummary>, Error>;
}
