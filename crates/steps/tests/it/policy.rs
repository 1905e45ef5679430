//! What the guard forbids, what people are told, and what is due later (E8, E10, E11).

use evenkeel_steps::{
    Change, Conclusion, Condition, ConditionReason, Decision, Failure, Freshness, Guard, Memo, Outcome,
    Pipeline, Predicate, TOLERATED_ATTEMPTS, Verdict, step,
};

use crate::support::{BEGIN, Frame, after, endings, options, run, run_frame, secs};

#[tokio::test(start_paused = true)]
async fn a_step_acts_only_on_what_the_guard_permits() {
    let plans = |name: &str, verbs: &'static [&'static str]| {
        step(name).decide(move |_, ()| async move {
            let changes = verbs
                .iter()
                .map(|verb| Change::new(*verb, "project web"))
                .collect();
            Ok(Decision::act(changes, async { Ok(Outcome::changed("written")) }))
        })
    };
    let pipeline = Pipeline::builder("policies")
        .step(plans("update", &["update"]))
        .step(plans("both", &["update", "delete"]))
        .step(
            step("later")
                .after("both")
                .run(|_, ()| async { Ok(Outcome::done()) }),
        )
        .build()
        .unwrap();
    let frame = Frame::guarded((), |()| {
        Guard::forbid(["delete", "archive"], "deletionPolicy is Retain")
    });
    let report = run_frame(&pipeline, &frame, options()).await;
    assert_eq!(
        endings(&report),
        [
            "both skipped: not permitted to delete project web: deletionPolicy is Retain",
            "later done",
            "update changed: written"
        ]
    );
    assert_eq!(report.step("both").unwrap().changes.len(), 2, "shown, not made");
    assert_eq!(report.conclusion(), Conclusion::Changed);

    let report = run_frame(
        &pipeline,
        &Frame::guarded((), |()| Guard::forbid(["update", "delete"], "observe only")),
        options(),
    )
    .await;
    assert_eq!(report.conclusion(), Conclusion::Planned, "something is open");
}

#[tokio::test(start_paused = true)]
async fn what_is_due_later_is_exact_and_the_earliest_wins() {
    let pipeline = Pipeline::builder("tokens")
        .step(step("token").run(|cx, ()| async move {
            cx.due(after(secs(7200)), "the token ends");
            cx.due(after(secs(3600)), "the token is renewed");
            cx.due(after(secs(5400)), "the token is warned of");
            Ok(Outcome::done())
        }))
        .build()
        .unwrap();
    let requeue = run(&pipeline, (), options()).await.requeue().unwrap();
    assert_eq!(
        (requeue.at, requeue.wanted_by.as_str(), requeue.reason.as_str()),
        (after(secs(3600)), "token", "the token is renewed")
    );

    let pipeline = Pipeline::builder("tokens")
        .step(step("token").run(|cx, ()| async move {
            cx.due(after(secs(3600)), "the token is renewed");
            Err::<Outcome, _>(Failure::rate_limited(secs(60), "slow down"))
        }))
        .build()
        .unwrap();
    let requeue = run(&pipeline, (), options()).await.requeue().unwrap();
    assert_eq!(
        (requeue.at, requeue.reason.as_str()),
        (after(secs(60)), "failed: slow down")
    );
}

#[tokio::test(start_paused = true)]
async fn conditions_tell_people_what_is_the_matter() {
    let failing = |failure: fn() -> Failure, attempt| async move {
        let pipeline = Pipeline::builder("conditions")
            .step(
                step("repo")
                    .condition("RepoReady")
                    .run(|_, ()| async { Ok(Outcome::done()) }),
            )
            .step(
                step("keys")
                    .condition("RepoReady")
                    .run(move |_, ()| async move { Err::<Outcome, _>(failure()) }),
            )
            .step(
                step("files")
                    .condition("FilesSynced")
                    .after("keys")
                    .run(|_, ()| async { Ok(Outcome::done()) }),
            )
            .step(
                step("vault")
                    .condition("VaultReady")
                    .when(Predicate::new("vault", |()| false))
                    .run(|_, ()| async { Ok(Outcome::done()) }),
            )
            .step(step("nameless").run(|_, ()| async { Ok(Outcome::done()) }))
            .build()
            .unwrap();
        run(&pipeline, (), options().attempt(attempt, 0.0))
            .await
            .conditions()
    };
    let condition = |name, verdict, reason, message: &str| Condition {
        name,
        verdict,
        reason,
        message: message.to_owned(),
    };

    let all = failing(|| Failure::invalid("no such key type"), 0).await;
    assert_eq!(
        all,
        [
            condition(
                "FilesSynced",
                Verdict::Undecided,
                ConditionReason::Blocked,
                "files skipped: blocked by keys: failed: no such key type"
            ),
            condition(
                "RepoReady",
                Verdict::NotMet,
                ConditionReason::Invalid,
                "keys failed: no such key type"
            ),
            condition("VaultReady", Verdict::Met, ConditionReason::NotApplicable, ""),
        ]
    );

    for (attempt, verdict) in [
        (0, Verdict::Undecided),
        (TOLERATED_ATTEMPTS - 1, Verdict::Undecided),
        (TOLERATED_ATTEMPTS, Verdict::NotMet),
    ] {
        let all = failing(|| Failure::transient("no answer"), attempt).await;
        assert_eq!(all[1].verdict, verdict, "attempt {attempt}");
        assert_eq!(all[1].reason, ConditionReason::Failing);
    }
    let all = failing(|| Failure::conflict("written by another"), 9).await;
    assert_eq!(
        all[1].verdict,
        Verdict::Undecided,
        "a conflict is no news, however often"
    );
}

#[test]
fn a_memo_counts_while_its_inputs_are_the_same_and_it_is_young() {
    let memo = Memo {
        input: "abc".to_owned(),
        seen_at: BEGIN,
        value: 7,
    };
    let freshness = Freshness {
        ttl: secs(100),
        spread: 0.0,
    };
    assert_eq!(memo.fresh("abc", freshness, after(secs(99))), Some(&7));
    assert_eq!(memo.fresh("abd", freshness, after(secs(1))), None);
    assert_eq!(memo.fresh("abc", freshness, after(secs(100))), None);
    assert_eq!(
        memo.fresh("abc", freshness, BEGIN - secs(1)),
        None,
        "the clock was set back"
    );

    let spread = Freshness {
        spread: 0.5,
        ..freshness
    };
    let expiries: std::collections::BTreeSet<_> = (0..50)
        .map(|number| {
            let memo = Memo {
                input: format!("object-{number}"),
                seen_at: BEGIN,
                value: (),
            };
            let at = memo.expires(spread);
            assert!((after(secs(50))..=after(secs(100))).contains(&at), "{at}");
            assert_eq!(at, memo.expires(spread), "the same for whoever asks");
            at
        })
        .collect();
    assert!(expiries.len() > 45, "they come apart: {}", expiries.len());
}
