//! Hooks before and after any step, and on error (L12).

use std::sync::{Arc, Mutex};

use evenkeel_steps::{Bundle, Context, Ending, Failure, Hook, Mode, Outcome, Pipeline, Step, Values, step};
use futures::future::BoxFuture;

use crate::support::{endings, options, run, secs};

/// Writes down what it is called for, and fails where told to.
#[derive(Clone, Default)]
struct Notes {
    name: &'static str,
    lines: Arc<Mutex<Vec<String>>>,
    refuses_before: Option<&'static str>,
    refuses_after: Option<&'static str>,
}

impl Notes {
    fn note(&self, line: String) {
        self.lines.lock().unwrap().push(format!("{}: {line}", self.name));
    }
}

impl Hook<()> for Notes {
    fn before<'a>(&'a self, cx: &'a Context<()>) -> BoxFuture<'a, Result<(), Failure>> {
        self.note(format!("before {}", cx.step()));
        let refused = self.refuses_before == Some(cx.step().as_str());
        Box::pin(async move {
            if refused {
                return Err(Failure::forbidden("locked by another"));
            }
            Ok(())
        })
    }

    fn after<'a>(
        &'a self,
        cx: &'a Context<()>,
        outcome: &'a Outcome<Values>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        self.note(format!("after {} {outcome:?}", cx.step()));
        let refused = self.refuses_after == Some(cx.step().as_str());
        Box::pin(async move {
            if refused {
                return Err(Failure::transient("cannot unlock"));
            }
            Ok(())
        })
    }

    fn on_error<'a>(&'a self, cx: &'a Context<()>, failure: &'a Failure) -> BoxFuture<'a, ()> {
        self.note(format!("error {} {failure}", cx.step()));
        Box::pin(async {})
    }
}

fn pipeline(hooks: &[Notes]) -> Pipeline<()> {
    hooks
        .iter()
        .fold(Pipeline::builder("hooked"), |builder, hook| {
            builder.hook(hook.clone())
        })
        .step(step("a").act(|_, ()| async { Ok(Outcome::changed("x")) }))
        .step(step("b").after("a").run(|_, ()| async { Ok(Outcome::done()) }))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn hooks_nest_around_every_step() {
    let lines = Arc::default();
    let notes = |name| Notes {
        name,
        lines: Arc::clone(&lines),
        ..Notes::default()
    };
    let report = run(&pipeline(&[notes("1"), notes("2")]), (), options()).await;
    assert_eq!(endings(&report), ["a changed: x", "b done"]);
    assert_eq!(
        *lines.lock().unwrap(),
        [
            "1: before a",
            "2: before a",
            "2: after a Changed(\"x\")",
            "1: after a Changed(\"x\")",
            "1: before b",
            "2: before b",
            "2: after b Done",
            "1: after b Done"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_before_keeps_the_step_from_running() {
    let notes = Notes {
        name: "1",
        refuses_before: Some("a"),
        ..Notes::default()
    };
    let report = run(&pipeline(std::slice::from_ref(&notes)), (), options()).await;
    assert_eq!(
        endings(&report),
        [
            "a failed: locked by another",
            "b skipped: blocked by a: failed: locked by another"
        ]
    );
    assert!(
        report.step("a").unwrap().changes.is_empty(),
        "it did not even plan"
    );
    assert_eq!(
        *notes.lines.lock().unwrap(),
        ["1: before a", "1: error a locked by another"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_after_fails_the_step() {
    let notes = Notes {
        name: "1",
        refuses_after: Some("b"),
        ..Notes::default()
    };
    let report = run(&pipeline(std::slice::from_ref(&notes)), (), options()).await;
    assert_eq!(endings(&report), ["a changed: x", "b failed: cannot unlock"]);
    assert_eq!(
        notes.lines.lock().unwrap().last().unwrap(),
        "1: error b cannot unlock"
    );
}

#[tokio::test(start_paused = true)]
async fn failures_timeouts_and_panics_are_told_to_the_hooks() {
    let notes = Notes {
        name: "1",
        ..Notes::default()
    };
    let pipeline = Pipeline::builder("hooked")
        .hook(notes.clone())
        .step(step("fails").run(|_, ()| async { Err::<Outcome, _>(Failure::invalid("no name")) }))
        .step(step("hangs").timeout(secs(5)).run(|_, ()| async {
            std::future::pending::<()>().await;
            Ok(Outcome::done())
        }))
        .step(step("panics").run(|_, ()| async { panic!("oh") }))
        .build()
        .unwrap();
    let report = run(&pipeline, (), options()).await;
    let errors: Vec<String> = notes
        .lines
        .lock()
        .unwrap()
        .iter()
        .filter_map(|line| line.strip_prefix("1: error ").map(str::to_owned))
        .collect();
    assert_eq!(
        errors,
        [
            "fails no name",
            "hangs the step did not end within 5s",
            "panics the step panicked: oh"
        ]
    );
    assert_eq!(report.failures().count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_or_panics_on_error_changes_nothing() {
    struct Bad;
    impl Hook<()> for Bad {
        fn on_error<'a>(&'a self, cx: &'a Context<()>, _: &'a Failure) -> BoxFuture<'a, ()> {
            let hangs = *cx.step() == "a";
            Box::pin(async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                panic!("bad hook");
            })
        }
    }
    let fails = |name: &str| step(name).run(|_, ()| async { Err::<Outcome, _>(Failure::invalid("no")) });
    let pipeline = Pipeline::builder("hooked")
        .hook(Bad)
        .step(fails("a"))
        .step(fails("b"))
        .build()
        .unwrap();
    let report = run(&pipeline, (), options()).await;
    assert_eq!(endings(&report), ["a failed: no", "b failed: no"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_calls_no_hook_and_a_teardown_calls_all() {
    struct Locked(Notes);
    impl Bundle<()> for Locked {
        fn steps(&self) -> Vec<Box<dyn Step<()>>> {
            let made = step("label").act(|_, ()| async { Ok(Outcome::changed("made")) });
            let gone = step("unlabel").act(|_, ()| async { Ok(Outcome::changed("gone")) });
            vec![Box::new(made.torn_down_by(gone))]
        }
        fn hooks(&self) -> Vec<Box<dyn Hook<()>>> {
            vec![Box::new(self.0.clone())]
        }
    }
    let notes = Notes {
        name: "1",
        ..Notes::default()
    };
    let pipeline = Pipeline::builder("hooked")
        .bundle(&Locked(notes.clone()))
        .build()
        .unwrap();
    let report = run(&pipeline, (), options().mode(Mode::DryRun)).await;
    assert!(matches!(report.step("label").unwrap().ending, Ending::Planned));
    assert_eq!(notes.lines.lock().unwrap().len(), 0);

    let report = run(&pipeline.teardown().unwrap(), (), options()).await;
    assert_eq!(endings(&report), ["unlabel changed: gone"]);
    assert_eq!(notes.lines.lock().unwrap().len(), 2);
}
