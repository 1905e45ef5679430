//! Reconciliations and their operations.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ClusterState, ComponentName, ConfigurationVersion, DueReason, Fence, ObjectChange,
    OperationId, OperationState, ReconciliationId, ReconciliationState, Strategy,
};
use jiff::Timestamp;

use crate::{DueStamp, Error, Page, PageRequest, Recorded, StatusChange, StopReason, TimelineEntry};

/// The most operations of one reconciliation; a configuration may list 1,000 components, each moved to another
/// namespace.
pub const OPERATIONS_MAX: usize = 2_000;

/// One operation to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOperation {
    /// The component.
    pub component: ComponentName,
    /// What is to be done with it.
    pub kind: Strategy,
    /// The configuration version that describes the component; an older one for a component that is no longer listed.
    pub version: ConfigurationVersion,
    /// Why, for people: what a check found.
    pub cause: String,
    /// Positions, in the reconciliation's list, of the operations that must have succeeded first.
    pub depends_on: Vec<usize>,
    /// An operation of the run that is superseded which does the same with equal inputs: it goes on as this one, with its
    /// row and id. When it has ended meanwhile, or was told to stop, a new one is made.
    pub carries: Option<OperationId>,
}

/// Components that are known to fail when a run begins that tries them again. The cluster stays degraded until they have
/// recovered (K48).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// Why the cluster is degraded, for people.
    pub reason: String,
    /// Each of them with its own reason; told as not ready until its operation succeeds.
    pub components: BTreeMap<ComponentName, String>,
}

/// One run to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReconciliation {
    /// The cluster.
    pub cluster: ClusterId,
    /// The configuration version it is about.
    pub version: ConfigurationVersion,
    /// What it is for.
    pub strategy: Strategy,
    /// Why the cluster was due; the lane its operations queue in.
    pub reason: DueReason,
    /// When it ends as failed whatever is left.
    pub deadline: Timestamp,
    /// The stamp the cluster was due with: the run begins only if nobody acted on it meanwhile. None does not ask.
    pub stamp: Option<DueStamp>,
    /// Whether a running one is superseded; else it makes the call fail.
    pub supersede: bool,
    /// What failed before it and is tried again by it; none where nothing did.
    pub failing: Option<Failing>,
    /// What is to be done. May be empty.
    pub operations: Vec<NewOperation>,
}

impl NewReconciliation {
    /// How its cluster is once it has begun.
    pub(crate) fn state(&self) -> ClusterState {
        match self.failing {
            _ if self.strategy == Strategy::Delete => ClusterState::Deleting,
            Some(_) => ClusterState::Degraded,
            None => ClusterState::Reconciling,
        }
    }

    /// Which components are told as not ready from then on; none where that stays as it is.
    pub(crate) fn not_ready(&self) -> Option<Cow<'_, BTreeMap<ComponentName, String>>> {
        match &self.failing {
            Some(failing) => Some(Cow::Borrowed(&failing.components)),
            // What was not ready before goes; it does not tell why something could not be deleted.
            None if self.strategy == Strategy::Delete => Some(Cow::default()),
            None => None,
        }
    }

    /// Refuses positions that do not exist, cycles and too many operations.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refused = |reason: String| {
            Err(Error::Plan {
                cluster: self.cluster.clone(),
                reason,
            })
        };
        let count = self.operations.len();
        if count > OPERATIONS_MAX {
            return refused(format!(
                "there are {count}, at most {OPERATIONS_MAX} are accepted"
            ));
        }
        let mut carried = BTreeSet::new();
        for (position, operation) in self.operations.iter().enumerate() {
            if let Some(id) = &operation.carries
                && !carried.insert(id)
            {
                return refused(format!(
                    "operation {position} carries {id} over, and so does another"
                ));
            }
        }
        let mut waiting: Vec<BTreeSet<usize>> = Vec::with_capacity(count);
        for (position, operation) in self.operations.iter().enumerate() {
            if let Some(missing) = operation.depends_on.iter().find(|other| **other >= count) {
                return refused(format!(
                    "operation {position} depends on {missing}, which does not exist"
                ));
            }
            waiting.push(operation.depends_on.iter().copied().collect());
        }
        // Takes away what waits for nothing until nothing is left, or only a cycle.
        let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (position, edges) in waiting.iter().enumerate() {
            for edge in edges {
                if let Some(list) = dependents.get_mut(*edge) {
                    list.push(position);
                }
            }
        }
        let mut ready: Vec<usize> = (0..count)
            .filter(|position| waiting.get(*position).is_some_and(BTreeSet::is_empty))
            .collect();
        let mut ordered = 0;
        while let Some(position) = ready.pop() {
            ordered += 1;
            for dependent in dependents.get(position).into_iter().flatten() {
                if let Some(edges) = waiting.get_mut(*dependent)
                    && edges.remove(&position)
                    && edges.is_empty()
                {
                    ready.push(*dependent);
                }
            }
        }
        if ordered < count {
            return refused("their dependencies have a cycle".to_owned());
        }
        Ok(())
    }
}

/// A run that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The run.
    pub id: ReconciliationId,
    /// Its operations, in the order given; one that was carried over under the id it had.
    pub operations: Vec<OperationId>,
    /// The run it superseded.
    pub superseded: Option<ReconciliationId>,
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// `Succeeded` needs all operations to be final; `Failed` (the deadline passed) and `Cancelled` stop what is not.
    pub state: ReconciliationState,
    /// Why, for people.
    pub reason: Option<String>,
    /// The cluster's status that follows, recorded in the same transaction.
    pub status: StatusChange,
}

/// One run over one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconciliation {
    /// Its id.
    pub id: ReconciliationId,
    /// The configuration version it is about.
    pub version: ConfigurationVersion,
    /// What it is for.
    pub strategy: Strategy,
    /// Why the cluster was due.
    pub due_reason: DueReason,
    /// How it is.
    pub state: ReconciliationState,
    /// Why, for people.
    pub reason: Option<String>,
    /// When it began.
    pub created_at: Timestamp,
    /// When it ends as failed whatever is left.
    pub deadline: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// One component inside a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its id.
    pub id: OperationId,
    /// The run it belongs to; a later one than asked for, when that one has carried it over.
    pub reconciliation: ReconciliationId,
    /// The component.
    pub component: ComponentName,
    /// What it does.
    pub kind: Strategy,
    /// The configuration version that describes the component.
    pub version: ConfigurationVersion,
    /// Why it exists.
    pub cause: String,
    /// How it is.
    pub state: OperationState,
    /// How many attempts were begun.
    pub attempt: u32,
    /// The fence of the newest attempt.
    pub fence: Fence,
    /// Who holds it, and until when.
    pub lease: Option<(String, Timestamp)>,
    /// Set when it runs and was asked to stop.
    pub stop: Option<StopReason>,
    /// The operations that must have succeeded first.
    pub depends_on: Vec<OperationId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was first claimed.
    pub started_at: Option<Timestamp>,
    /// When it reached its final state.
    pub finished_at: Option<Timestamp>,
}

/// Runs over clusters.
#[async_trait]
pub trait Reconciliations: Send + Sync {
    /// Begins a run, in one transaction: the running one superseded when so asked, the new one and its operations
    /// inserted or carried over, the cluster `reconciling` (or `deleting`) and no longer due. An operation whose component
    /// has one that still runs waits for its end, by the run's deadline.
    ///
    /// # Errors
    /// [`Error::ReconciliationRunning`]; [`Error::Outdated`] when somebody acted on the stamp or a
    /// newer version was accepted;
    /// [`Error::BeingDeleted`] when the strategy is not `Delete` but the cluster is to go; [`Error::NotFound`] for
    /// cluster or version; [`Error::Plan`] for positions that do not exist, cycles, or too many operations.
    async fn begin_reconciliation(&self, new: NewReconciliation) -> Result<Begun, Error>;

    /// Ends a run and records the cluster's status. Answers what recording the status did.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Refused`] when it has ended otherwise already (in the same way changes nothing);
    /// [`Error::OperationsOpen`].
    async fn finish_reconciliation(&self, id: &ReconciliationId, finish: Finish) -> Result<Recorded, Error>;

    /// One run.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unreadable`].
    async fn reconciliation(&self, id: &ReconciliationId) -> Result<Reconciliation, Error>;

    /// The run that is live on a cluster, if any.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    async fn running_reconciliation(&self, cluster: &ClusterId) -> Result<Option<Reconciliation>, Error>;

    /// The components of a cluster that a worker is at, of whichever run: one that was told to stop may still write.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn worked_on(&self, cluster: &ClusterId) -> Result<BTreeSet<ComponentName>, Error>;

    /// The runs of a cluster, newest first.
    ///
    /// # Errors
    /// [`Error::Database`]; rows that cannot be read are named in the page.
    async fn reconciliations(
        &self,
        cluster: &ClusterId,
        page: &PageRequest,
    ) -> Result<Page<Reconciliation>, Error>;

    /// Running ones whose operations are all final: to be finished after a restart. At most `limit`.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn settled_reconciliations(&self, limit: u32) -> Result<Vec<ReconciliationId>, Error>;

    /// Running ones past their deadline. At most `limit`.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn overdue_reconciliations(&self, limit: u32) -> Result<Vec<ReconciliationId>, Error>;

    /// The operations of a run, in the order they were given, then those that a later run has carried over. One page
    /// holds them all.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Database`]; rows that cannot be read are named in the page.
    async fn operations(&self, id: &ReconciliationId) -> Result<Page<Operation>, Error>;

    /// One operation.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unreadable`].
    async fn operation(&self, id: &OperationId) -> Result<Operation, Error>;

    /// What an operation did to objects, in order (K27).
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unreadable`].
    async fn operation_changes(&self, id: &OperationId) -> Result<Vec<ObjectChange>, Error>;

    /// What an operation said, oldest first; the newest
    /// [`TIMELINE_ENTRIES_MAX`](crate::TIMELINE_ENTRIES_MAX) are kept.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unreadable`].
    async fn operation_timeline(&self, id: &OperationId) -> Result<Vec<TimelineEntry>, Error>;
}
