//! The queue of operations: claim, heartbeat, report.
//!
//! An operation is claimable when its dependencies have succeeded, its time has come, nobody holds it, and no other
//! operation of the same component of the same cluster runs. A claim raises the fence and grants a lease; every later
//! word about the operation carries that fence and is refused once a newer one exists.

use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ComponentName, ConfigurationVersion, DueReason, Fence, Lease, ObjectChange, OperationId,
    OperationState, OperationStateKind, ReconciliationId, Strategy,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The most timeline entries kept per operation; the oldest go first.
pub const TIMELINE_ENTRIES_MAX: usize = 1_000;
/// The longest message of a timeline entry, in bytes; the rest is cut.
pub const TIMELINE_MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// Who wants work, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The name of the process, for people; correctness rests on the fence.
    pub worker: String,
    /// The most operations wanted.
    pub limit: u32,
    /// How long the lease lasts.
    pub lease: Duration,
}

/// How many operations may run at the same time in the whole installation; none bounds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimLimits {
    /// All together.
    pub total: Option<u32>,
    /// Those of one tenant; clusters without one count as one.
    pub per_tenant: Option<u32>,
    /// Those of one component, which one component reconciler does.
    pub per_component: Option<u32>,
}

/// An operation and the right to work on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedOperation {
    /// The operation.
    pub id: OperationId,
    /// The run it belongs to.
    pub reconciliation: ReconciliationId,
    /// The cluster.
    pub cluster: ClusterId,
    /// The component.
    pub component: ComponentName,
    /// What is to be done.
    pub kind: Strategy,
    /// What the whole run is for.
    pub strategy: Strategy,
    /// Why the cluster was due.
    pub due_reason: DueReason,
    /// The configuration version that describes the component.
    pub version: ConfigurationVersion,
    /// Why the operation exists.
    pub cause: String,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The fence and the end of the right.
    pub lease: Lease,
    /// When the run ends as failed whatever is left.
    pub deadline: Timestamp,
    /// The API call that started the run.
    pub request_id: Option<String>,
}

/// The answer to a claim.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// What was claimed, most urgent first.
    pub operations: Vec<ClaimedOperation>,
    /// Operations that ended by themselves on the way: a wait past its deadline, a stop whose worker died, a row that
    /// cannot be read.
    pub settled: Vec<Settled>,
    /// When the next operation can become claimable without a signal: a retry, a lease that may expire. Not later
    /// than now when more has expired than one claim takes.
    pub next_at: Option<Timestamp>,
}

/// Why a running operation was asked to stop at its next object boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A newer configuration took its place.
    Superseded,
    /// A person stopped it, or the run's time was up.
    Cancelled,
}

/// The answer to one heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The operation.
    pub operation: OperationId,
    /// What came of it.
    pub outcome: HeartbeatOutcome,
}

/// Whether the right to work goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeartbeatOutcome {
    /// It does, until then.
    Renewed(Lease),
    /// It does, until then, but the work should stop at the next object boundary and be reported.
    Stop(Lease, StopReason),
    /// It does not: another attempt took over, or the operation ended. Nothing may be written any more.
    Lost,
}

/// How serious a timeline entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// What goes on.
    Info,
    /// Worth a look.
    Warning,
    /// What failed.
    Error,
}

/// One line of what an operation said. Kept encrypted: a message may quote what a server answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEntry {
    /// When.
    pub at: Timestamp,
    /// How serious.
    pub level: Level,
    /// The step that said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The words.
    pub message: String,
}

impl TimelineEntry {
    /// The newest of a report, within the bounds; longer messages are cut between characters.
    pub(crate) fn within_bounds(timeline: &[Self]) -> Vec<Self> {
        let surplus = timeline.len().saturating_sub(TIMELINE_ENTRIES_MAX);
        let mut timeline = timeline.get(surplus..).unwrap_or_default().to_vec();
        for Self { message, .. } in &mut timeline {
            if message.len() > TIMELINE_MESSAGE_BYTES_MAX {
                message.truncate(message.floor_char_boundary(TIMELINE_MESSAGE_BYTES_MAX));
                message.push('…');
            }
        }
        timeline
    }
}

/// What a worker says of its operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The operation.
    pub operation: OperationId,
    /// The fence of the attempt that speaks.
    pub fence: Fence,
    /// How it is: `Running` for progress, `Pending` to give it back unharmed, `Waiting`, `Retrying`, or a final state.
    /// Giving back and waiting cost no attempt.
    pub state: OperationState,
    /// What was done to objects since the last report.
    pub changes: Vec<ObjectChange>,
    /// What was said since the last report.
    pub timeline: Vec<TimelineEntry>,
}

/// What a report, or the end of a wait, led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The operation.
    pub operation: OperationId,
    /// Its run.
    pub reconciliation: ReconciliationId,
    /// Its cluster.
    pub cluster: ClusterId,
    /// Its component.
    pub component: ComponentName,
    /// The state it is in now; the one asked for, unless it was to stop.
    pub state: OperationStateKind,
    /// Components of the same run that were skipped because this one did not succeed.
    pub skipped: Vec<ComponentName>,
    /// Operations of the run that are not final; 0 means that the run can be finished.
    pub open: u32,
}

/// The queue of operations.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Claims the most urgent operations that are ready, in one transaction; before that, leases that have expired
    /// return their operations to the queue and waits that have passed their deadline fail.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn claim(&self, request: &ClaimRequest) -> Result<Claims, Error> {
        self.claim_within(request, &ClaimLimits::default()).await
    }

    /// The same, within limits over all processes. What they keep waiting is claimable when something else has ended.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn claim_within(&self, request: &ClaimRequest, limits: &ClaimLimits) -> Result<Claims, Error>;

    /// Renews the leases of many operations in one statement. The answers come in the order of the question.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn heartbeat(
        &self,
        operations: &[(OperationId, Fence)],
        lease: Duration,
    ) -> Result<Vec<Heartbeat>, Error>;

    /// Takes many reports in one transaction; one that is refused does not touch the others.
    ///
    /// # Errors
    /// [`Error::Database`] for all; for one: [`Error::NotFound`], [`Error::LeaseLost`] when its fence is old or the
    /// operation ended, [`Error::Refused`] when the change of state is not in the table.
    async fn report_all(&self, reports: Vec<Report>) -> Result<Vec<Result<Settled, Error>>, Error>;

    /// Takes one report.
    ///
    /// # Errors
    /// As [`Queue::report_all`].
    async fn report(&self, report: Report) -> Result<Settled, Error> {
        let operation = report.operation.clone();
        match self.report_all(vec![report]).await?.pop() {
            Some(answer) => answer,
            None => Err(Error::not_found("operation", operation)),
        }
    }

    /// Takes one report of an operation that waits for a dependency which is missing at its cluster. It returns to the queue
    /// as soon as another operation of its run has succeeded, or by [`Queue::recheck_missing`], and until its deadline.
    ///
    /// # Errors
    /// As [`Queue::report_all`].
    async fn report_missing(&self, report: Report) -> Result<Settled, Error>;

    /// Returns at most `limit` operations that wait for a missing dependency to the queue: it may have come from elsewhere.
    /// Answers how many.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn recheck_missing(&self, limit: u32) -> Result<u32, Error>;

    /// Returns a waiting operation to the queue: what it waited for has come.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Refused`] when it does not wait.
    async fn resume(&self, operation: &OperationId) -> Result<(), Error>;

    /// Raises a component's fence counter to a number met at the target that this database never issued; the next
    /// claim gets a higher one. A lower number changes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    async fn raise_fence(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        to: Fence,
    ) -> Result<(), Error>;
}
