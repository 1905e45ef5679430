//! The form in which both are compared. What the recording leaves out or replaces is left out and replaced here in the same way:
//! numbers, times, tokens, keys, namespaces, addresses. Beyond that there are these rules, which hold everywhere:
//!
//! - `empty`: empty texts, maps and lists and `false` mean the same as nothing (the predecessor writes some for nothing).
//! - `conditions`: `status.conditions` and `status.observedGeneration` are ours; it had none (B34).
//! - `annotations`: those of `evenkeel.dev/` are ours, that of kubectl nobody's.
//! - `order`: finalizers are a set.

use evenkeel_goyaml::{JsonStyle, Numbers, from_yaml_documents, to_json};
use serde_json::{Map, Value, json};

use super::comparison::Sight;

/// The namespace of the recording.
pub(super) const NAMESPACE: &str = "lieutenant";

/// Kinds of which the names of the keys are compared, and no values.
const SECRET: &str = "Secret";

/// Takes in objects, as YAML.
pub(super) fn objects(sight: &mut Sight, text: &str) {
    for document in from_yaml_documents(text.as_bytes(), Numbers::Exact).unwrap() {
        let value = serde_json::from_str(&to_json(&document.value, JsonStyle::Raw)).unwrap();
        object(sight, value);
    }
}

/// Takes in one object.
pub(super) fn object(sight: &mut Sight, mut object: Value) {
    let kind = object["kind"].as_str().unwrap().to_owned();
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    metadata(&mut object["metadata"]);
    if kind == SECRET {
        let names = object["data"].as_object().cloned().unwrap_or_default();
        object["data"] = names.keys().map(|name| (name.clone(), json!("…"))).collect();
    }
    if let Some(status) = object["status"].as_object_mut() {
        status.remove("conditions");
        status.remove("observedGeneration");
        applied(status);
    }
    if let Some(facts) = object["spec"]["facts"].as_object_mut()
        && let Some(created) = facts.get_mut("created")
    {
        let text = created.as_str().unwrap();
        if is_go_time(text) {
            *created = json!("<creation time as Go prints it>");
        }
    }
    for (at, form) in [
        ("/status/bootstrapToken/token", "<token>"),
        ("/status/bootstrapToken/validUntil", "<time>"),
        ("/status/generatedDeployKeys/generated-g1/key", "<key>"),
    ] {
        if let Some(found) = object.pointer_mut(at) {
            *found = json!(form);
        }
    }
    address(&mut object);
    sight.insert(format!("{kind} {name}"), without_empty(object));
}

fn metadata(metadata: &mut Value) {
    let fields = metadata.as_object_mut().unwrap();
    for name in [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "managedFields",
        "namespace",
        "resourceVersion",
        "uid",
    ] {
        fields.remove(name);
    }
    if let Some(time) = fields.get_mut("deletionTimestamp") {
        *time = json!("<time>");
    }
    if let Some(Value::Array(owners)) = fields.get_mut("ownerReferences") {
        for owner in owners {
            owner["uid"] = json!("<uid>");
        }
    }
    if let Some(Value::Array(finalizers)) = fields.get_mut("finalizers") {
        finalizers.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
    if let Some(Value::Object(annotations)) = fields.get_mut("annotations") {
        annotations.retain(|name, _| {
            !name.starts_with("evenkeel.dev/") && !name.starts_with("kubectl.kubernetes.io/")
        });
        for (name, value) in annotations {
            if ["accessTokenExpiresAt", "accessTokenUID", "service-account.uid"]
                .iter()
                .any(|end| name.ends_with(end))
            {
                *value = json!("…");
            }
        }
    }
}

/// The variables that were applied are a text in JSON, in which the order of fields means nothing.
fn applied(status: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = status.get("lastAppliedCIVariables") {
        let list: Value = serde_json::from_str(text).unwrap();
        status.insert("lastAppliedCIVariables".to_owned(), list);
    }
}

/// `2026-08-24 10:11:12 +0000 UTC`.
fn is_go_time(text: &str) -> bool {
    let form: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    form == "0000-00-00 00:00:00 +0000 UTC"
}

/// The port of a double is another each time.
fn address(value: &mut Value) {
    const HOST: &str = "127.0.0.1";
    match value {
        Value::String(text) => {
            if let Some((before, after)) = text.split_once(HOST) {
                let rest = after.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
                *text = format!("{before}<host>{rest}");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(address),
        Value::Object(fields) => fields.values_mut().for_each(address),
        _ => {}
    }
}

fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, without_empty(value)));
            fields.filter(|(_, value)| !is_empty(value)).collect()
        }
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        other => other,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Takes in the secrets of Vault, by path: their keys, or `deleted`.
pub(super) fn vault(sight: &mut Sight, secrets: &Value) {
    for (path, secret) in secrets.as_object().unwrap() {
        let shown = secret.get("keys").unwrap_or(secret).clone();
        sight.insert(format!("vault {path}"), shown);
    }
}

/// Takes in the projects of GitLab, by path. Files that are empty are there.
pub(super) fn projects(sight: &mut Sight, projects: &Value) {
    for (path, project) in projects.as_object().unwrap() {
        let mut project = project.clone();
        let files = std::mem::take(&mut project["files"]);
        for key in project["keys"].as_object_mut().unwrap().values_mut() {
            key["key"] = json!("<key>");
        }
        for (name, variable) in project["variables"].as_object_mut().unwrap() {
            match name.as_str() {
                "SECRET" => variable["value"] = json!("<token of the host>"),
                "COMMODORE_API_TOKEN" => variable["value"] = json!("<service account token>"),
                _ => {}
            }
        }
        let mut project = without_empty(project);
        project["files"] = files;
        sight.insert(format!("project {path}"), project);
    }
}

/// Whether the form is what it says; a rule that matches too much would hide differences.
#[test]
fn forms_hide_no_more_than_they_say() {
    assert!(is_go_time("2026-08-24 10:11:12 +0000 UTC"));
    assert!(!is_go_time("2026-08-24T10:11:12Z"));
    let mut url = json!("ssh://git@127.0.0.1:18300/tenants/t-one.git");
    address(&mut url);
    assert_eq!(url, "ssh://git@<host>/tenants/t-one.git");
    let shown = without_empty(json!({ "a": "", "b": false, "c": { "d": {} }, "e": 0, "f": "x" }));
    assert_eq!(shown, json!({ "e": 0, "f": "x" }));
}
