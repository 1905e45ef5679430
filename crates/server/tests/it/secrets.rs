//! What is secret goes in and never comes out.

use evenkeel_api::Code;
use serde_json::{Value, json};

use crate::world::{World, component, document, simulated};

const PASSWORD: &str = "correct-horse-battery";
const MASK: &str = "********";

fn with_secret(password: &str) -> Value {
    let mut document = document("c1", &[component("web")]);
    document["components"][0]["values"] = json!([{"inline": {"greeting": "salut"}}, {"secret": {"password": password, "words": ["rosebud-is-a-sledge"]}}]);
    document
}

#[tokio::test]
async fn secrets_are_masked_kept_and_never_logged() {
    let world = World::working().await;
    let (simulator, cluster) = simulated("c1").await;
    let password_at_target = || {
        let secret = cluster.get("v1", "Secret", "apps", "web").unwrap()?;
        Some(secret["data"]["password"].as_str().unwrap().to_owned())
    };
    let mut document = with_secret(PASSWORD);
    document["kubeconfig"] = json!(cluster.kubeconfig());
    let accepted = world.put_c1(&document).await;
    assert!(!accepted.text.contains(PASSWORD));
    accepted.json();
    world.until_ready("c1").await;
    let installed = password_at_target();
    assert_eq!(installed.as_deref(), Some("Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"));

    // Nothing that is read shows it.
    let run = world
        .api
        .reconciliations(&"c1".parse().unwrap())
        .await
        .unwrap()
        .remove(0)
        .id;
    let paths = [
        "",
        "/status",
        "/configurations",
        "/configurations/1",
        "/reconciliations",
    ];
    let paths = paths.iter().map(|path| format!("/v2/clusters/c1{path}"));
    let all = [
        format!("/v2/reconciliations/{run}"),
        "/v2/clusters".to_owned(),
        "/metrics".to_owned(),
    ];
    for path in paths.chain(all) {
        let answer = world.get(&path).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text);
        for secret in [
            PASSWORD,
            cluster.token(),
            "rosebud-is-a-sledge",
            "certificate-authority-data",
        ] {
            assert!(
                !answer.text.contains(secret),
                "{path} shows {secret}: {}",
                answer.text
            );
        }
    }
    let mut got = world.get("/v2/clusters/c1").await.json()["spec"].take();
    assert_eq!(got["components"][0]["values"][0]["inline"]["greeting"], "salut");
    assert_eq!(
        got["components"][0]["values"][1]["secret"],
        json!({"password": MASK, "words": [MASK]})
    );
    assert!(
        world
            .get("/v2/clusters/c1/kubeconfig")
            .await
            .problem(Code::Method)
            .detail
            .contains("GET")
    );

    // What was read can be sent back.
    let same = world.put_c1(&got).await.json();
    assert_eq!(
        (&same["version"], &same["change"]),
        (&json!(1), &json!("unchanged"))
    );
    got["components"][0]["values"][0]["inline"]["greeting"] = json!("servus");
    let changed = world.put_c1(&got).await.json();
    assert_eq!(changed["version"], 2);
    world
        .until("c1", |status| {
            status.observed_version == Some(evenkeel_core::ConfigurationVersion(2))
                && status.state == evenkeel_core::ClusterState::Ready
        })
        .await;
    assert_eq!(password_at_target(), installed, "the mask kept the password");

    // A mask for which nothing is stored is refused, and so nothing is overwritten with stars.
    got["components"][0]["values"][1]["secret"]["token"] = json!(MASK);
    let refused = world.put_c1(&got).await;
    refused.names(Code::Invalid, "components[0].values[1].secret.token", "masked");

    // Faults quote no secret.
    let mut wrong = with_secret(PASSWORD);
    wrong["components"][0]["values"][1]["secrte"] = json!({"password": PASSWORD});
    let refused = world.put_c1(&wrong).await;
    refused.problem(Code::Invalid);
    assert!(!refused.text.contains(PASSWORD), "{}", refused.text);
    let mut wrong = document_with_text_for_values();
    wrong["components"][0]["values"][0]["secret"] = json!(PASSWORD);
    let refused = world.put_c1(&wrong).await;
    refused.problem(Code::Invalid);
    assert!(!refused.text.contains(PASSWORD), "{}", refused.text);
    let kubeconfig = cluster.kubeconfig().replace("clusters:", "clusters: [");
    let refused = world
        .put("/v2/clusters/c1/kubeconfig", "application/yaml", kubeconfig)
        .await;
    refused.problem(Code::Kubeconfig);
    assert!(!refused.text.contains(cluster.token()), "{}", refused.text);

    let encoded = installed.unwrap();
    world.assert_unlogged(&[PASSWORD, &encoded, cluster.token()]);
    simulator.stop().await;
}

fn document_with_text_for_values() -> Value {
    let mut document = document("c1", &[component("web")]);
    document["components"][0]["values"] = json!([{"secret": {}}]);
    document
}
