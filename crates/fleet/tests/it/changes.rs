//! New versions: upgrades, removals, moves, and those that come while another is under way.

use std::time::{Duration, Instant};

use evenkeel_api::{ClusterStatus, Rollback};
use evenkeel_core::{
    ChangeConsent, ClusterState, ConfigurationVersion, OperationState, OperationStateKind,
    ReconciliationState, Strategy,
};
use evenkeel_inventory::Statuses as _;
use serde_json::json;

use crate::world::{World, component, name, operations, state, values, with};

#[tokio::test]
async fn an_upgrade_touches_what_differs_alone() {
    let world = World::new().await;
    world.map_chart("map");
    let other = || component("other", "map");
    world.put("blue", json!([component("web", "map"), other()])).await;
    world.ready("blue").await;
    let second = world
        .put(
            "blue",
            json!([
                values(component("web", "map"), json!({"text": "second"})),
                other()
            ]),
        )
        .await;
    let status = world.ready("blue").await;
    assert_eq!(status.observed_version, Some(second.version));
    assert_eq!(world.text("blue", "web").as_deref(), Some("second"));
    let run = world.newest_run("blue").await;
    assert_eq!(run.summary.strategy, Strategy::Upgrade);
    assert_eq!(operations(&run), ["upgrade web succeeded"]);
    let web = &status.components[1];
    assert_eq!(web.revision.map(|revision| revision.0), Some(2));

    // And back: a rollback is a version of its own.
    let back = world.fleet().rollback(&name("blue"), &to(1)).await.unwrap();
    assert_eq!(back.version.0, 3);
    world.ready("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("first"));
}

/// Back to a version, whatever that loses.
fn to(version: u64) -> Rollback {
    Rollback {
        to: ConfigurationVersion(version),
        consent: ChangeConsent::ALL.iter().copied().collect(),
    }
}

#[tokio::test]
async fn a_version_that_changes_nothing_makes_no_run() {
    let world = World::new().await;
    world.map_chart("map");
    world.put("blue", json!([component("web", "map")])).await;
    world.ready("blue").await;
    let runs = world.runs("blue").await;
    let longer = with(component("web", "map"), json!({"timeout": "7m"}));
    let accepted = world.put("blue", json!([longer])).await;
    assert_eq!(accepted.version.0, 2);
    world.ready("blue").await;
    assert_eq!(world.runs("blue").await, runs);
}

#[tokio::test]
async fn what_is_no_longer_listed_goes_in_reverse_or_is_let_go() {
    let world = World::new().await;
    world.map_chart("map");
    let components = json!([
        component("base", "map"),
        with(component("db", "map"), json!({"dependsOn": ["base"]})),
        with(component("web", "map"), json!({"dependsOn": ["db"]})),
        with(component("kept", "map"), json!({"onRemove": "orphan"})),
    ]);
    world.put("blue", components).await;
    world.ready("blue").await;
    world.put("blue", json!([component("base", "map")])).await;
    let status = world.ready("blue").await;
    assert_eq!(
        status.components.len(),
        1,
        "what was removed is gone from the status"
    );
    let run = world.newest_run("blue").await;
    let mut done = operations(&run);
    done.sort();
    assert_eq!(
        done,
        [
            "delete db succeeded",
            "delete kept succeeded",
            "delete web succeeded"
        ]
    );
    let of = |name: &str| {
        run.operations
            .iter()
            .find(|operation| operation.component.as_str() == name)
            .unwrap()
    };
    assert!(of("web").finished <= of("db").started, "{run:?}");
    assert_eq!(
        [
            world.text("blue", "base"),
            world.text("blue", "db"),
            world.text("blue", "web")
        ],
        [Some("first".to_owned()), None, None]
    );
    // It stays, and is nobody's.
    let kept = world
        .cluster("blue")
        .get("v1", "ConfigMap", "apps", "kept")
        .unwrap()
        .unwrap();
    assert_eq!(
        kept["metadata"]["labels"].get("applyset.kubernetes.io/part-of"),
        None
    );
    let runs = world.runs("blue").await;
    world.fleet().reconcile(&name("blue")).await.unwrap();
    world.ready("blue").await;
    assert_eq!(world.runs("blue").await, runs);
}

#[tokio::test]
async fn a_component_moves_to_another_namespace() {
    let world = World::new().await;
    world.map_chart("map");
    world.put("blue", json!([component("web", "map")])).await;
    world.ready("blue").await;
    let moved = with(component("web", "map"), json!({"namespace": "elsewhere"}));
    world.put("blue", json!([moved])).await;
    world.ready("blue").await;
    let run = world.newest_run("blue").await;
    assert_eq!(
        operations(&run),
        ["delete web succeeded", "install web succeeded"]
    );
    assert!(
        run.operations[0].cause.contains("from apps to elsewhere"),
        "{}",
        run.operations[0].cause
    );
    let cluster = world.cluster("blue");
    assert_eq!(world.text("blue", "web"), None);
    assert!(
        cluster
            .get("v1", "ConfigMap", "elsewhere", "web")
            .unwrap()
            .is_some()
    );
    assert!(
        cluster.get("v1", "Namespace", "", "apps").unwrap().is_none(),
        "the empty namespace is gone"
    );
}

#[tokio::test]
async fn a_newer_version_takes_the_place_of_one_that_waits() {
    let world = World::new().await;
    world.deployment_chart("web");
    world.map_chart("map");
    let stuck = values(component("web", "web"), json!({"behaviour": "stuck"}));
    world.put("blue", json!([stuck])).await;
    let waiting = |status: &ClusterStatus| state(status, "web") == Some(OperationStateKind::Running);
    world.until("blue", "web is waited for", waiting).await;
    let old = world.newest_run("blue").await;

    let begun = Instant::now();
    let good = json!([values(component("web", "web"), json!({"image": "a:2"}))]);
    let accepted = world.put("blue", good).await;
    let newer = |status: &ClusterStatus| {
        status
            .reconciliation
            .as_ref()
            .is_some_and(|run| *run != old.summary.id)
    };
    world.until("blue", "another reconciliation runs", newer).await;
    // Well below a second on an idle machine; bounded generously for a busy one.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let status = world.ready("blue").await;
    assert_eq!(status.observed_version, Some(accepted.version));
    let old = world.fleet().reconciliation(&old.summary.id).await.unwrap();
    assert_eq!(old.summary.state, ReconciliationState::Superseded);
    assert_eq!(old.operations[0].state, OperationState::Superseded);
}

#[tokio::test]
async fn asking_again_begins_a_waiting_retry_anew() {
    let mut settings = crate::world::settings();
    settings.retry_first = Duration::from_secs(600);
    settings.retry_longest = Duration::from_secs(600);
    settings.ready_timeout = Duration::from_millis(300);
    let world = World::with(settings).await;
    world.deployment_chart("web");
    let stuck = values(component("web", "web"), json!({"behaviour": "stuck"}));
    world.put("blue", json!([stuck])).await;
    let retrying = |status: &ClusterStatus| state(status, "web") == Some(OperationStateKind::Retrying);
    let status = world.until("blue", "web is to be tried again", retrying).await;
    let degraded = |status: &ClusterStatus| status.state == ClusterState::Degraded;
    let status = if degraded(&status) {
        status
    } else {
        world.until("blue", "degraded", degraded).await
    };
    assert!(status.reason.unwrap().starts_with("component web: "));
    let patch = json!({"metadata": {"annotations": {"simulator.evenkeel.dev/behaviour": null}}});
    world
        .cluster("blue")
        .patch("somebody", "apps/v1", "Deployment", "apps", "web", patch)
        .unwrap();
    world.fleet().reconcile(&name("blue")).await.unwrap();
    let newer = |now: &ClusterStatus| now.reconciliation != status.reconciliation;
    world.until("blue", "it is begun anew", newer).await;
}

#[tokio::test]
async fn a_suspended_cluster_is_left_alone_and_gone_on_with_later() {
    let world = World::new().await;
    world.map_chart("map");
    let first = world.put("blue", json!([component("web", "map")])).await;
    world.ready("blue").await;
    let store = world.store();
    let tomorrow = evenkeel_telemetry::time::now() + jiff::SignedDuration::from_hours(24);
    store.suspend(&first.id, Some(tomorrow)).await.unwrap();
    let changed = json!([values(component("web", "map"), json!({"text": "second"}))]);
    world.put("blue", changed).await;
    let put_off = |status: &ClusterStatus| status.next_due == Some(tomorrow_in_millis(tomorrow));
    world.until("blue", "put off", put_off).await;
    assert_eq!(world.runs("blue").await, 1);
    store.suspend(&first.id, None).await.unwrap();
    world.ready("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("second"));
}

/// The database keeps whole milliseconds.
fn tomorrow_in_millis(moment: jiff::Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(moment.as_millisecond()).unwrap()
}
