//! The fields of a specification that its controller fills in, under its own field manager (§3.0, §3.6).

use evenkeel_steps::Failure;
use kube::ResourceExt as _;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::frame::fields::{applied, covers, lay};
use crate::frame::{Access, Identity, Managed, Readable};

/// Fields to fill in.
#[derive(Debug, Default)]
pub(super) struct Fill {
    /// Of the specification.
    pub(super) spec: Map<String, Value>,
    /// Labels.
    pub(super) labels: Map<String, Value>,
    /// Annotations.
    pub(super) annotations: Map<String, Value>,
}

/// A specification as a tree.
pub(super) fn tree<T: Serialize>(spec: &T) -> Result<Value, Failure> {
    serde_json::to_value(spec)
        .map_err(|error| Failure::bug(format!("a specification cannot be read: {error}")))
}

/// What is to be applied so that the object has these fields and keeps those that we gave it before; none if it has them.
pub(super) fn patch<K: Managed + Readable>(
    object: &K,
    manager: &str,
    fill: &Fill,
) -> Result<Option<Value>, Failure> {
    let shown = tree(object)?;
    let mut wanted = json!({ "spec": fill.spec, "metadata": {} });
    for (name, map) in [("labels", &fill.labels), ("annotations", &fill.annotations)] {
        if !map.is_empty() {
            wanted["metadata"][name] = json!(map);
        }
    }
    if covers(&shown, &wanted) {
        return Ok(None);
    }
    let identity = Identity::of(object);
    let mut fields = json!({});
    let ours = applied(&shown, object.managed_fields(), manager);
    for part in ["spec", "metadata"] {
        if let Some(part_of) = ours.get(part).and_then(Value::as_object) {
            let mut kept = json!({});
            lay(&mut kept, part_of);
            fields[part] = kept;
        }
    }
    if let Some(wanted) = wanted.as_object() {
        lay(&mut fields, wanted);
    }
    fields["apiVersion"] = json!(K::api_version(&()));
    fields["kind"] = json!(K::kind(&()));
    fields["metadata"]["name"] = json!(identity.name);
    fields["metadata"]["namespace"] = json!(identity.namespace);
    fields["metadata"]["uid"] = json!(identity.uid);
    Ok(Some(fields))
}

/// Applies what [`patch`] has made.
pub(super) async fn apply<K: Readable>(access: &Access, fields: &Value) -> Result<K, Failure> {
    let metadata = &fields["metadata"];
    let text = |name: &str| metadata[name].as_str().unwrap_or_default();
    access.apply::<K>(text("namespace"), text("name"), fields).await
}
