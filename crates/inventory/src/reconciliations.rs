//! Reconciliations and their operations.

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ComponentName, ConfigurationVersion, DueReason, Fence, ObjectChange, OperationId,
    OperationState, ReconciliationId, ReconciliationState, Strategy,
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
    /// What is to be done. May be empty.
    pub operations: Vec<NewOperation>,
}

/// A run that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The run.
    pub id: ReconciliationId,
    /// Its operations, in the order given.
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
    /// The run it belongs to.
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
    /// inserted, the cluster `reconciling` (or `deleting`) and no longer due.
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

    /// The operations of a run, in the order they were given. One page holds them all.
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
