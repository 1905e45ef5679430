//! Changing an object: what differs is merged, with the version that was read, and tried again when somebody else was faster.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::access::{Access, Kind, Part};
use super::document::parse;
use super::failure::Failure;

/// How many times a change is tried that others are always faster with.
pub(super) const CONFLICT_TRIES: usize = 10;

/// Reads an object, changes it by `change`, and writes what differs: the status first, for what an agent reports has to
/// arrive even where it may change nothing else. Gives back the object as
/// it is then.
pub(super) async fn update<K: Kind>(
    access: &Access,
    name: &str,
    mut change: impl FnMut(&mut K) -> Result<(), Failure>,
) -> Result<K, Failure> {
    let mut tries = 1;
    loop {
        let stored: K = access.get(name).await?;
        let mut wanted = stored.clone();
        change(&mut wanted)?;
        match write(access, name, stored, &wanted).await {
            Err(failure) if failure.is_conflict() && tries < CONFLICT_TRIES => tries += 1,
            result => return result,
        }
    }
}

/// The document with a merge patch in it (RFC 7396): null removes.
pub(super) fn merged<T: Serialize + DeserializeOwned>(document: &T, patch: &Value) -> Result<T, Failure> {
    let mut value =
        serde_json::to_value(document).map_err(|error| Failure::of_ours(&kube::Error::SerdeError(error)))?;
    json_patch::merge(&mut value, patch);
    parse(value)
}

/// Writes what differs.
async fn write<K: Kind>(access: &Access, name: &str, stored: K, wanted: &K) -> Result<K, Failure> {
    let Differences { status, object } = differences(&stored, wanted)?;
    let mut current = stored;
    if let Some(status) = status {
        let patch = with_version(&current, "status", status);
        current = access.patch(name, Part::Status, &patch).await?;
    }
    if let Some(object) = object {
        let patch = with_version(&current, "", object);
        current = access.patch(name, Part::Object, &patch).await?;
    }
    Ok(current)
}

struct Differences {
    status: Option<Value>,
    object: Option<Value>,
}

fn differences<K: Kind>(stored: &K, wanted: &K) -> Result<Differences, Failure> {
    let value = |object: &K| {
        serde_json::to_value(object).map_err(|error| Failure::of_ours(&kube::Error::SerdeError(error)))
    };
    let (mut stored, mut wanted) = (value(stored)?, value(wanted)?);
    let mut part = |name: &str| {
        let take = |object: &mut Value| object.get_mut(name).map(Value::take).unwrap_or_default();
        let (stored, wanted) = (take(&mut stored), take(&mut wanted));
        difference(&stored, &wanted)
    };
    let status = part("status");
    let mut object = Map::new();
    for name in ["metadata", "spec"] {
        if let Some(different) = part(name) {
            object.insert(name.to_owned(), different);
        }
    }
    let object = (!object.is_empty()).then_some(Value::Object(object));
    Ok(Differences { status, object })
}

/// The merge patch with the version that it is for; `under` names the part, if it is not the whole object.
fn with_version<K: Kind>(current: &K, under: &str, difference: Value) -> Value {
    let mut patch = match under {
        "" => difference,
        part => {
            let mut whole = Map::new();
            whole.insert(part.to_owned(), difference);
            Value::Object(whole)
        }
    };
    patch["metadata"]["resourceVersion"] = current.meta().resource_version.clone().into();
    patch
}

/// The merge patch (RFC 7396) that makes `wanted` of `stored`, if they differ.
fn difference(stored: &Value, wanted: &Value) -> Option<Value> {
    let (Value::Object(stored), Value::Object(wanted)) = (stored, wanted) else {
        return (stored != wanted).then(|| wanted.clone());
    };
    let gone = stored.keys().filter(|name| !wanted.contains_key(*name));
    let mut patch: Map<String, Value> = gone.map(|name| (name.clone(), Value::Null)).collect();
    for (name, wanted) in wanted {
        let stored = stored.get(name).unwrap_or(&Value::Null);
        if let Some(different) = difference(stored, wanted) {
            patch.insert(name.clone(), different);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_merged_gives_what_is_wanted() {
        let stored = json!({"a": 1, "b": {"c": 2, "d": {"e": 3}}, "f": [1, 2]});
        for wanted in [
            stored.clone(),
            json!({}),
            json!({"a": 2, "b": {"c": 2, "d": {}}, "f": [1]}),
            json!({"b": "text", "g": {"h": {"i": 1}}}),
        ] {
            let mut merged = stored.clone();
            let difference = difference(&stored, &wanted);
            json_patch::merge(&mut merged, &difference.clone().unwrap_or_else(|| json!({})));
            assert_eq!(merged, wanted);
            assert_eq!(difference.is_none(), stored == wanted);
        }
    }
}
