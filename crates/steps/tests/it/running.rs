//! Order, slots, selection, and what stops what.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel_steps::{
    Conclusion, Context, Decision, Ending, Failure, Outcome, Pipeline, Predicate, Requeue, Slot, Spec, Step,
    Values, step,
};
use futures::future::BoxFuture;

use crate::support::{Diary, after, endings, options, run, secs};

const WORD: Slot<String> = Slot::new("word");
const COUNT: Slot<usize> = Slot::new("count");

fn ok(name: &str) -> Spec<()> {
    step(name)
}

#[tokio::test(start_paused = true)]
async fn without_edges_weights_and_names_order_the_steps() {
    let diary = Arc::new(Diary::default());
    let idle = |spec: Spec<()>| spec.run(|_, ()| async { Ok(Outcome::done()) });
    let pipeline = Pipeline::builder("weights")
        .step(idle(ok("c").weight(10)))
        .step(idle(ok("b").weight(-1)))
        .step(idle(ok("d")))
        .step(idle(ok("a").weight(10)))
        .step(idle(ok("late").weight(-100).after("c")))
        .build()
        .unwrap();
    let report = run(&pipeline, (), options().observer(diary.clone())).await;
    assert_eq!(diary.started(), ["b", "d", "a", "c", "late"]);
    assert_eq!(report.conclusion(), Conclusion::Unchanged);
    assert_eq!(report.requeue(), None);
    let static_order: Vec<String> = pipeline.steps().map(ToString::to_string).collect();
    assert_eq!(diary.started(), static_order);
}

#[tokio::test(start_paused = true)]
async fn slots_carry_values_and_order() {
    let pipeline = Pipeline::builder("slots")
        .step(
            step::<u32>("a-consumer")
                .needs((WORD, COUNT))
                .provides(Slot::<String>::new("line"))
                .run(|cx, (word, count)| async move {
                    Ok(Outcome::changed_with(
                        format!("{word}×{count}@{}", cx.state()),
                        "wrote a line",
                    ))
                }),
        )
        .step(
            step("z-word")
                .provides(WORD)
                .run(|_, ()| async { Ok(Outcome::Done("hi".to_owned())) }),
        )
        .given(COUNT)
        .build()
        .unwrap();
    let report = run(&pipeline, 7, options().give_one(COUNT, 3)).await;
    assert_eq!(
        endings(&report),
        ["z-word done", "a-consumer changed: wrote a line"]
    );
    assert_eq!(*report.value(Slot::<String>::new("line")).unwrap(), "hi×3@7");
    assert_eq!(*report.value(COUNT).unwrap(), 3);
    assert!(
        report.value(Slot::<u8>::new("line")).is_none(),
        "another type is another slot"
    );
    assert_eq!(report.conclusion(), Conclusion::Changed);
}

#[tokio::test(start_paused = true)]
async fn what_the_caller_must_give_is_checked_before_any_step_runs() {
    let pipeline = Pipeline::builder("given")
        .given(COUNT)
        .step(
            step::<()>("only")
                .needs(COUNT)
                .run(|_, _| async { Ok(Outcome::done()) }),
        )
        .build()
        .unwrap();
    for (given, message) in [
        (Values::new(), "the caller does not give slot count: usize"),
        (
            Values::new().with(COUNT, 1).with(COUNT, 2),
            "the caller gives slot count: usize twice",
        ),
        (
            Values::new().with(COUNT, 1).with(WORD, String::new()),
            "the caller gives slot word: alloc::string::String, which the pipeline does not take",
        ),
    ] {
        let report = run(&pipeline, (), options().give(given)).await;
        assert_eq!(report.guard_trouble.as_ref().unwrap().failure.message(), message);
        assert_eq!(
            endings(&report),
            [format!("only skipped: no step may run: {message}")]
        );
        assert_eq!(report.conclusion(), Conclusion::Failed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_skipped_provider_empties_its_slot_but_plain_edges_hold() {
    let off = Predicate::new("on", |on: &bool| *on);
    let pipeline = Pipeline::builder("skips")
        .step(
            step("provider")
                .when(off)
                .provides(WORD)
                .run(|_, ()| async { Ok(Outcome::Done(String::new())) }),
        )
        .step(
            step("needs")
                .needs(WORD)
                .run(|_, _| async { Ok(Outcome::done()) }),
        )
        .step(step("may-use").needs(WORD.optional()).run(|_, word| async move {
            Ok(Outcome::changed(if word.is_some() { "with" } else { "without" }))
        }))
        .step(
            step("plain")
                .after("provider")
                .run(|_, ()| async { Ok(Outcome::done()) }),
        )
        .step(
            step("strict")
                .after_success("provider")
                .run(|_, ()| async { Ok(Outcome::done()) }),
        )
        .step(
            step("below")
                .after("needs")
                .run(|_, ()| async { Ok(Outcome::done()) }),
        )
        .build()
        .unwrap();
    let report = run(&pipeline, false, options()).await;
    assert_eq!(
        endings(&report),
        [
            "provider skipped: on is false",
            "may-use changed: without",
            "needs skipped: no word: provider was skipped: on is false",
            "below done",
            "plain done",
            "strict skipped: only after success of provider: skipped: on is false",
        ]
    );
    let report = run(&pipeline, true, options()).await;
    assert!(
        report.steps.iter().all(|entry| entry.ending.succeeded()),
        "{report}"
    );
}

#[tokio::test(start_paused = true)]
async fn failures_and_waits_block_what_is_below_them_through_skipped_steps_too() {
    let never = Predicate::new("never", |(): &()| false);
    let done = |spec: Spec<()>| spec.run(|_, ()| async { Ok(Outcome::done()) });
    let pipeline = Pipeline::builder("blocks")
        .step(ok("fails").run(|_, ()| async { Err(Failure::invalid("bad values")) }))
        .step(done(ok("unselected").after("fails").when(never)))
        .step(done(ok("below").after("unselected")))
        .step(ok("waits").run(|_, ()| async { Ok(Outcome::wait(secs(30), "2 of 3 replicas")) }))
        .step(done(ok("after-wait").after("waits")))
        .step(done(ok("free")))
        .build()
        .unwrap();
    let report = run(&pipeline, (), options()).await;
    assert_eq!(
        endings(&report),
        [
            "fails failed: bad values",
            "free done",
            "unselected skipped: never is false",
            "below skipped: blocked by fails: failed: bad values",
            "waits waiting: 2 of 3 replicas",
            "after-wait skipped: blocked by waits: waiting: 2 of 3 replicas",
        ]
    );
    assert_eq!(report.conclusion(), Conclusion::Failed);
    assert_eq!(
        report
            .failures()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["fails"]
    );
    assert_eq!(
        report.requeue(),
        Some(Requeue {
            at: after(secs(30)),
            wanted_by: "waits".to_owned(),
            reason: "waiting: 2 of 3 replicas".to_owned()
        }),
        "a failure that no retry helps does not swallow the wait"
    );
}

#[tokio::test(start_paused = true)]
async fn the_smallest_delay_wins() {
    let fail = |name: &str, failure: Failure| {
        let spec: Spec<()> = step(name);
        spec.run(move |_, ()| {
            let failure = failure.clone();
            async move { Err(failure) }
        })
    };
    let pipeline = Pipeline::builder("delays")
        .step(fail("limited", Failure::rate_limited(after(secs(40)), "429")))
        .step(fail("forbidden", Failure::forbidden("403")))
        .step(fail("transient", Failure::transient("connection reset")))
        .step(ok("waits").run(|_, ()| async { Ok(Outcome::wait(secs(3), "soon")) }))
        .build()
        .unwrap();
    let report = run(&pipeline, (), options()).await;
    assert_eq!(
        report.requeue().unwrap().wanted_by,
        "transient",
        "2 s is less than 3 s"
    );
    let report = run(&pipeline, (), options().attempt(6, 0.0)).await;
    assert_eq!(
        report.requeue().unwrap().wanted_by,
        "waits",
        "back-off has grown past 3 s"
    );
    assert_eq!(report.step("limited").unwrap().retry_at, Some(after(secs(40))));
}

#[tokio::test(start_paused = true)]
async fn stop_ends_the_pass_cleanly() {
    let pipeline = Pipeline::builder("stop")
        .step(ok("a").run(|_, ()| async { Ok(Outcome::changed("finalizer added")) }))
        .step(
            ok("b")
                .after("a")
                .run(|_, ()| async { Ok(Outcome::stop("a pass of its own")) }),
        )
        .step(ok("c").run(|_, ()| async { Ok(Outcome::done()) }))
        .build()
        .unwrap();
    let report = run(&pipeline, (), options()).await;
    assert_eq!(
        endings(&report),
        [
            "a changed: finalizer added",
            "b stopped: a pass of its own",
            "c skipped: b ended the pass: a pass of its own"
        ]
    );
    assert_eq!(
        (report.conclusion(), report.requeue()),
        (Conclusion::Stopped, None)
    );
}

#[tokio::test(start_paused = true)]
async fn independent_steps_run_at_once_when_allowed_and_never_more_than_allowed() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut builder = Pipeline::builder("parallel");
    for name in ["a", "b", "c", "d", "e"] {
        let (running, most) = (running.clone(), most.clone());
        builder = builder.step(ok(name).run(move |cx, ()| {
            let (running, most) = (running.clone(), most.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                cx.sleep(secs(10)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(Outcome::done())
            }
        }));
    }
    let pipeline = builder.build().unwrap();
    for (parallelism, seconds) in [(0, 50), (1, 50), (2, 30), (3, 20), (9, 10)] {
        most.store(0, Ordering::SeqCst);
        let report = run(&pipeline, (), options().parallelism(parallelism)).await;
        assert_eq!(report.duration, secs(seconds));
        assert_eq!(most.load(Ordering::SeqCst), parallelism.clamp(1, 5));
        let sum: std::time::Duration = report.steps.iter().map(|entry| entry.duration).sum();
        assert_eq!(sum, secs(50));
    }
    let report = run(&pipeline, (), options().parallelism(2)).await;
    let starts: Vec<_> = report.steps.iter().map(|entry| entry.started.unwrap()).collect();
    assert_eq!(starts, [0, 0, 10, 10, 20].map(|n| after(secs(n))));
}

/// A step as a type of its own, with mistakes.
struct Careless(&'static str);

impl Step<()> for Careless {
    fn spec(&self) -> Spec<()> {
        step("careless").needs(COUNT.optional()).provides(WORD).declare()
    }

    fn decide<'a>(&'a self, cx: Context<()>) -> BoxFuture<'a, Result<Decision<'a, Values>, Failure>> {
        Box::pin(async move {
            Ok(Decision::End(Outcome::Done(match self.0 {
                "right" => Values::new().with(WORD, "w".to_owned()),
                "forgets" => Values::new(),
                "undeclared" => Values::new()
                    .with(WORD, "w".to_owned())
                    .with(Slot::new("other"), 1),
                "twice" => Values::new()
                    .with(WORD, "w".to_owned())
                    .with(WORD, "v".to_owned()),
                "wrong type" => Values::new().with(Slot::new("word"), 1),
                "reads" => Values::new().with(WORD, cx.get(WORD)?.to_string()),
                "reads empty" => Values::new().with(WORD, cx.get(COUNT)?.to_string()),
                other => panic!("{other}"),
            })))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_hand_written_step_that_breaks_its_word_is_a_bug_with_its_name() {
    for (mistake, ending) in [
        ("right", "done"),
        (
            "forgets",
            "failed: step careless is done, but did not hand over slot word: alloc::string::String",
        ),
        (
            "undeclared",
            "failed: step careless hands over slot other: i32, which it does not declare, or twice",
        ),
        (
            "twice",
            "failed: step careless hands over slot word: alloc::string::String, which it does not declare, or twice",
        ),
        (
            "wrong type",
            "failed: step careless hands over slot word: i32, which it does not declare, or twice",
        ),
        (
            "reads",
            "failed: step careless reads slot word: alloc::string::String without declaring it",
        ),
        (
            "reads empty",
            "failed: step careless reads the optional slot count, which is empty",
        ),
        ("panics", "failed: the step panicked: panics"),
    ] {
        let steps: Vec<Box<dyn Step<()>>> = vec![Box::new(Careless(mistake))];
        let pipeline = Pipeline::builder("careless").steps(steps).build().unwrap();
        let report = run(&pipeline, (), options()).await;
        assert_eq!(report.steps[0].ending.to_string(), ending);
    }
}

#[tokio::test(start_paused = true)]
async fn the_observer_hears_everything_and_the_timeline_keeps_progress() {
    let diary = Arc::new(Diary::default());
    let pipeline = Pipeline::builder("op")
        .step(ok("apply").run(|cx, ()| async move {
            cx.progress().line("applied 1 of 2");
            cx.sleep(secs(2)).await;
            cx.progress().line("applied 2 of 2");
            Ok(Outcome::changed("2 objects created"))
        }))
        .step(ok("chatty").after("apply").run(|cx, ()| async move {
            for n in 0..evenkeel_steps::MAX_PROGRESS_LINES + 3 {
                cx.progress().line(format!("{n}"));
            }
            cx.progress()
                .line("ä".repeat(evenkeel_steps::MAX_PROGRESS_LINE_BYTES));
            Ok(Outcome::done())
        }))
        .step(
            ok("z-off")
                .when(Predicate::new("on", |(): &()| false))
                .run(|_, ()| async { Ok(Outcome::done()) }),
        )
        .build()
        .unwrap();
    let report = run(&pipeline, (), options().observer(diary.clone())).await;

    let heard: Vec<String> = diary
        .lines()
        .into_iter()
        .filter(|line| !line.starts_with("progress chatty"))
        .collect();
    assert_eq!(
        heard,
        [
            "pass op Live",
            "start apply",
            "progress apply: applied 1 of 2",
            "progress apply: applied 2 of 2",
            "end apply changed 2s",
            "start chatty",
            "end chatty done 0ns",
            "skip z-off not_selected",
            "over changed 2s",
        ]
    );
    let apply = report.step("apply").unwrap();
    assert_eq!((apply.started, apply.duration), (Some(after(secs(0))), secs(2)));
    let lines: Vec<_> = apply
        .progress
        .iter()
        .map(|line| (line.at, line.text.as_str()))
        .collect();
    assert_eq!(
        lines,
        [
            (after(secs(0)), "applied 1 of 2"),
            (after(secs(2)), "applied 2 of 2")
        ]
    );
    let chatty = report.step("chatty").unwrap();
    assert_eq!(chatty.progress.len(), evenkeel_steps::MAX_PROGRESS_LINES);
    assert_eq!(
        (chatty.progress_dropped, chatty.progress[0].text.as_str()),
        (4, "4")
    );
    let long = &chatty.progress.last().unwrap().text;
    assert!(long.ends_with("ä…") && long.len() <= evenkeel_steps::MAX_PROGRESS_LINE_BYTES + '…'.len_utf8());
    assert!(matches!(report.step("z-off").unwrap().ending, Ending::Skipped(_)));
    assert_eq!(report.step("z-off").unwrap().started, None);
}
