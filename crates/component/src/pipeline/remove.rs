//! Taking a component away again.

use evenkeel_cluster::{DeleteOptions, Deletion};
use evenkeel_core::Plan;
use evenkeel_steps::{Change, ClosureStep, Context, Decision, Failure, Outcome, step};

use crate::Work;
use crate::operation::Operation;
use crate::pipeline::{PLAN, WAIT_TIMEOUT};

/// Deletes its objects in reverse order and waits until they are gone; then namespaces that we made and that are empty.
pub(crate) fn uninstall() -> ClosureStep<Operation> {
    step("uninstall")
        .needs(PLAN)
        .timeout(WAIT_TIMEOUT)
        .decide(|cx: Context<Operation>, plan| async move {
            let Some(options) = options(cx.state()) else {
                return Ok(Decision::End(not_uninstalling()));
            };
            let changes = plan.changes.iter().map(|change| {
                Change::new(change.action.as_str(), change.object.to_string()).detail(change.reason.clone())
            });
            Ok(Decision::act(changes.collect(), async move {
                let operation = cx.state();
                operation.attach(cx.progress());
                let task = &operation.task;
                let deleted = task
                    .target
                    .delete(&task.attempt, &options, &operation.observer())
                    .await;
                told(operation, deleted.map_err(|error| operation.failed(error))?)
            }))
        })
}

/// What there is to delete.
pub(crate) fn plan() -> ClosureStep<Operation> {
    step("plan")
        .provides(PLAN)
        .timeout(WAIT_TIMEOUT)
        .run(|cx: Context<Operation>, ()| async move {
            let operation = cx.state();
            let Some(options) = options(operation) else {
                return Ok(not_uninstalling());
            };
            let plan = operation
                .task
                .target
                .plan_deletion(&options)
                .await
                .map_err(|error| operation.failed(error))?;
            for kept in &plan.skipped {
                cx.progress()
                    .line(format!("{} stays: {}", kept.object, kept.reason));
            }
            Ok(Outcome::<Plan>::Done(plan))
        })
}

/// Takes our labels off its objects and leaves them running.
pub(crate) fn orphan() -> ClosureStep<Operation> {
    step("orphan")
        .timeout(WAIT_TIMEOUT)
        .act(|cx: Context<Operation>, ()| async move {
            let operation = cx.state();
            operation.attach(cx.progress());
            let task = &operation.task;
            let let_go = task.target.orphan(&task.attempt, &operation.observer()).await;
            told(operation, let_go.map_err(|error| operation.failed(error))?)
        })
}

/// The shared parent and our own namespace, once no component is left.
pub(crate) fn leave() -> ClosureStep<Operation> {
    step("leave")
        .after_success("uninstall")
        .timeout(WAIT_TIMEOUT)
        .live_only()
        .run(|cx: Context<Operation>, ()| async move {
            let operation = cx.state();
            let Some(options) = options(operation) else {
                return Ok(not_uninstalling());
            };
            let task = &operation.task;
            let left = task
                .target
                .cluster()
                .leave(task.target.owner(), &task.attempt, options.timeout)
                .await;
            left.map_err(|error| operation.failed(error))?;
            Ok(Outcome::done())
        })
}

fn options(operation: &Operation) -> Option<DeleteOptions> {
    match operation.task.work {
        Work::Uninstall { gone_within } => Some(DeleteOptions {
            timeout: gone_within,
            ..DeleteOptions::default()
        }),
        _ => None,
    }
}

fn not_uninstalling<T>() -> Outcome<T> {
    Outcome::Stop {
        reason: "this operation deletes nothing".to_owned(),
    }
}

fn told(operation: &Operation, deletion: Deletion) -> Result<Outcome, Failure> {
    let count = deletion.changes.len();
    operation.note_removed(deletion.changes);
    Ok(if count == 0 {
        Outcome::done()
    } else {
        Outcome::changed(format!("{count} objects"))
    })
}
