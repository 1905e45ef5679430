//! What a component reconciler is asked to do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_cluster::{Attempt, ComponentTarget, ReadinessRules};
use evenkeel_core::{
    DeleteKind, HookPolicy, InjectedProxies, Namespace, OnConflict, SourceFormat, SourceRef,
};

use crate::{Ledger, RenderedSiblings, Values};

/// One operation on one component of one cluster.
#[derive(Clone)]
pub struct Task {
    /// The component at its cluster.
    pub target: ComponentTarget,
    /// What is to be done with it.
    pub work: Work,
    /// The fence of this attempt and the guard of its lease.
    pub attempt: Attempt,
    /// Where its revision and kept renders come from.
    pub ledger: Arc<dyn Ledger>,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("component", self.target.name())
            .field("work", &self.work)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// What is done with a component.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each running operation, and nearly all of them apply"
)]
pub enum Work {
    /// Make the cluster have what the source gives.
    Apply {
        /// The chart, kustomization or manifests.
        source: SourceRef,
        /// Which of them; found by its files when there is none.
        format: Option<SourceFormat>,
        /// Its values.
        values: Values,
        /// The release namespace.
        namespace: Namespace,
        /// Whether it overrides even explicit namespaces.
        force_namespace: bool,
        /// Whether objects that are not ours may be taken over.
        adopt: bool,
        /// What is done about fields of others.
        on_conflict: OnConflict,
        /// When objects count as ready that the rules of their kinds do not know.
        readiness: ReadinessRules,
        /// How long to wait for readiness; none returns once everything is applied.
        ready_within: Option<Duration>,
        /// Whether the hooks of a chart run.
        hooks: HookPolicy,
        /// How long each of them may take.
        hooks_within: Duration,
        /// The proxies that it injects into pods of others, which are restarted for a new version.
        proxies: Option<InjectedProxies>,
    },
    /// Make the cluster have the definitions of all components, before any of those is applied.
    Define {
        /// The components.
        components: RenderedSiblings,
    },
    /// Delete its objects and wait until they are gone.
    Uninstall {
        /// How long that may take; and how long each of its hooks.
        gone_within: Duration,
        /// Whether the hooks of the deletion run, as kept when it was applied last.
        hooks: HookPolicy,
        /// Whether definitions and data go, too.
        kind: DeleteKind,
        /// Whether to wait until everything is gone; without it a later deletion finishes the work (K10).
        blocking: bool,
        /// Whether finalizers that hold objects of the component's own kinds are taken off in the end.
        strip_finalizers: bool,
    },
    /// Take our labels off its objects and leave them running.
    Orphan,
}

impl Work {
    /// The name of the work, for logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Apply { .. } => "apply",
            Self::Define { .. } => "define",
            Self::Uninstall { .. } => "uninstall",
            Self::Orphan => "orphan",
        }
    }
}
