//! One look at one due cluster: what is asked for, what is there, and what follows from the difference.
//!
//! Nothing is written to the cluster, and what is as it should be costs reads alone. Whatever is found, the cluster is no
//! longer due afterwards as it was before: a reconciliation runs, or it is due again at another moment.

mod deletion;
pub(crate) mod findings;
pub(crate) mod former;
mod gate;
mod supersede;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{
    ClusterState, ComponentName, ConfigurationVersion, DueReason, OperationStateKind, ReconciliationState,
    Strategy, Transition as _,
};
use evenkeel_inventory::{
    self as inventory, CheckNote, Cluster, Configuration, Due, DueCluster, Failing, FailureCount, Finish,
    NewReconciliation, Operation, Reconciliation, Recorded, StatusChange,
};
use evenkeel_telemetry::CancellationToken;
use jiff::Timestamp;

use crate::batch::Ending;
use crate::fleet::Inner;
use crate::planner::Planned;
use crate::requests::warn_of;
use crate::targets::Trouble;
use crate::{Settings, pause, phase};

/// When a cluster whose components are as they should be, but not ready, is looked at again; sooner than one that is
/// ready, since it is on its way to be, or a person waits for it.
const UNREADY_AGAIN: Duration = Duration::from_secs(15);

/// Looks at one due cluster and sees to what follows.
///
/// # Errors
/// Only what the inventory fails with: then the cluster is still due.
pub(crate) async fn look(inner: &Inner, due: DueCluster) -> Result<(), inventory::Error> {
    let cluster = match inner.store.cluster(&due.id).await {
        Err(inventory::Error::NotFound { .. }) => return Ok(()),
        cluster => cluster?,
    };
    if cluster.deleted_at.is_some() {
        return Ok(());
    }
    let running = Running::of(inner, &cluster).await?;
    let look = Look {
        inner,
        due,
        cluster,
        running,
    };
    if look.cluster.deletion.is_some() {
        return look.at_deletion().await;
    }
    if let Some(until) = look
        .cluster
        .status
        .suspended_until
        .filter(|until| *until > look.now())
    {
        return look.leave_until(Due::At(until, look.due.reason)).await;
    }
    let configuration = match inner.store.newest_configuration(&look.cluster.id).await {
        Err(error @ inventory::Error::Unreadable { .. }) => {
            return look.cannot(look.cluster.version, error.into()).await;
        }
        configuration => configuration?,
    };
    if look.is_left_alone(&configuration) {
        return look.note().await;
    }
    if look.is_given_up(&configuration) {
        return look.leave_until(Due::Never).await;
    }
    if look.is_put_off(configuration.version).await? {
        return Ok(());
    }
    if look.is_being_done(&configuration) {
        // One that fails meanwhile makes the cluster due again.
        return look.leave_until(Due::Never).await;
    }
    look.at_configuration(configuration).await
}

/// The live reconciliation of a cluster and what of it is not done.
struct Running {
    run: Reconciliation,
    /// Its operations that are not final.
    open: Vec<Operation>,
    /// Components with an operation that is not final.
    busy: BTreeSet<ComponentName>,
    /// Whether one of them waits for its next try.
    retrying: bool,
    /// Whether one of them has failed already and none is at its first try: it may go on like this for long.
    stuck: bool,
}

impl Running {
    async fn of(inner: &Inner, cluster: &Cluster) -> Result<Option<Self>, inventory::Error> {
        let Some(run) = inner.store.running_reconciliation(&cluster.id).await? else {
            return Ok(None);
        };
        let operations = inner.store.operations(&run.id).await?;
        warn_of(&operations.failed);
        let open = operations
            .items
            .iter()
            .filter(|operation| operation.finished_at.is_none());
        // What waits for a person waits for long, too.
        let failed_before = |operation: &Operation| {
            let held = matches!(
                operation.state.kind(),
                OperationStateKind::Retrying | OperationStateKind::Waiting
            );
            held || operation.attempt > 1
        };
        let first_try = |operation: &Operation| {
            operation.state.kind() == OperationStateKind::Running && operation.attempt <= 1
        };
        Ok(Some(Self {
            stuck: open.clone().any(failed_before) && !open.clone().any(first_try),
            busy: open
                .clone()
                .map(|operation| operation.component.clone())
                .collect(),
            retrying: open
                .clone()
                .any(|operation| operation.state.kind() == OperationStateKind::Retrying),
            open: open.cloned().collect(),
            run,
        }))
    }
}

/// A look in progress.
pub(crate) struct Look<'a> {
    pub(crate) inner: &'a Inner,
    due: DueCluster,
    pub(crate) cluster: Cluster,
    running: Option<Running>,
}

impl Look<'_> {
    fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// The settings that count for the cluster.
    fn settings(&self) -> Arc<Settings> {
        self.inner.settings_of(&self.cluster)
    }

    /// Whether a reconciliation for this very configuration runs already, and is to be left to it. One that waits for
    /// its next try is begun anew when a person asks for it; one that is stuck is looked past at the usual times.
    fn is_being_done(&self, configuration: &Configuration) -> bool {
        self.running.as_ref().is_some_and(|running| {
            let asked_for = running.retrying && self.due.reason == DueReason::Change;
            let passed_by = running.stuck && self.due.reason != DueReason::Change;
            // What was asked for by name has to be looked for in what runs.
            let named = !self.cluster.status.asked.components.is_empty();
            running.run.version == configuration.version && !asked_for && !passed_by && !named
        })
    }

    /// Whether all that differs is in the hands of the reconciliation that runs for this very configuration.
    fn is_in_good_hands(&self, version: ConfigurationVersion, planned: &Planned) -> bool {
        self.due.reason != DueReason::Change
            && self.running.as_ref().is_some_and(|running| {
                let operations = &planned.operations;
                running.run.version == version
                    && operations
                        .iter()
                        .filter(|operation| !operation.component.is_definitions())
                        .all(|operation| running.busy.contains(&operation.component))
            })
    }

    /// Changes nothing but when the cluster is due.
    async fn leave_until(&self, due: Due) -> Result<(), inventory::Error> {
        self.leave(due, self.cluster.status.reason.clone()).await
    }

    /// Changes nothing but when the cluster is due, and what is told of it.
    async fn leave(&self, due: Due, reason: Option<String>) -> Result<(), inventory::Error> {
        let status = &self.cluster.status;
        let change = StatusChange {
            reason,
            due,
            stamp: Some(self.due.stamp),
            ..StatusChange::new(status.state, status.observed_version)
        };
        self.record(change).await
    }

    /// Looks at a cluster that should have what `configuration` lists.
    async fn at_configuration(&self, configuration: Configuration) -> Result<(), inventory::Error> {
        let version = configuration.version;
        let found = tokio::time::timeout(self.settings().check_timeout, self.findings(&configuration)).await;
        let found = found.unwrap_or(Err(Trouble::Slow(self.settings().check_timeout)));
        match found {
            Err(Trouble::Inventory(error)) if error.is_transient() => Err(error),
            Err(trouble) => self.cannot(version, trouble).await,
            Ok(mut findings) => {
                let watch = findings.watch.take();
                let failing = std::mem::take(&mut findings.failing);
                let asked = &self.cluster.status.asked.components;
                let findings = findings.with(asked, &configuration);
                match findings.into_plan(self, &configuration).await {
                    Err(Trouble::Inventory(error)) => Err(error),
                    Err(trouble) => self.cannot(version, trouble).await,
                    Ok(Ok(planned)) if self.is_in_good_hands(version, &planned) => {
                        tracing::debug!("left to the reconciliation that runs");
                        self.note().await
                    }
                    Ok(Ok(planned)) if self.is_held(&configuration, &planned).await? => Ok(()),
                    Ok(Ok(planned)) => self.begin(version, planned, failing).await,
                    Ok(Err(unready)) => {
                        if let Some((target, baseline)) = watch
                            && self.inner.instances.is_ours(&self.cluster.id)
                        {
                            self.inner.watches.watch(&self.cluster.id, &target, baseline);
                        }
                        self.is_steady(version, unready).await
                    }
                }
            }
        }
    }

    /// Whether live watches may stand in for asking the cluster: only at its usual time, when nothing is under way.
    pub(crate) fn may_be_vouched_for(&self, target: &evenkeel_cluster::Cluster) -> bool {
        let is_usual = self.due.reason == DueReason::Periodic && self.running.is_none();
        let may = self.inner.watches.may_vouch(&self.cluster.id, target);
        is_usual && may
    }

    /// Nothing is to be done; `unready` components are as they should be and not ready.
    async fn is_steady(
        &self,
        version: ConfigurationVersion,
        unready: Steady,
    ) -> Result<(), inventory::Error> {
        let now = self.now();
        let Steady {
            unready,
            known_unready,
        } = unready;
        if unready.is_empty() {
            let next = phase::next_check(&self.cluster.id, self.settings().check_interval, now);
            let status = &self.cluster.status;
            let known = status.state == ClusterState::Ready
                && status.observed_version == version
                && status.reason.is_none()
                && !known_unready
                && self.running.is_none();
            if known {
                tracing::debug!("nothing to do");
                return self.note().await;
            }
            let change = StatusChange {
                due: Due::At(next, DueReason::Periodic),
                stamp: Some(self.due.stamp),
                failures: FailureCount::Reset,
                not_ready: Some(BTreeMap::new()),
                ..StatusChange::new(ClusterState::Ready, version)
            };
            return self.settle(version, change).await;
        }
        let again = pause::after(now, UNREADY_AGAIN.min(self.settings().check_interval));
        let change = StatusChange {
            reason: unready_reason(&unready),
            due: Due::At(again, DueReason::Retry),
            stamp: Some(self.due.stamp),
            not_ready: Some(unready),
            ..StatusChange::new(ClusterState::Degraded, version)
        };
        self.settle(version, change).await
    }

    /// Notes that all is as it was; together with other clusters' notes.
    async fn note(&self) -> Result<(), inventory::Error> {
        let checked_at = self.now();
        let next_due_at = phase::next_check(&self.cluster.id, self.settings().check_interval, checked_at);
        let note = CheckNote {
            cluster: self.cluster.id.clone(),
            stamp: self.due.stamp,
            checked_at,
            next_due_at,
        };
        match self.inner.notes.write(note.clone()).await {
            Ok(Ok(())) => Ok(()),
            // What failed for many may work for one, and says what is wrong.
            Ok(Err(_)) | Err(_) => self.inner.store.note_checks(&[note]).await,
        }
    }

    /// The cluster could not be looked at.
    async fn cannot(&self, version: ConfigurationVersion, trouble: Trouble) -> Result<(), inventory::Error> {
        let present = &self.cluster.status;
        let now = self.now();
        let may_fail = present.state.check(ClusterState::Failed).is_ok();
        let (state, due) = if trouble.needs_change() && may_fail {
            (ClusterState::Failed, Due::Never)
        } else {
            let since = match present.state {
                ClusterState::Degraded => {
                    Duration::try_from(now.duration_since(present.since)).unwrap_or_default()
                }
                _ => Duration::ZERO,
            };
            let pause = pause::backoff_since(&self.settings(), since, self.inner.jitter());
            let pause = pause.max(trouble.asked_pause().unwrap_or_default());
            (
                ClusterState::Degraded,
                Due::At(pause::after(now, pause), DueReason::Retry),
            )
        };
        let change = StatusChange {
            reason: Some(trouble.to_string()),
            due,
            stamp: Some(self.due.stamp),
            ..StatusChange::new(state, version)
        };
        self.record(change).await
    }

    /// Begins the reconciliation that was planned. Of the components that are known to be `failing`, those that it tries again
    /// keep the cluster degraded until they have recovered.
    async fn begin(
        &self,
        version: ConfigurationVersion,
        mut planned: Planned,
        mut failing: BTreeMap<ComponentName, String>,
    ) -> Result<(), inventory::Error> {
        self.carry(&mut planned).await?;
        let count = planned.operations.len();
        let carried = planned
            .operations
            .iter()
            .filter(|operation| operation.carries.is_some())
            .count();
        let strategy = planned.strategy;
        failing.retain(|failing, _| {
            let mut operations = planned.operations.iter();
            operations.any(|operation| operation.component == *failing)
        });
        let new = NewReconciliation {
            failing: unready_reason(&failing).map(|reason| Failing {
                reason,
                components: failing,
            }),
            ..self.reconciliation(version, planned)
        };
        let begun = self.inner.store.begin_reconciliation(new).await;
        let begun = match begun {
            Ok(begun) => begun,
            Err(error @ inventory::Error::Plan { .. }) if self.cluster.deletion.is_some() => {
                return self.cannot_delete(version, &error.into()).await;
            }
            Err(error @ inventory::Error::Plan { .. }) => return self.cannot(version, error.into()).await,
            Err(error) => return overtaken(error),
        };
        let superseded = begun.superseded.map(|id| id.to_string());
        tracing::info!(
            reconciliation_id = %begun.id,
            version = version.0,
            strategy = strategy.as_str(),
            operations = count,
            carried,
            reason = self.due.reason.as_str(),
            superseded,
            "reconciliation begins"
        );
        Ok(())
    }

    /// Records how the cluster is, nothing being left to do. An older reconciliation that still runs makes place.
    async fn settle(
        &self,
        version: ConfigurationVersion,
        change: StatusChange,
    ) -> Result<(), inventory::Error> {
        if self.running.is_none() {
            return self.record(change).await;
        }
        let planned = Planned {
            strategy: Strategy::Repair,
            operations: Vec::new(),
        };
        self.settle_with(version, planned, change).await
    }

    /// An empty run takes the place of the one that runs, and ends at once with `change`.
    async fn settle_with(
        &self,
        version: ConfigurationVersion,
        planned: Planned,
        change: StatusChange,
    ) -> Result<(), inventory::Error> {
        let new = NewReconciliation {
            // What is told in a moment is told at once, so that nobody sees anything else in between.
            failing: (change.state == ClusterState::Degraded).then(|| Failing {
                reason: change.reason.clone().unwrap_or_default(),
                components: change.not_ready.clone().unwrap_or_default(),
            }),
            ..self.reconciliation(version, planned)
        };
        let begun = match self.inner.store.begin_reconciliation(new).await {
            Ok(begun) => begun,
            Err(error) => return overtaken(error),
        };
        let finish = Finish {
            state: ReconciliationState::Succeeded,
            reason: None,
            status: StatusChange {
                stamp: None,
                ..change
            },
        };
        self.inner
            .store
            .finish_reconciliation(&begun.id, finish)
            .await
            .map(drop)
    }

    fn reconciliation(&self, version: ConfigurationVersion, planned: Planned) -> NewReconciliation {
        NewReconciliation {
            cluster: self.cluster.id.clone(),
            version,
            strategy: planned.strategy,
            reason: self.due.reason,
            deadline: pause::after(self.now(), self.settings().deadline),
            stamp: Some(self.due.stamp),
            supersede: self.running.is_some(),
            failing: None,
            operations: planned.operations,
        }
    }

    async fn record(&self, change: StatusChange) -> Result<(), inventory::Error> {
        let (state, reason) = (change.state, change.reason.clone());
        // Together with what other looks found; each transaction is one wait for the disk.
        let id = self.cluster.id.clone();
        let recorded = match self.inner.statuses.write((id, change.clone())).await {
            Ok(recorded) => recorded?,
            Err(Ending) => self.inner.store.record_status(&self.cluster.id, change).await?,
        };
        match recorded {
            Recorded::Changed => tracing::info!(state = state.as_str(), reason, "status"),
            Recorded::Unchanged => tracing::debug!(state = state.as_str(), reason, "status stays"),
            Recorded::Outdated => tracing::debug!("the cluster changed while it was looked at"),
        }
        Ok(())
    }
}

/// A cluster without anything to do.
struct Steady {
    /// What is not ready, and why.
    unready: BTreeMap<ComponentName, String>,
    /// Whether an earlier check had found something not ready.
    known_unready: bool,
}

/// Somebody acted on the cluster meanwhile: it is due again by that.
fn overtaken(error: inventory::Error) -> Result<(), inventory::Error> {
    match error {
        inventory::Error::Outdated(_)
        | inventory::Error::ReconciliationRunning { .. }
        | inventory::Error::BeingDeleted(_)
        | inventory::Error::NotFound { .. } => {
            tracing::debug!(%error, "the cluster changed while it was looked at");
            Ok(())
        }
        error => Err(error),
    }
}

fn unready_reason(unready: &BTreeMap<ComponentName, String>) -> Option<String> {
    let (component, reason) = unready.first_key_value()?;
    Some(crate::bookkeeper::component_reason(
        component,
        reason,
        unready.len() - 1,
    ))
}

/// Writes the notes of checks that found nothing to do, many at once.
///
/// # Errors
/// None.
pub(crate) async fn write_notes(
    inner: Arc<Inner>,
    stop: CancellationToken,
) -> Result<(), std::convert::Infallible> {
    let write = |notes: Vec<CheckNote>| {
        let store = Arc::clone(&inner.store);
        async move {
            let written = store.note_checks(&notes).await.map_err(|error| error.to_string());
            vec![written; notes.len()]
        }
    };
    inner.notes.serve(stop, write).await;
    Ok(())
}

/// Writes what looks found, many at once.
///
/// # Errors
/// None.
pub(crate) async fn write_statuses(
    inner: Arc<Inner>,
    stop: CancellationToken,
) -> Result<(), std::convert::Infallible> {
    let write = |changes| {
        let store = Arc::clone(&inner.store);
        async move { store.record_statuses(changes).await }
    };
    inner.statuses.serve(stop, write).await;
    Ok(())
}
