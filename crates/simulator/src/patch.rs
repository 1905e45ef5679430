//! JSON patch, merge patch and strategic merge patch.

use serde_json::{Map, Value};

use crate::apply::typed::same_value;
use crate::schema::{Field, Schema, TypeRef, View};
use crate::status::ApiError;

/// How a patch body is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    /// From the Content-Type; parameters are ignored.
    pub(crate) fn parse(content_type: &str, custom: bool) -> Result<Self, ApiError> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            "application/strategic-merge-patch+json" if !custom => Ok(Self::Strategic),
            "application/strategic-merge-patch+json" => {
                let mut error = ApiError::unsupported_media_type();
                error.message = "the body of the request was in an unknown format - accepted media types include: \
                                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                    .into();
                error.details = None;
                Err(error)
            }
            _ => Err(ApiError::unsupported_media_type()),
        }
    }
}

/// RFC 6902.
pub(crate) fn json_patch(value: &mut Value, patch: &Value) -> Result<(), ApiError> {
    let patch: json_patch::Patch =
        serde_json::from_value(patch.clone()).map_err(|error| ApiError::bad_request(error.to_string()))?;
    json_patch::patch(value, &patch).map_err(|_| ApiError::unprocessable())
}

/// RFC 7386.
pub(crate) fn merge_patch(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(object) = value else { return };
    for (name, change) in patch {
        if change.is_null() {
            object.remove(name);
        } else {
            merge_patch(object.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// Kubernetes' strategic merge patch, with the directives that `kubectl` sends.
pub(crate) fn strategic_merge(schema: &Schema, ty: TypeRef, value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        Some("replace") => {
            let mut replacement = patch.clone();
            replacement.remove(DIRECTIVE);
            *value = Value::Object(replacement);
            return;
        }
        Some("delete") => {
            *value = Value::Object(Map::new());
            return;
        }
        _ => {}
    }
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(object) = value else { return };
    if let Some(Value::Array(keep)) = patch.get(RETAIN_KEYS) {
        object.retain(|name, _| keep.iter().any(|kept| kept.as_str() == Some(name)));
    }
    let fields = match schema.view(ty, None) {
        View::Map(map, _) => Some(map),
        _ => None,
    };
    for (name, change) in patch {
        if name == DIRECTIVE || name == RETAIN_KEYS || name.starts_with(ORDER) {
            continue;
        }
        if let Some(list) = name.strip_prefix(DELETE_FROM) {
            if let (Some(Value::Array(items)), Value::Array(gone)) = (object.get_mut(list), change) {
                items.retain(|item| !gone.iter().any(|gone| same_value(gone, item)));
            }
            continue;
        }
        if change.is_null() {
            object.remove(name);
            continue;
        }
        let below = fields
            .and_then(|map| map.field_type(name))
            .unwrap_or(crate::schema::DEDUCED_REF);
        let field = fields.and_then(|map| map.fields.get(name.as_str()));
        let slot = object.entry(name.clone()).or_insert(Value::Null);
        match change {
            Value::Object(_) => strategic_merge(schema, below, slot, change),
            Value::Array(items) => merge_list(schema, below, field, slot, items),
            scalar => *slot = scalar.clone(),
        }
    }
    // Orders are given beside the lists; apply them once the lists are merged.
    for (name, order) in patch {
        if let (Some(list), Value::Array(order)) = (name.strip_prefix(ORDER), order) {
            let key = fields
                .and_then(|map| map.fields.get(list))
                .and_then(|field| field.patch.as_ref())
                .and_then(|patch| patch.merge_key.clone());
            if let Some(Value::Array(items)) = object.get_mut(list) {
                reorder(items, order, key.as_deref());
            }
        }
    }
}

fn merge_list(schema: &Schema, ty: TypeRef, field: Option<&Field>, slot: &mut Value, changes: &[Value]) {
    let strategy = field
        .and_then(|field| field.patch.as_ref())
        .filter(|patch| patch.merge);
    let replaces = changes
        .iter()
        .any(|change| change.get(DIRECTIVE).and_then(Value::as_str) == Some("replace"));
    let clean = || {
        changes
            .iter()
            .filter(|change| change.get(DIRECTIVE).is_none())
            .cloned()
            .collect()
    };
    let Some(strategy) = strategy.filter(|_| !replaces) else {
        *slot = Value::Array(clean());
        return;
    };
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    let Value::Array(items) = slot else { return };
    let element = match schema.view(ty, Some(&Value::Array(Vec::new()))) {
        View::List(list) => list.element,
        _ => crate::schema::DEDUCED_REF,
    };
    let Some(key) = strategy.merge_key.as_deref() else {
        for change in changes {
            if !items.iter().any(|item| same_value(item, change)) {
                items.push(change.clone());
            }
        }
        return;
    };
    let before = items.clone();
    for change in changes {
        let Some(wanted) = change.get(key) else { continue };
        let position = items
            .iter()
            .position(|item| item.get(key).is_some_and(|known| same_value(known, wanted)));
        if change.get(DIRECTIVE).and_then(Value::as_str) == Some("delete") {
            items.retain(|item| !item.get(key).is_some_and(|known| same_value(known, wanted)));
            continue;
        }
        match position.and_then(|position| items.get_mut(position)) {
            Some(item) => strategic_merge(schema, element, item, change),
            None => {
                let mut item = Value::Object(Map::new());
                strategic_merge(schema, element, &mut item, change);
                items.push(item);
            }
        }
    }
    let order: Vec<Value> = changes.to_vec();
    order_merged(items, &before, &order, key);
}

/// Orders a merged list: items of the patch in its order, others in theirs, and a new item before what it was not
/// compared with.
fn order_merged(items: &mut Vec<Value>, before: &[Value], order: &[Value], key: &str) {
    let same = |a: &Value, b: &Value| match (a.get(key), b.get(key)) {
        (Some(a), Some(b)) => same_value(a, b),
        _ => false,
    };
    let in_patch = |item: &Value| order.iter().position(|wanted| same(item, wanted));
    let was = |item: &Value| before.iter().position(|known| same(item, known));
    let (mut patched, mut others): (Vec<Value>, Vec<Value>) =
        items.drain(..).partition(|item| in_patch(item).is_some());
    patched.sort_by_key(in_patch);
    others.sort_by_key(was);
    let (mut patched, mut others) = (patched.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), patched.peek()) {
            (None, None) => return,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(patched)) => {
                matches!((was(other), was(patched)), (Some(other), Some(patched)) if other < patched)
            }
        };
        items.extend(if other_first {
            others.next()
        } else {
            patched.next()
        });
    }
}

/// Puts the items that `order` names into its order; others keep their place relative to what was before them.
fn reorder(items: &mut [Value], order: &[Value], key: Option<&str>) {
    let same = |item: &Value, wanted: &Value| match key {
        Some(key) => match (item.get(key), wanted.get(key)) {
            (Some(a), Some(b)) => same_value(a, b),
            _ => false,
        },
        None => same_value(item, wanted),
    };
    let rank = |item: &Value| order.iter().position(|wanted| same(item, wanted));
    let mut ranked: Vec<Value> = items
        .iter()
        .filter(|item| rank(item).is_some())
        .cloned()
        .collect();
    ranked.sort_by_key(|item| rank(item));
    let mut ranked = ranked.into_iter();
    for item in items.iter_mut() {
        if rank(item).is_some()
            && let Some(next) = ranked.next()
        {
            *item = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn strategic(mut value: Value, patch: Value) -> Value {
        let schema = Schema::builtin();
        let ty = schema.kind("apps", "v1", "Deployment").unwrap();
        strategic_merge(&schema, ty.into(), &mut value, &patch);
        value
    }

    fn containers(list: Value) -> Value {
        json!({"spec": {"template": {"spec": {"containers": list}}}})
    }

    #[test]
    fn lists_with_a_merge_key_are_merged_item_by_item() {
        let live = containers(
            json!([{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]),
        );
        let patch = containers(json!([
            {"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]},
            {"name": "b", "$patch": "delete"}, {"name": "c"}
        ]));
        let expected = containers(json!([
            {"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]},
            {"name": "c"}
        ]));
        assert_eq!(strategic(live, patch), expected);
    }

    #[test]
    fn lists_without_one_are_replaced() {
        let live = containers(json!([{"name": "a", "args": ["1", "2"]}]));
        let patch = containers(json!([{"name": "a", "args": ["3"]}]));
        assert_eq!(strategic(live, patch.clone()), patch);
    }

    #[test]
    fn directives_replace_delete_retain_and_order() {
        let live = json!({"metadata": {"finalizers": ["a", "b"]}, "spec": {"strategy": {"type": "Recreate", "x": 1}}});
        let patch = json!({
            "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]},
            "spec": {"strategy": {"$retainKeys": ["type"], "type": "RollingUpdate"}}
        });
        let expected =
            json!({"metadata": {"finalizers": ["b"]}, "spec": {"strategy": {"type": "RollingUpdate"}}});
        assert_eq!(strategic(live, patch), expected);
        let live = containers(json!([{"name": "a"}, {"name": "b"}]));
        let patch = json!({"spec": {"template": {"spec": {
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "b", "image": "x"}]}}}});
        assert_eq!(
            strategic(live, patch),
            containers(json!([{"name": "b", "image": "x"}, {"name": "a"}]))
        );
    }

    #[test]
    fn merge_patch_removes_with_null() {
        let mut value = json!({"a": {"b": 1, "c": 2}, "l": [1]});
        merge_patch(&mut value, &json!({"a": {"b": null, "d": 3}, "l": [2]}));
        assert_eq!(value, json!({"a": {"c": 2, "d": 3}, "l": [2]}));
    }

    #[test]
    fn a_json_patch_that_does_not_fit_is_refused() {
        let mut value = json!({"a": 1});
        assert!(json_patch(&mut value, &json!([{"op": "add", "path": "/b", "value": 2}])).is_ok());
        assert_eq!(value, json!({"a": 1, "b": 2}));
        let error = json_patch(&mut value, &json!([{"op": "test", "path": "/a", "value": 9}])).unwrap_err();
        assert_eq!(error.code, 422);
        assert_eq!(json_patch(&mut value, &json!({"op": "x"})).unwrap_err().code, 400);
    }
}
