//! Timeouts, budgets, cancellation and panics: nothing hangs, nothing is lost, publish always runs.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use evenkeel_steps::{
    Budget, CancelFns, Conclusion, Failure, FailureClass, Observer, Outcome, Pass, Pipeline, Report, Spec,
    StepSpan, step,
};
use evenkeel_telemetry::CancellationToken;

use crate::support::{Frame, after, endings, options, run, run_frame, secs};

fn chain() -> Pipeline<()> {
    let sleep = |spec: Spec<()>, n: u64| {
        spec.run(move |cx, ()| async move {
            cx.sleep(secs(n)).await;
            Ok(Outcome::done())
        })
    };
    Pipeline::builder("chain")
        .step(sleep(step("a"), 10))
        .step(sleep(step("b").after("a"), 10))
        .step(sleep(step("c").after("b"), 10))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_step_that_takes_too_long_fails_as_transient_and_alone() {
    let pipeline = Pipeline::builder("slow")
        .step(step("slow").timeout(secs(5)).run(|cx, ()| async move {
            cx.progress().line("dialling");
            std::future::pending::<()>().await;
            Ok(Outcome::done())
        }))
        .step(step("other").run(|_, ()| async { Ok(Outcome::done()) }))
        .build()
        .unwrap();
    let report = run(&pipeline, (), options()).await;
    assert_eq!(
        endings(&report),
        ["other done", "slow failed: the step did not end within 5s"]
    );
    let slow = report.step("slow").unwrap();
    assert_eq!(
        (slow.duration, slow.progress[0].text.as_str()),
        (secs(5), "dialling")
    );
    assert_eq!(
        report.failures().next().unwrap().1.class(),
        FailureClass::Transient
    );
    assert_eq!(report.requeue().unwrap().at, after(secs(7)));
}

#[tokio::test(start_paused = true)]
async fn a_step_without_a_timeout_of_its_own_has_the_default_one() {
    let pipeline = Pipeline::builder("default")
        .step(step::<()>("hangs").act(|_, ()| async { std::future::pending().await }))
        .build()
        .unwrap();
    let report = run(&pipeline, (), options()).await;
    assert_eq!(report.duration, evenkeel_steps::DEFAULT_STEP_TIMEOUT);
    assert_eq!(report.conclusion(), Conclusion::Failed);
}

#[tokio::test(start_paused = true)]
async fn when_the_budget_is_used_up_running_steps_are_dropped_and_publish_has_its_own_time() {
    let budget = Budget {
        work: secs(15),
        publish: secs(3),
    };
    let report = run(&chain(), (), options().budget(budget)).await;
    assert_eq!(
        endings(&report),
        [
            "a done",
            "b interrupted: the time of the pass was used up",
            "c skipped: blocked by b: interrupted: the time of the pass was used up",
        ]
    );
    assert_eq!(
        (report.duration, report.conclusion()),
        (secs(15), Conclusion::OutOfTime)
    );
    assert_eq!(
        report.requeue().unwrap().at,
        after(secs(17)),
        "what was not done is not forgotten"
    );

    struct Slow;
    impl Pass for Slow {
        type State = ();
        async fn gather(&self) -> Result<Arc<()>, Failure> {
            Ok(Arc::new(()))
        }
        async fn publish(&self, _: &Report<()>) -> Result<(), Failure> {
            std::future::pending().await
        }
    }
    let report = chain().run(&Slow, options().budget(budget)).await;
    assert_eq!(report.duration, secs(18));
    let trouble = report.publish.as_ref().unwrap().trouble.as_ref().unwrap();
    assert_eq!(trouble.failure.message(), "publishing did not end within 3s");
}

#[tokio::test(start_paused = true)]
async fn steps_that_never_wait_meet_the_budget_too() {
    let pipeline = Pipeline::builder("busy")
        .step(step::<()>("a").run(|_, ()| async {
            tokio::time::advance(secs(20)).await;
            Ok(Outcome::done())
        }))
        .step(step("b").run(|_, ()| async { Ok(Outcome::done()) }))
        .build()
        .unwrap();
    let report = run(
        &pipeline,
        (),
        options().budget(Budget {
            work: secs(10),
            publish: secs(1),
        }),
    )
    .await;
    assert_eq!(
        report.step("b").unwrap().ending.to_string(),
        "skipped: the time of the pass was used up"
    );
    assert!(report.requeue().is_some());
}

/// A cancel sign and the switch for it, wired as callers do.
fn switch() -> (CancellationToken, impl evenkeel_steps::Cancel) {
    let token = CancellationToken::new();
    let (asked, awaited) = (token.clone(), token.clone());
    let cancel = CancelFns::new(
        move || asked.is_cancelled(),
        move || Box::pin(awaited.clone().cancelled_owned()),
    );
    (token, cancel)
}

#[tokio::test(start_paused = true)]
async fn cancellation_lets_the_running_step_end_and_starts_no_other() {
    let (token, cancel) = switch();
    let pipeline = chain();
    let frame = Frame::of(());
    let pass = run_frame(&pipeline, &frame, options().cancel(cancel));
    let flip = async {
        tokio::time::sleep(secs(4)).await;
        token.cancel();
    };
    let (report, ()) = tokio::join!(pass, flip);
    assert_eq!(
        endings(&report),
        [
            "a done",
            "b skipped: the pass was cancelled",
            "c skipped: the pass was cancelled",
        ]
    );
    assert_eq!(
        (report.duration, report.conclusion()),
        (secs(10), Conclusion::Cancelled)
    );
    assert_eq!(report.requeue(), None);
}

#[tokio::test(start_paused = true)]
async fn after_the_grace_a_running_step_is_dropped() {
    let (token, cancel) = switch();
    let (pipeline, frame) = (chain(), Frame::of(()));
    let pass = run_frame(&pipeline, &frame, options().cancel(cancel).cancel_grace(secs(2)));
    let flip = async {
        tokio::time::sleep(secs(4)).await;
        token.cancel();
    };
    let (report, ()) = tokio::join!(pass, flip);
    assert_eq!(
        report.steps[0].ending.to_string(),
        "interrupted: the pass was cancelled"
    );
    assert_eq!(
        (report.duration, report.conclusion()),
        (secs(6), Conclusion::Cancelled)
    );
}

#[tokio::test(start_paused = true)]
async fn a_pass_cancelled_before_it_begins_only_publishes() {
    let report = run(&chain(), (), options().cancel(|| true)).await;
    assert!(report.state.is_none(), "nothing was gathered");
    assert_eq!(report.conclusion(), Conclusion::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_sees_the_sign_stops_at_its_own_boundary() {
    let (token, cancel) = switch();
    let pipeline = Pipeline::builder("objects")
        .step(step::<()>("apply").act(|cx, ()| async move {
            for n in 0..10 {
                if cx.is_cancelled() {
                    return Ok(Outcome::stop(format!("stopped after {n} of 10 objects")));
                }
                cx.sleep(secs(1)).await;
            }
            Ok(Outcome::done())
        }))
        .build()
        .unwrap();
    let frame = Frame::of(());
    let pass = run_frame(&pipeline, &frame, options().cancel(cancel));
    let flip = async {
        tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
        token.cancel();
    };
    let (report, ()) = tokio::join!(pass, flip);
    assert_eq!(endings(&report), ["apply stopped: stopped after 3 of 10 objects"]);
    assert_eq!(report.conclusion(), Conclusion::Cancelled);
}

/// Panics when dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("boom in drop");
    }
}

#[tokio::test(start_paused = true)]
async fn panics_anywhere_end_in_the_report() {
    let pipeline = Pipeline::builder("panics")
        .step(
            step::<()>("in-call")
                .run(|_, ()| -> std::future::Ready<Result<Outcome, Failure>> { panic!("at once") }),
        )
        .step(step("in-future").run(|cx, ()| async move {
            cx.sleep(secs(1)).await;
            panic!("later, {}", "formatted")
        }))
        .step(step("in-drop").timeout(secs(1)).run(|cx, ()| async move {
            let _grenade = Grenade;
            cx.sleep(secs(9)).await;
            Ok(Outcome::done())
        }))
        .step(step("with-value").run(|_, ()| async { std::panic::panic_any(7) }))
        .step(step("z-fine").run(|_, ()| async { Ok(Outcome::done()) }))
        .build()
        .unwrap();
    let report = run(&pipeline, (), options()).await;
    assert_eq!(
        endings(&report),
        [
            "in-call failed: the step panicked: at once",
            "in-drop failed: the step panicked: boom in drop",
            "in-future failed: the step panicked: later, formatted",
            "with-value failed: the step panicked: a panic without text",
            "z-fine done",
        ]
    );
    assert!(
        report
            .failures()
            .all(|(_, failure)| failure.class() == FailureClass::Bug)
    );

    struct Broken;
    impl Pass for Broken {
        type State = ();
        async fn gather(&self) -> Result<Arc<()>, Failure> {
            panic!("gather broke")
        }
        async fn publish(&self, _: &Report<()>) -> Result<(), Failure> {
            panic!("publish broke")
        }
    }
    let report = pipeline.run(&Broken, options()).await;
    assert_eq!(
        report.gather.trouble.as_ref().unwrap().failure.message(),
        "gathering panicked: gather broke"
    );
    let publish = report.publish.as_ref().unwrap().trouble.as_ref().unwrap();
    assert_eq!(publish.failure.message(), "publishing panicked: publish broke");
}

#[tokio::test(start_paused = true)]
async fn gathering_cannot_hang() {
    struct Hangs;
    impl Pass for Hangs {
        type State = ();
        async fn gather(&self) -> Result<Arc<()>, Failure> {
            std::future::pending().await
        }
        async fn publish(&self, _: &Report<()>) -> Result<(), Failure> {
            Ok(())
        }
    }
    let report = chain().run(&Hangs, options()).await;
    assert_eq!(report.duration, evenkeel_steps::DEFAULT_GATHER_TIMEOUT);
    assert_eq!(report.conclusion(), Conclusion::Failed);

    let (token, cancel) = switch();
    let pipeline = chain();
    let pass = pipeline.run(&Hangs, options().cancel(cancel).cancel_grace(secs(1)));
    let flip = async {
        tokio::time::sleep(secs(4)).await;
        token.cancel();
    };
    let (report, ()) = tokio::join!(pass, flip);
    assert_eq!(
        (report.duration, report.conclusion()),
        (secs(5), Conclusion::Cancelled)
    );
}

/// Panics at every call, and spans that count polls.
struct Hostile(Arc<AtomicBool>, Arc<Mutex<u32>>);
struct CountingSpan(Arc<Mutex<u32>>);

impl StepSpan for CountingSpan {
    fn within(&self, poll: &mut dyn FnMut()) {
        *self.0.lock().unwrap() += 1;
        poll();
    }
}

impl Observer for Hostile {
    fn step_started(&self, _: &evenkeel_steps::Name, _: &evenkeel_steps::Name) {
        self.0.store(true, Ordering::SeqCst);
        panic!("observer broke");
    }
    fn step_span(&self, _: &evenkeel_steps::Name, _: &evenkeel_steps::Name) -> Option<Box<dyn StepSpan>> {
        Some(Box::new(CountingSpan(self.1.clone())))
    }
}

#[tokio::test(start_paused = true)]
async fn steps_are_polled_inside_their_span_and_outlive_a_broken_observer() {
    let (called, polls) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(0)));
    let observer = Arc::new((
        Hostile(called.clone(), polls.clone()),
        Hostile(called.clone(), polls.clone()),
    ));
    let report = run(&chain(), (), options().observer(observer)).await;
    assert!(called.load(Ordering::SeqCst));
    assert!(
        report.steps.iter().all(|entry| entry.ending.succeeded()),
        "{report}"
    );
    assert_eq!(
        *polls.lock().unwrap(),
        3 * 2 * 2,
        "3 steps, 2 polls each, 2 nested spans"
    );
}
