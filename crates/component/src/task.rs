//! What a component reconciler is asked to do.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_cluster::{Attempt, ComponentTarget};
use evenkeel_core::{Namespace, ObjectRef, SourceRef};

use crate::{Ledger, Values};

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
pub enum Work {
    /// Make the cluster have what the chart renders.
    Apply {
        /// The chart.
        source: SourceRef,
        /// Its values.
        values: Values,
        /// The release namespace.
        namespace: Namespace,
        /// Whether it overrides even explicit namespaces.
        force_namespace: bool,
        /// Whether objects that are not ours may be taken over.
        adopt: bool,
        /// Objects that moved to another component, which are not to be pruned here.
        moved_away: BTreeSet<ObjectRef>,
        /// How long to wait for readiness; none returns once everything is applied.
        ready_within: Option<Duration>,
    },
    /// Delete its objects and wait until they are gone.
    Uninstall {
        /// How long that may take.
        gone_within: Duration,
    },
    /// Take our labels off its objects and leave them running.
    Orphan,
}

impl Work {
    /// The name of the work, for logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Apply { .. } => "apply",
            Self::Uninstall { .. } => "uninstall",
            Self::Orphan => "orphan",
        }
    }
}
