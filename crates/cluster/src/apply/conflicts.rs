//! Fields that other field managers own with other values: taken, left to them, or an error, as the object or its component
//! says.

use evenkeel_core::OnConflict;
use serde_json::Value;

use crate::applyset::labels::ON_CONFLICT;
use crate::error::FieldConflict;

/// What the object's own annotation says; none where it leaves that to its component.
pub(crate) fn asked(body: &Value) -> Option<OnConflict> {
    annotation(body)?.parse().ok()
}

fn annotation(body: &Value) -> Option<&str> {
    body.get("metadata")?
        .get("annotations")?
        .get(ON_CONFLICT)?
        .as_str()
}

/// What is wrong with the annotation of an object, for whoever wrote it.
pub(crate) fn check_annotation(body: &Value) -> Result<(), String> {
    let Some(text) = annotation(body) else {
        return Ok(());
    };
    match text.parse::<OnConflict>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "metadata.annotations[{ON_CONFLICT}]: expected force, leave or error, found {text:?}"
        )),
    }
}

/// `body` without the fields that others own; none when one of them cannot be found in it.
pub(crate) fn without(body: &Value, conflicts: &[FieldConflict]) -> Option<Value> {
    let mut body = body.clone();
    conflicts
        .iter()
        .all(|conflict| remove(&mut body, &conflict.field))
        .then_some(body)
}

/// Removes the field at `path`, as the API server writes it: `.spec.template.spec.containers[name="main"].image`. Keys are
/// not quoted there, so those with dots are found by trying.
fn remove(value: &mut Value, path: &str) -> bool {
    if let Some(rest) = path.strip_prefix('.')
        && let Value::Object(fields) = value
    {
        if fields.remove(rest).is_some() {
            return true;
        }
        let follows = |key: &str| {
            let tail = rest.strip_prefix(key)?;
            tail.starts_with(['.', '[']).then(|| tail.to_owned())
        };
        let candidates: Vec<(String, String)> = fields
            .keys()
            .filter_map(|key| Some((key.clone(), follows(key)?)))
            .collect();
        return candidates
            .into_iter()
            .any(|(key, tail)| fields.get_mut(&key).is_some_and(|inner| remove(inner, &tail)));
    }
    let Some((selector, tail)) = path.strip_prefix('[').and_then(split_selector) else {
        return false;
    };
    let Value::Array(items) = value else {
        return false;
    };
    let Some(at) = items.iter().position(|item| selects(selector, item)) else {
        return false;
    };
    if tail.is_empty() {
        items.remove(at);
        return true;
    }
    items.get_mut(at).is_some_and(|item| remove(item, tail))
}

/// `name="main"` and what follows its bracket.
fn split_selector(text: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    let mut escaped = false;
    let end = text.find(|c: char| {
        let ends = c == ']' && !quoted;
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == '"' {
            quoted = !quoted;
        }
        ends
    })?;
    Some((text.get(..end)?, text.get(end + 1..)?))
}

/// Whether a list's item is the one that keys like `containerPort=80,protocol="TCP"`, or a value like `="x"`, name.
fn selects(selector: &str, item: &Value) -> bool {
    if let Some(value) = selector.strip_prefix('=') {
        return serde_json::from_str::<Value>(value).is_ok_and(|value| value == *item);
    }
    !selector.is_empty()
        && selector.split(',').all(|pair| {
            let Some((key, value)) = pair.split_once('=') else {
                return false;
            };
            let Ok(value) = serde_json::from_str::<Value>(value) else {
                return false;
            };
            match item.get(key) {
                Some(found) => *found == value,
                // The server's default, which the manifest need not name.
                None => key == "protocol" && value == "TCP",
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conflict(field: &str) -> FieldConflict {
        FieldConflict {
            manager: "somebody".to_owned(),
            field: field.to_owned(),
        }
    }

    #[test]
    fn fields_of_others_are_left_out() {
        let body = json!({"metadata": {"labels": {"app": "x", "app.kubernetes.io/name": "y"}}, "data": {"a.b": "1", "a": "2"},
            "spec": {"replicas": 1, "containers": [
                {"name": "other", "image": "o"},
                {"name": "main", "image": "i", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]}],
            "finalizers": ["keep", "mine"]}});
        let left = without(
            &body,
            &[
                conflict(".metadata.labels.app.kubernetes.io/name"),
                conflict(".data.a.b"),
                conflict(".spec.replicas"),
                conflict(".spec.containers[name=\"main\"].image"),
                conflict(".spec.containers[name=\"main\"].ports[containerPort=80,protocol=\"TCP\"]"),
                conflict(".spec.finalizers[=\"mine\"]"),
            ],
        );
        let expected = json!({"metadata": {"labels": {"app": "x"}}, "data": {"a": "2"}, "spec": {"containers": [
            {"name": "other", "image": "o"}, {"name": "main", "ports": [{"containerPort": 80, "protocol": "UDP"}]}],
            "finalizers": ["keep"]}});
        assert_eq!(left, Some(expected));
        for field in [
            ".spec.absent",
            ".spec.containers[name=\"absent\"].image",
            "",
            "spec",
            ".spec[",
        ] {
            assert_eq!(without(&body, &[conflict(field)]), None, "{field}");
        }
    }

    #[test]
    fn annotations_decide() {
        let with = |value: &str| json!({"metadata": {"annotations": {ON_CONFLICT: value}}});
        assert_eq!(asked(&json!({})), None);
        assert_eq!(asked(&with("force")), Some(OnConflict::Force));
        assert_eq!(asked(&with("leave")), Some(OnConflict::Leave));
        assert_eq!(asked(&with("error")), Some(OnConflict::Refuse));
        assert!(check_annotation(&with("force")).is_ok() && check_annotation(&with("Leave")).is_err());
    }
}
