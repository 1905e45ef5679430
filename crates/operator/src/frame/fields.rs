//! Fields of objects as trees: which are ours, which are missing, which differ.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value};

/// Objects that are one value to server-side apply, as their schema says.
const ATOMIC: &[&str] = &["apiSecretRef", "secretKeyRef", "secretRef", "tenantRef"];

/// The part of `object` that `manager` has applied, as the managed fields of the object say.
pub(crate) fn applied(object: &Value, entries: &[ManagedFieldsEntry], manager: &str) -> Value {
    let entry = entries.iter().find(|entry| {
        entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    });
    let fields = entry.and_then(|entry| entry.fields_v1.as_ref());
    fields.map_or(Value::Null, |fields| extract(object, &fields.0))
}

fn extract(value: &Value, fields: &Value) -> Value {
    let (Some(object), Some(fields)) = (value.as_object(), fields.as_object()) else {
        return value.clone();
    };
    let mut found = Map::new();
    for (name, below) in fields {
        if let Some(name) = name.strip_prefix("f:")
            && let Some(value) = object.get(name)
        {
            // A list is kept as a whole, whichever of its items are ours.
            let is_leaf = below
                .as_object()
                .is_none_or(|below| below.keys().all(|key| !key.starts_with("f:")));
            let kept = if is_leaf {
                value.clone()
            } else {
                extract(value, below)
            };
            found.insert(name.to_owned(), kept);
        }
    }
    Value::Object(found)
}

/// Whether a value says nothing. `false` says something (B21).
pub(crate) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_blank),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// What of `template` is missing in `value`.
pub(crate) fn missing(value: &Value, template: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    for (name, wanted) in template.as_object().into_iter().flatten() {
        let present = value.get(name).filter(|present| !is_blank(present));
        match present {
            _ if is_blank(wanted) => {}
            None => {
                found.insert(name.clone(), wanted.clone());
            }
            Some(present) if present.is_object() && !ATOMIC.contains(&name.as_str()) => {
                let below = missing(present, wanted);
                if !below.is_empty() {
                    found.insert(name.clone(), Value::Object(below));
                }
            }
            Some(_) => {}
        }
    }
    found
}

/// Lays `over` upon `value`: what both have is that of `over`.
pub(crate) fn lay(value: &mut Value, over: &Map<String, Value>) {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Some(object) = value.as_object_mut() else {
        return;
    };
    for (name, new) in over {
        match (object.get_mut(name), new) {
            (Some(present), Value::Object(below))
                if present.is_object() && !ATOMIC.contains(&name.as_str()) =>
            {
                lay(present, below);
            }
            _ => {
                object.insert(name.clone(), new.clone());
            }
        }
    }
}

/// Whether `value` has all that `wanted` has.
pub(crate) fn covers(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| covers(value.get(name).unwrap_or(&Value::Null), wanted)),
        (value, wanted) => value == wanted || is_blank(value) && is_blank(wanted),
    }
}

/// A merge patch that takes away what `value` has and `wanted` has not; none if there is nothing.
pub(crate) fn surplus(value: &Value, wanted: &Value) -> Option<Value> {
    let (Some(value), Some(wanted)) = (value.as_object(), wanted.as_object()) else {
        return None;
    };
    let gone: Map<String, Value> = value
        .iter()
        .filter_map(|(name, present)| match wanted.get(name) {
            None if is_blank(present) && !present.is_string() => None,
            None => Some((name.clone(), Value::Null)),
            Some(wanted) => Some((name.clone(), surplus(present, wanted)?)),
        })
        .collect();
    (!gone.is_empty()).then_some(Value::Object(gone))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_missing_is_filled_in_and_false_is_not_missing() {
        let own = json!({ "a": "", "b": "kept", "flag": false, "facts": { "x": "1" }, "tenantRef": { "name": "t" } });
        let template = json!({
            "a": "A", "b": "B", "flag": true, "facts": { "x": "2", "y": "3" }, "tenantRef": { "name": "", "more": "m" },
        });
        let missing = Value::Object(missing(&own, &template));
        assert_eq!(missing, json!({ "a": "A", "facts": { "y": "3" } }));
        let mut laid = own;
        lay(&mut laid, missing.as_object().unwrap());
        assert_eq!(laid["facts"], json!({ "x": "1", "y": "3" }));
    }

    #[test]
    fn what_was_applied_is_found_by_the_managed_fields() {
        let entry = |fields: Value| ManagedFieldsEntry {
            manager: Some("ours".to_owned()),
            operation: Some("Apply".to_owned()),
            fields_v1: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        };
        let object = json!({ "spec": { "a": "1", "b": "2", "m": { "x": "1", "y": "2" } } });
        let entries = [entry(
            json!({ "f:spec": { "f:a": {}, "f:gone": {}, "f:m": { "f:x": {} } } }),
        )];
        let found = applied(&object, &entries, "ours");
        assert_eq!(found, json!({ "spec": { "a": "1", "m": { "x": "1" } } }));
        assert_eq!(applied(&object, &entries, "theirs"), Value::Null);
    }

    #[test]
    fn a_surplus_is_taken_away_by_name() {
        let value = json!({ "a": "1", "m": { "x": "1", "y": "" }, "e": {} });
        assert_eq!(
            surplus(&value, &json!({ "m": { "x": "1" } })),
            Some(json!({ "a": null, "m": { "y": null } }))
        );
        assert_eq!(surplus(&value, &value), None);
    }
}
