//! The columns that `kubectl get` shows.

use serde_json::{Map, Value, json};

use crate::clock::{age, parse_seconds};
use crate::json::{at, items, number, text};
use crate::object::Object;
use crate::state::Endpoint;

mod cells;

/// A column: name, type, priority (1: only with `-o wide`).
type ColumnSpec = (&'static str, &'static str, u8);

const NAME: ColumnSpec = ("Name", "string", 0);
const AGE: ColumnSpec = ("Age", "string", 0);
const CREATED: ColumnSpec = ("Created At", "date", 0);
const CONTAINERS: ColumnSpec = ("Containers", "string", 1);
const IMAGES: ColumnSpec = ("Images", "string", 1);
const SELECTOR: ColumnSpec = ("Selector", "string", 1);

fn columns(group: &str, kind: &str) -> &'static [ColumnSpec] {
    match (group, kind) {
        ("", "Pod") => &[
            NAME,
            ("Ready", "string", 0),
            ("Status", "string", 0),
            ("Restarts", "string", 0),
            AGE,
            ("IP", "string", 1),
            ("Node", "string", 1),
            ("Nominated Node", "string", 1),
            ("Readiness Gates", "string", 1),
        ],
        ("", "Service") => &[
            NAME,
            ("Type", "string", 0),
            ("Cluster-IP", "string", 0),
            ("External-IP", "string", 0),
            ("Port(s)", "string", 0),
            AGE,
            SELECTOR,
        ],
        ("", "Node") => &[
            NAME,
            ("Status", "string", 0),
            ("Roles", "string", 0),
            AGE,
            ("Version", "string", 0),
        ],
        ("", "Namespace") => &[NAME, ("Status", "string", 0), AGE],
        ("", "ConfigMap") => &[NAME, ("Data", "string", 0), AGE],
        ("", "Secret") => &[NAME, ("Type", "string", 0), ("Data", "string", 0), AGE],
        ("", "PersistentVolumeClaim") => &[
            NAME,
            ("Status", "string", 0),
            ("Volume", "string", 0),
            ("Capacity", "string", 0),
            ("Access Modes", "string", 0),
            ("StorageClass", "string", 0),
            ("VolumeAttributesClass", "string", 0),
            AGE,
            ("VolumeMode", "string", 1),
        ],
        ("" | "events.k8s.io", "Event") => &[
            ("Last Seen", "string", 0),
            ("Type", "string", 0),
            ("Reason", "string", 0),
            ("Object", "string", 0),
            ("Message", "string", 0),
            ("Name", "string", 1),
        ],
        ("apps", "Deployment") => &[
            NAME,
            ("Ready", "string", 0),
            ("Up-to-date", "string", 0),
            ("Available", "string", 0),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        ("apps", "ReplicaSet") => &[
            NAME,
            ("Desired", "integer", 0),
            ("Current", "integer", 0),
            ("Ready", "integer", 0),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        ("apps", "StatefulSet") => &[NAME, ("Ready", "string", 0), AGE, CONTAINERS, IMAGES],
        ("apps", "DaemonSet") => &[
            NAME,
            ("Desired", "integer", 0),
            ("Current", "integer", 0),
            ("Ready", "integer", 0),
            ("Up-to-date", "integer", 0),
            ("Available", "integer", 0),
            ("Node Selector", "string", 0),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        ("batch", "Job") => &[
            NAME,
            ("Status", "string", 0),
            ("Completions", "string", 0),
            ("Duration", "string", 0),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        ("batch", "CronJob") => &[
            NAME,
            ("Schedule", "string", 0),
            ("Timezone", "string", 0),
            ("Suspend", "boolean", 0),
            ("Active", "integer", 0),
            ("Last Schedule", "string", 0),
            AGE,
        ],
        ("networking.k8s.io", "Ingress") => &[
            NAME,
            ("Class", "string", 0),
            ("Hosts", "string", 0),
            ("Address", "string", 0),
            ("Ports", "string", 0),
            AGE,
        ],
        ("networking.k8s.io", "NetworkPolicy") => &[NAME, ("Pod-Selector", "string", 0), AGE],
        ("autoscaling", "HorizontalPodAutoscaler") => &[
            NAME,
            ("Reference", "string", 0),
            ("Targets", "string", 0),
            ("MinPods", "string", 0),
            ("MaxPods", "string", 0),
            ("Replicas", "string", 0),
            AGE,
        ],
        ("policy", "PodDisruptionBudget") => &[
            NAME,
            ("Min Available", "string", 0),
            ("Max Unavailable", "string", 0),
            ("Allowed Disruptions", "integer", 0),
            AGE,
        ],
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => &[NAME, CREATED],
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            &[NAME, ("Role", "string", 0), AGE]
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &[
            NAME,
            ("Scope", "string", 0),
            ("Versions", "string", 0),
            CREATED,
            ("Group", "string", 1),
            ("Kind", "string", 1),
            ("ShortNames", "string", 1),
            ("Established", "boolean", 1),
        ],
        ("storage.k8s.io", "StorageClass") => &[
            NAME,
            ("Provisioner", "string", 0),
            ("ReclaimPolicy", "string", 0),
            ("VolumeBindingMode", "string", 0),
            ("AllowVolumeExpansion", "string", 0),
            AGE,
        ],
        _ => &[NAME, AGE],
    }
}

/// Column definitions of an endpoint.
pub(crate) fn definitions(endpoint: &Endpoint) -> Value {
    let definition = |name: &str, kind: &str, format: &str, description: &str, priority: i64| json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority});
    let custom = endpoint.version().and_then(|version| version.custom.as_ref());
    if let Some(custom) = custom {
        let mut list = vec![definition("Name", "string", "name", "Name of the object.", 0)];
        for column in &custom.columns {
            let described = if column.description.is_empty() {
                format!(
                    "Custom resource definition column (in JSONPath format): {}",
                    column.json_path
                )
            } else {
                column.description.clone()
            };
            list.push(definition(
                &column.name,
                &column.kind,
                &column.format,
                &described,
                column.priority,
            ));
        }
        if custom.columns.is_empty() {
            list.push(definition("Age", "date", "", "Creation time of the object.", 0));
        }
        return Value::Array(list);
    }
    columns(&endpoint.resource.group, &endpoint.resource.kind)
        .iter()
        .map(|(name, kind, priority)| {
            let format = if *name == "Name" { "name" } else { "" };
            definition(name, kind, format, "", i64::from(*priority))
        })
        .collect()
}

/// One row. `now` is in seconds since 1970.
pub(crate) fn row(endpoint: &Endpoint, object: &Object, now: i64, include: IncludeObject) -> Value {
    let value = endpoint.read(object);
    let since = |seconds: i64| age(now - seconds);
    let custom = endpoint.version().and_then(|version| version.custom.as_ref());
    let cells: Vec<Value> = match custom {
        Some(custom) => {
            let mut cells = vec![Value::from(object.key.name.as_ref())];
            for column in &custom.columns {
                cells.push(custom_cell(&value, &column.json_path, &column.kind, now));
            }
            if custom.columns.is_empty() {
                cells.push(since(object.created).into());
            }
            cells
        }
        None => columns(&endpoint.resource.group, &endpoint.resource.kind)
            .iter()
            .map(|(name, _, _)| match *name {
                "Name" => object.key.name.as_ref().into(),
                "Age" => since(object.created).into(),
                "Created At" => crate::clock::format_seconds(object.created).into(),
                name => cells::cell(&endpoint.resource.kind, name, &value, object, now),
            })
            .collect(),
    };
    let mut row = Map::new();
    row.insert("cells".into(), Value::Array(cells));
    match include {
        IncludeObject::None => {}
        IncludeObject::Metadata => {
            let mut partial = String::new();
            object.write_partial(&mut partial);
            row.insert(
                "object".into(),
                serde_json::from_str(&partial).unwrap_or_default(),
            );
        }
        IncludeObject::Object => {
            row.insert("object".into(), value);
        }
    }
    Value::Object(row)
}

/// What a row carries beside its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    None,
    Metadata,
    Object,
}

impl IncludeObject {
    pub(crate) fn parse(text: Option<&str>) -> Self {
        match text {
            Some("None") => Self::None,
            Some("Object") => Self::Object,
            _ => Self::Metadata,
        }
    }
}

/// A `Table` of objects.
pub(crate) fn table(endpoint: &Endpoint, metadata: &Value, rows: Vec<Value>) -> Value {
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": definitions(endpoint), "rows": rows})
}

/// A custom column; of JSONPath, the field paths and the filters by one field that definitions use.
fn custom_cell(object: &Value, json_path: &str, kind: &str, now: i64) -> Value {
    let Some(value) = json_path_value(object, json_path) else {
        return Value::Null;
    };
    match (kind, value) {
        ("date", Value::String(time)) => match parse_seconds(time) {
            Some(seconds) => age(now - seconds).into(),
            None => "<invalid>".into(),
        },
        ("integer", Value::Number(_)) | ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => {
            value.clone()
        }
        (_, Value::String(_)) => value.clone(),
        (_, other) => other.to_string().into(),
    }
}

fn json_path_value<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    let mut value = object;
    let mut rest = path.trim_start_matches('.');
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (inside, after) = inner.split_once(']')?;
            rest = after.trim_start_matches('.');
            value = match inside
                .strip_prefix("?(@.")
                .and_then(|filter| filter.strip_suffix(')'))
            {
                Some(filter) => {
                    let (field, wanted) = filter.split_once("==")?;
                    let wanted = wanted.trim().trim_matches(['"', '\'']);
                    let list = value.as_array()?;
                    list.iter()
                        .find(|item| item.get(field.trim()).and_then(Value::as_str) == Some(wanted))?
                }
                None => match inside.parse::<usize>() {
                    Ok(position) => value.get(position)?,
                    Err(_) => value.get(inside.trim_matches(['"', '\'']))?,
                },
            };
            continue;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        value = value.get(name.replace("\\", "").as_str())?;
        rest = after.trim_start_matches('.');
    }
    (!value.is_null()).then_some(value)
}

/// Names of the containers, or their images.
fn containers(value: &Value, field: &str) -> String {
    let list = items(value, &["spec", "template", "spec", "containers"]);
    list.iter()
        .map(|container| text(container, &[field]))
        .collect::<Vec<_>>()
        .join(",")
}

fn count(value: &Value, path: &[&str]) -> i64 {
    number(value, path).unwrap_or(0)
}

fn or_none(text: &str) -> Value {
    if text.is_empty() {
        "<none>".into()
    } else {
        text.into()
    }
}

fn selector(value: &Value, path: &[&str]) -> String {
    let labels = at(value, path).and_then(Value::as_object).into_iter().flatten();
    let text = labels
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect::<Vec<_>>()
        .join(",");
    if text.is_empty() { "<none>".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_paths_of_definitions_are_followed() {
        let object = json!({"spec": {"size": 3, "a.b": "x"}, "status": {"conditions": [
            {"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True"}], "list": [1, 2]}});
        for (path, expected) in [
            (".spec.size", json!(3)),
            (".status.conditions[?(@.type==\"Ready\")].status", json!("True")),
            (".status.list[1]", json!(2)),
            (".spec['a.b']", json!("x")),
        ] {
            assert_eq!(json_path_value(&object, path), Some(&expected), "{path}");
        }
        assert_eq!(json_path_value(&object, ".spec.gone.x"), None);
    }
}
