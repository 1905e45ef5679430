//! A registered cluster becomes ready, quickly, and stays as it is without being touched.

use std::time::Duration;

use evenkeel_core::{ClusterState, OperationStateKind, PlanAction, ReconciliationState, Sensitive, Strategy};
use serde_json::json;

use crate::world::{AT_ONCE, World, component, name, operations, settings, state, values, with};

#[tokio::test]
async fn an_install_becomes_ready_in_the_order_of_dependencies() {
    let world = World::new().await;
    world.deployment_chart("db");
    world.map_chart("web");
    let components = json!([
        with(component("web", "web"), json!({"dependsOn": ["db"]})),
        values(component("db", "db"), json!({"replicas": 2})),
    ]);
    let accepted = world.put("blue", components).await;
    assert_eq!(accepted.version.0, 1);
    let status = world.ready("blue").await;
    assert_eq!(status.reason, None);
    let names: Vec<_> = status
        .components
        .iter()
        .map(|component| component.name.as_str())
        .collect();
    assert_eq!(names, ["db", "web"]);
    assert!(
        status
            .components
            .iter()
            .all(|component| component.revision.is_some_and(|revision| revision.0 == 1))
    );
    assert_eq!(world.text("blue", "web").as_deref(), Some("first"));

    let run = world.newest_run("blue").await;
    assert_eq!(run.summary.state, ReconciliationState::Succeeded);
    assert_eq!(run.summary.strategy, Strategy::Install);
    assert_eq!(
        operations(&run),
        ["install db succeeded", "install web succeeded"]
    );
    let [db, web] = &run.operations[..] else {
        panic!("two operations")
    };
    assert!(
        db.finished <= web.started,
        "web waited until db was ready: {run:?}"
    );
    assert!(
        db.changes
            .iter()
            .any(|change| change.object.kind == "Deployment" && change.action == PlanAction::Create)
    );
    let said: Vec<_> = db.timeline.iter().map(|entry| entry.message.as_str()).collect();
    assert!(
        said.iter().any(|line| line.contains("Deployment.apps/db")),
        "{said:?}"
    );
    assert!(db.cause.contains("not installed"));
}

#[tokio::test]
async fn a_change_starts_at_once() {
    let world = World::new().await;
    world.map_chart("web");
    world.put("blue", json!([component("web", "web")])).await;
    let working = |status: &evenkeel_api::ClusterStatus| status.reconciliation.is_some();
    world.until("blue", "a reconciliation runs", working).await;
    let begun = world.begun_after("blue").await;
    assert!(begun <= AT_ONCE, "{begun}");
    let status = world.ready("blue").await;
    let told = world.told_after("blue", &status).await;
    assert!(told <= AT_ONCE, "{told}");
}

#[tokio::test]
async fn changes_of_an_idle_fleet_start_and_are_told_within_milliseconds() {
    let world = World::new().await;
    world.map_chart("web");
    let (mut waits, mut told) = (Vec::new(), Vec::new());
    for number in 0..20 {
        let web = values(component("web", "web"), json!({"text": number.to_string()}));
        world.put("blue", json!([web])).await;
        let status = world.ready("blue").await;
        told.push(world.told_after("blue", &status).await.as_millis());
        let version = world.fleet().configurations(&name("blue")).await.unwrap()[0].created;
        let run = world.newest_run("blue").await;
        let started = run.operations[0].started.unwrap();
        waits.push(started.duration_since(version).as_millis());
    }
    waits.sort_unstable();
    told.sort_unstable();
    println!("milliseconds from accepted to claimed: {waits:?}, from reported to told: {told:?}");
    // The goal is 100 ms on an idle machine; the bound is for a busy one.
    for all in [&waits, &told] {
        assert!(*all.last().unwrap() <= AT_ONCE.as_millis(), "{all:?}");
    }
}

#[tokio::test]
async fn an_unchanged_cluster_is_looked_at_without_any_write() {
    let mut settings = settings();
    settings.check_interval = Duration::from_millis(100);
    let world = World::with(settings).await;
    world.deployment_chart("web");
    world.map_chart("map");
    world
        .put("blue", json!([component("web", "web"), component("map", "map")]))
        .await;
    let first = world.ready("blue").await;
    let runs = world.runs("blue").await;
    let cluster = world.cluster("blue");
    let looked = |status: &evenkeel_api::ClusterStatus| status.checked;
    let before = world.status("blue").await;
    cluster.reset_counters();
    evenkeel_testkit::eventually("three more looks", async || {
        let checked = looked(&world.status("blue").await);
        let lists = cluster.counters().of("list", "configmaps");
        if checked > looked(&before) && lists >= 3 {
            Ok(())
        } else {
            Err((checked, lists))
        }
    })
    .await;
    let counts = cluster.counters();
    assert_eq!(counts.writes(), 0, "{counts:?}");
    // One LIST of parents and one of each kind, and nothing else.
    let lists = ["secrets", "configmaps", "deployments.apps"];
    let listed: u64 = lists.iter().map(|kind| counts.of("list", kind)).sum();
    assert_eq!(counts.requests(), listed, "{counts:?}");
    assert_eq!(world.runs("blue").await, runs);
    let status = world.status("blue").await;
    assert_eq!(
        (status.state, status.since, status.revision),
        (ClusterState::Ready, first.since, first.revision)
    );
}

#[tokio::test]
async fn a_cluster_without_components_is_ready() {
    let world = World::new().await;
    world.put("blue", json!([])).await;
    let status = world.ready("blue").await;
    assert!(status.components.is_empty());
    assert_eq!(world.runs("blue").await, 0);
}

#[tokio::test]
async fn a_cluster_without_a_kubeconfig_says_what_it_lacks_and_goes_on_once_it_has_one() {
    let world = World::new().await;
    world.map_chart("web");
    let document = json!({"name": "blue", "components": [component("web", "web")]});
    let document = evenkeel_api::ClusterDocument::from_value(document).unwrap();
    world.fleet().put_cluster(&name("blue"), document).await.unwrap();
    let failed = |status: &evenkeel_api::ClusterStatus| status.state == ClusterState::Failed;
    let status = world.until("blue", "it says what is missing", failed).await;
    assert!(status.reason.unwrap().contains("no kubeconfig"));
    let kubeconfig = world.cluster("blue").kubeconfig().to_owned();
    world
        .fleet()
        .put_kubeconfig(&name("blue"), Sensitive::new(kubeconfig).into())
        .await
        .unwrap();
    world.ready("blue").await;
}

#[tokio::test]
async fn the_metrics_count_clusters_by_state() {
    let world = World::new().await;
    world.put("blue", json!([])).await;
    world.ready("blue").await;
    let text = world.fleet().metrics().await.unwrap();
    assert!(text.contains("evenkeel_clusters{state=\"ready\"} 1"), "{text}");
    assert!(text.contains("evenkeel_clusters{state=\"failed\"} 0"), "{text}");
    let counts = world.fleet().cluster_counts().await.unwrap();
    assert_eq!(counts.get(&ClusterState::Ready), Some(&1));
}

#[tokio::test]
async fn a_component_shows_how_it_is_while_it_is_waited_for() {
    let world = World::new().await;
    world.deployment_chart("web");
    world
        .put(
            "blue",
            json!([values(component("web", "web"), json!({"behaviour": "stuck"}))]),
        )
        .await;
    let running = |status: &evenkeel_api::ClusterStatus| {
        status.state == ClusterState::Reconciling && state(status, "web") == Some(OperationStateKind::Running)
    };
    world.until("blue", "web is being installed", running).await;
    evenkeel_testkit::eventually("its timeline says what it waits for", async || {
        let run = world.newest_run("blue").await;
        let said: Vec<_> = run.operations[0]
            .timeline
            .iter()
            .map(|entry| entry.message.clone())
            .collect();
        if said.iter().any(|line| line.contains("Deployment.apps/web")) {
            Ok(())
        } else {
            Err(said)
        }
    })
    .await;
}
