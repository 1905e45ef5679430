//! Carrying the plan out, one step after the other, all on one session.

use evenkeel_cluster::{ErrorClass, Session, Stop, WaitOptions};
use evenkeel_core::{Plan, PlanAction};
use evenkeel_steps::{Change, ClosureStep, Context, Decision, Failure, Outcome, step};

use crate::Work;
use crate::operation::Operation;
use crate::pipeline::{APPLY_TIMEOUT, PLAN, RENDERED, SESSION, WAIT_TIMEOUT};

/// Takes our number at the target before the first write, so that an older attempt can write no more.
pub(crate) fn take_fence() -> ClosureStep<Operation> {
    step("take-fence")
        .needs((PLAN, SESSION, RENDERED))
        .timeout(APPLY_TIMEOUT)
        .live_only()
        .run(|cx: Context<Operation>, (plan, session, rendered)| async move {
            let operation = cx.state();
            operation.attach(cx.progress());
            if plan.is_noop() && (rendered.kept.is_none() || is_recorded(operation, &rendered.inputs())) {
                return Ok(Outcome::done());
            }
            session
                .lock()
                .await
                .take_fence()
                .await
                .map_err(|error| operation.failed(error))?;
            Ok(Outcome::changed(format!(
                "fence {}",
                operation.task.attempt.fence
            )))
        })
}

/// Keeps a marked render beside the parent, before anything of it is applied.
pub(crate) fn keep_render() -> ClosureStep<Operation> {
    step("keep-render")
        .needs((SESSION, RENDERED))
        .after("take-fence")
        .timeout(APPLY_TIMEOUT)
        .live_only()
        .run(|cx: Context<Operation>, (_session, rendered)| async move {
            let operation = cx.state();
            let Some(kept) = &rendered.kept else {
                return Ok(Outcome::done());
            };
            if is_recorded(operation, &rendered.inputs()) {
                return Ok(Outcome::done());
            }
            let task = &operation.task;
            let stored = task
                .target
                .store_render(rendered.revision, kept, &task.attempt)
                .await;
            stored.map_err(|error| operation.failed(error))?;
            Ok(Outcome::changed(format!(
                "render of revision {} is kept",
                rendered.revision
            )))
        })
}

/// Makes the release namespace when it is missing.
pub(crate) fn prepare_namespace() -> ClosureStep<Operation> {
    step("prepare-namespace")
        .needs(SESSION)
        .after("keep-hooks")
        .timeout(APPLY_TIMEOUT)
        .live_only()
        .run(|cx: Context<Operation>, session| async move {
            let operation = cx.state();
            operation.attach(cx.progress());
            let mut session = session.lock().await;
            let before = session.changes().len();
            session
                .prepare_namespaces()
                .await
                .map_err(|error| operation.failed(error))?;
            Ok(told(session.changes().len() - before))
        })
}

/// Applies every object that differs: definitions first, then by kind.
pub(crate) fn apply() -> ClosureStep<Operation> {
    step("apply")
        .needs((PLAN, SESSION))
        .after("pre-hooks")
        .timeout(APPLY_TIMEOUT)
        .decide(|cx: Context<Operation>, (plan, session)| async move {
            let changes = changes(&plan, |action| action != PlanAction::Delete);
            if changes.is_empty() {
                return Ok(Decision::End(Outcome::done()));
            }
            Ok(Decision::act(changes, async move {
                let operation = cx.state();
                operation.attach(cx.progress());
                let mut session = session.lock().await;
                let before = session.changes().len();
                if let Err(error) = session.apply().await {
                    return Err(broken_off(operation, &mut session, error).await);
                }
                Ok(told(session.changes().len() - before))
            }))
        })
}

/// Waits until every object is ready, unless the task does not want that.
pub(crate) fn wait_ready() -> ClosureStep<Operation> {
    step("wait-ready")
        .needs(SESSION)
        .after("apply")
        .timeout(WAIT_TIMEOUT)
        .live_only()
        .run(|cx: Context<Operation>, session| async move {
            let operation = cx.state();
            let Work::Apply {
                ready_within: Some(timeout),
                ..
            } = &operation.task.work
            else {
                return Ok(Outcome::done());
            };
            operation.attach(cx.progress());
            let options = WaitOptions { timeout: *timeout };
            let mut session = session.lock().await;
            let waited = tokio::select! {
                waited = session.wait_ready(&options) => waited,
                // Waiting writes nothing, so it can be left at any moment.
                () = cx.cancelled() => Err(evenkeel_cluster::Error::Stopped {
                    doing: "everything was ready".to_owned(),
                    why: Stop::Cancelled,
                }),
            };
            match waited {
                Ok(()) => Ok(Outcome::done()),
                Err(error) => Err(broken_off(operation, &mut session, error).await),
            }
        })
}

/// Deletes what is no longer rendered.
pub(crate) fn prune() -> ClosureStep<Operation> {
    step("prune")
        .needs((PLAN, SESSION))
        .after("wait-ready")
        .timeout(APPLY_TIMEOUT)
        .decide(|cx: Context<Operation>, (plan, session)| async move {
            let changes = changes(&plan, |action| action == PlanAction::Delete);
            if changes.is_empty() {
                return Ok(Decision::End(Outcome::done()));
            }
            Ok(Decision::act(changes, async move {
                let operation = cx.state();
                operation.attach(cx.progress());
                let mut session = session.lock().await;
                let before = session.changes().len();
                session.prune().await.map_err(|error| operation.failed(error))?;
                Ok(told(session.changes().len() - before))
            }))
        })
}

/// Writes down at the target what was reached.
pub(crate) fn record() -> ClosureStep<Operation> {
    step("record")
        .needs((SESSION, RENDERED))
        .after("restart-proxies")
        .timeout(APPLY_TIMEOUT)
        .live_only()
        .run(|cx: Context<Operation>, (session, rendered)| async move {
            let operation = cx.state();
            operation.attach(cx.progress());
            let mut session = session.lock().await;
            session.made_from(rendered.considered.revision);
            let recorded = session.record(&rendered.inputs()).await;
            recorded.map_err(|error| operation.failed(error))?;
            Ok(Outcome::done())
        })
}

/// The failure `error`, after writing down what was reached, so that the next try applies only what is missing. Not being
/// able to write that down makes nothing worse.
pub(super) async fn broken_off(
    operation: &Operation,
    session: &mut Session,
    error: evenkeel_cluster::Error,
) -> Failure {
    let writes_end = matches!(
        error.class(),
        ErrorClass::Fenced(_) | ErrorClass::Stopped | ErrorClass::Unreachable | ErrorClass::Unauthorized
    );
    if !writes_end && let Err(unwritten) = session.record_progress().await {
        tracing::debug!(error = %unwritten, "what was reached is not recorded");
    }
    operation.failed(error)
}

/// Whether the target says already that these inputs were applied to the end.
fn is_recorded(operation: &Operation, inputs: &evenkeel_cluster::Inputs) -> bool {
    operation.record.as_ref().is_some_and(|record| {
        !record.unfinished && record.revision == Some(inputs.revision) && record.inputs == Some(inputs.digest)
    })
}

pub(super) fn changes(plan: &Plan, wanted: impl Fn(PlanAction) -> bool) -> Vec<Change> {
    plan.changes
        .iter()
        .filter(|change| change.action != PlanAction::None && wanted(change.action))
        .map(|change| {
            Change::new(change.action.as_str(), change.object.to_string()).detail(change.reason.clone())
        })
        .collect()
}

pub(super) fn told(changed: usize) -> Outcome {
    match changed {
        0 => Outcome::done(),
        1 => Outcome::changed("1 object"),
        many => Outcome::changed(format!("{many} objects")),
    }
}
