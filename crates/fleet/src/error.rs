//! The one error type of this crate: what a request can be refused for, and what can fail beneath it.

use evenkeel_core::{ClusterName, ConfigurationVersion, FieldError};

use crate::SettingError;

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
    /// The inventory refused or failed.
    #[error(transparent)]
    Inventory(#[from] evenkeel_inventory::Error),
    /// A setting that would not work.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The component reconciler could not be made.
    #[error(transparent)]
    Component(#[from] evenkeel_component::Error),
    /// Metrics could not be registered or written.
    #[error(transparent)]
    Telemetry(#[from] evenkeel_telemetry::Error),
}

fn list(fields: &[FieldError]) -> String {
    fields
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
