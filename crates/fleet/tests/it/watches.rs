//! Drift is healed as it happens while a cluster is watched; who is not watched is looked at by interval.

use std::time::Duration;

use evenkeel_cluster::WatchOptions;
use evenkeel_core::{ClusterState, DeleteMode};
use evenkeel_fleet::Settings;
use evenkeel_simulator::{Fault, FaultRule};
use serde_json::json;

use crate::world::{BOUND, World, component, name, settings};

/// Watches, and no look by interval within a test.
fn watching() -> Settings {
    Settings {
        watched_clusters: 10,
        watch_options: WatchOptions {
            pause_first: Duration::from_millis(50),
            pause_longest: Duration::from_millis(500),
            judge_after: Duration::from_millis(50),
            ..WatchOptions::default()
        },
        ..settings()
    }
}

async fn vouched_for(world: &World, cluster: &str) {
    evenkeel_testkit::eventually("live watches to vouch for it", async || {
        match world.fleet().is_vouched_for(&name(cluster)).await {
            Ok(true) => Ok(()),
            other => Err(format!("{other:?}, {:?}", world.fleet().watched())),
        }
    })
    .await;
}

/// A mothership with one cluster, installed and watched.
async fn watched(settings: Settings) -> World {
    let world = World::with(settings).await;
    world.map_chart("map");
    world.deployment_chart("web");
    world
        .put("blue", json!([component("map", "map"), component("web", "web")]))
        .await;
    world.ready("blue").await;
    vouched_for(&world, "blue").await;
    world
}

fn edit(world: &World, cluster: &str, text: &str) {
    let patch = json!({"data": {"text": text}});
    world
        .cluster(cluster)
        .patch("kubectl-edit", "v1", "ConfigMap", "apps", "map", patch)
        .unwrap();
}

async fn shows(world: &World, cluster: &str, text: &str) {
    evenkeel_testkit::eventually("the map to show what it should", async || {
        match world.text(cluster, "map") {
            Some(found) if found == text => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

/// Waits for a look that ended after this moment.
async fn looked_at(world: &World, cluster: &str) {
    let before = world.status(cluster).await.checked;
    evenkeel_testkit::eventually("another look", async || {
        let checked = world.status(cluster).await.checked;
        if checked > before { Ok(()) } else { Err(checked) }
    })
    .await;
}

/// Goal G6: a foreign edit is healed without waiting for the next look, which would be in an hour.
#[tokio::test]
async fn drift_is_healed_as_it_happens() {
    let world = watched(watching()).await;
    let mut longest = Duration::ZERO;
    for round in 0..3 {
        let started = tokio::time::Instant::now();
        edit(&world, "blue", &format!("by hand {round}"));
        shows(&world, "blue", "first").await;
        longest = longest.max(started.elapsed());
        world.ready("blue").await;
        vouched_for(&world, "blue").await;
    }
    assert!(longest < BOUND, "{longest:?}");
    let cluster = world.cluster("blue");
    cluster.delete("apps/v1", "Deployment", "apps", "web").unwrap();
    evenkeel_testkit::eventually("the Deployment to be back", async || {
        let found = cluster.get("apps/v1", "Deployment", "apps", "web").unwrap();
        found.map(drop).ok_or("it is missing")
    })
    .await;
    world.ready("blue").await;
    vouched_for(&world, "blue").await;
    assert_eq!(world.runs("blue").await, 5, "one to install, one for each edit");
}

/// Operators see whether the places for live watches suffice, and what they cost.
#[tokio::test]
async fn the_metrics_count_watches() {
    let mut settings = watching();
    settings.watched_clusters = 1;
    let world = watched(settings).await;
    world.put("green", json!([component("map", "map")])).await;
    world.ready("green").await;
    let watched = world.fleet().watched();
    let text = world.fleet().metrics().await.unwrap();
    for line in [
        "evenkeel_watched_clusters{state=\"calm\"} 1.0".to_owned(),
        "evenkeel_watched_clusters{state=\"unsettled\"} 0.0".to_owned(),
        "evenkeel_watched_clusters_max 1.0".to_owned(),
        "evenkeel_watch_lost_clusters 0.0".to_owned(),
        format!("evenkeel_watches {}.0", watched.watches),
        format!("evenkeel_watched_objects {}.0", watched.size.objects),
        format!("evenkeel_watched_objects_bytes {}.0", watched.size.bytes),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(watched.watches >= 3 && watched.size.objects >= 3, "{watched:?}");
    // A cluster that goes gives its place up.
    world.delete("blue", DeleteMode::Uninstall).await;
    evenkeel_testkit::eventually("the place to be free", async || {
        let text = world.fleet().metrics().await.unwrap();
        if text.contains("evenkeel_watches 0.0\n") {
            Ok(())
        } else {
            Err(text)
        }
    })
    .await;
}

/// What is seen while a run goes on is put down to the run, but only until the look after it: an edit that follows at once is
/// healed at once. Here nothing else would tell of it within an hour.
#[tokio::test]
async fn an_edit_right_after_a_run_does_not_wait_for_anything() {
    let mut settings = watching();
    settings.drift_patience = Duration::from_secs(60 * 60);
    let world = watched(settings).await;
    // Longer than the pause between two alarms, so that the watches tell of the run's own writes while it goes on.
    let slow = FaultRule::always(Fault::Latency(Duration::from_millis(600))).verbs(&["patch", "update"]);
    world.cluster("blue").faults().add(slow);
    // A fourth correction of the same field would wait by design: somebody fights over it.
    for round in 0..3 {
        edit(&world, "blue", &format!("by hand {round}"));
        shows(&world, "blue", "first").await;
        world.ready("blue").await;
    }
    world.cluster("blue").faults().clear();
    vouched_for(&world, "blue").await;
}

/// DESIGN §7: an unchanged cluster costs reads only, and none while live watches vouch for it.
#[tokio::test]
async fn a_look_at_a_watched_cluster_asks_it_nothing() {
    let mut settings = watching();
    settings.check_interval = Duration::from_millis(300);
    settings.full_check_every = u32::MAX;
    let world = watched(settings).await;
    looked_at(&world, "blue").await;
    world.cluster("blue").reset_counters();
    for _ in 0..3 {
        looked_at(&world, "blue").await;
    }
    let counts = world.cluster("blue").counters();
    assert_eq!(counts.requests(), 0, "{:?}", counts.iter().collect::<Vec<_>>());
    // A chart that changed is seen all the same.
    world.write("map", "values.yaml", "text: second\n");
    shows(&world, "blue", "second").await;
}

#[tokio::test]
async fn every_so_often_it_is_asked_all_the_same() {
    let mut settings = watching();
    settings.check_interval = Duration::from_millis(200);
    settings.full_check_every = 3;
    let world = watched(settings).await;
    world.cluster("blue").reset_counters();
    evenkeel_testkit::eventually("a look that asks", async || {
        let lists = world.cluster("blue").counters().verb("list");
        if lists > 0 { Ok(()) } else { Err(lists) }
    })
    .await;
}

/// After a restart nothing is known: the first look tells, and watching begins anew.
#[tokio::test]
async fn a_restart_begins_with_a_look() {
    let mut settings = watching();
    settings.check_interval = Duration::from_millis(500);
    settings.full_check_every = u32::MAX;
    let mut world = watched(settings).await;
    world.kill().await;
    edit(&world, "blue", "while nobody looked");
    world.start().await;
    shows(&world, "blue", "first").await;
    vouched_for(&world, "blue").await;
}

/// A cluster that cannot be reached for a moment: what was done to it meanwhile is healed.
#[tokio::test]
async fn an_edit_while_it_was_out_of_reach_is_healed() {
    let world = watched(watching()).await;
    let cluster = world.cluster("blue");
    cluster.faults().unreachable(true);
    edit(&world, "blue", "while it was out of reach");
    cluster.faults().clear();
    shows(&world, "blue", "first").await;
    // The server forgets what happened, as a compaction makes it.
    cluster.compact();
    edit(&world, "blue", "after that");
    shows(&world, "blue", "first").await;
    vouched_for(&world, "blue").await;
}

/// There are places for so many; the others are looked at by interval, and nobody loses a place to them.
#[tokio::test]
async fn who_has_no_place_is_looked_at_by_interval() {
    let mut settings = watching();
    settings.watched_clusters = 1;
    settings.check_interval = Duration::from_millis(400);
    settings.full_check_every = u32::MAX;
    let world = watched(settings).await;
    world.put("green", json!([component("map", "map")])).await;
    world.ready("green").await;
    edit(&world, "green", "by hand");
    shows(&world, "green", "first").await;
    looked_at(&world, "green").await;
    assert!(!world.fleet().is_vouched_for(&name("green")).await.unwrap());
    vouched_for(&world, "blue").await;
    let now = world.fleet().watched();
    assert_eq!((now.clusters, now.calm), (1, 1), "{now:?}");
    assert!(now.watches >= 3 && now.size.objects >= 2, "{now:?}");
    // A place that is free is taken.
    world.delete("blue", DeleteMode::Uninstall).await;
    world.gone("blue").await;
    vouched_for(&world, "green").await;
    assert_eq!(world.fleet().watched().clusters, 1);
}

/// What others write that is not ours makes no run, and nothing that differs is found later.
#[tokio::test]
async fn what_others_own_makes_no_run() {
    let mut settings = watching();
    settings.check_interval = Duration::from_millis(500);
    settings.full_check_every = 2;
    let world = watched(settings).await;
    let runs = world.runs("blue").await;
    let cluster = world.cluster("blue");
    let patch = json!({"data": {"theirs": "x"}, "metadata": {"annotations": {"theirs": "x"}}});
    cluster
        .patch("somebody", "v1", "ConfigMap", "apps", "map", patch)
        .unwrap();
    let patch = json!({"metadata": {"annotations": {"theirs": "x"}}, "spec": {"revisionHistoryLimit": 3}});
    cluster
        .patch("somebody", "apps/v1", "Deployment", "apps", "web", patch)
        .unwrap();
    for _ in 0..3 {
        looked_at(&world, "blue").await;
    }
    vouched_for(&world, "blue").await;
    assert_eq!(world.runs("blue").await, runs);
    assert_eq!(world.status("blue").await.state, ClusterState::Ready);
}

/// What stops being ready shows at once, and that it is ready again, too; neither makes a run.
#[tokio::test]
async fn readiness_is_told_as_it_changes() {
    let world = World::with(watching()).await;
    world.engine_chart("blue", "engine");
    world.put("blue", json!([component("main", "engine")])).await;
    world.say("blue", "main", "True").await;
    world.ready("blue").await;
    vouched_for(&world, "blue").await;
    let runs = world.runs("blue").await;
    world.say("blue", "main", "False").await;
    world
        .until("blue", "degraded", |status| {
            status.state == ClusterState::Degraded
        })
        .await;
    world.say("blue", "main", "True").await;
    world.ready("blue").await;
    vouched_for(&world, "blue").await;
    assert_eq!(world.runs("blue").await, runs);
}
