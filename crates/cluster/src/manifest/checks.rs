//! What makes a document an object, and what is taken out of it before it is sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_core::GroupVersionKind;
use serde_json::{Map, Value};

use super::{ManifestObject, Parsed, repeats};
use crate::error::ManifestProblem;

/// Metadata that only the server writes.
const SERVER_METADATA: [&str; 8] = [
    "managedFields",
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

/// Checks one document and cleans it, or says everything that is wrong with it.
pub(crate) fn check(document: ManifestObject) -> Result<Parsed, Vec<ManifestProblem>> {
    let ManifestObject { object, source } = document;
    let Value::Object(mut body) = object else {
        let message = format!("expected an object, found {}", kind_of(&object));
        return Err(vec![ManifestProblem {
            source,
            object: "(document)".to_owned(),
            message,
        }]);
    };
    let kind = text(&body, "kind");
    let api_version = text(&body, "apiVersion");
    let metadata = body.get("metadata").and_then(Value::as_object);
    let name = metadata.and_then(|metadata| text(metadata, "name"));
    let shown = format!(
        "{}/{}",
        kind.as_deref().unwrap_or("?"),
        name.as_deref().unwrap_or("?")
    );
    let mut problems = Vec::new();
    let mut problem = |message: String| {
        problems.push(ManifestProblem {
            source: source.clone(),
            object: shown.clone(),
            message,
        });
    };
    if kind.is_none() {
        problem("kind: expected a text, found none".to_owned());
    }
    if api_version.is_none() {
        problem("apiVersion: expected a text, found none".to_owned());
    }
    if name.is_none() {
        let generated = metadata.is_some_and(|metadata| metadata.contains_key("generateName"));
        problem(if generated {
            "metadata.generateName: refused, because an object with a new name each time cannot be kept up to date; expected \
             metadata.name"
                .to_owned()
        } else {
            "metadata.name: expected a text, found none".to_owned()
        });
    }
    let namespace = match metadata.and_then(|metadata| metadata.get("namespace")) {
        None | Some(Value::Null) => None,
        Some(Value::String(namespace)) if namespace.is_empty() => None,
        Some(Value::String(namespace)) => Some(namespace.clone()),
        Some(other) => {
            problem(format!(
                "metadata.namespace: expected a text, found {}",
                kind_of(other)
            ));
            None
        }
    };
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        SERVER_METADATA
            .iter()
            .for_each(|field| drop(metadata.remove(*field)));
        metadata.remove("generateName");
        for field in ["labels", "annotations"] {
            clean_texts(metadata, field, &mut problem);
        }
    }
    if api_version.as_deref() == Some("v1") && kind.as_deref() == Some("Secret") {
        check_secret(&mut body, &mut problem);
    }
    remove_empty_ca_bundles(&mut body);
    repeats::remove(&mut body);
    match (kind, api_version, name) {
        (Some(kind), Some(api_version), Some(name)) if problems.is_empty() => {
            let kind = GroupVersionKind::from_api_version(&api_version, kind);
            Ok(Parsed {
                kind,
                name,
                namespace,
                body,
                source,
            })
        }
        _ => Err(problems),
    }
}

fn text(map: &Map<String, Value>, key: &str) -> Option<String> {
    map.get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Labels and annotations: null means absent, as for kubectl; anything but a text is an error that Helm users know.
fn clean_texts(metadata: &mut Map<String, Value>, field: &str, problem: &mut impl FnMut(String)) {
    match metadata.get_mut(field) {
        Some(Value::Object(map)) => {
            map.retain(|_, value| !value.is_null());
            for (key, value) in map.iter().filter(|(_, value)| !value.is_string()) {
                problem(format!(
                    "metadata.{field}.{key}: expected a text, found {}; put it in quotes",
                    kind_of(value)
                ));
            }
        }
        Some(Value::Null) => drop(metadata.remove(field)),
        None => {}
        Some(other) => problem(format!(
            "metadata.{field}: expected a map, found {}",
            kind_of(other)
        )),
    }
}

/// Checked here, because the server would quote the value that it does not like. `stringData` becomes `data`, so that a
/// key that is no longer rendered goes away like any other field.
fn check_secret(body: &mut Map<String, Value>, problem: &mut impl FnMut(String)) {
    let mut data = Map::new();
    match body.remove("data") {
        None | Some(Value::Null) => {}
        Some(Value::Object(map)) => {
            for (key, value) in map {
                match &value {
                    Value::String(text) => {
                        let compact: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
                        match STANDARD.decode(&compact) {
                            Ok(_) => drop(data.insert(key, Value::String(compact))),
                            Err(_) => problem(format!(
                                "data.{key}: expected base64, found other text; use stringData for plain text"
                            )),
                        }
                    }
                    other => problem(format!(
                        "data.{key}: expected a text in base64, found {}",
                        kind_of(other)
                    )),
                }
            }
        }
        Some(other) => problem(format!("data: expected a map, found {}", kind_of(&other))),
    }
    match body.remove("stringData") {
        None | Some(Value::Null) => {}
        Some(Value::Object(map)) => {
            for (key, value) in map {
                match &value {
                    Value::String(text) => drop(data.insert(key, Value::String(STANDARD.encode(text)))),
                    other => problem(format!(
                        "stringData.{key}: expected a text, found {}; put it in quotes",
                        kind_of(other)
                    )),
                }
            }
        }
        Some(other) => problem(format!("stringData: expected a map, found {}", kind_of(&other))),
    }
    if !data.is_empty() {
        body.insert("data".to_owned(), Value::Object(data));
    }
}

/// An empty `caBundle` is a place for a controller to fill in; owning it would empty it again and again.
fn remove_empty_ca_bundles(body: &mut Map<String, Value>) {
    fn clean(config: Option<&mut Value>) {
        if let Some(config) = config.and_then(Value::as_object_mut)
            && config
                .get("caBundle")
                .is_some_and(|bundle| bundle.is_null() || bundle.as_str() == Some(""))
        {
            config.remove("caBundle");
        }
    }
    if let Some(webhooks) = body.get_mut("webhooks").and_then(Value::as_array_mut) {
        webhooks
            .iter_mut()
            .for_each(|webhook| clean(webhook.get_mut("clientConfig")));
    }
    match body.get("kind").and_then(Value::as_str) {
        Some("APIService") => clean(body.get_mut("spec")),
        Some("CustomResourceDefinition") => {
            let webhook = body
                .get_mut("spec")
                .and_then(|spec| spec.pointer_mut("/conversion/webhook/clientConfig"));
            clean(webhook);
        }
        _ => {}
    }
}
