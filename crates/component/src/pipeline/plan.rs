//! What is to be done.

use std::sync::Arc;

use evenkeel_cluster::PlanOptions;
use evenkeel_core::Strategy;
use evenkeel_steps::{ClosureStep, Context, Mode, Outcome, step};
use tokio::sync::Mutex;

use crate::Work;
use crate::hooks::{Due, found, occasion};
use crate::operation::Operation;
use crate::pipeline::obtain::{self, not_applying};
use crate::pipeline::{DESIRED, DUE, HOOKS, PLAN, PREPARE_TIMEOUT, RENDERED, SESSION};

/// Compares what is desired with what is there. Writes nothing.
pub(crate) fn plan() -> ClosureStep<Operation> {
    step("plan")
        .needs((DESIRED, RENDERED, HOOKS))
        .provides((PLAN, SESSION, DUE))
        .timeout(PREPARE_TIMEOUT)
        .run(
            |cx: Context<Operation>, (desired, rendered, prepared)| async move {
                let operation = cx.state();
                let Work::Apply {
                    adopt,
                    on_conflict,
                    readiness,
                    values,
                    namespace,
                    ..
                } = &operation.task.work
                else {
                    return Ok(not_applying());
                };
                let options = PlanOptions {
                    adopt: *adopt,
                    take_over: *adopt,
                    on_conflict: *on_conflict,
                    deletions: operation.task.ledger.deletion_limit(),
                    readiness: readiness.clone(),
                };
                let desired = Arc::unwrap_or_clone(desired);
                let plan = operation.task.target.plan(desired, &options).await;
                let mut plan = plan.map_err(|error| operation.failed(error))?;
                if cx.mode() == Mode::DryRun {
                    // For people, who look at it; nobody else pays for it.
                    let secrets = obtain::secrets(&operation.task.target, values, namespace).await?;
                    let diffs = plan.diffs(&secrets).await;
                    operation.note_diffs(diffs.map_err(|error| operation.failed(error))?);
                }
                if let Some(needed) = plan.consent_needed() {
                    if operation.task.ledger.agrees(needed).await? {
                        cx.progress().line(format!("{needed}; consent was given"));
                        plan.agree();
                    } else {
                        cx.progress().line(format!(
                            "{needed}; consent is needed for plan {}",
                            needed.digest()
                        ));
                    }
                }
                let found = found(rendered.revision, operation.record.as_ref(), plan.adopts());
                let strategy = Strategy::of(found);
                let due = Due {
                    hooks: prepared.hooks.clone(),
                    strategy,
                    occasion: occasion(strategy, rendered.revision),
                };
                let mut summary = plan.summary().clone();
                let planned = due.planned(&operation.task.target).await;
                summary.hooks = planned.map_err(|error| operation.failed(error))?;
                cx.progress().line(summary.to_string());
                let session = plan.begin(operation.task.attempt.clone(), operation.observer());
                Ok(Outcome::Done((summary, Mutex::new(session), due)))
            },
        )
}
