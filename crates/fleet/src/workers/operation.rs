//! One operation, from its claim to its report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenkeel_cluster::{Attempt, ReadinessRules};
use evenkeel_component::{End, RenderedSiblings, RunOptions, SiblingSet, Task, Values, Work};
use evenkeel_core::{
    DeleteMode, ObjectChange, OnRemove, OperationState, OperationStateKind, Strategy, StuckFinalizers,
};
use evenkeel_inventory::{self as inventory, ClaimedOperation, Cluster, Configuration, Level, Report};
use evenkeel_telemetry::CancellationToken;
use tracing::Span;

use super::hold::{Hold, Why};
use super::outcome::{Verdict, held, verdict};
use super::timeline::{Listener, Timeline};
use crate::breaker::VersionKey;
use crate::fleet::Inner;
use crate::ledger::StoredLedger;
use crate::targets::Trouble;
use crate::{bookkeeper, consent, pause};

/// How often a final report is tried while the inventory fails; after that the lease runs out and somebody else goes on.
const REPORT_TRIES: u32 = 10;
/// Between two such tries.
const REPORT_PAUSE: Duration = Duration::from_secs(1);

/// Works on `operation` until it ends, and reports it.
pub(super) async fn run(
    inner: &Inner,
    operation: ClaimedOperation,
    hold: &Arc<Hold>,
    timeline: &Arc<Timeline>,
    ending: CancellationToken,
) {
    let work = inner.site.work(inner, &operation, hold, timeline);
    let (end, changes) = {
        tokio::pin!(work);
        tokio::select! {
            biased;
            ended = &mut work => ended,
            () = ending.cancelled() => {
                hold.stop(Why::Ending);
                work.await
            }
        }
    };
    let said = match end {
        End::NeedsConsent(needed) => match consent::ask(inner, &operation, &needed).await {
            Ok(state) => held(state, hold.why()),
            Err(error) => {
                let trouble = unprepared(inner, &operation, error.into());
                verdict(&operation, trouble, hold.why(), inner.clock.now())
            }
        },
        end => verdict(&operation, end, hold.why(), inner.clock.now()),
    };
    let mut missing = false;
    let state = match said {
        Verdict::Report(state) => state,
        Verdict::Missing(state) => {
            missing = true;
            state
        }
        Verdict::Fenced(at_target, state) => {
            if let Err(error) = inner
                .store
                .raise_fence(&operation.cluster, &operation.component, at_target)
                .await
            {
                tracing::error!(%error, "the fence could not be raised");
            }
            state
        }
        Verdict::Silence => {
            tracing::warn!("another attempt has taken the operation over");
            return;
        }
    };
    say(timeline, &state);
    if let Some(version) = hold.version() {
        inner.breakers.note(version, &operation.cluster, state.kind());
    }
    let waits = state.kind() == OperationStateKind::Waiting;
    let report = Report {
        operation: operation.id.clone(),
        fence: hold.fence(),
        state,
        changes,
        timeline: timeline.take(),
    };
    hold.reports();
    deliver(inner, report, missing).await;
    // Consent may have come between the question and the wait; what is missed here is seen to later.
    if waits && let Err(error) = consent::resume(inner).await {
        tracing::warn!(%error, "operations with consent could not be returned to the queue");
    }
}

/// The last line of a timeline, where there is something to say, and of the log.
fn say(timeline: &Timeline, state: &OperationState) {
    let (name, reason) = (state.kind().as_str(), state.reason());
    match state {
        OperationState::Failed { reason } => timeline.say(Level::Error, None, format!("failed: {reason}")),
        OperationState::Retrying { reason, next_at } => {
            timeline.say(
                Level::Warning,
                None,
                format!("{reason}; tried again at {next_at:.0}"),
            );
        }
        OperationState::Waiting { reason, deadline } => {
            timeline.say(
                Level::Warning,
                None,
                format!("waits until {deadline:.0} for {reason}"),
            );
        }
        OperationState::Superseded => timeline.say(
            Level::Warning,
            None,
            "stopped: a newer configuration takes its place".to_owned(),
        ),
        OperationState::Cancelled => {
            timeline.say(Level::Warning, None, "stopped: it was cancelled".to_owned())
        }
        OperationState::Pending => {
            timeline.say(Level::Info, None, "given back, to be gone on with".to_owned());
        }
        _ => {}
    }
    match state {
        OperationState::Failed { .. } | OperationState::Retrying { .. } => {
            tracing::warn!(state = name, reason, "operation ended");
        }
        _ => tracing::info!(state = name, reason, "operation ended"),
    }
}

/// Delivers the report until it is taken, or until it no longer matters; `missing` when it waits for a dependency.
async fn deliver(inner: &Inner, report: Report, missing: bool) {
    for attempt in 1..=REPORT_TRIES {
        let answer = match missing {
            true => inner.store.report_missing(report.clone()).await,
            false => match inner.reports.write(report.clone()).await {
                Ok(answer) => answer,
                // The process ends and nobody gathers reports any more.
                Err(crate::batch::Ending) => inner.store.report(report.clone()).await,
            },
        };
        match answer {
            Ok(settled) => return bookkeeper::settled(inner, &settled).await,
            Err(error @ (inventory::Error::LeaseLost { .. } | inventory::Error::NotFound { .. })) => {
                tracing::info!(%error, "the report is not wanted any more");
                return;
            }
            Err(error) if error.is_transient() && attempt < REPORT_TRIES => {
                tracing::warn!(%error, attempt, "the report could not be delivered");
                tokio::time::sleep(REPORT_PAUSE).await;
            }
            Err(error) => {
                tracing::error!(%error, "the report is given up; the lease will end");
                return;
            }
        }
    }
}

/// Does the work at the cluster's API server. Answers how it ended and every object it touched.
pub(crate) async fn work_at_target(
    inner: &Inner,
    operation: &ClaimedOperation,
    hold: &Arc<Hold>,
    timeline: &Arc<Timeline>,
) -> (End, Vec<ObjectChange>) {
    match prepare(inner, operation, hold).await {
        Ok((task, agreed)) => {
            let options = RunOptions {
                retry: pause::retry_policy(&inner.settings),
                failed_before: operation.attempt.saturating_sub(1),
                jitter: inner.jitter(),
                observer: Arc::new(Listener {
                    timeline: Arc::clone(timeline),
                    metrics: inner.steps.clone(),
                    span: Span::current(),
                }),
                cancel: hold.stopped().clone(),
                ..RunOptions::default()
            };
            let outcome = inner.reconciler.run(task, options).await;
            if outcome.end == End::Succeeded && agreed.load(Ordering::Relaxed) {
                let component = &operation.component;
                if let Err(error) = inner.store.use_consents(&operation.cluster, component).await {
                    tracing::warn!(%error, "consent could not be used up; the objects that it was about are gone");
                }
            }
            (outcome.end, outcome.changes)
        }
        Err(trouble) => (unprepared(inner, operation, trouble), Vec::new()),
    }
}

/// What keeps an operation from beginning.
pub(crate) enum Unprepared {
    Trouble(Trouble),
    /// Trying again does not help.
    Useless(String),
}

impl<E: Into<Trouble>> From<E> for Unprepared {
    fn from(error: E) -> Self {
        Self::Trouble(error.into())
    }
}

pub(crate) fn unprepared(inner: &Inner, operation: &ClaimedOperation, unprepared: Unprepared) -> End {
    match unprepared {
        Unprepared::Useless(reason) => End::Failed { reason },
        Unprepared::Trouble(Trouble::Inventory(error @ inventory::Error::Unreadable { .. })) => End::Failed {
            reason: error.to_string(),
        },
        Unprepared::Trouble(trouble) if trouble.needs_change() => End::Failed {
            reason: trouble.to_string(),
        },
        Unprepared::Trouble(trouble) => {
            let pause = pause::backoff(&inner.settings, operation.attempt, inner.jitter());
            let pause = pause.max(trouble.asked_pause().unwrap_or_default());
            End::Retry {
                reason: trouble.to_string(),
                at: pause::after(inner.clock.now(), pause),
            }
        }
    }
}

/// Gathers what the component reconciler needs.
///
/// Also answers where it is noted that somebody agreed to what the operation deletes.
async fn prepare(
    inner: &Inner,
    operation: &ClaimedOperation,
    hold: &Arc<Hold>,
) -> Result<(Task, Arc<AtomicBool>), Unprepared> {
    let cluster = inner.store.cluster(&operation.cluster).await?;
    Span::current().record("cluster", cluster.name.as_str());
    tracing::info!(
        kind = operation.kind.as_str(),
        version = operation.version.0,
        attempt = operation.attempt,
        fence = operation.lease.fence.0,
        cause = operation.cause,
        "operation begins"
    );
    let configuration = inner
        .store
        .configuration(&operation.cluster, operation.version)
        .await?;
    let components = &configuration.spec.components;
    if let Some(spec) = components.iter().find(|spec| spec.name == operation.component)
        && operation.kind != Strategy::Delete
    {
        hold.applies(VersionKey::of(spec));
    }
    let work = what(inner, operation, &cluster, &configuration).await?;
    let client = inner
        .targets
        .cluster(&operation.cluster, configuration.kubeconfig.or(Some(0)))
        .await?;
    let owner = inner.owner(&cluster.name)?;
    let mut target = client.component(&owner, &operation.component);
    if let Some(set) = siblings(inner, operation, &configuration).await? {
        let siblings = RenderedSiblings::new(inner.reconciler.clone(), client.clone(), owner, set);
        target = target.with_siblings(Arc::new(siblings));
    }
    let agreed = Arc::new(AtomicBool::new(false));
    let ledger = StoredLedger {
        store: Arc::clone(&inner.store),
        cluster: operation.cluster.clone(),
        target: target.clone(),
        version: operation.version,
        deletion_limit: inner.settings_of(&cluster).object_losses,
        agreed: Arc::clone(&agreed),
    };
    let task = Task {
        target,
        work,
        attempt: Attempt {
            fence: operation.lease.fence,
            guard: Arc::clone(hold) as Arc<dyn evenkeel_cluster::WriteGuard>,
        },
        ledger: Arc::new(ledger),
    };
    Ok((task, agreed))
}

/// The components among which objects may move in this run; none where all of them go.
async fn siblings(
    inner: &Inner,
    operation: &ClaimedOperation,
    configuration: &Configuration,
) -> Result<Option<Arc<SiblingSet>>, Unprepared> {
    let run = &operation.reconciliation;
    // Definitions are shared, and move nowhere.
    if operation.strategy == Strategy::Delete || operation.component.is_definitions() {
        return Ok(None);
    }
    if let Some(set) = inner.siblings.get(run) {
        return Ok(Some(set));
    }
    // One that is removed is described by an older version than the run's.
    let version = match operation.kind {
        Strategy::Delete => inner.store.reconciliation(run).await?.version,
        _ => operation.version,
    };
    if version == configuration.version {
        return Ok(Some(inner.siblings.make(run, &configuration.spec)));
    }
    let newest = inner.store.configuration(&operation.cluster, version).await?;
    Ok(Some(inner.siblings.make(run, &newest.spec)))
}

/// What is to be done with the component.
async fn what(
    inner: &Inner,
    operation: &ClaimedOperation,
    cluster: &Cluster,
    configuration: &Configuration,
) -> Result<Work, Unprepared> {
    let settings = inner.settings_of(cluster);
    let spec = configuration
        .spec
        .components
        .iter()
        .find(|spec| spec.name == operation.component);
    let timeout = spec.and_then(|spec| spec.timeout).map(|timeout| timeout.0);
    let timeout = timeout.unwrap_or(settings.ready_timeout);
    let mode = cluster.deletion.as_ref().map(|deletion| deletion.mode);
    let whole = operation.strategy == Strategy::Delete;
    let uninstall = Work::Uninstall {
        gone_within: timeout,
        hooks: spec.map(|spec| spec.hooks).unwrap_or_default(),
        // Taking a component off a cluster that stays never takes its data.
        kind: mode
            .filter(|_| whole)
            .and_then(DeleteMode::kind)
            .unwrap_or_default(),
        blocking: true,
        strip_finalizers: spec.is_some_and(|spec| spec.on_stuck_finalizers == StuckFinalizers::Strip),
    };
    if operation.kind != Strategy::Delete && operation.component.is_definitions() {
        let client = inner
            .targets
            .cluster(&operation.cluster, configuration.kubeconfig.or(Some(0)))
            .await?;
        let owner = inner.owner(&cluster.name)?;
        let set = inner
            .siblings
            .make(&operation.reconciliation, &configuration.spec);
        let components = RenderedSiblings::new(inner.reconciler.clone(), client, owner, set);
        return Ok(Work::Define { components });
    }
    if operation.kind != Strategy::Delete {
        let Some(spec) = spec else {
            return Err(Unprepared::Useless(format!(
                "internal: version {} does not list component {}",
                operation.version, operation.component
            )));
        };
        let values = Values::of(spec).map_err(|error| Unprepared::Useless(error.to_string()))?;
        let readiness = ReadinessRules::compile(&spec.readiness).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Unprepared::Useless(problems.join("; "))
        })?;
        return Ok(Work::Apply {
            source: spec.source.clone(),
            format: spec.format,
            values,
            namespace: spec.namespace.clone(),
            force_namespace: spec.force_namespace,
            adopt: spec.adopt,
            on_conflict: spec.on_conflict,
            readiness,
            ready_within: Some(timeout),
            hooks: spec.hooks,
            hooks_within: timeout,
            proxies: spec.proxies.clone(),
        });
    }
    if whole {
        return Ok(match mode {
            Some(DeleteMode::Orphan) => Work::Orphan,
            _ => uninstall,
        });
    }
    // One that the run's own version lists only moves to another namespace: it is removed from the old one.
    let run = inner.store.reconciliation(&operation.reconciliation).await?;
    let on_remove = spec.map(|spec| spec.on_remove).unwrap_or_default();
    Ok(match on_remove {
        OnRemove::Orphan if operation.version < run.version => Work::Orphan,
        OnRemove::Orphan | OnRemove::Delete => uninstall,
    })
}
