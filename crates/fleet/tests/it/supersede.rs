//! A newer version takes the place of the one that is being brought about, at once: no retry and no slow answer of the old
//! one holds it up (K45), what is equal in both goes on, and under a steady stream of versions one completes.

use std::time::{Duration, Instant};

use evenkeel_api::{ClusterStatus, Operation, Reconciliation};
use evenkeel_core::{ClusterState, OperationStateKind, ReconciliationState, Strategy};
use evenkeel_inventory::{PageRequest, Reconciliations as _};
use evenkeel_simulator::{Fault, FaultRule};
use serde_json::{Value, json};

use crate::world::{AT_ONCE, World, component, name, settings, state, values, with};

fn of<'r>(run: &'r Reconciliation, component: &str) -> &'r Operation {
    run.operations
        .iter()
        .find(|operation| operation.component.as_str() == component)
        .unwrap()
}

fn text(component: Value, text: &str) -> Value {
    values(component, json!({"text": text}))
}

/// What the inventory has of cluster blue, which has just become ready.
async fn begun_and_told_at_once(world: &World, status: &ClusterStatus) {
    let begun = world.begun_after("blue").await;
    let told = world.told_after("blue", status).await;
    assert!(begun <= AT_ONCE && told <= AT_ONCE, "{begun}, {told}");
}

#[tokio::test]
async fn what_is_equal_goes_on_and_what_is_not_is_done_anew() {
    let world = World::new().await;
    world.map_chart("map");
    world.engine_chart("blue", "engine");
    let engine = || component("engine", "engine");
    let after = || with(component("after", "map"), json!({"dependsOn": ["engine"]}));
    let slow = values(component("slow", "map"), json!({"text": "first"}));
    let slow_after = with(slow, json!({"dependsOn": ["engine"]}));
    world.put("blue", json!([engine(), after(), slow_after])).await;
    let running = |status: &ClusterStatus| state(status, "engine") == Some(OperationStateKind::Running);
    world.until("blue", "the engine is waited for", running).await;
    let first = world.newest_run("blue").await;

    let slow_after = with(
        text(component("slow", "map"), "second"),
        json!({"dependsOn": ["engine"]}),
    );
    let accepted = world.put("blue", json!([engine(), after(), slow_after])).await;
    let newer = |status: &ClusterStatus| status.reconciliation.as_ref() != Some(&first.summary.id);
    world.until("blue", "the newer version has begun", newer).await;
    let second = world.newest_run("blue").await;
    assert_eq!(second.summary.version, accepted.version);
    let begun = world.begun_after("blue").await;
    assert!(begun <= AT_ONCE, "{begun}");
    for equal in ["engine", "after"] {
        assert_eq!(of(&second, equal).id, of(&first, equal).id, "{equal} goes on");
    }
    assert_ne!(of(&second, "slow").id, of(&first, "slow").id);
    let old = world.fleet().reconciliation(&first.summary.id).await.unwrap();
    assert_eq!(old.summary.state, ReconciliationState::Superseded);
    assert_eq!(of(&old, "slow").state.kind(), OperationStateKind::Superseded);
    assert_eq!(of(&old, "engine").carried_to.as_ref(), Some(&second.summary.id));
    assert_eq!(of(&second, "engine").carried_to, None);

    world.say("blue", "engine", "True").await;
    let status = world.ready("blue").await;
    assert_eq!(status.observed_version, Some(accepted.version));
    assert_eq!(world.text("blue", "slow").as_deref(), Some("second"));
    assert_eq!(of(&world.newest_run("blue").await, "engine").attempts, 1);
}

#[tokio::test]
async fn no_retry_of_the_old_version_holds_the_new_one_up() {
    let mut settings = settings();
    settings.retry_first = Duration::from_secs(600);
    settings.retry_longest = Duration::from_secs(600);
    let world = World::with(settings).await;
    world.deployment_chart("web");
    let stuck = values(component("web", "web"), json!({"behaviour": "stuck"}));
    world
        .put("blue", json!([with(stuck, json!({"timeout": "1s"}))]))
        .await;
    let retrying = |status: &ClusterStatus| state(status, "web") == Some(OperationStateKind::Retrying);
    world
        .until("blue", "the next try is ten minutes away", retrying)
        .await;
    let good = values(component("web", "web"), json!({"image": "a:2"}));
    let good = world.put("blue", json!([good])).await;
    let status = world.ready("blue").await;
    assert_eq!(status.observed_version, Some(good.version));
    begun_and_told_at_once(&world, &status).await;
}

#[tokio::test]
async fn a_slow_look_is_dropped_for_a_newer_version() {
    let world = World::new().await;
    world.map_chart("map");
    let cluster = world.cluster("blue");
    cluster.faults().add(FaultRule::always(Fault::Hang));
    let first = world
        .put("blue", json!([text(component("web", "map"), "first")]))
        .await;
    evenkeel_testkit::eventually("it is being looked at", async || {
        match cluster.counters().requests() {
            0 => Err(()),
            _ => Ok(()),
        }
    })
    .await;
    cluster.faults().clear();
    let second = world
        .put("blue", json!([text(component("web", "map"), "second")]))
        .await;
    assert!(second.version > first.version);
    let status = world.ready("blue").await;
    begun_and_told_at_once(&world, &status).await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("second"));
}

#[tokio::test]
async fn a_deletion_takes_the_place_of_what_runs() {
    let world = World::new().await;
    world.engine_chart("blue", "engine");
    world.put("blue", json!([component("engine", "engine")])).await;
    let running = |status: &ClusterStatus| state(status, "engine") == Some(OperationStateKind::Running);
    world.until("blue", "the engine is waited for", running).await;
    let blue = world.status("blue").await.id;
    let asked = evenkeel_telemetry::time::now();
    world.delete("blue", evenkeel_core::DeleteMode::Uninstall).await;
    world.gone("blue").await;
    let runs = world
        .store()
        .reconciliations(&blue, &PageRequest::default())
        .await;
    let last = &runs.unwrap().items[0];
    assert_eq!(last.strategy, Strategy::Delete);
    let begun = last.created_at.duration_since(asked);
    assert!(begun <= AT_ONCE, "{begun}");
}

#[tokio::test]
async fn under_a_steady_stream_of_versions_one_completes() {
    let mut settings = settings();
    settings.supersede_patience = Duration::from_millis(500);
    let world = World::with(settings).await;
    world.map_chart("map");
    // Each version needs two writes of a component after the other, and the next version is there before the first.
    let slow = FaultRule::always(Fault::Latency(Duration::from_millis(200))).verbs(&["patch"]);
    world.cluster("blue").faults().add(slow);
    let version = |number: u32| {
        let number = number.to_string();
        json!([
            text(component("first", "map"), &number),
            with(
                text(component("last", "map"), &number),
                json!({"dependsOn": ["first"]})
            ),
        ])
    };
    let mut number = 0;
    let begun = Instant::now();
    loop {
        if number > 0 && completed(&world).await {
            break;
        }
        assert!(
            begun.elapsed() < crate::world::BOUND,
            "none of {number} versions completed"
        );
        number += 1;
        let put = world.put("blue", version(number)).await;
        let acted_upon = |status: &ClusterStatus| {
            let waits = status
                .reason
                .as_ref()
                .is_some_and(|reason| reason.contains("waits for version"));
            waits || status.version == put.version && status.state != ClusterState::Pending
        };
        world
            .until("blue", "the version is begun or put off", acted_upon)
            .await;
    }
    assert!(world.text("blue", "last").is_some());
    assert!(world.runs("blue").await > 5, "the first few are overtaken");
    // And the newest is brought about as soon as no other comes.
    world.cluster("blue").faults().clear();
    let last = world.put("blue", version(number + 1)).await;
    assert_eq!(world.ready("blue").await.observed_version, Some(last.version));
    assert_eq!(world.text("blue", "last"), Some((number + 1).to_string()));
}

async fn completed(world: &World) -> bool {
    let runs = world.fleet().reconciliations(&name("blue")).await.unwrap();
    runs.iter().any(|run| run.state == ReconciliationState::Succeeded)
}
