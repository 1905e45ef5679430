//! When a cluster is worked at and whose turn it is (K30), and what a person can say about it (K18).

use std::time::Duration;

use evenkeel_api::{ClusterStatus, Reconcile, Suspend};
use evenkeel_core::{BrokerStatus, ClusterState, DeleteMode, OperationStateKind, Strategy};
use evenkeel_fleet::Error;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::world::{AT_ONCE, World, component, name, operations, settings, state, values, with};

fn text(text: &str) -> Value {
    values(component("web", "map"), json!({"text": text}))
}

/// Windows of an hour, of which the next opens in some hours.
fn closed() -> Value {
    let opens = evenkeel_telemetry::time::now() + SignedDuration::from_hours(5);
    let start = opens
        .to_zoned(jiff::tz::TimeZone::UTC)
        .time()
        .round(jiff::Unit::Minute)
        .unwrap();
    json!({"windows": [{"start": start, "duration": "1h"}]})
}

async fn put(world: &World, cluster: &str, more: Value) -> evenkeel_api::Accepted {
    let mut document = json!({"name": cluster, "kubeconfig": world.cluster(cluster).kubeconfig()});
    let fields: serde_json::Map<String, Value> = serde_json::from_value(more).unwrap();
    document.as_object_mut().unwrap().extend(fields);
    let document = evenkeel_api::ClusterDocument::from_value(document).unwrap();
    world.fleet().put_cluster(&name(cluster), document).await.unwrap()
}

fn force() -> Reconcile {
    Reconcile {
        force: true,
        ..Reconcile::default()
    }
}

#[tokio::test]
async fn a_change_waits_for_its_window_unless_it_is_forced() {
    let world = World::new().await;
    world.map_chart("map");
    // Installing into an empty cluster waits for no window.
    put(
        &world,
        "blue",
        json!({"schedule": closed(), "components": [text("first")]}),
    )
    .await;
    world.ready("blue").await;
    put(
        &world,
        "blue",
        json!({"schedule": closed(), "components": [text("second")]}),
    )
    .await;
    let waits = |status: &ClusterStatus| {
        status
            .reason
            .as_ref()
            .is_some_and(|reason| reason.contains("waits for the maintenance window"))
    };
    let status = world.until("blue", "it waits", waits).await;
    assert_eq!(status.state, ClusterState::Pending);
    assert_eq!(status.broker_status, BrokerStatus::ReconcilePending);
    assert!(
        status
            .next_due
            .is_some_and(|due| due > evenkeel_telemetry::time::now())
    );
    // Asking alone does not open it.
    world.fleet().reconcile(&name("blue")).await.unwrap();
    world.until("blue", "it still waits", waits).await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("first"));
    world
        .fleet()
        .reconcile_for(&name("blue"), &force())
        .await
        .unwrap();
    let status = world.ready("blue").await;
    assert_eq!(status.reason, None);
    assert_eq!(world.text("blue", "web").as_deref(), Some("second"));
    // Nor does a deletion wait.
    world.delete("blue", DeleteMode::Uninstall).await;
    world.gone("blue").await;
}

#[tokio::test]
async fn a_zone_that_does_not_exist_is_refused() {
    let world = World::new().await;
    let schedule = json!({"windows": [{"start": "22:00", "duration": "1h", "timeZone": "Nowhere/City"}]});
    let document = json!({"name": "blue", "schedule": schedule, "components": []});
    let document = evenkeel_api::ClusterDocument::from_value(document).unwrap();
    let refused = world
        .fleet()
        .put_cluster(&name("blue"), document)
        .await
        .unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("schedule.windows[0].timeZone") && text.contains("Nowhere/City"),
        "{text}"
    );
}

#[tokio::test]
async fn a_suspension_ends_by_time_or_by_a_person() {
    let world = World::new().await;
    world.map_chart("map");
    world.put("blue", json!([text("first")])).await;
    world.ready("blue").await;
    let blue = name("blue");
    let suspension = world.fleet().suspend(&blue, Suspend::default()).await.unwrap();
    assert_eq!(suspension.until, None);
    world.put("blue", json!([text("second")])).await;
    let status = world.status("blue").await;
    assert_eq!(status.suspension, Some(suspension));
    assert_eq!(status.broker_status, BrokerStatus::ReconcileDisabled);
    let refused = world.fleet().reconcile_for(&blue, &force()).await.unwrap_err();
    assert!(matches!(refused, Error::Suspended(_)), "{refused}");
    assert_eq!(world.text("blue", "web").as_deref(), Some("first"));
    world.fleet().resume(&blue).await.unwrap();
    assert_eq!(world.ready("blue").await.suspension, None);
    assert_eq!(world.text("blue", "web").as_deref(), Some("second"));

    let soon = Suspend {
        within: Some(evenkeel_core::HumanDuration(Duration::from_millis(500))),
        ..Suspend::default()
    };
    let until = world.fleet().suspend(&blue, soon).await.unwrap().until.unwrap();
    world.put("blue", json!([text("third")])).await;
    world.ready("blue").await;
    assert!(
        evenkeel_telemetry::time::now() >= until,
        "it went on by itself, and not before"
    );
    assert_eq!(world.text("blue", "web").as_deref(), Some("third"));

    let past = Suspend {
        until: Some(Timestamp::UNIX_EPOCH),
        ..Suspend::default()
    };
    let refused = world.fleet().suspend(&blue, past).await.unwrap_err();
    assert!(
        matches!(refused, Error::Parameter { name: "until", .. }),
        "{refused}"
    );
    // A deletion overrides it (F10).
    world.fleet().suspend(&blue, Suspend::default()).await.unwrap();
    world.delete("blue", DeleteMode::Uninstall).await;
    world.gone("blue").await;
}

#[tokio::test]
async fn chosen_components_are_run_though_they_do_not_differ() {
    let world = World::new().await;
    world.map_chart("map");
    world
        .put("blue", json!([component("web", "map"), component("db", "map")]))
        .await;
    world.ready("blue").await;
    let chosen = Reconcile {
        components: Some("db".to_owned()),
        ..Reconcile::default()
    };
    let before = world.status("blue").await.reconciliation;
    world.fleet().reconcile_for(&name("blue"), &chosen).await.unwrap();
    let again =
        |status: &ClusterStatus| status.reconciliation != before && status.state == ClusterState::Ready;
    world.until("blue", "it ran", again).await;
    let run = world.newest_run("blue").await;
    assert_eq!(run.summary.strategy, Strategy::Repair);
    assert_eq!(operations(&run), ["repair db succeeded"]);
    assert_eq!(run.operations[0].cause, "a person asked for it");
    let unknown = Reconcile {
        components: Some("nope".to_owned()),
        ..Reconcile::default()
    };
    let refused = world
        .fleet()
        .reconcile_for(&name("blue"), &unknown)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("nope"), "{refused}");
}

#[tokio::test]
async fn a_cluster_may_be_reconciled_on_changes_alone() {
    let mut settings = settings();
    settings.check_interval = Duration::from_millis(100);
    let world = World::with(settings).await;
    world.map_chart("map");
    let document = |text_: &str| json!({"schedule": {"reconcileOn": "change"}, "components": [text(text_)]});
    put(&world, "blue", document("first")).await;
    world.ready("blue").await;
    let patch = json!({"data": {"text": "theirs"}});
    world
        .cluster("blue")
        .patch("somebody", "v1", "ConfigMap", "apps", "web", patch)
        .unwrap();
    let checked = world.status("blue").await.checked;
    for _ in 0..2 {
        let again = |status: &ClusterStatus| status.checked > checked;
        evenkeel_testkit::eventually("its turn has come", async || {
            let status = world.status("blue").await;
            again(&status).then_some(()).ok_or(status.checked)
        })
        .await;
    }
    assert_eq!(world.text("blue", "web").as_deref(), Some("theirs"));
    put(&world, "blue", document("second")).await;
    world.ready("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("second"));
}

#[tokio::test]
async fn a_version_that_fails_elsewhere_is_held_back() {
    let mut settings = settings();
    settings.breaker_failures = 2;
    settings.retry_first = Duration::from_secs(600);
    settings.retry_longest = Duration::from_secs(600);
    let world = World::with(settings).await;
    world.map_chart("good");
    world.map_chart("bad");
    world.write("bad", "templates/broken.yaml", "a: {{ fail \"no\" }}\n");
    for cluster in ["one", "two", "three"] {
        world.put(cluster, json!([component("web", "good")])).await;
        world.ready(cluster).await;
    }
    let failing = |status: &ClusterStatus| status.state == ClusterState::Degraded;
    for cluster in ["one", "two"] {
        world.put(cluster, json!([component("web", "bad")])).await;
        world.until(cluster, "it fails", failing).await;
    }
    world.put("three", json!([component("web", "bad")])).await;
    let held = |status: &ClusterStatus| {
        status
            .reason
            .as_ref()
            .is_some_and(|reason| reason.contains("fails on 2 of the 2 clusters"))
    };
    let status = world.until("three", "held back", held).await;
    assert_eq!(status.state, ClusterState::Pending);
    assert_eq!(
        world.text("three", "web").as_deref(),
        Some("first"),
        "it keeps what it has"
    );
    world
        .fleet()
        .reconcile_for(&name("three"), &force())
        .await
        .unwrap();
    world.until("three", "forced, it fails as well", failing).await;
    // Another version is not held back.
    world.put("three", json!([component("web", "good")])).await;
    world.ready("three").await;
}

#[tokio::test]
async fn the_brokers_word_follows_each_report() {
    let mut settings = settings();
    settings.retry_first = Duration::from_millis(50);
    settings.retry_longest = Duration::from_millis(100);
    let world = World::with(settings).await;
    world.map_chart("map");
    world.write("bad", "templates/broken.yaml", "a: {{ fail \"no\" }}\n");
    world.engine_chart("blue", "engine");
    world
        .put(
            "blue",
            json!([component("bad", "bad"), component("engine", "engine")]),
        )
        .await;
    // One failed for good while another still runs: an error at once (K33, K48 rule 1), though natively it is degraded.
    // The broker's word is made of the operations when it is asked for, the state is written down just after them.
    let error = |status: &ClusterStatus| {
        status.broker_status == BrokerStatus::Error && status.state == ClusterState::Degraded
    };
    let status = world.until("blue", "error", error).await;
    assert_eq!(state(&status, "engine"), Some(OperationStateKind::Running));
    let told = world.told_after("blue", &status).await;
    assert!(told <= AT_ONCE, "{told}");
    std::fs::write(world.chart_file("bad", "templates/broken.yaml"), "").unwrap();
    world.say("blue", "engine", "True").await;
    let status = world.ready("blue").await;
    assert_eq!(status.broker_status, BrokerStatus::Ready);

    // One that fails again and again, from outside of its chart: retryable from the second failure on (rule 3), and back
    // once it has recovered (rule 4).
    let limited = with(
        component("engine", "engine"),
        json!({"timeout": "100ms", "namespace": "apps"}),
    );
    world.say("blue", "engine", "False").await;
    world
        .put(
            "blue",
            json!([component("bad", "bad"), values(limited, json!({"x": 1}))]),
        )
        .await;
    let retryable = |status: &ClusterStatus| status.broker_status == BrokerStatus::ReconcileErrorRetryable;
    let status = world.until("blue", "retryable", retryable).await;
    assert_eq!(status.broker_status.shown(), BrokerStatus::Reconciling);
    world.say("blue", "engine", "True").await;
    assert_eq!(world.ready("blue").await.broker_status, BrokerStatus::Ready);
}
