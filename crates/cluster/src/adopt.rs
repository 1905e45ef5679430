//! Taking an object over from the tool that kept it before.
//!
//! A field that the former tool still owns would stay for ever once we no longer render it. So its ownership passes to us
//! first, as `kubectl apply --server-side` does for fields of client-side apply; the apply that follows removes what is
//! not rendered.

use serde_json::{Map, Value, json};

use crate::applyset::labels::FIELD_MANAGER;

/// Field managers of tools that keep whole objects, as we do.
const FORMER_KEEPERS: [&str; 10] = [
    "before-first-apply",
    "helm",
    "kubectl-client-side-apply",
    "kubectl-create",
    "kubectl-replace",
    "argocd-controller",
    "argocd-application-controller",
    "helm-controller",
    "kustomize-controller",
    "kapp-server",
];

/// The JSON patch that hands the fields of former keepers to us; none when there are none. `managed_fields` and
/// `resource_version` are the object's.
pub(crate) fn take_fields(managed_fields: &Value, resource_version: &str) -> Option<Value> {
    let entries = managed_fields.as_array()?;
    let text = |entry: &Value, key: &str| {
        entry
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let is_keeper = |entry: &Value| {
        text(entry, "subresource").is_empty()
            && (FORMER_KEEPERS.contains(&text(entry, "manager").as_str())
                || text(entry, "manager") == "kubectl" && text(entry, "operation") == "Apply")
    };
    let is_ours = |entry: &Value| {
        text(entry, "subresource").is_empty()
            && text(entry, "manager") == FIELD_MANAGER
            && text(entry, "operation") == "Apply"
    };
    let (kept, given): (Vec<&Value>, Vec<&Value>) = entries
        .iter()
        .partition(|entry| !is_keeper(entry) && !is_ours(entry));
    let api_version = given
        .iter()
        .find(|entry| is_keeper(entry))
        .map(|entry| text(entry, "apiVersion"))?;
    let mut fields = Map::new();
    for entry in given
        .iter()
        .filter(|entry| text(entry, "apiVersion") == api_version)
    {
        if let Some(owned) = entry.get("fieldsV1").and_then(Value::as_object) {
            merge(&mut fields, owned);
        }
    }
    let mut entries: Vec<Value> = kept.into_iter().cloned().collect();
    entries.push(json!({
        "manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": api_version,
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    }));
    Some(json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        // Writing the version that was read makes the server refuse when there is a newer one.
        {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version},
    ]))
}

/// The union of two sets of fields: they are trees of field names.
fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge(into, from),
            (Some(_), _) => {}
            (None, value) => drop(into.insert(key.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    #[test]
    fn fields_of_former_keepers_become_ours() {
        let fields = json!([
            entry("helm", "Update", &json!({"f:data": {".": {}, "f:a": {}}})),
            entry(
                "kubectl-client-side-apply",
                "Update",
                &json!({"f:data": {"f:b": {}}})
            ),
            entry("kubectl-edit", "Update", &json!({"f:data": {"f:c": {}}})),
        ]);
        let patch = take_fields(&fields, "7").expect("patch");
        let managers = patch[0]["value"].as_array().expect("entries");
        assert_eq!(managers.len(), 2);
        assert_eq!(
            managers[0]["manager"], "kubectl-edit",
            "what a person changed stays theirs"
        );
        assert_eq!(
            managers[1]["fieldsV1"],
            json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}})
        );
        assert_eq!(patch[1]["value"], "7");
    }

    #[test]
    fn without_a_former_keeper_nothing_is_written() {
        let fields = json!([
            entry("kubectl-edit", "Update", &json!({})),
            entry("evenkeel", "Apply", &json!({})),
            json!({"manager": "helm", "operation": "Update", "subresource": "status", "fieldsV1": {}}),
        ]);
        assert_eq!(take_fields(&fields, "7"), None);
        assert_eq!(take_fields(&Value::Null, "7"), None);
    }
}
