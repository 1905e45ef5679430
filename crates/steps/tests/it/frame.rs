//! Gather, guard and publish.

use evenkeel_steps::{
    Conclusion, Failure, FailureClass, Guard, Mode, Outcome, Pipeline, Predicate, Report, Spec, step,
};

use crate::support::{Frame, after, endings, options, run_frame, secs};

fn three() -> Pipeline<()> {
    let done = |spec: Spec<()>| spec.act(|_, ()| async { Ok(Outcome::changed("x")) });
    Pipeline::builder("frame")
        .step(done(step("a")))
        .step(done(step("b").after("a")))
        .step(done(step("c").after("b")))
        .build()
        .unwrap()
}

async fn with_guard(guard: impl Fn() -> Guard + Send + Sync + 'static) -> Report<()> {
    run_frame(&three(), &Frame::guarded((), move |()| guard()), options()).await
}

#[tokio::test(start_paused = true)]
async fn the_guard_can_restrict_and_stop() {
    let report = with_guard(|| Guard::only(["b"], "deleting")).await;
    assert_eq!(
        endings(&report),
        [
            "a skipped: left out: deleting",
            "b changed: x",
            "c skipped: left out: deleting"
        ]
    );

    let report = with_guard(|| Guard::except(["a", "c"], "protected")).await;
    assert_eq!(report.step("b").unwrap().ending.label(), "changed");
    assert_eq!(
        report.step("c").unwrap().ending.to_string(),
        "skipped: left out: protected"
    );

    let report = with_guard(|| {
        Guard::except(["a"], "one")
            .and(Guard::plan_only("two"))
            .and(Guard::Proceed)
    })
    .await;
    assert_eq!(
        endings(&report),
        ["a skipped: left out: one", "b planned", "c planned"]
    );
    assert_eq!(report.mode, Mode::DryRun);

    let report = with_guard(|| {
        Guard::Proceed
            .and(Guard::stop_until(after(secs(60)), "suspended"))
            .and(Guard::plan_only("x"))
    })
    .await;
    assert!(
        endings(&report)
            .iter()
            .all(|line| line.ends_with("skipped: no step may run: suspended")),
        "{report}"
    );
    assert_eq!(report.conclusion(), Conclusion::Stopped);
    let requeue = report.requeue().unwrap();
    assert_eq!(
        (requeue.at, requeue.wanted_by.as_str()),
        (after(secs(60)), "guard")
    );

    let report = with_guard(|| Guard::stop("deleted")).await;
    assert_eq!(
        (report.conclusion(), report.requeue()),
        (Conclusion::Stopped, None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_names_an_unknown_step_or_panics_lets_nothing_through() {
    let report = with_guard(|| Guard::only(["bee"], "deleting")).await;
    let trouble = report.guard_trouble.as_ref().unwrap();
    assert_eq!(
        trouble.failure.message(),
        "the guard restricts the pass (deleting) and names step \"bee\", but there is no such step"
    );
    assert_eq!(report.conclusion(), Conclusion::Failed);
    assert_eq!(report.requeue().unwrap().wanted_by, "guard");
    assert!(report.steps.iter().all(|entry| entry.started.is_none()));

    let report = with_guard(|| panic!("guard broke")).await;
    assert_eq!(
        report.guard_trouble.as_ref().unwrap().failure.message(),
        "the guard panicked: guard broke"
    );
    assert!(report.steps.iter().all(|entry| entry.started.is_none()));
}

#[tokio::test(start_paused = true)]
async fn without_a_snapshot_no_step_runs_and_the_report_is_still_published() {
    let frame = Frame {
        state: Err(Failure::transient("no route to host")),
        ..Frame::of(())
    };
    let report = run_frame(&three(), &frame, options()).await;
    assert_eq!(
        frame.published()[0],
        "frame: failed\
         \n  (gather)  failed: no route to host\
         \n  a  skipped: the state could not be read: no route to host\
         \n  b  skipped: the state could not be read: no route to host\
         \n  c  skipped: the state could not be read: no route to host\n"
    );
    assert_eq!(report.requeue().unwrap().at, after(secs(2)));
    assert!(report.state.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_publish_that_fails_is_a_failure_with_a_retry() {
    let frame = Frame {
        publish: Err(Failure::conflict("status was written")),
        ..Frame::of(())
    };
    let report = run_frame(&three(), &frame, options()).await;
    assert_eq!(report.conclusion(), Conclusion::Failed);
    assert_eq!(report.requeue().unwrap().wanted_by, "publish");
    assert!(
        report
            .to_string()
            .ends_with("  (publish)  failed: status was written\n")
    );
}

#[tokio::test(start_paused = true)]
async fn a_predicate_that_panics_fails_its_step_alone() {
    let bad = Predicate::new("bad", |(): &()| panic!("no"));
    let pipeline = Pipeline::builder("predicates")
        .step(step("a").when(bad).run(|_, ()| async { Ok(Outcome::done()) }))
        .step(step("b").after("a").run(|_, ()| async { Ok(Outcome::done()) }))
        .step(step("c").run(|_, ()| async { Ok(Outcome::done()) }))
        .build()
        .unwrap();
    let report = run_frame(&pipeline, &Frame::of(()), options()).await;
    assert_eq!(
        endings(&report),
        [
            "a failed: the predicate bad panicked: no",
            "b skipped: blocked by a: failed: the predicate bad panicked: no",
            "c done"
        ]
    );
    assert_eq!(report.failures().next().unwrap().1.class(), FailureClass::Bug);
}
