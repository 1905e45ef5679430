//! What is refused, told so that somebody can act on it, and nothing told that is secret.

use evenkeel_cluster::{Error, ErrorClass, ManifestObject};
use serde_json::json;

use crate::component::Component;
use crate::documents::{config_map, deployment, doc, secret, widget};
use crate::env::Env;

const SENTINEL: &str = "s3ntinel-hunter2";

/// APL-12: a null in the data of a Secret is an error that names it.
pub(crate) async fn secrets_are_in_no_error(env: &Env) {
    let component = Component::new(env);
    let mut number = secret("a", "token", "x");
    number.object["data"] = json!({"TOKEN": 123_456_789});
    let mut null = secret("b", "token", "x");
    null.object["data"] = json!({"TOKEN": null, "OTHER": "eA=="});
    let mut text = secret("c", "token", "x");
    text.object["data"] = json!({"TOKEN": SENTINEL});
    for (document, field) in [(number, "data.TOKEN"), (null, "data.TOKEN"), (text, "data.TOKEN")] {
        let error = component.run(&[document]).await.unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(
            told.contains(field) && told.contains("templates/secret.yaml"),
            "{told}"
        );
        assert!(!told.contains(SENTINEL) && !told.contains("123456789"), "{told}");
    }
    // What only the server notices.
    let mut unknown = secret("e", "token", SENTINEL);
    unknown.object[SENTINEL] = json!(SENTINEL);
    refused_without_quoting(&component, unknown).await;
    // Neither in a plan, nor when a Secret drifted.
    component.run(&[secret("f", "token", SENTINEL)]).await.unwrap();
    env.change(
        &component.path("secrets", "f"),
        &json!({"data": {"token": "b3RoZXI="}}),
    )
    .await;
    let plan = component.plan(&[secret("f", "token", SENTINEL)]).await.unwrap();
    let told = format!("{plan:?} {:?} {:?}", plan.summary(), plan.desired());
    assert!(told.contains("data.token"), "{told}");
    assert!(
        !told.contains(SENTINEL) && !told.contains("b3RoZXI") && !told.contains("czNudGluZWwtaHVudGVyMg"),
        "{told}"
    );
}

async fn refused_without_quoting(component: &Component<'_>, document: ManifestObject) {
    let error = component.run(&[document]).await.unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(matches!(error, Error::Objects(_)), "{told}");
    assert!(
        !told.contains(SENTINEL) && !told.contains("czNudGluZWwtaHVudGVyMg"),
        "{told}"
    );
}

pub(crate) async fn a_secret_of_a_wrong_type_is_not_quoted(env: &Env) {
    let component = Component::new(env);
    let mut wrong = secret("d", "token", SENTINEL);
    wrong.object["type"] = json!("kubernetes.io/dockerconfigjson");
    wrong.object["stringData"] = json!({".dockerconfigjson": SENTINEL});
    refused_without_quoting(&component, wrong).await;
}

pub(crate) async fn the_forbidden_is_named(env: &Env) {
    // A resource quota refuses like missing rights do.
    let component = Component::new(env);
    component.make_namespace().await;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"count/configmaps": "0"}}});
    env.make(&component.collection("resourcequotas"), &quota).await;
    env.until(
        "the quota to count",
        &component.path("resourcequotas", "none"),
        |quota| quota["status"]["hard"]["count/configmaps"] == "0",
    )
    .await;
    let error = component
        .run(&[config_map("a", "k", "1"), secret("b", "k", "1")])
        .await
        .unwrap_err();
    let Error::Objects(errors) = &error else {
        panic!("{error}")
    };
    assert_eq!(errors.len(), 1);
    assert!(matches!(errors[0].error, Error::Forbidden { .. }), "{error}");
    assert!(error.to_string().contains("ConfigMap/a"), "{error}");
    assert_eq!(error.class(), ErrorClass::Forbidden);
    env.must(&component.path("secrets", "b")).await;
}

/// APL-12: labels that are null count as absent.
pub(crate) async fn bad_manifests_name_their_source(env: &Env) {
    let component = Component::new(env);
    let unnamed = doc(
        "templates/unnamed.yaml",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}),
    );
    let no_kind = doc(
        "templates/no-kind.yaml",
        json!({"apiVersion": "v1", "metadata": {"name": "x"}}),
    );
    let text = doc("templates/text.yaml", json!("just text"));
    let mut label = config_map("labelled", "k", "1");
    label.object["metadata"]["labels"] = json!({"team": null, "port": 80});
    let before = env.cluster.requests();
    let error = component
        .run(&[unnamed, no_kind, text, label, config_map("good", "k", "1")])
        .await
        .unwrap_err();
    let told = error.to_string();
    for part in [
        "templates/unnamed.yaml",
        "generateName",
        "templates/no-kind.yaml",
        "kind: expected",
        "templates/text.yaml",
        "metadata.labels.port",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(error.class(), ErrorClass::Invalid);
    assert_eq!(
        env.cluster.requests().since(&before).total(),
        0,
        "nothing is asked for a manifest that is wrong by itself"
    );

    let mut twice = config_map("same", "k", "2");
    twice.source = "templates/second.yaml".to_owned();
    let error = component
        .run(&[config_map("same", "k", "1"), twice])
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("templates/configmap.yaml") && error.contains("templates/second.yaml"),
        "{error}"
    );

    let error = component
        .run(&[widget("unheard-of.ex.io", "w", 1), config_map("good", "k", "1")])
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::UnknownKinds(found) if found.len() == 1),
        "{error}"
    );
    assert!(
        error.to_string().contains("unheard-of.ex.io/v1/Widget")
            && error.to_string().contains("templates/widget.yaml"),
        "{error}"
    );
    assert!(
        env.get(&component.namespace_path()).await.is_none(),
        "nothing was applied"
    );

    let mut null = config_map("null-label", "k", "1");
    null.object["metadata"]["labels"] = json!({"team": null, "app": "x"});
    component.run(&[null, deployment("web", 0)]).await.unwrap();
    let live = env.must(&component.path("configmaps", "null-label")).await;
    assert!(live["metadata"]["labels"].get("team").is_none());
}
