//! From the outcomes of operations to the status of clusters.
//!
//! A failing component shows at once: the cluster is degraded while its other operations go on. When the last operation
//! has ended, the reconciliation ends with it, and the cluster is ready, due again, or given up. What a process that died
//! left undone, and what has run out of time, is finished by a service.

mod verdict;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{
    ClusterId, ClusterState, ComponentName, DueReason, OperationStateKind, ReconciliationId,
    ReconciliationState, Strategy,
};
use evenkeel_inventory::{
    self as inventory, Due, Operation, Reconciliation, Recorded, Settled, StatusChange,
};
use evenkeel_telemetry::CancellationToken;
use jiff::Timestamp;

use crate::Settings;
use crate::fleet::Inner;
use crate::requests::warn_of;
use crate::{consent, pause, phase};

use verdict::{Ended, Standing, Timing, ended, overdue, standing};
pub(crate) use verdict::{FORGET_HINT, component_reason, deletion_failed};

/// How often reconciliations past their deadline, or left by a process that died, are looked for.
const BACKSTOP: Duration = Duration::from_secs(10);
/// How many operations look again for a missing dependency at a time; each then waits for its turn at the end of the queue.
const RECHECKED_TOGETHER: u32 = 100;
/// How many are finished at a time.
const FINISHED_TOGETHER: u32 = 100;

/// Sees to what an operation's new state means for its reconciliation and cluster.
pub(crate) async fn settled(inner: &Inner, settled: &Settled) {
    let done = async {
        if settled.open == 0 {
            return finish(inner, &settled.reconciliation).await;
        }
        match settled.state {
            OperationStateKind::Failed | OperationStateKind::Retrying | OperationStateKind::Waiting => {
                stand(inner, &settled.reconciliation).await
            }
            OperationStateKind::Succeeded => {
                // Only what was told to fail has to be told to go on.
                let status = inner.store.cluster(&settled.cluster).await?.status;
                let failing = match status.state {
                    ClusterState::Degraded => true,
                    ClusterState::Deleting | ClusterState::Reconciling => status.reason.is_some(),
                    _ => false,
                };
                if failing {
                    stand(inner, &settled.reconciliation).await?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    };
    if let Err(error) = done.await {
        // The service finishes what is left.
        tracing::error!(reconciliation_id = %settled.reconciliation, %error, "bookkeeping failed");
    }
}

/// A reconciliation with its operations; none when it has ended.
async fn read(
    inner: &Inner,
    id: &ReconciliationId,
) -> Result<Option<(Reconciliation, Vec<Operation>)>, inventory::Error> {
    let run = inner.store.reconciliation(id).await?;
    if run.state != ReconciliationState::Running {
        return Ok(None);
    }
    let operations = inner.store.operations(id).await?;
    warn_of(&operations.failed);
    Ok(Some((run, operations.items)))
}

/// Records how a cluster is while its reconciliation goes on.
async fn stand(inner: &Inner, id: &ReconciliationId) -> Result<(), inventory::Error> {
    let Some((run, operations)) = read(inner, id).await? else {
        return Ok(());
    };
    let settings = inner.tuning.of_id(&*inner.store, id.cluster()).await?;
    let before = failed_before(inner, &run).await?;
    let change = match standing(run.strategy, &operations, &before) {
        Standing::Unknown => return Ok(()),
        Standing::Is(state, reason) => StatusChange {
            reason,
            due: meanwhile(inner, &settings, &run, state, &operations),
            ..StatusChange::new(state, run.version)
        },
    };
    let (state, reason) = (change.state, change.reason.clone());
    match inner.store.record_status(id.cluster(), change).await {
        Ok(Recorded::Changed) => tracing::info!(state = state.as_str(), reason, "status"),
        // A newer version may wait for this one to end: what fails holds it up no longer.
        Ok(Recorded::Outdated) => let_newer_begin(inner, id.cluster()).await?,
        Ok(Recorded::Unchanged) => {}
        // It ended meanwhile, and what followed was recorded with that.
        Err(inventory::Error::Refused(error)) => tracing::debug!(%error, "the status moved on"),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The components that failed before a run began that tries them again, and have not recovered since (K48).
async fn failed_before(
    inner: &Inner,
    run: &Reconciliation,
) -> Result<BTreeMap<ComponentName, String>, inventory::Error> {
    let status = inner.store.cluster(run.id.cluster()).await?.status;
    // What is told of components of a cluster in another state is about a version before.
    let failing = match run.strategy {
        Strategy::Delete => ClusterState::Deleting,
        _ => ClusterState::Degraded,
    };
    if status.state != failing || status.observed_version != run.version {
        return Ok(BTreeMap::new());
    }
    let components = inner.store.components(run.id.cluster()).await?;
    warn_of(&components.failed);
    let failing = components.items.into_iter();
    Ok(failing
        .filter_map(|component| Some((component.component, component.not_ready?)))
        .collect())
}

/// Makes a cluster due whose newer version was put off until the run of an older one ended.
async fn let_newer_begin(inner: &Inner, id: &ClusterId) -> Result<(), inventory::Error> {
    let cluster = inner.store.cluster(id).await?;
    let now = inner.clock.now();
    let is_due = cluster.status.due.is_some_and(|(at, _)| at <= now);
    if cluster.deletion.is_some() || cluster.deleted_at.is_some() || is_due {
        return Ok(());
    }
    inner.store.make_due(id, now, DueReason::Change).await
}

/// A component that fails again and again, or waits for a person, must not keep the others from being looked at.
fn meanwhile(
    inner: &Inner,
    settings: &Settings,
    run: &Reconciliation,
    state: ClusterState,
    operations: &[Operation],
) -> Due {
    let waits = operations
        .iter()
        .any(|operation| operation.state.kind() == OperationStateKind::Waiting);
    if state != ClusterState::Degraded && !(waits && state == ClusterState::Reconciling) {
        return Due::Keep;
    }
    let next = phase::next_check(run.id.cluster(), settings.check_interval, inner.clock.now());
    Due::At(next, DueReason::Periodic)
}

/// When a cluster that was worked on is looked at again, and else would be at `periodic`. What another process watches is
/// not known here: one look tells it.
fn after_work(inner: &Inner, id: &ClusterId, periodic: Timestamp) -> Timestamp {
    if inner.instances.is_ours(id) || inner.settings.watched_clusters == 0 {
        inner.watches.after_work(id, periodic)
    } else {
        inner.clock.now().min(periodic)
    }
}

/// Ends a reconciliation whose operations have all ended.
async fn finish(inner: &Inner, id: &ReconciliationId) -> Result<(), inventory::Error> {
    end(inner, id, ended).await
}

/// Ends a reconciliation that has run out of time.
async fn give_up(inner: &Inner, id: &ReconciliationId) -> Result<(), inventory::Error> {
    end(inner, id, overdue).await
}

async fn end(
    inner: &Inner,
    id: &ReconciliationId,
    decide: impl Fn(&Ended<'_>) -> inventory::Finish,
) -> Result<(), inventory::Error> {
    let Some((run, operations)) = read(inner, id).await? else {
        return Ok(());
    };
    let cluster = inner.store.cluster(id.cluster()).await?;
    let settings = inner.settings_of(&cluster);
    let now = inner.clock.now();
    let failures = cluster.status.failures.saturating_add(1);
    let timing = Timing {
        retry: pause::after(now, pause::backoff(&settings, failures, inner.jitter())),
        periodic: after_work(
            inner,
            &cluster.id,
            phase::next_check(&cluster.id, settings.check_interval, now),
        ),
    };
    let mut finish = decide(&Ended {
        run: &run,
        operations: &operations,
        failures,
        settings: &settings,
        timing,
    });
    // A check that was due meanwhile has no say in what follows; what a person asked for since has.
    if matches!(cluster.status.due, Some((_, DueReason::Periodic))) {
        finish.status.stamp = Some(cluster.status.stamp);
    }
    let (ended, state, reason) = (finish.state, finish.status.state, finish.status.reason.clone());
    let recorded = match inner.store.finish_reconciliation(id, finish).await {
        Ok(recorded) => recorded,
        // Superseded or finished by somebody else in between.
        Err(inventory::Error::Refused(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    tracing::info!(
        cluster = cluster.name.as_str(),
        reconciliation_id = %id,
        version = run.version.0,
        outcome = ended.as_str(),
        state = state.as_str(),
        reason,
        newer = recorded == Recorded::Outdated,
        "reconciliation ended"
    );
    if recorded == Recorded::Outdated {
        let_newer_begin(inner, id.cluster()).await?;
    }
    if run.strategy == Strategy::Delete && ended == ReconciliationState::Succeeded {
        inner.watches.end(id.cluster());
        inner.targets.forget(id.cluster());
    }
    Ok(())
}

/// Finishes what nobody finished: after a restart, and when time is up.
///
/// # Errors
/// What the inventory fails with; the service is started again.
pub(crate) async fn serve(inner: Arc<Inner>, stop: CancellationToken) -> Result<(), inventory::Error> {
    loop {
        for id in inner.store.settled_reconciliations(FINISHED_TOGETHER).await? {
            log(&id, finish(&inner, &id).await);
        }
        consent::resume(&inner).await?;
        // What is missing may come from elsewhere than the run that waits for it.
        let looked_for = inner.store.recheck_missing(RECHECKED_TOGETHER).await?;
        if looked_for > 0 {
            tracing::debug!(
                operations = looked_for,
                "missing dependencies are looked for again"
            );
        }
        for id in inner.store.overdue_reconciliations(FINISHED_TOGETHER).await? {
            log(&id, give_up(&inner, &id).await);
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(BACKSTOP) => {}
        }
    }
}

/// One that cannot be finished stops no other.
fn log(id: &ReconciliationId, finished: Result<(), inventory::Error>) {
    if let Err(error) = finished {
        tracing::error!(reconciliation_id = %id, %error, "a reconciliation cannot be finished");
    }
}
