//! How clusters are, when each is due, and how it was before.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ClusterName, ClusterState, ComponentName, ComponentRevision, ConfigurationVersion, DueReason,
    OperationId, OperationState, Strategy,
};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Error, Page, PageRequest, RowFailure};

/// Identifies one setting of a cluster's due time, so that a slow check cannot wipe out a change that came while it
/// looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueStamp(pub(crate) i64);

/// What a person asked for beyond having the cluster looked at; kept until it is acted upon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Also outside of its maintenance windows, and with component versions that are held back.
    #[serde(default)]
    pub force: bool,
    /// The components to run whether they differ or not.
    #[serde(default)]
    pub components: BTreeSet<ComponentName>,
}

impl Asked {
    /// Whether nothing was asked for.
    pub fn is_nothing(&self) -> bool {
        !self.force && self.components.is_empty()
    }
}

/// How much is in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowMeasures {
    /// Rows in the tables that grow with what is done.
    pub rows: u64,
    /// Rows inserted, changed and deleted since the database was opened; none where that is not known.
    pub written: Option<u64>,
}

/// How a cluster is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterStatus {
    /// The state.
    pub state: ClusterState,
    /// When it came into this state.
    pub since: Timestamp,
    /// The configuration version this status is about.
    pub observed_version: ConfigurationVersion,
    /// Why, for people.
    pub reason: Option<String>,
    /// When it is due and why; none while a reconciliation runs.
    pub due: Option<(Timestamp, DueReason)>,
    /// Which setting of the due time this is.
    pub stamp: DueStamp,
    /// Failed reconciliations of this configuration version.
    pub failures: u32,
    /// Nothing but deletion is done before this moment.
    pub suspended_until: Option<Timestamp>,
    /// What a person asked for and was not acted upon yet.
    pub asked: Asked,
    /// When it was last looked at.
    pub last_check_at: Option<Timestamp>,
}

/// A state that a cluster was in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastStatus {
    /// The state.
    pub state: ClusterState,
    /// The configuration version it was about.
    pub observed_version: ConfigurationVersion,
    /// Its last reason.
    pub reason: Option<String>,
    /// When it began.
    pub since: Timestamp,
    /// When it ended.
    pub until: Timestamp,
}

impl PastStatus {
    /// How long it lasted.
    pub fn duration(&self) -> SignedDuration {
        self.until.duration_since(self.since)
    }
}

/// How one component of a cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentStatus {
    /// The component.
    pub component: ComponentName,
    /// Whether the newest configuration lists it; `false` while it is being removed.
    pub listed: bool,
    /// Its newest operation and how that is; none before the first.
    pub operation: Option<ComponentOperation>,
    /// Its revision; 0 before the first render.
    pub revision: ComponentRevision,
    /// Set when a check found it not ready, or when it failed before and is tried again, with the reason; until it is ready.
    pub not_ready: Option<String>,
}

/// The newest operation of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentOperation {
    /// The operation.
    pub id: OperationId,
    /// What it does.
    pub kind: Strategy,
    /// The configuration version it is about.
    pub version: ConfigurationVersion,
    /// How it is.
    pub state: OperationState,
    /// Since when.
    pub since: Timestamp,
}

/// What happens to a cluster's due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing.
    Keep,
    /// It is due then. Whatever was set since the stamp stays when it is earlier.
    At(Timestamp, DueReason),
    /// It is not due by itself: failed, deleted. Whatever was set since the stamp stays.
    Never,
}

/// What happens to a cluster's count of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCount {
    /// Nothing.
    Keep,
    /// Back to 0.
    Reset,
    /// One more.
    Add,
}

/// A cluster's new status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusChange {
    /// The state; must follow the present one in the table of [`ClusterState`].
    pub state: ClusterState,
    /// The configuration version it is about. A status about an older version than the newest is not recorded.
    pub observed_version: ConfigurationVersion,
    /// Why, for people.
    pub reason: Option<String>,
    /// When the cluster is due next.
    pub due: Due,
    /// The stamp of the due time that was acted upon; none when a reconciliation ends.
    pub stamp: Option<DueStamp>,
    /// Failed reconciliations.
    pub failures: FailureCount,
    /// The components that are not ready, with reasons; the others are. None leaves that as it is.
    pub not_ready: Option<BTreeMap<ComponentName, String>>,
}

impl StatusChange {
    /// `state` about `observed_version`, nothing else touched.
    pub fn new(state: ClusterState, observed_version: ConfigurationVersion) -> Self {
        Self {
            state,
            observed_version,
            reason: None,
            due: Due::Keep,
            stamp: None,
            failures: FailureCount::Keep,
            not_ready: None,
        }
    }
}

/// What recording a status did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// The status changed.
    Changed,
    /// It was so already; at most the due time was written.
    Unchanged,
    /// A newer configuration was accepted meanwhile: nothing was recorded, the cluster is due for that one.
    Outdated,
}

/// A cluster that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueCluster {
    /// The cluster.
    pub id: ClusterId,
    /// Its name.
    pub name: ClusterName,
    /// Whose it is.
    pub tenant: Option<String>,
    /// Its newest configuration.
    pub version: ConfigurationVersion,
    /// Why it is due.
    pub reason: DueReason,
    /// Since when.
    pub due_at: Timestamp,
    /// To be handed back with what was done about it.
    pub stamp: DueStamp,
    /// The API call that made it due.
    pub request_id: Option<String>,
}

/// Some due clusters.
#[derive(Debug, Default)]
pub struct DueBatch {
    /// The most urgent ones: by lane, where an hour of waiting counts as much as the next lane, then by time.
    pub due: Vec<DueCluster>,
    /// Due rows that could not be read.
    pub failed: Vec<RowFailure>,
    /// When the next of the others becomes due; not later than now when there are more than asked for.
    pub next_at: Option<Timestamp>,
}

/// That a cluster was looked at and nothing was found to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckNote {
    /// The cluster.
    pub cluster: ClusterId,
    /// The stamp it was due with; when its due time was set anew since, that stays.
    pub stamp: DueStamp,
    /// When it was looked at.
    pub checked_at: Timestamp,
    /// When to look again.
    pub next_due_at: Timestamp,
}

/// Status and due times of clusters.
#[async_trait]
pub trait Statuses: Send + Sync {
    /// The components of a cluster: those listed by the newest configuration, and those being removed.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Database`]; rows that cannot be read are named in the page, which is the only
    /// one.
    async fn components(&self, cluster: &ClusterId) -> Result<Page<ComponentStatus>, Error>;

    /// The states a cluster was in before the present one, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Database`]; rows that cannot be read are named in the page.
    async fn status_history(
        &self,
        cluster: &ClusterId,
        page: &PageRequest,
    ) -> Result<Page<PastStatus>, Error>;

    /// Clusters due now. One whose run is live is among them when something was asked of it since the run began.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn due_clusters(&self, limit: u32) -> Result<DueBatch, Error>;

    /// Makes a cluster due at `at` (or when its suspension ends, but for deletion), unless it is due earlier.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    async fn make_due(&self, cluster: &ClusterId, at: Timestamp, reason: DueReason) -> Result<(), Error>;

    /// Makes a cluster due now for what a person asks, together with what was asked and not acted upon yet. Beginning a run,
    /// and a check that finds nothing to do, act upon it.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    async fn ask(&self, cluster: &ClusterId, asked: Asked) -> Result<(), Error>;

    /// Suspends a cluster until a moment, or ends the suspension and makes it due now.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    async fn suspend(&self, cluster: &ClusterId, until: Option<Timestamp>) -> Result<(), Error>;

    /// Records how a cluster is: status, history and due time in one transaction. A `Deleted` ends the cluster's
    /// life: its name is free again, its credentials and renders are wiped.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Refused`] with the allowed list for a change that is not in the table.
    async fn record_status(&self, cluster: &ClusterId, change: StatusChange) -> Result<Recorded, Error>;

    /// Records how several clusters are, in one transaction where all of it counts. Each has its own answer, in order.
    ///
    /// # Errors
    /// Of each, as [`Statuses::record_status`].
    async fn record_statuses(&self, changes: Vec<(ClusterId, StatusChange)>) -> Vec<Result<Recorded, Error>> {
        record_each(self, changes).await
    }

    /// Notes many checks in one statement and no history.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn note_checks(&self, notes: &[CheckNote]) -> Result<(), Error>;
}

/// Records them one by one, so that what is refused, or cannot be read, keeps none of the others away.
pub(crate) async fn record_each<S: Statuses + ?Sized>(
    store: &S,
    changes: Vec<(ClusterId, StatusChange)>,
) -> Vec<Result<Recorded, Error>> {
    let mut answers = Vec::with_capacity(changes.len());
    for (cluster, change) in changes {
        answers.push(store.record_status(&cluster, change).await);
    }
    answers
}
