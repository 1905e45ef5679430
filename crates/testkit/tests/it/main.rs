//! The support itself, on real parts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::time::Duration;

use evenkeel_testkit::{POD_SCRIPT_ANNOTATION, cluster, eventually, eventually_within};
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, PostParams};

fn pod(script: &str) -> Pod {
    serde_json::from_value(serde_json::json!({
        "metadata": {"name": "sample", "annotations": {POD_SCRIPT_ANNOTATION: script}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/main:1"}]},
    }))
    .unwrap()
}

async fn becomes(script: &str, phase: &str) {
    let cluster = cluster("main");
    let namespace = cluster.namespace("pods").await;
    let pods: Api<Pod> = Api::namespaced(cluster.client().await, &namespace);
    pods.create(&PostParams::default(), &pod(script)).await.unwrap();
    eventually("the phase", async || {
        let seen = pods.get("sample").await.unwrap().status.unwrap().phase;
        if seen.as_deref() == Some(phase) {
            Ok(())
        } else {
            Err(seen)
        }
    })
    .await;
}

// Two tests, each with a runtime of its own, on one cluster: the second must not depend on the first's.
#[tokio::test]
async fn a_shared_cluster_outlives_the_runtime_of_one_test() {
    becomes("ready", "Running").await;
}

#[tokio::test]
async fn and_serves_that_of_another() {
    becomes("fail", "Failed").await;
}

#[tokio::test]
async fn namespaces_are_fresh_and_requests_counted_by_client() {
    let cluster = cluster("main");
    let (one, two) = (cluster.namespace("fresh").await, cluster.namespace("fresh").await);
    assert_ne!(one, two);
    let client = cluster.client_as("counted/1").await;
    let maps: Api<ConfigMap> = Api::namespaced(client, &one);
    let mark = cluster.mark();
    let map = ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some("m".to_owned()),
            ..Default::default()
        },
        ..Default::default()
    };
    maps.create(&PostParams::default(), &map).await.unwrap();
    let names: Vec<String> = maps
        .list(&ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(|map| map.name_any())
        .collect();
    assert!(names.contains(&"m".to_owned()));
    let requests = cluster.requests_of("counted/", mark);
    assert_eq!(
        requests
            .iter()
            .map(|request| request.verb.as_str())
            .collect::<Vec<_>>(),
        ["create", "list"]
    );
    assert_eq!(requests.iter().filter(|request| request.is_write()).count(), 1);
}

#[tokio::test]
async fn the_real_clients_reach_the_cluster() {
    let cluster = cluster("main");
    let output = cluster
        .kubectl()
        .args(["get", "nodes", "-o", "name"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "node/node-0\n");
    let output = cluster.helm().args(["list", "-A", "-q"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn what_never_holds_is_told_with_what_was_seen() {
    let never = async || Err::<(), _>("rain");
    let waiting =
        std::panic::AssertUnwindSafe(eventually_within(Duration::from_millis(50), "the sun", never));
    let message = waiting.catch_unwind().await.unwrap_err();
    let message = message.downcast_ref::<String>().unwrap();
    assert_eq!(message, r#"the sun: not within 50ms; seen last: Some("rain")"#);
}
