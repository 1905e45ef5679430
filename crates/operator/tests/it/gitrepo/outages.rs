//! A host that is down, or has had enough, is left alone by all objects; those of another host go on (E13).

use std::num::NonZeroU32;

use evenkeel_operator::GitRepoSettings;
use evenkeel_operator::resources::ConditionStatus;
use evenkeel_steps::Conclusion;
use evenkeel_testkit::{CallFault, FaultProxy};
use jiff::SignedDuration;
use serde_json::json;

use super::World;
use crate::git::{Site, at_every_host};

at_every_host!(
    a_host_that_is_down_is_called_now_and_then_and_others_as_ever,
    a_host_that_asks_for_a_pause_gets_it_from_all_objects,
    a_secret_that_was_mended_is_tried_at_once,
    a_host_gets_no_more_calls_in_a_second_than_it_is_allowed,
);

/// How many objects there are at the host in question.
const OBJECTS: usize = 12;

async fn a_host_that_is_down_is_called_now_and_then_and_others_as_ever(site: &Site) {
    let world = World::new(site).await;
    let down = FaultProxy::before(&site.url()).await;
    let mut secret = world.host_secret();
    secret["endpoint"] = json!(down.url());
    world.secret("down", &secret).await;
    for number in 0..OBJECTS {
        let host = json!({ "apiSecretRef": { "name": "down" } });
        world.write(&format!("d-{number}"), host).await;
    }
    let name = |number: usize| format!("d-{number}");
    down.fail_all(Some(CallFault::InternalError));
    for number in 0..OBJECTS {
        let passed = world.pass(&name(number)).await;
        assert_eq!(passed.conclusion, Some(Conclusion::Failed), "{}", passed.timeline);
        assert!(passed.due.is_some());
    }
    // Five find out for all.
    assert_eq!(down.requests(), 5);
    world.write("elsewhere", json!({})).await;
    world.converge("elsewhere").await;
    // It is told, by a text that stays the same: the status is not written at each pass.
    for _ in 0..4 {
        let passed = world.pass("d-9").await;
        assert!(passed.due.unwrap().reason.contains("is left alone for now"));
    }
    world
        .assert_condition(
            "d-9",
            "RepoReady",
            ConditionStatus::False,
            "is left alone for now",
        )
        .await;
    let writes = |from: usize| {
        let calls = world.kubernetes.passed();
        calls[from..]
            .iter()
            .filter(|call| call.starts_with("PATCH"))
            .count()
    };
    let from = world.kubernetes.passed().len();
    world.pass("d-9").await;
    assert_eq!(writes(from), 0);
    // One tries, in vain; all others go without.
    let before = down.requests();
    world.clock.advance(SignedDuration::from_secs(10));
    for number in 0..OBJECTS {
        world.pass(&name(number)).await;
    }
    assert_eq!(down.requests(), before + 1);
    // It is back: one tries, and all follow when they are due.
    down.fail_all(None);
    world.clock.advance(SignedDuration::from_secs(20));
    for number in 0..OBJECTS {
        world.converge(&name(number)).await;
        world
            .assert_condition(&name(number), "RepoReady", ConditionStatus::True, "")
            .await;
    }
}

async fn a_host_that_asks_for_a_pause_gets_it_from_all_objects(site: &Site) {
    let world = World::new(site).await;
    for name in ["one", "two"] {
        world.write(name, json!({})).await;
    }
    world.git.fail(0, CallFault::TooManyRequests);
    let first = world.pass("one").await;
    assert_eq!(first.conclusion, Some(Conclusion::Failed), "{}", first.timeline);
    let calls = world.git.requests();
    let second = world.pass("two").await;
    assert_eq!(second.conclusion, Some(Conclusion::Failed), "{}", second.timeline);
    assert_eq!(world.git.requests(), calls, "nobody calls meanwhile");
    assert!(second.due.unwrap().reason.contains("asks for a pause"));
    // One second was asked for.
    world.clock.advance(SignedDuration::from_secs(1));
    world.converge("two").await;
    world.converge("one").await;
}

async fn a_secret_that_was_mended_is_tried_at_once(site: &Site) {
    let world = World::new(site).await;
    let mut secret = world.host_secret();
    secret["endpoint"] = json!("http://127.0.0.1:1");
    world.secret("git", &secret).await;
    for number in 0..6 {
        world.write(&format!("m-{number}"), json!({})).await;
        world.pass(&format!("m-{number}")).await;
    }
    let passed = world.pass("m-5").await;
    assert!(passed.due.unwrap().reason.contains("is left alone for now"));
    world.secret("git", &world.host_secret()).await;
    world.converge("m-5").await;
}

/// Slowly enough to be seen: two calls a second, and two at once in the beginning.
async fn a_host_gets_no_more_calls_in_a_second_than_it_is_allowed(site: &Site) {
    let settings = GitRepoSettings {
        calls_per_second: NonZeroU32::new(20),
        ..GitRepoSettings::default()
    };
    let world = World::with(site, settings).await;
    world.write("slow", json!({})).await;
    let begin = std::time::Instant::now();
    world.converge("slow").await;
    // The clock stands: what it hands out is later and later.
    let calls = u32::try_from(world.git.requests()).unwrap();
    let turns = calls.saturating_sub(21);
    assert!(
        begin.elapsed() >= std::time::Duration::from_millis(50) * turns,
        "{calls} calls"
    );
}
