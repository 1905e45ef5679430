//! Short ways through JSON values.

use serde_json::{Map, Value};

/// The text at a path of field names, or "".
pub(crate) fn text<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at a path.
pub(crate) fn number(value: &Value, path: &[&str]) -> Option<i64> {
    at(value, path).and_then(Value::as_i64)
}

/// The value at a path; null counts as absent.
pub(crate) fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    let mut value = value;
    for name in path {
        value = value.get(name)?;
    }
    (!value.is_null()).then_some(value)
}

/// The items of the list at a path.
pub(crate) fn items<'v>(value: &'v Value, path: &[&str]) -> &'v [Value] {
    at(value, path)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Runs `change` on the object at a path, made where there is none.
pub(crate) fn with_object<R>(
    value: &mut Value,
    path: &[&str],
    change: impl FnOnce(&mut Map<String, Value>) -> R,
) -> Option<R> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let object = value.as_object_mut()?;
    match path.split_first() {
        None => Some(change(object)),
        Some((name, rest)) => with_object(
            object.entry((*name).to_owned()).or_insert(Value::Null),
            rest,
            change,
        ),
    }
}

/// Sets the value at a path, making objects on the way.
pub(crate) fn set(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if let Some((last, parents)) = path.split_last() {
        with_object(value, parents, |object| {
            object.insert((*last).to_owned(), new.into())
        });
    }
}

/// Sets the value at a path if nothing is there.
pub(crate) fn set_missing(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if at(value, path).is_none() {
        set(value, path, new);
    }
}

/// Sets the text at a path if it is absent or empty.
pub(crate) fn set_empty(value: &mut Value, path: &[&str], new: &str) {
    if text(value, path).is_empty() {
        set(value, path, new);
    }
}

/// Removes the value at a path.
pub(crate) fn remove(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let mut value = value;
    for name in parents {
        value = value.get_mut(name)?;
    }
    value.as_object_mut()?.remove(*last)
}

/// The items of the list at a path, to be changed.
pub(crate) fn items_mut<'v>(value: &'v mut Value, path: &[&str]) -> impl Iterator<Item = &'v mut Value> {
    let mut value = Some(value);
    for name in path {
        value = value.and_then(|value| value.get_mut(name));
    }
    value.and_then(Value::as_array_mut).into_iter().flatten()
}
