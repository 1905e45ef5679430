//! Many clusters in one process.

use serde_json::json;

use super::support::{Http, start};

#[tokio::test]
async fn clusters_are_apart() {
    let (simulator, blue) = start().await;
    let green = simulator.add_cluster("green").unwrap();
    blue.create(
        "t",
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "only-blue"}}),
    )
    .unwrap();
    assert!(green.get("v1", "Namespace", "", "only-blue").unwrap().is_none());
    let uid = |cluster: &evenkeel_simulator::Cluster| {
        cluster
            .get("v1", "Namespace", "", "kube-system")
            .unwrap()
            .unwrap()["metadata"]["uid"]
            .clone()
    };
    assert_ne!(uid(&blue), uid(&green));
    // One cluster's token opens no other.
    let http = Http::new(&simulator, &blue);
    assert_eq!(http.get("/version").await.code, 200);
    let authority = reqwest::Certificate::from_pem(simulator.ca_certificate().as_bytes()).unwrap();
    let client = reqwest::Client::builder()
        .tls_certs_only([authority])
        .build()
        .unwrap();
    let path = format!("{}/api", simulator.url("green"));
    let answer = client.get(path).bearer_auth(blue.token()).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 401);
    simulator.stop().await;
}

#[tokio::test]
async fn names_are_checked_and_identities_last() {
    let (simulator, blue) = start().await;
    for name in ["", "A", "a/b", "-a", "a.b"] {
        assert!(simulator.add_cluster(name).is_err(), "{name}");
    }
    assert!(simulator.add_cluster("blue").is_err());
    let uid = |cluster: &evenkeel_simulator::Cluster| {
        cluster
            .get("v1", "Namespace", "", "kube-system")
            .unwrap()
            .unwrap()["metadata"]["uid"]
            .clone()
    };
    let before = uid(&blue);
    simulator.remove_cluster("blue").unwrap();
    assert!(simulator.remove_cluster("blue").is_err() && simulator.kubeconfig("blue").is_err());
    let again = simulator.add_cluster("blue").unwrap();
    assert_eq!(uid(&again), before);
    assert_eq!(simulator.clusters(), ["blue"]);
    simulator.stop().await;
}

#[tokio::test]
async fn clusters_nobody_talks_to_cost_next_to_nothing() {
    let (simulator, _) = start().await;
    for number in 0..5_000 {
        simulator.add_cluster(&format!("c{number}")).unwrap();
    }
    let last = simulator.cluster("c4999").unwrap();
    assert_eq!(
        Http::new(&simulator, &last)
            .get("/api/v1/namespaces/default")
            .await
            .code,
        200
    );
    assert_eq!(last.counters().requests(), 1);
    simulator.stop().await;
}

#[tokio::test]
async fn http_two_and_one_are_both_spoken() {
    let (simulator, cluster) = start().await;
    for (old, version) in [
        (true, reqwest::Version::HTTP_11),
        (false, reqwest::Version::HTTP_2),
    ] {
        let authority = reqwest::Certificate::from_pem(simulator.ca_certificate().as_bytes()).unwrap();
        let mut builder = reqwest::Client::builder().tls_certs_only([authority]);
        if old {
            builder = builder.http1_only();
        }
        let url = format!("{}/version", simulator.url(cluster.name()));
        let answer = builder
            .build()
            .unwrap()
            .get(url)
            .bearer_auth(cluster.token())
            .send()
            .await
            .unwrap();
        assert_eq!(answer.version(), version);
    }
    simulator.stop().await;
}
