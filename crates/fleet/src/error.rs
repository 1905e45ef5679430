//! The one error type of this crate: what a request can be refused for, and what can fail beneath it.

use evenkeel_core::{ChangeLoss, ClusterName, ConfigurationVersion, FieldError};

use crate::{BrokerError, SettingError};

/// Why a request to the fleet did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The document is not valid.
    #[error(transparent)]
    Invalid(#[from] evenkeel_core::Error),
    /// A filter that cannot be read.
    #[error("parameter {name}: {problem}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// The name in the path and the one in the document differ.
    #[error("the document is about cluster {document}, the path names {path}: they must be the same")]
    NameMismatch {
        /// The name in the document.
        document: ClusterName,
        /// The name in the path.
        path: ClusterName,
    },
    /// A source that this mothership cannot or may not read.
    #[error("{}", list(.0))]
    Sources(Vec<FieldError>),
    /// The kubeconfig cannot be used.
    #[error("{0}")]
    Kubeconfig(#[source] Box<evenkeel_cluster::Error>),
    /// This mothership cannot read a kubeconfig there.
    #[error("{0}")]
    KubeconfigFrom(FieldError),
    /// The cluster did not answer, or not as it should.
    #[error("cluster {cluster}: {problem}")]
    Target {
        /// The cluster.
        cluster: ClusterName,
        /// What kept it from being asked.
        problem: String,
    },
    /// A rollback to the version that is the newest already, or does not exist.
    #[error("cluster {cluster} cannot go back to version {to}: {problem}")]
    Rollback {
        /// The cluster.
        cluster: ClusterName,
        /// The version asked for.
        to: ConfigurationVersion,
        /// Why not.
        problem: String,
    },
    /// A change that loses more than its sender says.
    #[error("cluster {cluster} is not changed without consent: {}", losing(losses))]
    Consent {
        /// The cluster.
        cluster: ClusterName,
        /// What would be lost.
        losses: Vec<ChangeLoss>,
    },
    /// Consent to something that is not asked.
    #[error("cluster {cluster}: {problem}")]
    NoQuestion {
        /// The cluster.
        cluster: ClusterName,
        /// What is asked instead.
        problem: String,
    },
    /// Something that a suspension keeps from being done.
    #[error("cluster {0} is suspended: resume it first")]
    Suspended(ClusterName),
    /// The inventory refused or failed.
    #[error(transparent)]
    Inventory(#[from] evenkeel_inventory::Error),
    /// A setting that would not work.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The component reconciler could not be made.
    #[error(transparent)]
    Component(#[from] evenkeel_component::Error),
    /// The broker's list cannot be had.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// Another process compares the inventory with the broker's list right now.
    #[error("the inventory is being compared with the broker's list already: try again later")]
    SyncRunning,
    /// Metrics could not be registered or written.
    #[error(transparent)]
    Telemetry(#[from] evenkeel_telemetry::Error),
}

fn losing(losses: &[ChangeLoss]) -> String {
    let what: Vec<&str> = losses.iter().map(|loss| loss.what.as_str()).collect();
    let consent: Vec<&str> = losses.iter().map(|loss| loss.consent.as_str()).collect();
    format!(
        "{}; if that is meant, send `consent: [{}]` along",
        what.join("; "),
        consent.join(", ")
    )
}

fn list(fields: &[FieldError]) -> String {
    fields
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
