//! Watches, event by event.

use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::support::{Http, PATIENCE, start, start_with};
use evenkeel_simulator::{Cluster, Options, Simulator};

/// Reads a watch as lines of JSON.
struct Lines {
    stream: std::pin::Pin<Box<dyn futures::Stream<Item = Result<bytes::Bytes, reqwest::Error>> + Send>>,
    buffer: String,
}

impl Lines {
    async fn open(simulator: &Simulator, cluster: &Cluster, path: &str, accept: &str) -> Self {
        let authority = reqwest::Certificate::from_pem(simulator.ca_certificate().as_bytes()).unwrap();
        let client = reqwest::Client::builder()
            .tls_certs_only([authority])
            .timeout(PATIENCE)
            .build()
            .unwrap();
        let response = client
            .get(format!("{}{path}", simulator.url(cluster.name())))
            .bearer_auth(cluster.token())
            .header("accept", accept)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status().as_u16(), 200);
        Self {
            stream: Box::pin(response.bytes_stream()),
            buffer: String::new(),
        }
    }

    /// The next event, or `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.buffer.split_once('\n') {
                let event = serde_json::from_str(line).unwrap();
                self.buffer = rest.to_owned();
                return Some(event);
            }
            let bytes = tokio::time::timeout(PATIENCE, self.stream.next())
                .await
                .unwrap()?
                .unwrap();
            self.buffer.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    /// Type and name of the next event.
    async fn event(&mut self) -> (String, String) {
        let event = self.next().await.expect("an event");
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
        (event["type"].as_str().unwrap().to_owned(), name.to_owned())
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", "labels": labels}})
}

fn kinds(events: &[(String, String)]) -> Vec<(&str, &str)> {
    events
        .iter()
        .map(|(kind, name)| (kind.as_str(), name.as_str()))
        .collect()
}

#[tokio::test]
async fn a_watch_sees_every_change_from_its_version_on() {
    let (simulator, cluster) = start().await;
    cluster.create("t", map("before", json!({}))).unwrap();
    let version = cluster.resource_version();
    cluster.create("t", map("a", json!({}))).unwrap();
    let path = format!("{MAPS}?watch=1&resourceVersion={version}");
    let mut lines = Lines::open(&simulator, &cluster, &path, "application/json").await;
    cluster
        .patch(
            "t",
            "v1",
            "ConfigMap",
            "default",
            "a",
            json!({"data": {"x": "1"}}),
        )
        .unwrap();
    cluster.delete("v1", "ConfigMap", "default", "a").unwrap();
    let mut events = Vec::new();
    for _ in 0..3 {
        events.push(lines.event().await);
    }
    assert_eq!(
        kinds(&events),
        [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    );
    simulator.stop().await;
}

#[tokio::test]
async fn selectors_turn_changes_into_arrivals_and_departures() {
    let (simulator, cluster) = start().await;
    let version = cluster.resource_version();
    let path = format!("{MAPS}?watch=1&resourceVersion={version}&labelSelector=on%3Dyes");
    let mut lines = Lines::open(&simulator, &cluster, &path, "application/json").await;
    cluster.create("t", map("other", json!({"on": "no"}))).unwrap();
    cluster.create("t", map("a", json!({"on": "no"}))).unwrap();
    let label = |value: &str| json!({"metadata": {"labels": {"on": value}}});
    cluster
        .patch("t", "v1", "ConfigMap", "default", "a", label("yes"))
        .unwrap();
    let left = cluster
        .patch("t", "v1", "ConfigMap", "default", "a", label("no"))
        .unwrap();
    cluster.delete("v1", "ConfigMap", "default", "a").unwrap();
    assert_eq!(lines.event().await, ("ADDED".into(), "a".into()));
    let departure = lines.next().await.unwrap();
    assert_eq!(departure["type"], "DELETED");
    // The object as it last matched, at the version in which it stopped matching.
    assert_eq!(departure["object"]["metadata"]["labels"]["on"], "yes");
    assert_eq!(
        departure["object"]["metadata"]["resourceVersion"],
        left["metadata"]["resourceVersion"]
    );
    cluster.create("t", map("b", json!({"on": "yes"}))).unwrap();
    assert_eq!(
        lines.event().await,
        ("ADDED".into(), "b".into()),
        "nothing in between"
    );
    simulator.stop().await;
}

#[tokio::test]
async fn a_streamed_list_ends_with_a_bookmark() {
    let (simulator, cluster) = start().await;
    cluster.create("t", map("a", json!({}))).unwrap();
    let path = format!(
        "{MAPS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&\
         fieldSelector=metadata.name%3Da"
    );
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut lines = Lines::open(&simulator, &cluster, &path, accept).await;
    let added = lines.next().await.unwrap();
    assert_eq!(added["object"]["kind"], "PartialObjectMetadata");
    let bookmark = lines.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(
        bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    simulator.stop().await;
}

#[tokio::test]
async fn a_watch_ends_in_time_with_a_bookmark() {
    let (simulator, cluster) = start().await;
    let version = cluster.resource_version();
    let path = format!("{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=1&allowWatchBookmarks=true");
    let mut lines = Lines::open(&simulator, &cluster, &path, "application/json").await;
    assert_eq!(lines.event().await.0, "BOOKMARK");
    assert_eq!(lines.next().await, None);
    simulator.stop().await;
}

#[tokio::test]
async fn a_forgotten_version_is_gone() {
    let options = Options {
        history: 20,
        ..Options::default()
    };
    let (simulator, cluster) = start_with(options).await;
    let version = cluster.resource_version();
    for number in 0..30 {
        cluster
            .create("t", map(&format!("m{number}"), json!({})))
            .unwrap();
    }
    let path = format!("{MAPS}?watch=1&resourceVersion={version}");
    let mut lines = Lines::open(&simulator, &cluster, &path, "application/json").await;
    let event = lines.next().await.unwrap();
    assert_eq!(
        (event["type"].as_str(), event["object"]["code"].as_i64()),
        (Some("ERROR"), Some(410))
    );
    assert_eq!(event["object"]["reason"], "Expired");
    assert_eq!(lines.next().await, None);
    let http = Http::new(&simulator, &cluster);
    let exact = http
        .get(&format!(
            "{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact"
        ))
        .await;
    assert_eq!(
        (exact.code, exact.json()["reason"].as_str()),
        (410, Some("Expired"))
    );
    simulator.stop().await;
}

#[tokio::test]
async fn removing_a_cluster_ends_its_watches() {
    let (simulator, cluster) = start().await;
    let version = cluster.resource_version();
    let path = format!("{MAPS}?watch=1&resourceVersion={version}");
    let mut lines = Lines::open(&simulator, &cluster, &path, "application/json").await;
    simulator.remove_cluster("blue").unwrap();
    assert_eq!(lines.next().await, None);
    let http = Http::new(&simulator, &cluster);
    assert_eq!(http.get("/version").await.code, 404);
    simulator.stop().await;
}

#[tokio::test]
async fn stopping_does_not_wait_for_open_watches() {
    let (simulator, cluster) = start().await;
    let version = cluster.resource_version();
    let path = format!("{MAPS}?watch=1&resourceVersion={version}");
    let mut lines = Lines::open(&simulator, &cluster, &path, "application/json").await;
    tokio::time::timeout(Duration::from_secs(4), simulator.stop())
        .await
        .unwrap();
    assert!(lines.stream.next().await.is_none_or(|rest| rest.is_err()));
}
