//! The steps that run hooks, one for each moment, and the one that keeps those of the deletion.

use std::time::Duration;

use evenkeel_cluster::{Error, HookRun, Hooks, Occasion, Stop, WriteGuard};
use evenkeel_core::{ComponentRevision, HookEvent, HookPolicy, Sensitive, Strategy};
use evenkeel_steps::{Change, ClosureStep, Context, Decision, Failure, Outcome, step};
use evenkeel_telemetry::time;

use crate::Work;
use crate::hooks::{self, Due};
use crate::operation::Operation;
use crate::pipeline::apply::{broken_off, told};
use crate::pipeline::{APPLY_TIMEOUT, DUE, HOOKS, PLAN, SESSION, WAIT_TIMEOUT};

/// How often a superseded operation looks whether its process ends, while a hook still runs.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How long what was broken off may go on, for the answer to what was sent already.
const LAST_ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The hooks of a render.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) hooks: Hooks,
    /// Those of the deletion, in the form in which they are kept.
    pub(crate) of_deletion: Option<Sensitive<Vec<u8>>>,
}

/// Keeps the hooks of the deletion beside the parent: they run also when their source is gone.
pub(crate) fn keep() -> ClosureStep<Operation> {
    step("keep-hooks")
        .needs((SESSION, HOOKS))
        .after("keep-render")
        .timeout(APPLY_TIMEOUT)
        .live_only()
        .run(|cx: Context<Operation>, (session, prepared)| async move {
            let operation = cx.state();
            let mut session = session.lock().await;
            let kept = session.keep_delete_hooks(prepared.of_deletion.as_ref()).await;
            Ok(if kept.map_err(|error| operation.failed(error))? {
                Outcome::changed("the hooks of its deletion are kept")
            } else {
                Outcome::done()
            })
        })
}

/// Runs the hooks that come before the objects.
pub(crate) fn before() -> ClosureStep<Operation> {
    around_apply("pre-hooks", "prepare-namespace", Occasion::before)
}

/// Runs the hooks that come after them, when they are ready and what is no longer rendered is gone.
pub(crate) fn after() -> ClosureStep<Operation> {
    around_apply("post-hooks", "prune", Occasion::after)
}

fn around_apply(
    name: &'static str,
    earlier: &'static str,
    moment: fn(Occasion) -> HookEvent,
) -> ClosureStep<Operation> {
    step(name)
        .needs((DUE, SESSION))
        .after(earlier)
        .timeout(WAIT_TIMEOUT)
        .decide(move |cx: Context<Operation>, (due, session)| async move {
            let Work::Apply {
                adopt, hooks_within, ..
            } = &cx.state().task.work
            else {
                return Ok(Decision::End(Outcome::done()));
            };
            let (adopt, within) = (*adopt, *hooks_within);
            let Some((occasion, event)) = due_at(&due, moment) else {
                return Ok(Decision::End(Outcome::done()));
            };
            Ok(Decision::act(changes(&due, occasion, event), async move {
                let operation = cx.state();
                operation.attach(cx.progress());
                let mut session = session.lock().await;
                let before = session.changes().len();
                let run = HookRun {
                    hooks: &due.hooks,
                    occasion,
                    within,
                    adopt,
                };
                let ran = tokio::select! {
                    ran = async {
                        // A hook may use a kind of the component's own.
                        session.apply_definitions().await?;
                        session.run_hooks(run, event).await
                    } => ran,
                    () = abandoned(&cx, &*operation.task.attempt.guard) => Err(stopped(event)),
                };
                match ran {
                    Ok(()) => Ok(told(session.changes().len() - before)),
                    Err(error) => Err(broken_off(operation, &mut session, error).await),
                }
            }))
        })
}

/// Runs the hooks that come before a deletion.
pub(crate) fn before_deletion() -> ClosureStep<Operation> {
    around_deletion("pre-delete-hooks", "plan", Occasion::before)
}

/// Runs the hooks that come after it, when all objects are gone.
pub(crate) fn after_deletion() -> ClosureStep<Operation> {
    around_deletion("post-delete-hooks", "uninstall", Occasion::after)
}

fn around_deletion(
    name: &'static str,
    earlier: &'static str,
    moment: fn(Occasion) -> HookEvent,
) -> ClosureStep<Operation> {
    step(name)
        .needs((DUE, PLAN))
        .after(earlier)
        .timeout(WAIT_TIMEOUT)
        .decide(move |cx: Context<Operation>, (due, _plan)| async move {
            let Work::Uninstall {
                gone_within, blocking, ..
            } = cx.state().task.work
            else {
                return Ok(Decision::End(Outcome::done()));
            };
            // What comes after the objects is for a deletion that waits for them to be gone.
            if !blocking && earlier == "uninstall" {
                return Ok(Decision::End(Outcome::done()));
            }
            let Some((occasion, event)) = due_at(&due, moment) else {
                return Ok(Decision::End(Outcome::done()));
            };
            Ok(Decision::act(changes(&due, occasion, event), async move {
                let operation = cx.state();
                operation.attach(cx.progress());
                let run = HookRun {
                    hooks: &due.hooks,
                    occasion,
                    within: gone_within,
                    adopt: false,
                };
                let (task, observer) = (&operation.task, operation.observer());
                let mut changed = Vec::new();
                let ran = tokio::select! {
                    ran = task.target.run_delete_hooks(run, event, &task.attempt, &observer, &mut changed) => ran,
                    () = abandoned(&cx, &*task.attempt.guard) => Err(stopped(event)),
                };
                let count = changed.len();
                operation.note_removed(changed);
                ran.map_err(|error| operation.failed(error))?;
                Ok(told(count))
            }))
        })
}

/// The hooks of the component's deletion as they were kept, unless they are to be ignored.
pub(crate) async fn kept_hooks(operation: &Operation) -> Result<Due, Failure> {
    let kept = match (&operation.task.work, &operation.record) {
        (
            Work::Uninstall {
                hooks: HookPolicy::Run,
                ..
            },
            Some(record),
        ) => operation
            .task
            .target
            .delete_hooks(record)
            .await
            .map_err(|error| operation.failed(error))?,
        _ => None,
    };
    let hooks = match kept.as_ref().and_then(hooks::read) {
        Some((documents, placement)) => {
            Hooks::new(documents, &placement).map_err(|error| operation.failed(error))?
        }
        None => Hooks::default(),
    };
    Ok(Due {
        hooks,
        strategy: Strategy::Delete,
        occasion: hooks::occasion(Strategy::Delete, ComponentRevision::default()),
    })
}

fn due_at(due: &Due, moment: fn(Occasion) -> HookEvent) -> Option<(Occasion, HookEvent)> {
    let occasion = due.occasion?;
    let event = moment(occasion);
    due.hooks.any(event).then_some((occasion, event))
}

fn changes(due: &Due, occasion: Occasion, event: HookEvent) -> Vec<Change> {
    due.hooks
        .planned(occasion, None)
        .into_iter()
        .filter(|hook| hook.event == event)
        .map(|hook| {
            Change::new(
                "run",
                format!("{event} hook {}/{}", hook.object.kind, hook.object.name),
            )
        })
        .collect()
}

fn stopped(event: HookEvent) -> Error {
    Error::Stopped {
        doing: format!("the {event} hooks were done"),
        why: Stop::Cancelled,
    }
}

/// Ends some time after the work was broken off. One that only a newer configuration takes the place of goes on until its hook
/// ends or reaches its deadline (DESIGN §7); it writes nothing more.
async fn abandoned(cx: &Context<Operation>, guard: &dyn WriteGuard) {
    cx.cancelled().await;
    while guard.permit(Duration::ZERO) == Err(Stop::Superseded) {
        time::sleep(LOOK_INTERVAL).await;
    }
    time::sleep(LAST_ANSWER_WITHIN).await;
}
