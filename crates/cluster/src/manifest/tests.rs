use serde_json::json;

use super::*;

fn document(object: Value) -> ManifestObject {
    ManifestObject {
        object,
        source: "t.yaml".to_owned(),
    }
}

fn problems(object: Value) -> Vec<String> {
    match checks::check(document(object)) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn lists_are_taken_apart_at_any_depth() {
    let inner = json!({"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"kind": "ConfigMap"}, {"kind": "ConfigMap"}]});
    let outer = json!({"apiVersion": "v1", "kind": "List", "items": [inner, {"kind": "Secret"}]});
    let kinds: Vec<String> = flatten(vec![document(outer), document(Value::Null)])
        .iter()
        .map(|document| document.object["kind"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(kinds, ["ConfigMap", "ConfigMap", "Secret"]);
    // A custom resource whose kind happens to end so is an object like any other.
    let named = json!({"kind": "AllowList", "metadata": {"name": "x"}, "items": []});
    assert_eq!(flatten(vec![document(named)]).len(), 1);
}

#[test]
fn everything_wrong_with_a_document_is_told_at_once() {
    let found = problems(json!({"metadata": {"labels": {"a": 1}, "namespace": 7}}));
    assert_eq!(found.len(), 5, "{found:#?}");
    assert_eq!(
        problems(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})),
        Vec::<String>::new()
    );
}

#[test]
fn what_only_the_server_writes_is_not_sent() {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "x", "creationTimestamp": null, "managedFields": [], "resourceVersion": "1", "uid": "u", "labels": null,
        "annotations": {"a": null, "b": "c"},
    }});
    let Ok(parsed) = checks::check(document(object)) else {
        panic!("refused")
    };
    assert_eq!(
        Value::Object(parsed.body)["metadata"],
        json!({"name": "x", "annotations": {"b": "c"}})
    );
}

#[test]
fn plain_text_of_a_secret_becomes_data() {
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"},
        "data": {"a": "eA==", "b": "eA==\n"}, "stringData": {"b": "y"}});
    let Ok(parsed) = checks::check(document(object)) else {
        panic!("refused")
    };
    let body = Value::Object(parsed.body);
    assert_eq!(body["data"], json!({"a": "eA==", "b": "eQ=="}));
    assert!(body.get("stringData").is_none());
}

#[test]
fn empty_ca_bundles_are_left_to_whoever_fills_them() {
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "x"}, "webhooks": [{"name": "a", "clientConfig": {"caBundle": ""}}, {"name": "b", "clientConfig": {"caBundle": "eA=="}}]});
    let Ok(parsed) = checks::check(document(object)) else {
        panic!("refused")
    };
    let body = Value::Object(parsed.body);
    assert!(body["webhooks"][0]["clientConfig"].get("caBundle").is_none());
    assert_eq!(body["webhooks"][1]["clientConfig"]["caBundle"], "eA==");
}

#[test]
fn a_definition_tells_what_it_will_serve() {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.ex.io"},
        "spec": {"group": "ex.io", "scope": "Cluster", "names": {"kind": "Widget", "plural": "widgets"},
                 "versions": [{"name": "v1", "served": true, "subresources": {"status": {}}}, {"name": "v0", "served": false}]}});
    let Ok(parsed) = checks::check(document(definition)) else {
        panic!("refused")
    };
    let defined = definitions::of(&[parsed]);
    assert_eq!(defined.len(), 1);
    let resource = defined
        .get(&GroupVersionKind::from_api_version("ex.io/v1", "Widget"))
        .map(|defined| &defined.resource)
        .expect("defined");
    assert!(!resource.namespaced && resource.has_status && resource.plural == "widgets");
}
