//! What goes wrong is told where it goes wrong, and stops nothing else.

use std::time::Duration;

use evenkeel_api::ClusterStatus;
use evenkeel_core::{ClusterState, OperationStateKind, ReconciliationState, Sensitive};
use evenkeel_simulator::{Fault, FaultRule};
use serde_json::json;

use crate::world::{World, component, name, reason, settings, state, values, with};

fn degraded(status: &ClusterStatus) -> bool {
    status.state == ClusterState::Degraded
}

#[tokio::test]
async fn a_broken_chart_fails_alone_and_is_named_with_file_and_line() {
    let world = World::new().await;
    world.map_chart("good");
    world.map_chart("bad");
    world.write(
        "bad",
        "templates/broken.yaml",
        "a: 1\nb: {{ .Values.x | nope }}\n",
    );
    let components = json!([
        component("bad", "bad"),
        component("good", "good"),
        with(component("after", "good"), json!({"dependsOn": ["bad"]})),
        with(component("last", "good"), json!({"dependsOn": ["after"]})),
    ]);
    world.put("blue", components).await;
    let ended = |status: &ClusterStatus| {
        degraded(status) && state(status, "good") == Some(OperationStateKind::Succeeded)
    };
    let status = world.until("blue", "degraded, the others done", ended).await;
    let told = status.reason.clone().unwrap();
    assert!(told.starts_with("component bad: "), "{told}");
    assert!(told.contains("broken.yaml:2"), "{told}");
    assert_eq!(world.text("blue", "good").as_deref(), Some("first"));

    let settled = |status: &ClusterStatus| state(status, "last") == Some(OperationStateKind::Skipped);
    let status = world.until("blue", "dependents are skipped", settled).await;
    assert_eq!(state(&status, "after"), Some(OperationStateKind::Skipped));
    assert!(
        reason(&status, "after").contains("\"bad\""),
        "{}",
        reason(&status, "after")
    );
    assert_eq!(world.text("blue", "after"), None);

    // Put right, it is done at the next try without anybody asking.
    std::fs::write(world.chart_file("bad", "templates/broken.yaml"), "").unwrap();
    world.ready("blue").await;
    assert_eq!(world.text("blue", "last").as_deref(), Some("first"));
}

#[tokio::test]
async fn broken_yaml_applies_nothing_of_its_component() {
    let world = World::new().await;
    world.map_chart("web");
    world.write("web", "templates/z.yaml", "kind: ConfigMap\n  a: : b\n");
    world.put("blue", json!([component("web", "web")])).await;
    let status = world.until("blue", "degraded", degraded).await;
    assert!(status.reason.unwrap().contains("z.yaml"));
    assert_eq!(world.text("blue", "web"), None);
}

#[tokio::test]
async fn an_unreachable_cluster_is_told_and_the_others_go_on() {
    let world = World::new().await;
    world.map_chart("map");
    world.cluster("dead").faults().unreachable(true);
    world.put("dead", json!([component("web", "map")])).await;
    world.put("blue", json!([component("web", "map")])).await;
    let status = world.until("dead", "degraded", degraded).await;
    let told = status.reason.unwrap();
    assert!(told.starts_with("unreachable: "), "{told}");
    assert_eq!(status.observed_version, Some(status.version));
    world.ready("blue").await;
    assert_eq!(world.runs("dead").await, 0);
    world.cluster("dead").faults().unreachable(false);
    world.ready("dead").await;
}

#[tokio::test]
async fn a_cluster_that_hangs_holds_up_nobody() {
    let mut settings = settings();
    settings.check_timeout = Duration::from_secs(1);
    settings.parallel_checks = 2;
    let world = World::with(settings).await;
    world.map_chart("map");
    for dead in ["dead-1", "dead-2", "dead-3"] {
        world.cluster(dead).faults().add(FaultRule::always(Fault::Hang));
        world.put(dead, json!([component("web", "map")])).await;
    }
    for cluster in ["blue", "green"] {
        world.put(cluster, json!([component("web", "map")])).await;
    }
    for cluster in ["blue", "green"] {
        world.ready(cluster).await;
    }
    let status = world.until("dead-1", "degraded", degraded).await;
    assert!(status.reason.unwrap().starts_with("unreachable: "));
}

#[tokio::test]
async fn wrong_credentials_are_told_and_new_ones_are_used_at_once() {
    let world = World::new().await;
    world.map_chart("map");
    let cluster = world.cluster("blue");
    let wrong = cluster.kubeconfig().replace(cluster.token(), "not-the-token");
    world
        .put_with("blue", json!([component("web", "map")]), &wrong)
        .await
        .unwrap();
    let status = world.until("blue", "degraded", degraded).await;
    let told = status.reason.unwrap();
    assert!(told.starts_with("unauthorized: "), "{told}");
    assert!(!told.contains("not-the-token"), "{told}");
    let right = cluster.kubeconfig().to_owned();
    world
        .fleet()
        .put_kubeconfig(&name("blue"), Sensitive::new(right).into())
        .await
        .unwrap();
    world.ready("blue").await;
}

#[tokio::test]
async fn credentials_that_stop_being_accepted_never_look_like_a_deleted_cluster() {
    let mut settings = settings();
    settings.check_interval = Duration::from_millis(200);
    let world = World::with(settings).await;
    world.map_chart("map");
    world.put("blue", json!([component("web", "map")])).await;
    world.ready("blue").await;
    let faults = world.cluster("blue");
    faults
        .faults()
        .add(FaultRule::always(Fault::Forbidden).verbs(&["list"]));
    let status = world.until("blue", "degraded", degraded).await;
    assert!(status.reason.unwrap().starts_with("forbidden: "));
    faults.faults().clear();
    world.ready("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("first"));
}

#[tokio::test]
async fn a_forbidden_object_fails_its_component_alone() {
    let world = World::new().await;
    world.map_chart("map");
    world.deployment_chart("web");
    world.cluster("blue").faults().add(
        FaultRule::always(Fault::Forbidden)
            .verbs(&["patch"])
            .resources(&["deployments.apps"]),
    );
    world
        .put("blue", json!([component("web", "web"), component("map", "map")]))
        .await;
    let ended = |status: &ClusterStatus| {
        degraded(status) && state(status, "map") == Some(OperationStateKind::Succeeded)
    };
    let status = world.until("blue", "degraded, the other done", ended).await;
    let told = status.reason.unwrap();
    assert!(told.starts_with("component web: "), "{told}");
    assert!(
        told.contains("forbidden") && told.contains("Deployment.apps/web"),
        "{told}"
    );
    world.cluster("blue").faults().clear();
    world.ready("blue").await;
}

#[tokio::test]
async fn two_records_never_work_on_one_cluster() {
    let world = World::new().await;
    world.map_chart("map");
    world.put("blue", json!([component("web", "map")])).await;
    world.ready("blue").await;
    let same = world.cluster("blue").kubeconfig().to_owned();
    world
        .put_with("twin", json!([component("web", "map")]), &same)
        .await
        .unwrap();
    let status = world.until("twin", "degraded", degraded).await;
    let told = status.reason.unwrap();
    assert!(told.starts_with("identity: "), "{told}");
    assert_eq!(world.runs("twin").await, 0);
}

#[tokio::test]
async fn another_cluster_at_the_same_address_is_left_alone_until_confirmed() {
    let world = World::new().await;
    world.map_chart("map");
    world.put("blue", json!([component("web", "map")])).await;
    world.ready("blue").await;
    // The record now points at another cluster.
    let other = world.cluster("green").kubeconfig().to_owned();
    world
        .fleet()
        .put_kubeconfig(&name("blue"), Sensitive::new(other).into())
        .await
        .unwrap();
    let status = world.until("blue", "degraded", degraded).await;
    let told = status.reason.unwrap();
    assert!(told.starts_with("identity: another cluster answers"), "{told}");
    assert_eq!(world.cluster("green").counters().writes(), 0);
    world.fleet().confirm_identity(&name("blue")).await.unwrap();
    world.ready("blue").await;
    assert_eq!(world.text("green", "web").as_deref(), Some("first"));
}

#[tokio::test]
async fn at_the_limit_of_failures_the_cluster_is_failed_until_it_is_changed() {
    let mut settings = settings();
    settings.failures_max = 2;
    let world = World::with(settings).await;
    world.map_chart("map");
    world.write("map", "templates/broken.yaml", "{{ fail \"no\" }}");
    world.put("blue", json!([component("web", "map")])).await;
    let failed = |status: &ClusterStatus| status.state == ClusterState::Failed;
    let status = world.until("blue", "failed", failed).await;
    let told = status.reason.unwrap();
    assert!(
        told.contains("component web") && told.contains("given up after 2"),
        "{told}"
    );
    assert_eq!(status.next_due, None);
    assert_eq!(world.runs("blue").await, 2);
    world.map_chart("good");
    world.put("blue", json!([component("web", "good")])).await;
    world.ready("blue").await;
}

#[tokio::test]
async fn a_run_ends_at_its_deadline() {
    let mut settings = settings();
    settings.deadline = Duration::from_secs(1);
    settings.ready_timeout = Duration::from_secs(600);
    settings.retry_first = Duration::from_secs(600);
    settings.retry_longest = Duration::from_secs(600);
    let world = World::with(settings).await;
    world.deployment_chart("web");
    let stuck = values(component("web", "web"), json!({"behaviour": "stuck"}));
    world.put("blue", json!([stuck])).await;
    let late = |status: &ClusterStatus| {
        degraded(status)
            && status
                .reason
                .as_ref()
                .is_some_and(|reason| reason.contains("not done within 1s"))
    };
    let status = world.until("blue", "out of time", late).await;
    assert!(status.next_due.is_some());
    let run = world.newest_run("blue").await;
    assert_eq!(run.summary.state, ReconciliationState::Failed);
    let stopped = |status: &ClusterStatus| state(status, "web") == Some(OperationStateKind::Cancelled);
    world.until("blue", "its operation stopped", stopped).await;
}

#[tokio::test]
async fn values_that_are_not_there_yet_are_waited_for_by_their_component_alone() {
    let world = World::new().await;
    world.map_chart("map");
    let values =
        json!({"values": [{"valuesFrom": {"configMap": {"namespace": "default", "name": "web-values"}}}]});
    let components = json!([with(component("web", "map"), values), component("other", "map")]);
    world.put("blue", components).await;
    let ended = |status: &ClusterStatus| {
        degraded(status) && state(status, "other") == Some(OperationStateKind::Succeeded)
    };
    let status = world.until("blue", "degraded, the other done", ended).await;
    assert!(status.reason.unwrap().starts_with("component web: "));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "web-values"},
        "data": {"values.yaml": "text: from the cluster"}});
    world.cluster("blue").create("somebody", map).unwrap();
    world.ready("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("from the cluster"));
}

/// K48, DESIGN §7: the retries of what fails do not show: the cluster is degraded from the first failure until all that failed
/// has recovered, whatever else succeeds or is begun meanwhile.
#[tokio::test]
async fn a_degraded_cluster_is_degraded_until_it_has_recovered() {
    let mut settings = settings();
    settings.failures_max = 1_000;
    let world = World::with(settings).await;
    world.map_chart("good");
    for bad in ["bad", "worse"] {
        world.map_chart(bad);
        world.write(bad, "templates/broken.yaml", "a: {{ .Values.x | nope }}\n");
    }
    world.cluster("blue");
    let components = ["bad", "good", "worse"].map(|name| component(name, name));
    world.put("blue", json!(components)).await;
    world.until("blue", "degraded", degraded).await;
    let fix = |chart: &str| std::fs::write(world.chart_file(chart, "templates/broken.yaml"), "").unwrap();
    let tried = |runs: usize| {
        let world = &world;
        async move {
            let end = tokio::time::Instant::now() + crate::world::BOUND;
            while world.runs("blue").await < runs {
                assert!(tokio::time::Instant::now() < end, "it is tried again");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    tried(4).await;
    // One of the two recovers in a run in which the other one does not, and somebody deletes what had succeeded.
    fix("bad");
    let map = world.text("blue", "good");
    world
        .cluster("blue")
        .delete("v1", "ConfigMap", "apps", "good")
        .unwrap();
    let one_left = |status: &ClusterStatus| {
        let told = status.reason.as_deref().unwrap_or_default();
        state(status, "bad") == Some(OperationStateKind::Succeeded) && told.starts_with("component worse: ")
    };
    world.until("blue", "one of them recovered", one_left).await;
    tried(world.runs("blue").await + 3).await;
    fix("worse");
    world.ready("blue").await;
    assert_eq!(world.text("blue", "good"), map);

    let history = world
        .fleet()
        .history(&name("blue"), &Default::default())
        .await
        .unwrap();
    let mut states: Vec<ClusterState> = history.items.iter().map(|past| past.state).collect();
    states.reverse();
    let first = states.iter().position(|state| *state == ClusterState::Degraded);
    let after: Vec<_> = states.into_iter().skip(first.unwrap()).collect();
    assert_eq!(after, [ClusterState::Degraded], "until it was ready");
}
