//! Clusters that go: with their components, without them, or just from the record.

use std::time::Duration;

use evenkeel_api::{ClusterStatus, SettingFor};
use evenkeel_core::{ClusterState, DeleteMode, OperationStateKind, Sensitive};
use serde_json::json;

use crate::world::{World, component, name, settings, state, values, with};

async fn installed() -> World {
    let world = World::new().await;
    world.map_chart("map");
    world.deployment_chart("db");
    let web = with(component("web", "map"), json!({"dependsOn": ["db"]}));
    world.put("blue", json!([web, component("db", "db")])).await;
    world.ready("blue").await;
    world
}

fn ours(world: &World) -> Vec<String> {
    let secrets = world
        .cluster("blue")
        .list("v1", "Secret", "evenkeel-system")
        .unwrap();
    secrets
        .iter()
        .map(|secret| secret["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn uninstall_leaves_nothing_of_ours() {
    let world = installed().await;
    assert!(!ours(&world).is_empty());
    world.delete("blue", DeleteMode::Uninstall).await;
    world.gone("blue").await;
    let cluster = world.cluster("blue");
    assert_eq!(world.text("blue", "web"), None);
    assert!(
        cluster
            .get("apps/v1", "Deployment", "apps", "db")
            .unwrap()
            .is_none()
    );
    assert_eq!(ours(&world), Vec::<String>::new());
    evenkeel_testkit::eventually("namespaces that we made are gone", async || {
        let left: Vec<_> = ["apps", "evenkeel-system"]
            .into_iter()
            .filter(|name| cluster.get("v1", "Namespace", "", name).unwrap().is_some())
            .collect();
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
    // The name is free again.
    world.put("blue", json!([component("web", "map")])).await;
    world.ready("blue").await;
}

#[tokio::test]
async fn orphan_leaves_everything_running_and_nobody_s() {
    let world = installed().await;
    world.delete("blue", DeleteMode::Orphan).await;
    world.gone("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("first"));
    let map = world
        .cluster("blue")
        .get("v1", "ConfigMap", "apps", "web")
        .unwrap()
        .unwrap();
    assert_eq!(
        map["metadata"]["labels"].get("applyset.kubernetes.io/part-of"),
        None
    );
    let parents: Vec<_> = ours(&world)
        .into_iter()
        .filter(|name| !name.ends_with("-cluster"))
        .collect();
    assert_eq!(parents, Vec::<String>::new());
}

/// DEL-13: a cluster that is gone is forgotten when a person says so.
#[tokio::test]
async fn forget_touches_nothing() {
    let world = installed().await;
    world.cluster("blue").faults().unreachable(true);
    let before = world.cluster("blue").resource_version();
    world.delete("blue", DeleteMode::Forget).await;
    world.gone("blue").await;
    assert_eq!(world.cluster("blue").resource_version(), before);
    assert!(!ours(&world).is_empty());
}

/// DEL-13: one that does not answer is not gone, and its deletion is gone on with when it does.
#[tokio::test]
async fn an_unreachable_cluster_is_never_taken_for_a_deleted_one() {
    let mut settings = settings();
    settings.delete_failures_max = 3;
    let world = World::with(settings).await;
    world.map_chart("map");
    world.put("blue", json!([component("web", "map")])).await;
    world.ready("blue").await;
    world.cluster("blue").faults().unreachable(true);
    world.delete("blue", DeleteMode::Uninstall).await;
    let status = world.until("blue", "given up", given_up).await;
    let told = status.reason.unwrap();
    assert!(
        told.starts_with("unreachable: ") && told.contains("mode forget"),
        "{told}"
    );
    assert_eq!(status.next_due, None);
    // It answers again: another request ends it.
    world.cluster("blue").faults().unreachable(false);
    world.delete("blue", DeleteMode::Uninstall).await;
    world.gone("blue").await;
    assert_eq!(world.text("blue", "web"), None);
}

fn given_up(status: &ClusterStatus) -> bool {
    status.state == ClusterState::DeleteFailed
}

/// A host that the system's resolver says does not exist, also where there is no name server to ask: its first label is
/// longer than any may be.
fn unknown_host() -> String {
    format!("{}.invalid", "a".repeat(64))
}

/// A cluster that was ready, and whose kubeconfig then names a port of `host` at which nobody listens.
async fn moved_to(host: &str) -> World {
    let mut settings = settings();
    settings.delete_failures_max = 2;
    let world = World::with(settings).await;
    world.map_chart("map");
    world.put("blue", json!([component("web", "map")])).await;
    world.ready("blue").await;
    // The name in the certificate is given apart: a client refuses to look for one as long as that.
    let server = format!("https://{host}:1\n    tls-server-name: localhost");
    let kubeconfig = world.cluster("blue").kubeconfig().to_owned();
    let moved = kubeconfig.replace(&world.simulator.url("blue"), &server);
    assert_ne!(moved, kubeconfig);
    world
        .fleet()
        .put_kubeconfig(&name("blue"), Sensitive::new(moved).into())
        .await
        .unwrap();
    world
}

/// Has a cluster whose host is unknown taken for gone when it is deleted.
async fn gone_when_host_unknown(world: &World) {
    let blue = SettingFor {
        cluster: Some(name("blue")),
        group: None,
    };
    let set = world
        .fleet()
        .put_setting("gone-when-host-unknown", &blue, Some(json!(true)));
    set.await.unwrap();
}

#[tokio::test]
async fn a_cluster_whose_host_is_unknown_is_kept_until_a_person_says_that_it_is_gone() {
    let world = moved_to(&unknown_host()).await;
    world.delete("blue", DeleteMode::Uninstall).await;
    let status = world.until("blue", "given up", given_up).await;
    let told = status.reason.unwrap();
    assert!(
        told.starts_with("unreachable: ") && told.contains("mode forget"),
        "{told}"
    );
    world.delete("blue", DeleteMode::Forget).await;
    world.gone("blue").await;
}

#[tokio::test]
async fn a_cluster_whose_host_is_unknown_is_gone_where_a_setting_says_so() {
    let world = moved_to(&unknown_host()).await;
    gone_when_host_unknown(&world).await;
    world.delete("blue", DeleteMode::Uninstall).await;
    world.gone("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("first"));
}

/// The setting is about a name that does not exist, and nothing else that keeps a cluster from answering.
#[tokio::test]
async fn a_host_that_refuses_is_not_unknown() {
    let world = moved_to("localhost").await;
    gone_when_host_unknown(&world).await;
    world.delete("blue", DeleteMode::Uninstall).await;
    let status = world.until("blue", "given up", given_up).await;
    let told = status.reason.unwrap();
    assert!(told.starts_with("unreachable: "), "{told}");
}

#[tokio::test]
async fn a_stuck_object_is_named_and_gone_on_with() {
    let mut settings = settings();
    settings.ready_timeout = Duration::from_millis(500);
    // Each reconciliation tries a few times.
    settings.deadline = Duration::from_secs(2);
    let world = World::with(settings).await;
    world.map_chart("map");
    world.put("blue", json!([component("web", "map")])).await;
    world.ready("blue").await;
    let cluster = world.cluster("blue");
    let hold = |finalizers: serde_json::Value| {
        let patch = json!({"metadata": {"finalizers": finalizers}});
        cluster
            .patch("somebody", "v1", "ConfigMap", "apps", "web", patch)
            .unwrap();
    };
    hold(json!(["example.com/hold"]));
    world.delete("blue", DeleteMode::Uninstall).await;
    let stuck = |status: &ClusterStatus| {
        status.state == ClusterState::Deleting
            && status
                .reason
                .as_ref()
                .is_some_and(|reason| reason.contains("example.com/hold"))
    };
    world.until("blue", "the finalizer is named", stuck).await;
    // And it stays named while one reconciliation after another fails.
    let wanted = world.runs("blue").await + 2;
    evenkeel_testkit::eventually("two more reconciliations", async || {
        let status = world.status("blue").await;
        assert!(stuck(&status), "{status:?}");
        let runs = world.runs("blue").await;
        if runs >= wanted { Ok(()) } else { Err(runs) }
    })
    .await;
    hold(json!([]));
    world.gone("blue").await;
}

#[tokio::test]
async fn a_cluster_that_is_being_installed_can_be_deleted() {
    let world = World::new().await;
    world.deployment_chart("web");
    let stuck = values(component("web", "web"), json!({"behaviour": "stuck"}));
    world.put("blue", json!([stuck])).await;
    let waiting = |status: &ClusterStatus| state(status, "web") == Some(OperationStateKind::Running);
    world.until("blue", "web is waited for", waiting).await;
    world.delete("blue", DeleteMode::Uninstall).await;
    world.gone("blue").await;
    let cluster = world.cluster("blue");
    assert!(
        cluster
            .get("apps/v1", "Deployment", "apps", "web")
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_cluster_that_was_never_reached_just_goes() {
    let world = World::new().await;
    let document = json!({"name": "blue", "components": []});
    let document = evenkeel_api::ClusterDocument::from_value(document).unwrap();
    world.fleet().put_cluster(&name("blue"), document).await.unwrap();
    world.delete("blue", DeleteMode::Uninstall).await;
    world.gone("blue").await;
}
