//! The one error type of this crate.

use evenkeel_core::{ComponentName, SourceFormat};

use crate::LedgerError;

/// Why an operation cannot go on. Says which component; never a value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source cannot be used.
    #[error(transparent)]
    Source(#[from] evenkeel_source::Error),
    /// The values cannot be used.
    #[error("the values of component {component} cannot be used: {problem}")]
    Values {
        /// The component.
        component: ComponentName,
        /// What is wrong, and where.
        problem: String,
    },
    /// The chart does not render.
    #[error("component {component} does not render: {source}")]
    Render {
        /// The component.
        component: ComponentName,
        /// Helm's words, with file, line and column.
        #[source]
        source: Box<evenkeel_chart::Error>,
    },
    /// A component of a format without values has some.
    #[error("component {component} is made from {format}, which takes no values: remove them")]
    NoValues {
        /// The component.
        component: ComponentName,
        /// What its source holds.
        format: SourceFormat,
    },
    /// A kustomization where no program builds them.
    #[error(
        "component {component} is a kustomization, and no program is set that builds it: name kustomize with \
         --kustomize or EVENKEEL_KUSTOMIZE"
    )]
    NoKustomize {
        /// The component.
        component: ComponentName,
    },
    /// A kustomization that does not build.
    #[error("the kustomization of component {component} does not build: {problem}")]
    Kustomize {
        /// The component.
        component: ComponentName,
        /// The program's words, within bounds.
        problem: String,
        /// Whether the program or the machine is at fault, and not the kustomization.
        transient: bool,
    },
    /// The cluster's version is none that charts can be told.
    #[error("the version of the cluster cannot be used: {0}")]
    Capabilities(#[source] Box<evenkeel_chart::Error>),
    /// The target refused, failed, or cannot be reached.
    #[error(transparent)]
    Cluster(#[from] evenkeel_cluster::Error),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A render that is to be kept cannot be written.
    #[error("the render of component {component} cannot be kept: {problem}")]
    Keep {
        /// The component.
        component: ComponentName,
        /// What is wrong.
        problem: String,
    },
    /// The process ends.
    #[error("cut off: the process is ending")]
    Ending,
    /// The pipeline itself is at fault.
    #[error("the pipeline is not valid: {0}")]
    Pipeline(#[from] evenkeel_steps::Error),
}
