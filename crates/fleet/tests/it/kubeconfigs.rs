//! K3: the kubeconfig of a cluster is read where its record says: a Secret of the mothership's own cluster, here on a real
//! API server, or Gardener, here a double that enforces the documented subresource.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_api as api;
use evenkeel_cluster::{Cluster, ConnectOptions, KubeconfigPolicy, Limits};
use evenkeel_core::{ClusterState, ReconciliationState, Sensitive};
use evenkeel_fleet::{Error, KubeconfigClusters, Settings};
use evenkeel_telemetry::SystemClock;
use evenkeel_testkit::{Garden, TestCluster, eventually};
use serde_json::{Value, json};

use crate::world::{World, component, name, settings, values};

/// A client as the mothership has it of its own cluster and of the garden.
async fn client(kubeconfig: &str) -> Cluster {
    evenkeel_testkit::install_crypto_provider();
    let options = ConnectOptions {
        policy: KubeconfigPolicy::Own {
            allow_exec: false,
            base: "/".into(),
        },
        limits: Limits::default(),
        clock: Arc::new(SystemClock),
    };
    let kubeconfig = Sensitive::new(kubeconfig.to_owned());
    Cluster::connect(&kubeconfig, options).await.unwrap()
}

/// Makes or changes a Secret whose key `config` is a kubeconfig.
fn write_secret(own: &TestCluster, namespace: &str, secret: &str, kubeconfig: &str) {
    let folder = evenkeel_testkit::temp_dir();
    let file = folder.path().join("secret.json");
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": secret},
        "stringData": {"config": kubeconfig},
    });
    std::fs::write(&file, object.to_string()).unwrap();
    let applied = own.kubectl().arg("apply").arg("-f").arg(&file).output().unwrap();
    assert!(applied.status.success(), "{applied:?}");
}

async fn put(world: &World, from: Value, text: &str) -> Result<api::Accepted, Error> {
    let components = json!([values(component("web", "map"), json!({"text": text}))]);
    let document = json!({"name": "blue", "components": components, "kubeconfigFrom": from});
    let document = api::ClusterDocument::from_value(document).unwrap();
    world.fleet().put_cluster(&name("blue"), document).await
}

/// That no pass over the cluster failed, and no operation had to be tried twice.
async fn nothing_failed(world: &World) {
    for run in world.fleet().reconciliations(&name("blue")).await.unwrap() {
        let run = world.fleet().reconciliation(&run.id).await.unwrap();
        assert_eq!(run.summary.state, ReconciliationState::Succeeded, "{run:#?}");
        for operation in &run.operations {
            assert_eq!(operation.attempts, 1, "{operation:#?}");
        }
    }
}

#[tokio::test]
async fn a_secret_is_read_and_its_rotation_fails_no_pass() {
    let own = evenkeel_testkit::cluster("main");
    let namespace = own.namespace("kubeconfigs").await;
    let world = World::with_clusters(
        Settings {
            kubeconfig_namespace: namespace.clone(),
            ..settings()
        },
        KubeconfigClusters {
            own: Some(client(own.kubeconfig()).await),
            garden: None,
        },
    )
    .await;
    world.map_chart("map");
    let target = world.cluster("blue");
    let accepted = put(&world, json!({"secret": {}}), "first").await.unwrap();
    // What is not there yet may come; until then it is said what was looked for, and where.
    let secret = format!("kubeconfig-{}", accepted.id);
    let says = |status: &api::ClusterStatus| {
        let reason = status.reason.clone().unwrap_or_default();
        reason.contains(&format!("Secret {namespace}/{secret}, key \"config\""))
            && reason.contains("there is no such Secret")
            && reason.contains("mothership's own cluster (https://")
    };
    world.until("blue", "the missing Secret is named", says).await;
    write_secret(own, &namespace, &secret, "apiVersion: v1\nkind: Config\n");
    let refused = |status: &api::ClusterStatus| {
        let reason = status.reason.clone().unwrap_or_default();
        reason.contains(&format!("Secret {namespace}/{secret}")) && reason.contains("current-context")
    };
    world.until("blue", "the wrong content is told of", refused).await;
    write_secret(own, &namespace, &secret, target.kubeconfig());
    world.ready("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("first"));

    for turn in 0..4 {
        // As whoever rotates does: first the new one, then the old ones are worth nothing.
        let text = format!("turn {turn}");
        let token = format!("rotated-{turn}");
        let rotated = target.issue(&token, Duration::from_secs(3_600));
        write_secret(own, &namespace, &secret, &rotated);
        put(&world, json!({"secret": {}}), &text).await.unwrap();
        target.revoke_tokens(Some(&token));
        world.ready("blue").await;
        assert_eq!(world.text("blue", "web"), Some(text));
    }
    nothing_failed(&world).await;

    // The record holds where it is, and nothing of what is there.
    let shown = world.fleet().cluster(&name("blue")).await.unwrap();
    let from = serde_json::to_value(shown.kubeconfig_from).unwrap();
    assert_eq!(from, json!({"secret": {"key": "config"}}));

    // Rotated to another cluster's: that is found out, and nothing is done there.
    let other = world.cluster("green");
    write_secret(own, &namespace, &secret, other.kubeconfig());
    target.revoke_tokens(None);
    world.fleet().reconcile(&name("blue")).await.unwrap();
    let elsewhere = |status: &api::ClusterStatus| {
        let reason = status.reason.clone().unwrap_or_default();
        reason.contains("another cluster answers")
    };
    world.until("blue", "the other cluster is told", elsewhere).await;
    assert_eq!(world.text("green", "web"), None);
}

#[tokio::test]
async fn credentials_of_a_shoot_are_renewed_before_and_after_they_end() {
    let garden = Garden::start().await;
    let world = World::with_clusters(
        Settings {
            check_interval: Duration::from_millis(200),
            ..settings()
        },
        KubeconfigClusters {
            own: None,
            garden: Some(client(&garden.kubeconfig()).await),
        },
    )
    .await;
    world.map_chart("map");
    let target = world.cluster("blue");
    let from = json!({"gardenerShoot": {"namespace": "garden-dev", "name": "one", "lifetime": "10m"}});
    put(&world, from.clone(), "first").await.unwrap();
    let says = |status: &api::ClusterStatus| {
        let reason = status.reason.clone().unwrap_or_default();
        reason.contains("no credentials of shoot garden-dev/one") && reason.contains("not found")
    };
    world.until("blue", "the missing shoot is named", says).await;

    // Each is good for 15 s; looks go on, and it is asked for another one in time.
    let count = Arc::new(AtomicUsize::new(0));
    let (issuing, of) = (count.clone(), target.clone());
    garden.issue_at_most(Duration::from_secs(15));
    garden.add_shoot("garden-dev", "one", move |lifetime| {
        let number = issuing.fetch_add(1, Ordering::SeqCst);
        of.issue(&format!("shoot-{number}"), lifetime)
    });
    world.ready("blue").await;
    let issued = |at_least: usize| {
        let garden = &garden;
        async move {
            eventually("another kubeconfig is issued", async || match garden.issued() {
                issued if issued >= at_least => Ok(()),
                issued => Err(issued),
            })
            .await;
        }
    };
    issued(3).await;
    assert_eq!(world.status("blue").await.state, ClusterState::Ready);
    nothing_failed(&world).await;

    // Ended before their time, as when a shoot's certificates are rotated: the refused request asks for others.
    target.revoke_tokens(None);
    put(&world, from.clone(), "second").await.unwrap();
    world.ready("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("second"));
    nothing_failed(&world).await;
    assert_eq!(garden.issued(), count.load(Ordering::SeqCst));

    // A garden that is down for a while stops nothing while credentials are good, and is told of when they are not.
    garden.break_down(true);
    target.revoke_tokens(None);
    let lost = |status: &api::ClusterStatus| {
        status
            .reason
            .as_deref()
            .is_some_and(|reason| reason.contains("unauthorized") || reason.contains("garden is down"))
    };
    world
        .until("blue", "the lost credentials are told of", lost)
        .await;
    garden.break_down(false);
    world.ready("blue").await;
}

#[tokio::test]
async fn what_this_mothership_could_never_read_is_refused() {
    let world = World::new().await;
    world.map_chart("map");
    for (from, expected) in [
        (
            json!({"secret": {}}),
            "kubeconfigFrom.secret: this mothership knows no cluster of its own",
        ),
        (
            json!({"gardenerShoot": {"namespace": "garden-dev", "name": "one"}}),
            "kubeconfigFrom.gardenerShoot: this mothership knows no Gardener",
        ),
    ] {
        let refused = put(&world, from, "x").await.unwrap_err();
        assert!(matches!(refused, Error::KubeconfigFrom(_)), "{refused:?}");
        assert!(refused.to_string().starts_with(expected), "{refused}");
    }
}
