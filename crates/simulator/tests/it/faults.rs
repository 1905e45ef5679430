//! Troubles on demand, and what is counted.

use std::time::{Duration, Instant};

use evenkeel_simulator::{Fault, FaultRule};
use serde_json::json;

use super::support::{Http, start};

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn faults_answer_as_a_troubled_server() {
    let (simulator, cluster) = start().await;
    let http = Http::new(&simulator, &cluster);
    let once = |fault| cluster.faults().add(FaultRule::always(fault).times(1));

    once(Fault::TooManyRequests {
        retry_after: Duration::from_secs(7),
    });
    let answer = http.get(PODS).await;
    assert_eq!(
        (answer.code, answer.json()["reason"].as_str()),
        (429, Some("TooManyRequests"))
    );
    assert_eq!(answer.headers["retry-after"], "7");
    assert_eq!(answer.json()["details"]["retryAfterSeconds"], 7);

    once(Fault::Unavailable { retry_after: None });
    assert_eq!(http.get(PODS).await.code, 503);

    once(Fault::InternalError);
    assert_eq!(http.get(PODS).await.code, 500);

    once(Fault::Forbidden);
    let answer = http.get(PODS).await;
    assert_eq!(answer.code, 403);
    assert_eq!(
        answer.json()["message"],
        "pods is forbidden: User \"evenkeel\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\""
    );

    once(Fault::Latency(Duration::from_millis(120)));
    let begun = Instant::now();
    assert_eq!(http.get(PODS).await.code, 200);
    assert!(begun.elapsed() >= Duration::from_millis(120));
    simulator.stop().await;
}

#[tokio::test]
async fn an_unreachable_cluster_gives_no_answer_and_comes_back() {
    let (simulator, cluster) = start().await;
    let other = simulator.add_cluster("green").unwrap();
    cluster.faults().unreachable(true);
    let error = Http::new(&simulator, &cluster)
        .send("GET", "/version", &[], None)
        .await;
    assert!(error.is_err(), "an answer from an unreachable cluster");
    assert_eq!(Http::new(&simulator, &other).get("/version").await.code, 200);
    cluster.faults().unreachable(false);
    assert_eq!(Http::new(&simulator, &cluster).get("/version").await.code, 200);
    simulator.stop().await;
}

#[tokio::test]
async fn a_hanging_cluster_answers_nobody() {
    let (simulator, cluster) = start().await;
    let http = Http::new(&simulator, &cluster);
    cluster
        .faults()
        .add(FaultRule::always(Fault::Hang).verbs(&["list"]));
    let hung = tokio::time::timeout(Duration::from_millis(200), http.get(PODS)).await;
    assert!(hung.is_err());
    assert_eq!(http.get("/version").await.code, 200);
    simulator.stop().await;
}

#[tokio::test]
async fn requests_are_counted_by_verb_and_resource() {
    let (simulator, cluster) = start().await;
    let http = Http::new(&simulator, &cluster);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let maps = "/api/v1/namespaces/default/configmaps";
    http.get("/apis/apps/v1/deployments").await;
    http.post(maps, &map).await;
    http.post(&format!("{maps}?dryRun=All"), &map).await;
    // The handle's own calls are not requests.
    cluster.get("v1", "ConfigMap", "default", "a").unwrap().unwrap();
    let counts = cluster.reset_counters();
    assert_eq!(counts.of("list", "deployments.apps"), 1);
    assert_eq!(counts.of("create", "configmaps"), 2);
    assert_eq!(
        (counts.requests(), counts.writes(), counts.verb("create")),
        (3, 1, 2)
    );
    assert_eq!(cluster.counters().requests(), 0);
    simulator.stop().await;
}

#[tokio::test]
async fn bad_bodies_are_refused_and_nothing_is_lost() {
    let (simulator, cluster) = start().await;
    let http = Http::new(&simulator, &cluster);
    let maps = "/api/v1/namespaces/default/configmaps";
    let json = [("content-type", "application/json")];
    let cut = http
        .send("POST", maps, &json, Some("{\"kind\":\"ConfigMap\",".into()))
        .await
        .unwrap();
    assert_eq!(
        (cut.code, cut.json()["reason"].as_str()),
        (400, Some("BadRequest"))
    );
    let huge = format!(
        "{{\"kind\":\"ConfigMap\",\"data\":{{\"x\":\"{}\"}}}}",
        "x".repeat(4 << 20)
    );
    if let Ok(answer) = http.send("POST", maps, &json, Some(huge)).await {
        assert_eq!(answer.code, 413);
    }
    let html = http
        .send("GET", maps, &[("accept", "text/html")], None)
        .await
        .unwrap();
    assert_eq!(html.code, 406);
    assert_eq!(http.get(maps).await.code, 200);
    simulator.stop().await;
}
