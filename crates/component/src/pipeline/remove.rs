//! Taking a component away again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_cluster::{DeleteOptions, Deletion, Error, Event, Observer, Stop};
use evenkeel_core::{DeleteKind, ObjectChange, Plan};
use evenkeel_steps::{Change, ClosureStep, Context, Decision, Failure, Outcome, step};
use evenkeel_telemetry::time;

use crate::Work;
use crate::hooks::Due;
use crate::operation::Operation;
use crate::pipeline::hooks::kept_hooks;
use crate::pipeline::{DUE, PLAN, WAIT_TIMEOUT};

/// How long a deletion that was broken off may go on, for the answers to what was sent already.
const LAST_ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Deletes its objects in reverse order and waits until they are gone.
pub(crate) fn uninstall() -> ClosureStep<Operation> {
    step("uninstall")
        .needs(PLAN)
        .after("pre-delete-hooks")
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
                let removed = Removed::default();
                let observer = removed.observer(operation);
                let task = &operation.task;
                let deleted = tokio::select! {
                    deleted = task.target.delete_objects(&task.attempt, &options, &observer) => deleted,
                    // Most of the time nothing is written but absence waited for.
                    () = cancelled(&cx) => Err(Error::Stopped {
                        doing: "everything was gone".to_owned(),
                        why: Stop::Cancelled,
                    }),
                };
                removed.tell(operation, deleted)
            }))
        })
}

/// Deletes what its hooks left, namespaces that we made and that are empty, and what the target remembers of it.
pub(crate) fn forget() -> ClosureStep<Operation> {
    step("forget")
        .needs(PLAN)
        .after("post-delete-hooks")
        .timeout(WAIT_TIMEOUT)
        .live_only()
        .run(|cx: Context<Operation>, _plan| async move {
            let operation = cx.state();
            let Some(options) = options(operation) else {
                return Ok(not_uninstalling());
            };
            // Whoever does not wait leaves the rest to a later deletion.
            if !options.blocking {
                return Ok(Outcome::done());
            }
            operation.attach(cx.progress());
            let removed = Removed::default();
            let observer = removed.observer(operation);
            let task = &operation.task;
            let forgotten = tokio::select! {
                forgotten = task.target.delete_rest(&task.attempt, &options, &observer) => forgotten,
                () = cancelled(&cx) => Err(Error::Stopped {
                    doing: "everything was gone".to_owned(),
                    why: Stop::Cancelled,
                }),
            };
            removed.tell(operation, forgotten)
        })
}

/// What there is to delete, and the hooks that were kept for it.
pub(crate) fn plan() -> ClosureStep<Operation> {
    step("plan")
        .provides((PLAN, DUE))
        .timeout(WAIT_TIMEOUT)
        .run(|cx: Context<Operation>, ()| async move {
            let operation = cx.state();
            let Some(options) = options(operation) else {
                return Ok(not_uninstalling());
            };
            let failed = |error| operation.failed(error);
            let target = &operation.task.target;
            let mut plan = target.plan_deletion(&options).await.map_err(failed)?;
            let due = kept_hooks(operation).await?;
            plan.hooks = due.planned(target).await.map_err(failed)?;
            for kept in &plan.skipped {
                cx.progress()
                    .line(format!("{} stays: {}", kept.object, kept.reason));
            }
            Ok(Outcome::<(Plan, Due)>::Done((plan, due)))
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
            let removed = Removed::default();
            let let_go = task
                .target
                .orphan(&task.attempt, &removed.observer(operation))
                .await;
            removed.tell(operation, let_go)
        })
}

/// The shared parent and our own namespace, once no component is left; after the step `last`.
pub(crate) fn leave(last: &'static str) -> ClosureStep<Operation> {
    step("leave")
        .after_success(last)
        .timeout(WAIT_TIMEOUT)
        .live_only()
        .run(|cx: Context<Operation>, ()| async move {
            let operation = cx.state();
            let task = &operation.task;
            let timeout = options(operation).unwrap_or_default().timeout;
            let left = task
                .target
                .cluster()
                .leave(task.target.owner(), &task.attempt, timeout)
                .await;
            left.map_err(|error| operation.failed(error))?;
            Ok(Outcome::done())
        })
}

fn options(operation: &Operation) -> Option<DeleteOptions> {
    match operation.task.work {
        Work::Uninstall {
            gone_within,
            kind,
            blocking,
            strip_finalizers,
            ..
        } => Some(DeleteOptions {
            timeout: gone_within,
            all: kind == DeleteKind::All,
            blocking,
            strip_finalizers,
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

/// What is removed, noted as it happens, so that it is told also when the work ends early.
#[derive(Default)]
struct Removed(Arc<Mutex<Vec<ObjectChange>>>);

impl Removed {
    fn observer(&self, operation: &Operation) -> Observer {
        let (noted, clock, tell) = (
            Arc::clone(&self.0),
            Arc::clone(&operation.shared.clock),
            operation.observer(),
        );
        Arc::new(move |event| {
            if let Event::Changed { object, action } = &event {
                let change = ObjectChange {
                    object: object.clone(),
                    action: *action,
                    at: clock.now(),
                };
                noted.lock().unwrap_or_else(PoisonError::into_inner).push(change);
            }
            tell(event);
        })
    }

    fn tell(self, operation: &Operation, ended: Result<Deletion, Error>) -> Result<Outcome, Failure> {
        match ended {
            Ok(deletion) => {
                let count = deletion.changes.len();
                operation.note_removed(deletion.changes);
                Ok(if count == 0 {
                    Outcome::done()
                } else {
                    Outcome::changed(format!("{count} objects"))
                })
            }
            Err(error) => {
                let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
                operation.note_removed(noted);
                Err(operation.failed(error))
            }
        }
    }
}

/// Ends some time after the work was broken off: a deletion that is under way gets its answer, waiting ends.
async fn cancelled(cx: &Context<Operation>) {
    cx.cancelled().await;
    time::sleep(LAST_ANSWER_WITHIN).await;
}
