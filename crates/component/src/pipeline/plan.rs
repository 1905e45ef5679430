//! What is to be done.

use std::collections::BTreeSet;
use std::sync::Arc;

use evenkeel_cluster::PlanOptions;
use evenkeel_steps::{ClosureStep, Context, Outcome, step};
use tokio::sync::Mutex;

use crate::Work;
use crate::operation::Operation;
use crate::pipeline::obtain::not_applying;
use crate::pipeline::{DESIRED, PLAN, PREPARE_TIMEOUT, SESSION};

/// Compares what is desired with what is there. Writes nothing.
pub(crate) fn plan() -> ClosureStep<Operation> {
    step("plan")
        .needs(DESIRED)
        .provides((PLAN, SESSION))
        .timeout(PREPARE_TIMEOUT)
        .run(|cx: Context<Operation>, desired| async move {
            let operation = cx.state();
            let Work::Apply {
                adopt, moved_away, ..
            } = &operation.task.work
            else {
                return Ok(not_applying());
            };
            let options = PlanOptions {
                adopt: *adopt,
                take_over: *adopt,
                moved_away: moved_away.clone(),
                moved_here: BTreeSet::new(),
            };
            let desired = Arc::unwrap_or_clone(desired);
            let plan = operation.task.target.plan(desired, &options).await;
            let plan = plan.map_err(|error| operation.failed(error))?;
            let summary = plan.summary().clone();
            cx.progress().line(summary.to_string());
            let session = plan.begin(operation.task.attempt.clone(), operation.observer());
            Ok(Outcome::Done((summary, Mutex::new(session))))
        })
}
