//! Consent over HTTP: a change that loses much is refused with what it would lose, and consent names what is asked.

use evenkeel_api::{Code, GiveConsent};
use evenkeel_core::{ClusterState, ConfigurationVersion, OperationStateKind};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{World, component, document, simulated};

#[tokio::test]
async fn a_change_that_loses_components_needs_consent() {
    let world = World::idle().await;
    let all = [component("a"), component("b"), component("c")];
    world.put_c1(&document("c1", &all)).await.json();
    let refused = world.put_c1(&document("c1", &all[..1])).await;
    refused.refuses(
        Code::Consent,
        &["2 of 3 components go: b, c", "`consent: [removals]`"],
    );
    refused.names(Code::Consent, "consent", "expected removals");
    let mut emptied = document("c1", &[]);
    emptied["consent"] = json!(["removals"]);
    world
        .put_c1(&emptied)
        .await
        .names(Code::Consent, "consent", "expected emptyComponents");
    let mut moved = document("c1", &all);
    moved["components"][1]["namespace"] = json!("elsewhere");
    world
        .put_c1(&moved)
        .await
        .refuses(Code::Consent, &["b from apps to elsewhere", "namespaceChange"]);
    // All three at once.
    let mut both = document("c1", &[component("b")]);
    both["components"][0]["namespace"] = json!("elsewhere");
    let problem = world.put_c1(&both).await.problem(Code::Consent);
    assert_eq!(problem.errors.len(), 2, "{problem:?}");
    both["consent"] = json!(["namespaceChange", "removals"]);
    assert_eq!(world.put_c1(&both).await.json()["version"], 2);
    // It is no part of what is kept.
    let kept = world.get("/v2/clusters/c1").await.json();
    assert!(kept["spec"].get("consent").is_none(), "{kept}");
    both["consent"] = json!(["everything"]);
    world
        .put_c1(&both)
        .await
        .names(Code::Invalid, "consent[0]", "emptyComponents");
    // An older version is no way around.
    let back = |body: Value| {
        let request = world.request(Method::POST, "/v2/clusters/c1/rollback");
        world.send(request.json(&body))
    };
    back(json!({"to": 1}))
        .await
        .refuses(Code::Consent, &["namespaceChange"]);
    let rolled = back(json!({"to": 1, "consent": ["namespaceChange"]})).await;
    assert_eq!(rolled.json()["version"], 3);
}

#[tokio::test]
async fn consent_is_given_to_what_is_asked() {
    let world = World::working().await;
    let (_simulator, cluster) = simulated("c1").await;
    let root = world.folder.path().join("root").join("shrinking");
    std::fs::create_dir_all(root.join("templates")).unwrap();
    std::fs::write(
        root.join("Chart.yaml"),
        "apiVersion: v2\nname: shrinking\nversion: 1.0.0\n",
    )
    .unwrap();
    std::fs::write(
        root.join("templates/maps.yaml"),
        "{{- range until (int .Values.count) }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m{{ . }}\n{{- end }}\n",
    )
    .unwrap();
    let with = |count: u32| {
        let mut web = component("web");
        web["source"] = json!({"directory": {"path": "shrinking"}});
        web["values"] = json!([{"inline": {"count": count}}]);
        let mut document = document("c1", &[web]);
        document["kubeconfig"] = json!(cluster.kubeconfig());
        document
    };
    assert_eq!(world.put_c1(&with(7)).await.status, StatusCode::CREATED);
    world.until_ready("c1").await;
    assert_eq!(world.get("/v2/clusters/c1/consent").await.json(), json!([]));
    world.put_c1(&with(1)).await.json();
    let waits = |status: &evenkeel_api::ClusterStatus| {
        let state = status.components[0].state.as_ref().map(|state| state.kind());
        state == Some(OperationStateKind::Waiting)
    };
    world.until("c1", waits).await;
    let asked = world.get("/v2/clusters/c1/consent").await.json();
    assert_eq!(
        (
            &asked[0]["kind"],
            &asked[0]["version"],
            &asked[0]["deleted"],
            &asked[0]["of"]
        ),
        (&json!("deletions"), &json!(2), &json!(6), &json!(7))
    );
    assert_eq!(asked[0]["objects"].as_array().unwrap().len(), 6);
    let post = |body: Value| {
        let request = world.request(Method::POST, "/v2/clusters/c1/consent");
        world.send(request.json(&body))
    };
    let name = "c1".parse().unwrap();
    let good = GiveConsent::from(&world.api.consents(&name).await.unwrap()[0]);
    let good_body = serde_json::to_value(&good).unwrap();
    assert_eq!(good_body["planDigest"], asked[0]["planDigest"]);
    let mut wrong = good_body.clone();
    wrong["planDigest"] = json!(format!("sha256:{}", "0".repeat(64)));
    post(wrong)
        .await
        .refuses(Code::Conflict, &[&good.plan_digest.to_string(), "another plan"]);
    let mut wrong = good_body.clone();
    wrong["planDigest"] = json!("4f");
    post(wrong).await.names(Code::Invalid, "planDigest", "sha256");
    let mut wrong = good_body.clone();
    wrong["force"] = json!(true);
    post(wrong).await.refuses(Code::Invalid, &["force"]);
    let request = world.request(Method::POST, "/v2/clusters/c9/consent");
    world
        .send(request.json(&good_body))
        .await
        .refuses(Code::NotFound, &["c9"]);
    let given = post(good_body.clone()).await.json();
    assert!(given["given"].is_string(), "{given}");
    world
        .until("c1", |status| {
            status.state == ClusterState::Ready && status.observed_version == Some(ConfigurationVersion(2))
        })
        .await;
    assert!(cluster.get("v1", "ConfigMap", "apps", "m6").unwrap().is_none());
    post(good_body).await.refuses(Code::Conflict, &["asks for none"]);
}
