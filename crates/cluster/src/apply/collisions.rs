//! An entry of a list that somebody else owns and that stands beside ours with the same name.
//!
//! Lists of objects are merged by a key: the port and protocol of a Service's port, not its name. When ours moves from
//! port 80 to 81, and somebody else owns the entry of port 80 as well, both stay, and the server refuses the object with
//! `Duplicate value: "http"`, which says neither what is in the way nor whose it is.

use serde_json::{Map, Value};

use crate::error::FieldConflict;

/// Whether the server refused an object because two entries of a list have one value.
pub(super) fn is_collision(message: &str) -> bool {
    message.contains("Duplicate value")
}

/// Entries of `live` that others own, that `desired` does not have, and whose name an entry of `desired` has.
pub(super) fn with_others(desired: &Value, live: &Value, ours: &str) -> Vec<FieldConflict> {
    let mut found = Vec::new();
    let managers = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    for entry in managers.into_iter().flatten() {
        let manager = entry.get("manager").and_then(Value::as_str).unwrap_or_default();
        if manager == ours {
            continue;
        }
        if let Some(fields) = entry.get("fieldsV1").and_then(Value::as_object) {
            let mut walk = Walk {
                manager,
                found: &mut found,
            };
            walk.fields(fields, desired, live, String::new());
        }
    }
    found
}

struct Walk<'a> {
    manager: &'a str,
    found: &'a mut Vec<FieldConflict>,
}

impl Walk<'_> {
    fn fields(&mut self, fields: &Map<String, Value>, desired: &Value, live: &Value, path: String) {
        for (key, inner) in fields {
            let inner = inner.as_object();
            if let Some(name) = key.strip_prefix("f:") {
                if let (Some(inner), Some(desired), Some(live)) = (inner, desired.get(name), live.get(name)) {
                    self.fields(inner, desired, live, format!("{path}.{name}"));
                }
            } else if let Some(Ok(Value::Object(selector))) = key.strip_prefix("k:").map(serde_json::from_str)
            {
                self.item(&selector, inner, desired, live, &path);
            }
        }
    }

    fn item(
        &mut self,
        selector: &Map<String, Value>,
        fields: Option<&Map<String, Value>>,
        desired: &Value,
        live: &Value,
        path: &str,
    ) {
        let of = |list: &Value| -> Option<Value> {
            let items = list.as_array()?;
            items.iter().find(|item| selects(selector, item)).cloned()
        };
        let place = format!("{path}[{}]", written(selector));
        match (of(desired), of(live)) {
            (Some(desired), Some(live)) => {
                if let Some(fields) = fields {
                    self.fields(fields, &desired, &live, place);
                }
            }
            (None, Some(live)) => {
                let name = live.get("name");
                let mut items = desired.as_array().into_iter().flatten();
                if name.is_some() && items.any(|item| item.get("name") == name) {
                    self.found.push(FieldConflict {
                        manager: self.manager.to_owned(),
                        field: place,
                    });
                }
            }
            (_, None) => {}
        }
    }
}

/// Whether an item has these values; what it does not say is the server's default.
fn selects(selector: &Map<String, Value>, item: &Value) -> bool {
    selector.iter().all(|(key, value)| match item.get(key) {
        Some(found) => found == value,
        None => key == "protocol" && value == "TCP",
    })
}

/// `port=80,protocol="TCP"`, as the server writes it.
fn written(selector: &Map<String, Value>) -> String {
    let pairs: Vec<String> = selector
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_entry_in_the_way_is_named_with_its_owner() {
        let desired = json!({"spec": {"ports": [{"name": "http", "port": 81}]}});
        let live = |fields: &Value| {
            json!({
                "metadata": {"managedFields": [
                    {"manager": "evenkeel", "operation": "Apply", "fieldsV1": fields},
                    {"manager": "somebody", "operation": "Update", "fieldsV1": fields},
                ]},
                "spec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}, {"name": "dns", "port": 53, "protocol": "UDP"}]},
            })
        };
        let http =
            json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}}});
        let found = with_others(&desired, &live(&http), "evenkeel");
        let told: Vec<String> = found
            .iter()
            .map(|found| format!("{} {}", found.manager, found.field))
            .collect();
        assert_eq!(told, ["somebody .spec.ports[port=80,protocol=\"TCP\"]"]);
        // One of another name is in nobody's way.
        let dns = json!({"f:spec": {"f:ports": {"k:{\"port\":53,\"protocol\":\"UDP\"}": {".": {}}}}});
        assert!(with_others(&desired, &live(&dns), "evenkeel").is_empty());
    }
}
