//! Writing a status: own fields, by server-side apply, only when they differ (E7, A7).

use evenkeel_steps::Failure;
use serde_json::{Map, Value, json};

use super::access::{Access, Readable};
use super::{Identity, Managed};

/// Makes the fields of ours in the status of an object be `wanted`. Whether anything had to be written.
pub(crate) async fn publish<K: Managed + Readable>(
    access: &Access,
    object: &K,
    fields: &[&str],
    wanted: &Map<String, Value>,
) -> Result<bool, Failure> {
    let differs = |present: &Value| {
        let differing = fields
            .iter()
            .filter(|name| !is_same(present.get(**name), wanted.get(**name)));
        differing.map(|name| (*name).to_owned()).collect::<Vec<String>>()
    };
    if differs(&object.status_value()).is_empty() {
        return Ok(false);
    }
    let identity = Identity::of(object);
    let body = json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()),
        "metadata": { "name": identity.name, "namespace": identity.namespace, "uid": identity.uid },
        "status": wanted,
    });
    let applied: K = access
        .apply_status(&identity.namespace, &identity.name, &body)
        .await?;
    // What the predecessor wrote is its own, and stays when we leave it out: it goes by name.
    let left = differs(&applied.status_value());
    let gone: Map<String, Value> = left
        .into_iter()
        .filter(|name| !wanted.contains_key(name))
        .map(|name| (name, Value::Null))
        .collect();
    if !gone.is_empty() {
        let body = json!({ "metadata": { "uid": identity.uid }, "status": gone });
        access
            .merge_status::<K>(&identity.namespace, &identity.name, &body)
            .await?;
    }
    Ok(true)
}

/// What is absent and what is empty mean the same.
fn is_same(one: Option<&Value>, other: Option<&Value>) -> bool {
    one.filter(|value| !is_empty(value)) == other.filter(|value| !is_empty(value))
}

/// Whether a value says nothing. An empty map is not applied: server-side apply makes null of it.
pub(crate) fn is_empty(value: &Value) -> bool {
    value.is_null()
        || value.as_object().is_some_and(Map::is_empty)
        || value.as_array().is_some_and(Vec::is_empty)
}
