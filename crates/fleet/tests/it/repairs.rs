//! What somebody else changed is put right at the next pass; what is not ready any more is told.

use std::time::Duration;

use evenkeel_api::ClusterStatus;
use evenkeel_core::{ClusterState, ReconciliationState, Strategy};
use serde_json::json;

use crate::world::{World, component, name, operations, settings, values, with};

async fn repairing() -> World {
    let mut settings = settings();
    settings.check_interval = Duration::from_millis(200);
    let world = World::with(settings).await;
    world.deployment_chart("web");
    world.map_chart("map");
    world
        .put("blue", json!([component("web", "web"), component("map", "map")]))
        .await;
    world.ready("blue").await;
    world
}

/// Waits until another run than `before` has ended well.
async fn repaired(world: &World, before: &ClusterStatus) -> evenkeel_api::Reconciliation {
    let again = |status: &ClusterStatus| {
        status.reconciliation != before.reconciliation && status.state == ClusterState::Ready
    };
    world.until("blue", "repaired", again).await;
    let run = world.newest_run("blue").await;
    assert_eq!(run.summary.state, ReconciliationState::Succeeded);
    assert_eq!(run.summary.strategy, Strategy::Repair);
    run
}

#[tokio::test]
async fn a_deleted_deployment_comes_back() {
    let world = repairing().await;
    let before = world.status("blue").await;
    let cluster = world.cluster("blue");
    cluster.delete("apps/v1", "Deployment", "apps", "web").unwrap();
    let run = repaired(&world, &before).await;
    assert_eq!(operations(&run), ["repair web succeeded"]);
    assert!(
        run.operations[0]
            .cause
            .contains("Deployment.apps/web in namespace apps is missing"),
        "{}",
        run.operations[0].cause
    );
    assert!(
        cluster
            .get("apps/v1", "Deployment", "apps", "web")
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_changed_field_is_put_right() {
    let world = repairing().await;
    let before = world.status("blue").await;
    let patch = json!({"data": {"text": "by hand", "more": "is left alone"}});
    let cluster = world.cluster("blue");
    cluster
        .patch("kubectl-edit", "v1", "ConfigMap", "apps", "map", patch)
        .unwrap();
    let run = repaired(&world, &before).await;
    assert_eq!(operations(&run), ["repair map succeeded"]);
    assert!(run.operations[0].cause.contains("changed by somebody else"));
    let map = cluster.get("v1", "ConfigMap", "apps", "map").unwrap().unwrap();
    assert_eq!(map["data"], json!({"text": "first", "more": "is left alone"}));
}

#[tokio::test]
async fn what_is_not_ready_any_more_degrades_the_cluster_without_an_operation() {
    let mut settings = settings();
    settings.check_interval = Duration::from_millis(200);
    let world = World::with(settings).await;
    world.engine_chart("blue", "engine");
    world.put("blue", json!([component("main", "engine")])).await;
    world.say("blue", "main", "True").await;
    world.ready("blue").await;
    let runs = world.runs("blue").await;

    world.say("blue", "main", "False").await;
    let degraded = |status: &ClusterStatus| status.state == ClusterState::Degraded;
    let status = world.until("blue", "degraded", degraded).await;
    let told = status.reason.unwrap();
    assert!(
        told.starts_with("component main: Engine.example.com/main in namespace apps"),
        "{told}"
    );
    assert!(status.components[0].not_ready.is_some());
    assert_eq!(world.runs("blue").await, runs);

    world.say("blue", "main", "True").await;
    let status = world.ready("blue").await;
    assert_eq!(status.components[0].not_ready, None);
    assert_eq!(world.runs("blue").await, runs);
}

#[tokio::test]
async fn a_person_can_ask_for_a_look() {
    let world = World::new().await;
    world.map_chart("map");
    world.put("blue", json!([component("map", "map")])).await;
    let before = world.ready("blue").await;
    world
        .cluster("blue")
        .delete("v1", "ConfigMap", "apps", "map")
        .unwrap();
    world.fleet().reconcile(&name("blue")).await.unwrap();
    let again = |status: &ClusterStatus| {
        status.reconciliation != before.reconciliation && status.state == ClusterState::Ready
    };
    world.until("blue", "repaired", again).await;
    assert_eq!(world.text("blue", "map").as_deref(), Some("first"));
}

#[tokio::test]
async fn one_that_keeps_failing_keeps_nobody_else_from_being_healed() {
    let mut settings = settings();
    settings.check_interval = Duration::from_millis(200);
    let world = World::with(settings).await;
    world.deployment_chart("web");
    world.map_chart("map");
    let stuck = values(component("stuck", "web"), json!({"behaviour": "stuck"}));
    let stuck = with(stuck, json!({"timeout": "200ms"}));
    world.put("blue", json!([stuck, component("map", "map")])).await;

    // Checks that find nothing else leave the run to its tries.
    let first = world.newest_tries("blue", 3).await;
    let before = world.status("blue").await;
    assert_eq!(before.reconciliation.as_ref(), Some(&first));
    assert_eq!(world.runs("blue").await, 1);

    world
        .cluster("blue")
        .delete("v1", "ConfigMap", "apps", "map")
        .unwrap();
    evenkeel_testkit::eventually("the map is back", async || {
        world.text("blue", "map").ok_or("not there")
    })
    .await;
    // What is healed is left alone, and the other one tried on.
    world.newest_tries("blue", 3).await;
    assert_eq!(world.runs("blue").await, 2);
    let degraded = |status: &ClusterStatus| status.state == ClusterState::Degraded;
    world.until("blue", "the other one fails on", degraded).await;
}

#[tokio::test]
async fn one_that_was_given_up_is_not_taken_up_by_a_check() {
    let mut settings = settings();
    settings.check_interval = Duration::from_millis(200);
    settings.deadline = Duration::from_secs(1);
    settings.failures_max = 1;
    let world = World::with(settings).await;
    world.deployment_chart("web");
    let stuck = values(component("stuck", "web"), json!({"behaviour": "stuck"}));
    world
        .put("blue", json!([with(stuck, json!({"timeout": "200ms"}))]))
        .await;
    let failed = |status: &ClusterStatus| status.state == ClusterState::Failed;
    let status = world.until("blue", "given up", failed).await;
    assert_eq!(status.next_due, None, "{status:?}");
    assert_eq!(world.runs("blue").await, 1);
}
