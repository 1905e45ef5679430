//! Observe, plan, act: what a dry run does and what it leaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use evenkeel_steps::{
    Change, Conclusion, Context, Effect, Failure, Mode, Outcome, Pipeline, Plan, Slot, step,
};

use crate::support::{endings, options, run};

const WANTED: Slot<u32> = Slot::new("wanted");
const APPLIED: Slot<u32> = Slot::new("applied");

/// Brings a number outside to the wanted one, counting how often it looks and writes.
#[derive(Clone, Default)]
struct Counter {
    outside: Arc<AtomicU32>,
    looks: Arc<AtomicU32>,
    writes: Arc<AtomicU32>,
}

impl Effect<(), Arc<u32>, u32> for Counter {
    type Observation = u32;

    async fn observe(&self, _: &Context<()>, _: &Arc<u32>) -> Result<u32, Failure> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        Ok(self.outside.load(Ordering::SeqCst))
    }

    fn plan(&self, (): &(), wanted: &Arc<u32>, seen: &u32) -> Result<Plan<u32>, Failure> {
        Ok(match **wanted {
            13 => return Err(Failure::invalid("13 brings bad luck: choose another number")),
            wanted if wanted == *seen => Plan::Settled(wanted),
            wanted => Plan::Changes(vec![
                Change::new("set", "counter").detail(format!("{seen} → {wanted}")),
            ]),
        })
    }

    async fn act(
        &self,
        _: &Context<()>,
        wanted: Arc<u32>,
        _: u32,
        changes: Vec<Change>,
    ) -> Result<Outcome<u32>, Failure> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.outside.store(*wanted, Ordering::SeqCst);
        Ok(Outcome::changed_with(
            *wanted,
            format!("{} change", changes.len()),
        ))
    }
}

fn pipeline(counter: &Counter) -> Pipeline<()> {
    Pipeline::builder("count")
        .given(WANTED)
        .step(
            step("apply")
                .needs(WANTED)
                .provides(APPLIED)
                .effect(counter.clone()),
        )
        .step(
            step("check")
                .needs(APPLIED)
                .run(|_, _| async { Ok(Outcome::done()) }),
        )
        .step(
            step("ready")
                .after("apply")
                .live_only()
                .run(|_, ()| async { Ok(Outcome::done()) }),
        )
        .step(
            step("notify")
                .after_success("apply")
                .act(|_, ()| async { Ok(Outcome::changed("sent")) }),
        )
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_plans_and_writes_nothing_a_live_run_does_what_was_planned_once() {
    let counter = Counter::default();
    let pipeline = pipeline(&counter);

    let plan = run(&pipeline, (), options().give_one(WANTED, 5).mode(Mode::DryRun)).await;
    assert_eq!(
        endings(&plan),
        [
            "apply planned",
            "check skipped: no applied: apply provides it only when it acts",
            "notify planned",
            "ready skipped: nothing to do in a dry run",
        ]
    );
    let planned: Vec<String> = plan
        .changes()
        .map(|(step, change)| format!("{step}: {change}"))
        .collect();
    assert_eq!(planned, ["apply: set counter: 0 → 5", "notify: run notify"]);
    assert_eq!(
        (plan.conclusion(), plan.mode),
        (Conclusion::Planned, Mode::DryRun)
    );
    assert_eq!(
        (
            counter.looks.load(Ordering::SeqCst),
            counter.writes.load(Ordering::SeqCst)
        ),
        (1, 0)
    );

    let live = run(&pipeline, (), options().give_one(WANTED, 5)).await;
    assert_eq!(
        endings(&live),
        [
            "apply changed: 1 change",
            "check done",
            "notify changed: sent",
            "ready done"
        ]
    );
    assert_eq!(live.changes().next().unwrap().1.to_string(), "set counter: 0 → 5");
    assert_eq!(*live.value(APPLIED).unwrap(), 5);

    let again = run(&pipeline, (), options().give_one(WANTED, 5)).await;
    assert_eq!(again.steps[0].ending.to_string(), "done");
    assert_eq!(
        counter.writes.load(Ordering::SeqCst),
        1,
        "a settled plan does not act"
    );

    let settled = run(&pipeline, (), options().give_one(WANTED, 5).mode(Mode::DryRun)).await;
    assert_eq!(
        settled.step("check").unwrap().ending.to_string(),
        "done",
        "settled values are there in a dry run"
    );
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_fails_is_the_same_failure_dry_and_live() {
    let pipeline = pipeline(&Counter::default());
    for mode in [Mode::DryRun, Mode::Live] {
        let report = run(&pipeline, (), options().give_one(WANTED, 13).mode(mode)).await;
        assert_eq!(
            report.steps[0].ending.to_string(),
            "failed: 13 brings bad luck: choose another number"
        );
        assert_eq!(report.conclusion(), Conclusion::Failed);
    }
}
