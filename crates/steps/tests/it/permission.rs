//! Steps ask for what they declared and for nothing else (E2, E14), and a plan that was approved is carried out as it was (E12).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use evenkeel_steps::{
    Change, Conclusion, Decision, Failure, FailureClass, Guard, Mode, Outcome, Permission, Pipeline, Step,
    ask, only_reading, step,
};

use crate::support::{Frame, endings, options, run, run_frame};

fn look() -> Permission {
    Permission::read("mail", "read", "boxes")
}

fn send() -> Permission {
    Permission::write("mail", "send", "news")
}

/// Looks, plans and sends, and asks for each.
fn sender(name: &str, permissions: &[Permission], asks_early: bool) -> impl Step<()> + use<> {
    step::<()>(name)
        .may(permissions.to_vec())
        .decide(move |_, ()| async move {
            ask("mail", "read", "boxes")?;
            if asks_early {
                ask("mail", "send", "news")?;
            }
            Ok(Decision::act(vec![Change::new("send", "news")], async {
                ask("mail", "send", "news")?;
                Ok(Outcome::changed("sent"))
            }))
        })
}

#[tokio::test(start_paused = true)]
async fn a_step_is_refused_what_it_did_not_declare_and_writes_before_it_acts() {
    let pipeline = Pipeline::builder("mail")
        .step(sender("all", &[look(), send()], false))
        .step(sender("early", &[look(), send()], true))
        .step(sender("only-looks", &[look()], false))
        .step(sender("undeclared", &[], false))
        .build()
        .unwrap();
    let report = run(&pipeline, (), options()).await;
    assert_eq!(
        endings(&report),
        [
            "all changed: sent",
            "early failed: step early asks to send news (mail) before it acts",
            "only-looks failed: step only-looks asks to send news (mail), which it does not declare",
            "undeclared failed: step undeclared asks to read boxes (mail), which it does not declare",
        ]
    );
    assert!(
        report
            .failures()
            .all(|(_, failure)| failure.class() == FailureClass::Bug)
    );
    let planned = run(&pipeline, (), options().mode(Mode::DryRun)).await;
    assert_eq!(
        endings(&planned)[1..3],
        [
            "early failed: step early asks to send news (mail) before it acts".to_owned(),
            "only-looks planned".to_owned()
        ]
    );
    // Whoever is no step asks for what he likes.
    ask("mail", "send", "news").unwrap();
}

#[tokio::test(start_paused = true)]
async fn steps_side_by_side_are_told_apart_and_panics_leave_nothing_behind() {
    let patient = |name: &'static str, permission: Permission, verb: &'static str, target: &'static str| {
        step::<()>(name).may([permission]).act(move |_, ()| async move {
            for _ in 0..10 {
                tokio::task::yield_now().await;
                ask("mail", verb, target)?;
            }
            assert!(name != "breaks", "on purpose");
            Ok(Outcome::changed(name))
        })
    };
    let pipeline = Pipeline::builder("mail")
        .step(patient("breaks", look(), "read", "boxes"))
        .step(patient("reads", look(), "read", "boxes"))
        .step(patient("sends", send(), "send", "news"))
        .build()
        .unwrap();
    let report = run(&pipeline, (), options().parallelism(3)).await;
    assert_eq!(
        endings(&report),
        [
            "breaks failed: the step panicked: on purpose",
            "reads changed: reads",
            "sends changed: sends"
        ]
    );
    ask("mail", "delete", "everything").unwrap();
}

#[tokio::test]
async fn who_gathers_may_ask_for_what_is_declared_and_write_nothing() {
    let asked = only_reading("gather", vec![look(), send()], async {
        ask("mail", "read", "boxes").unwrap();
        let early = ask("mail", "send", "news").unwrap_err();
        let unknown = ask("mail", "delete", "boxes").unwrap_err();
        [early, unknown].map(|failure: Failure| failure.to_string())
    })
    .await;
    assert_eq!(
        asked,
        [
            "gather asks to send news (mail) before it acts",
            "gather asks to delete boxes (mail), which it does not declare"
        ]
    );
}

#[test]
fn a_pipeline_tells_what_its_steps_ask_for() {
    let removal = sender("remove", &[look()], false);
    let pipeline = Pipeline::builder("mail")
        .step(
            step::<()>("send")
                .may([look()])
                .may([send()])
                .run(|_, ()| async { Ok(Outcome::done()) })
                .torn_down_by(removal),
        )
        .build()
        .unwrap();
    let told = |pipeline: &Pipeline<()>| {
        let permissions = pipeline.permissions();
        permissions
            .map(|(step, permission)| format!("{step} {permission}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&pipeline), ["send mail: read boxes", "send mail: send news"]);
    assert_eq!(told(&pipeline.teardown().unwrap()), ["remove mail: read boxes"]);
    let text = pipeline.describe().to_string();
    assert!(text.contains("       may      mail: send news\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn of_an_approved_plan_each_step_does_what_was_approved_and_nothing_else() {
    let pages = Arc::new(AtomicU32::new(1));
    let writer = |name: &'static str| {
        let pages = Arc::clone(&pages);
        step::<()>(name).decide(move |_, ()| {
            let pages = pages.load(Ordering::SeqCst);
            async move {
                let plan = vec![Change::new("print", format!("{pages} pages"))];
                Ok(Decision::act(
                    plan,
                    async move { Ok(Outcome::changed("printed")) },
                ))
            }
        })
    };
    let pipeline = Pipeline::builder("print")
        .step(writer("one"))
        .step(writer("two"))
        .build()
        .unwrap();
    let approved = || {
        Guard::approved(
            [("one".to_owned(), vec![Change::new("print", "1 pages")])],
            "that was approved",
        )
    };
    let report = run_frame(&pipeline, &Frame::guarded((), move |()| approved()), options()).await;
    assert_eq!(
        endings(&report),
        [
            "one changed: printed",
            "two skipped: not permitted to print 1 pages: that was approved"
        ]
    );
    assert_eq!(report.conclusion(), Conclusion::Changed);
    // Meanwhile it would do something else.
    pages.store(2, Ordering::SeqCst);
    let report = run_frame(&pipeline, &Frame::guarded((), move |()| approved()), options()).await;
    assert!(
        report.steps.iter().all(|entry| entry.ending.label() == "skipped"),
        "{report}"
    );
}
