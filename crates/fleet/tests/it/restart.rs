//! A mothership that stops or dies in the middle: another one on the same database goes on and finishes.

use evenkeel_api::{ClusterStatus, SettingFor};
use evenkeel_core::{ClusterState, DeleteMode, OperationStateKind, ReconciliationState};
use serde_json::json;

use crate::world::{World, component, name, operations, settings, state, values, with};

/// A world with a run in the middle: `db` is done, `web` is waited for, `after` waits for `web`.
async fn in_the_middle() -> World {
    let mut settings = settings();
    // Short enough that a dead one's lease ends soon.
    settings.lease = std::time::Duration::from_secs(3);
    settings.heartbeat = std::time::Duration::from_millis(500);
    settings.write_timeout = std::time::Duration::from_secs(2);
    let world = World::with(settings).await;
    world.map_chart("map");
    world.engine_chart("blue", "web");
    let web = component("web", "web");
    let components = json!([
        component("db", "map"),
        with(web, json!({"dependsOn": ["db"]})),
        with(component("after", "map"), json!({"dependsOn": ["web"]})),
    ]);
    world.put("blue", components).await;
    let middle = |status: &ClusterStatus| {
        state(status, "db") == Some(OperationStateKind::Succeeded)
            && state(status, "web") == Some(OperationStateKind::Running)
    };
    world.until("blue", "in the middle", middle).await;
    // Applied: only readiness is missing.
    world.say("blue", "web", "False").await;
    world
}

async fn finishes(world: &World, run: &evenkeel_api::Reconciliation) {
    world.ready("blue").await;
    let run = world.fleet().reconciliation(&run.summary.id).await.unwrap();
    assert_eq!(run.summary.state, ReconciliationState::Succeeded);
    assert_eq!(
        operations(&run),
        [
            "install db succeeded",
            "install web succeeded",
            "install after succeeded"
        ]
    );
    assert_eq!(world.runs("blue").await, 1);
    assert_eq!(world.text("blue", "after").as_deref(), Some("first"));
}

#[tokio::test]
async fn a_clean_stop_gives_the_work_back() {
    let mut world = in_the_middle().await;
    let run = world.newest_run("blue").await;
    world.stop().await;
    world.say("blue", "web", "True").await;
    world.start().await;
    finishes(&world, &run).await;
}

#[tokio::test]
async fn a_killed_one_s_work_is_done_by_the_next() {
    let mut world = in_the_middle().await;
    let run = world.newest_run("blue").await;
    world.kill().await;
    world.say("blue", "web", "True").await;
    world.start().await;
    finishes(&world, &run).await;
}

#[tokio::test]
async fn a_deletion_goes_on_after_a_restart() {
    let mut world = in_the_middle().await;
    world.delete("blue", DeleteMode::Uninstall).await;
    world.kill().await;
    world.start().await;
    world.gone("blue").await;
    assert_eq!(world.text("blue", "db"), None);
}

#[tokio::test]
async fn a_change_that_nobody_saw_is_seen_by_the_next() {
    let mut world = World::new().await;
    world.map_chart("map");
    world.put("blue", json!([component("web", "map")])).await;
    world.ready("blue").await;
    let changed = json!([values(component("web", "map"), json!({"text": "second"}))]);
    world.cluster("blue").faults().unreachable(true);
    world.put("blue", changed).await;
    world.stop().await;
    world.cluster("blue").faults().unreachable(false);
    world.start().await;
    world.ready("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("second"));
}

/// A mothership that starts looks at nobody for that: a fleet costs it what is due in it.
#[tokio::test]
async fn a_restart_takes_up_what_is_due_and_nothing_else() {
    let mut world = World::new().await;
    world.map_chart("map");
    let idle: Vec<String> = (0..30).map(|number| format!("idle-{number}")).collect();
    let all = || idle.iter().map(String::as_str).chain(["due"]);
    for cluster in all() {
        world.put(cluster, json!([component("web", "map")])).await;
    }
    for cluster in all() {
        world.ready(cluster).await;
    }
    // The next look finds the new interval; a person asks for that look.
    let due = SettingFor {
        cluster: Some(name("due")),
        group: None,
    };
    let set = world
        .fleet()
        .put_setting("check-interval", &due, Some(json!("1s")));
    set.await.unwrap();
    world.fleet().reconcile(&name("due")).await.unwrap();
    world.kill().await;
    // Whoever is looked at lacks something.
    for cluster in all() {
        let cluster = world.cluster(cluster);
        cluster.delete("v1", "ConfigMap", "apps", "web").unwrap();
        cluster.reset_counters();
    }
    world.start().await;
    let mut seen = None;
    for look in ["its repair", "another look", "and another"] {
        seen = evenkeel_testkit::eventually(look, async || {
            let status = world.status("due").await;
            let is_newer = status.state == ClusterState::Ready && status.checked > seen;
            if is_newer && world.text("due", "web").is_some() {
                Ok(status.checked)
            } else {
                Err(status)
            }
        })
        .await;
    }
    assert_eq!(world.runs("due").await, 2);
    for cluster in &idle {
        let counts = world.cluster(cluster).counters();
        assert_eq!(counts.requests(), 0, "{cluster}: {counts:?}");
        assert_eq!(world.runs(cluster).await, 1, "{cluster}");
    }
}

#[tokio::test]
async fn a_new_database_finds_its_own_again() {
    let mut world = World::new().await;
    world.map_chart("map");
    let text = |text: &str| values(component("web", "map"), json!({"text": text}));
    for version in ["first", "second", "third"] {
        world
            .put("blue", json!([text(version), component("old", "map")]))
            .await;
        world.ready("blue").await;
    }
    world.lose_database().await;
    // What the cluster has is what is asked for: nothing is done.
    world
        .put("blue", json!([text("third"), component("old", "map")]))
        .await;
    world.ready("blue").await;
    assert_eq!(world.runs("blue").await, 0);
    // Its fences are lower than those at the cluster; it learns them.
    world
        .put("blue", json!([text("fourth"), component("old", "map")]))
        .await;
    world.ready("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("fourth"));
    let run = world.newest_run("blue").await;
    assert!(run.operations[0].attempts > 1, "{run:?}");

    world.lose_database().await;
    // A component that no version of the new database has ever listed is found at the cluster.
    world.put("blue", json!([text("fourth")])).await;
    world.ready("blue").await;
    assert_eq!(world.text("blue", "old"), None);
    assert_eq!(
        operations(&world.newest_run("blue").await),
        ["delete old succeeded"]
    );
}
