//! Walks over values with their schema: field set, comparison, merge, removal, validation.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::field_set::FieldSet;
use super::path::{Key, PathElement, path_text};
use crate::schema::{ListRelation, ListType, MapType, Scalar, Schema, TypeRef, View};

/// What changed from one object to another, as sets of paths.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) removed: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) added: FieldSet,
}

/// The path element of a list item; the error is the API server's text.
pub(crate) fn item_element(schema: &Schema, list: &ListType, item: &Value) -> Result<PathElement, String> {
    match &list.relation {
        ListRelation::Atomic => Err("invalid indexing of non-associative list".into()),
        ListRelation::Set => match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
            scalar => Ok(PathElement::Item(Key::from_value(scalar))),
        },
        ListRelation::Map(keys) => {
            let object = match item {
                Value::Object(object) => object,
                Value::Null => return Err("associative list with keys may not have a null element".into()),
                _ => return Err("associative list with keys may not have non-map elements".into()),
            };
            let mut found: Vec<(Box<str>, Key)> = Vec::with_capacity(keys.len());
            for key in keys {
                let value =
                    object
                        .get(key.as_ref())
                        .or_else(|| match schema.view(list.element, Some(item)) {
                            View::Map(map, _) => map.fields.get(key).and_then(|field| field.default.as_ref()),
                            _ => None,
                        });
                if let Some(value) = value {
                    found.push((key.clone(), Key::from_value(value)));
                }
            }
            if found.is_empty() {
                let names: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
                return Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have \
                     default values for any key fields)",
                    names.join(" ")
                ));
            }
            found.sort();
            Ok(PathElement::Keys(found.into()))
        }
    }
}

/// All fields that a value sets.
pub(crate) fn to_field_set(schema: &Schema, ty: TypeRef, value: &Value) -> FieldSet {
    let mut set = FieldSet::new();
    collect(schema, ty, value, &mut Vec::new(), &mut set);
    set
}

fn collect(schema: &Schema, ty: TypeRef, value: &Value, path: &mut Vec<PathElement>, set: &mut FieldSet) {
    match schema.view(ty, Some(value)) {
        View::Scalar(_) | View::Map(_, true) => set.insert(path),
        View::List(list) if list.relation == ListRelation::Atomic => set.insert(path),
        View::List(list) => {
            let Value::Array(items) = value else { return };
            let mut seen: BTreeMap<PathElement, usize> = BTreeMap::new();
            for item in items {
                if let Ok(element) = item_element(schema, list, item) {
                    *seen.entry(element).or_default() += 1;
                }
            }
            for item in items {
                let Ok(element) = item_element(schema, list, item) else {
                    continue;
                };
                let single = seen.get(&element).is_some_and(|count| *count == 1);
                path.push(element);
                if single {
                    collect(schema, list.element, item, path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
        View::Map(map, false) => {
            let Value::Object(object) = value else { return };
            for (name, below) in object {
                path.push(PathElement::field(name));
                if let Some(ty) = map.field_type(name) {
                    collect(schema, ty, below, path, set);
                }
                let empty = below.is_null() || below.as_object().is_some_and(Map::is_empty);
                if empty || !map.fields.contains_key(name.as_str()) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        View::Nothing => {}
    }
}

/// What changes from `old` to `new`.
pub(crate) fn compare(schema: &Schema, ty: TypeRef, old: &Value, new: &Value) -> Comparison {
    let mut out = Comparison::default();
    compare_at(schema, ty, Some(old), Some(new), &mut Vec::new(), &mut out);
    out
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(object)) => object.is_empty(),
        Some(_) => false,
    }
}

fn compare_leaf(old: Option<&Value>, new: Option<&Value>, path: &[PathElement], out: &mut Comparison) {
    match (old, new) {
        (None, Some(_)) => out.added.insert(path),
        (Some(_), None) => out.removed.insert(path),
        (Some(old), Some(new)) if !same_value(old, new) => out.modified.insert(path),
        _ => {}
    }
}

/// Equality that counts 1 and 1.0 as one number.
pub(crate) fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64()))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same_value(a, b)))
        }
        _ => a == b,
    }
}

fn compare_at(
    schema: &Schema,
    ty: TypeRef,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut Vec<PathElement>,
    out: &mut Comparison,
) {
    if let (Some(old), Some(new)) = (old, new)
        && old == new
    {
        return;
    }
    let guide = new.filter(|value| !value.is_null()).or(old);
    let mut leaf = false;
    match schema.view(ty, guide) {
        View::Scalar(_) | View::Map(_, true) | View::Nothing => leaf = true,
        View::List(list) => {
            if list.relation == ListRelation::Atomic || (is_empty(old) && is_empty(new)) {
                leaf = true;
            } else {
                compare_items(schema, list, old, new, path, out);
            }
        }
        View::Map(map, false) => {
            if is_empty(old) && is_empty(new) {
                leaf = true;
            } else {
                compare_fields(schema, map, old, new, path, out);
            }
        }
    }
    if leaf {
        compare_leaf(old, new, path, out);
    } else if old.is_none() {
        out.added.insert(path);
    } else if new.is_none() {
        out.removed.insert(path);
    }
}

fn compare_fields(
    schema: &Schema,
    map: &MapType,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut Vec<PathElement>,
    out: &mut Comparison,
) {
    let none = Map::new();
    let old = old.and_then(Value::as_object).unwrap_or(&none);
    let new = new.and_then(Value::as_object).unwrap_or(&none);
    let names = old
        .keys()
        .chain(new.keys().filter(|name| !old.contains_key(*name)));
    for name in names {
        let ty = map.field_type(name).unwrap_or(crate::schema::DEDUCED_REF);
        path.push(PathElement::field(name));
        compare_at(schema, ty, old.get(name), new.get(name), path, out);
        path.pop();
    }
}

fn compare_items(
    schema: &Schema,
    list: &ListType,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut Vec<PathElement>,
    out: &mut Comparison,
) {
    let mut pairs: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for item in old.and_then(Value::as_array).into_iter().flatten() {
        if let Ok(element) = item_element(schema, list, item) {
            pairs.entry(element).or_default().0.push(item);
        }
    }
    for item in new.and_then(Value::as_array).into_iter().flatten() {
        if let Ok(element) = item_element(schema, list, item) {
            pairs.entry(element).or_default().1.push(item);
        }
    }
    for (element, (old, new)) in pairs {
        path.push(element);
        match (old.as_slice(), new.as_slice()) {
            // Duplicates are compared as one.
            ([_, _, ..], [_, _, ..]) => {
                if old != new {
                    out.modified.insert(path);
                }
            }
            ([_, _, ..], rest) => {
                if let Some(new) = rest.first() {
                    compare_at(schema, list.element, None, Some(new), path, out);
                }
                out.removed.insert(path);
            }
            (rest, [_, _, ..]) => {
                if let Some(old) = rest.first() {
                    compare_at(schema, list.element, Some(old), None, path, out);
                }
                out.added.insert(path);
            }
            (old, new) => {
                compare_at(
                    schema,
                    list.element,
                    old.first().copied(),
                    new.first().copied(),
                    path,
                    out,
                );
            }
        }
        path.pop();
    }
}

/// Lays `config` over `live`. `None` where both are empty of any value.
pub(crate) fn merge(
    schema: &Schema,
    ty: TypeRef,
    live: Option<&Value>,
    config: Option<&Value>,
) -> Option<Value> {
    let leaf = || config.or(live).cloned();
    let guide = config.filter(|value| !value.is_null()).or(live);
    match schema.view(ty, guide) {
        View::Scalar(_) | View::Map(_, true) | View::Nothing => leaf(),
        View::List(list) => {
            if list.relation == ListRelation::Atomic || (is_empty(live) && is_empty(config)) {
                return leaf();
            }
            let items = merge_items(schema, list, live, config);
            (!items.is_empty()).then_some(Value::Array(items))
        }
        View::Map(map, false) => {
            if is_empty(live) && is_empty(config) {
                return leaf();
            }
            let none = Map::new();
            let live = live.and_then(Value::as_object).unwrap_or(&none);
            let config = config.and_then(Value::as_object).unwrap_or(&none);
            let mut out = Map::new();
            for name in live
                .keys()
                .chain(config.keys().filter(|name| !live.contains_key(*name)))
            {
                let ty = map.field_type(name).unwrap_or(crate::schema::DEDUCED_REF);
                if let Some(value) = merge(schema, ty, live.get(name), config.get(name)) {
                    out.insert(name.clone(), value);
                }
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
    }
}

/// Items keep the live order; where the configuration orders shared items otherwise, the configuration wins, and new
/// items come where the configuration has them.
fn merge_items(schema: &Schema, list: &ListType, live: Option<&Value>, config: Option<&Value>) -> Vec<Value> {
    let index = |value: Option<&Value>, keep_duplicates: bool| {
        let mut order: Vec<(PathElement, Value)> = Vec::new();
        let mut first: BTreeMap<PathElement, Option<Value>> = BTreeMap::new();
        for item in value.and_then(Value::as_array).into_iter().flatten() {
            let Ok(element) = item_element(schema, list, item) else {
                continue;
            };
            let known = first.contains_key(&element);
            if known {
                // A duplicate has no single counterpart to merge with.
                first.insert(element.clone(), None);
                if !keep_duplicates {
                    continue;
                }
            } else {
                first.insert(element.clone(), Some(item.clone()));
            }
            order.push((element, item.clone()));
        }
        (order, first)
    };
    let (live_order, live_items) = index(live, true);
    let (config_order, config_items) = index(config, false);
    let item = |live: Option<&Value>, config: Option<&Value>| merge(schema, list.element, live, config);
    let mut shared = config_order
        .iter()
        .map(|(element, _)| element)
        .filter(|element| live_items.contains_key(*element));
    let mut next_shared = shared.next();
    let mut merged: BTreeMap<&PathElement, ()> = BTreeMap::new();
    let mut out = Vec::with_capacity(live_order.len().max(config_order.len()));
    let (mut l, mut c) = (0, 0);
    while l < live_order.len() || c < config_order.len() {
        if let (Some((left, _)), Some((right, right_item))) = (live_order.get(l), config_order.get(c)) {
            if left == right {
                merged.insert(right, ());
                out.extend(item(
                    live_items.get(left).and_then(Option::as_ref),
                    Some(right_item),
                ));
                l += 1;
                c += 1;
                next_shared = shared.next();
                continue;
            }
            if config_items.contains_key(left) && next_shared.is_some_and(|next| next != left) {
                // A shared item, but not the one whose turn it is.
                l += 1;
                continue;
            }
        }
        if let Some((left, left_item)) = live_order.get(l) {
            if !config_items.contains_key(left) {
                out.extend(item(Some(left_item), None));
                l += 1;
                continue;
            }
            if merged.contains_key(left) {
                l += 1;
            }
        }
        if let Some((right, right_item)) = config_order.get(c) {
            merged.insert(right, ());
            out.extend(item(
                live_items.get(right).and_then(Option::as_ref),
                Some(right_item),
            ));
            c += 1;
            if next_shared == Some(right) {
                next_shared = shared.next();
            }
        }
    }
    out
}

/// `value` without the paths in `remove`; `None` when nothing is left of it.
pub(crate) fn remove_items(schema: &Schema, ty: TypeRef, value: &Value, remove: &FieldSet) -> Option<Value> {
    match (schema.view(ty, Some(value)), value) {
        (View::List(list), Value::Array(items)) => {
            if list.relation == ListRelation::Atomic {
                return None;
            }
            let mut kept = Vec::with_capacity(items.len());
            for item in items {
                let Ok(element) = item_element(schema, list, item) else {
                    kept.push(item.clone());
                    continue;
                };
                if remove.has_member(&element) {
                    continue;
                }
                kept.push(match remove.below(&element) {
                    Some(below) => remove_items(schema, list.element, item, below).unwrap_or(Value::Null),
                    None => item.clone(),
                });
            }
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        (View::Map(map, atomic), Value::Object(object)) => {
            if atomic {
                return None;
            }
            let mut kept = Map::new();
            for (name, below_value) in object {
                let element = PathElement::field(name);
                if remove.has_member(&element) {
                    continue;
                }
                let value = match (remove.below(&element), map.field_type(name)) {
                    (Some(below), Some(ty)) => {
                        remove_items(schema, ty, below_value, below).unwrap_or(Value::Null)
                    }
                    _ => below_value.clone(),
                };
                kept.insert(name.clone(), value);
            }
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        (View::Scalar(_), scalar) => Some(scalar.clone()),
        _ => None,
    }
}

/// Whether the scalars, lists and maps of a value are what the schema says; the texts are those of the API server.
pub(crate) fn validate(schema: &Schema, ty: TypeRef, value: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    validate_at(schema, ty, value, &mut Vec::new(), &mut errors);
    errors
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn validate_at(
    schema: &Schema,
    ty: TypeRef,
    value: &Value,
    path: &mut Vec<PathElement>,
    errors: &mut Vec<String>,
) {
    let fail = |errors: &mut Vec<String>, path: &[PathElement], text: String| {
        let at = path_text(path);
        errors.push(if at.is_empty() {
            text
        } else {
            format!("{at}: {text}")
        });
    };
    match schema.view(ty, Some(value)) {
        View::Nothing => {}
        View::Scalar(scalar) => {
            let text = match (scalar, value) {
                (_, Value::Null) => None,
                (Scalar::Int32 | Scalar::Int64 | Scalar::Number, Value::Number(_)) => None,
                (Scalar::Int32 | Scalar::Int64 | Scalar::Number, other) => {
                    Some(format!("expected numeric (int or float), got {}", go_type(other)))
                }
                (Scalar::String | Scalar::Bytes, Value::String(_)) => None,
                (Scalar::String | Scalar::Bytes, other) => Some(format!(
                    "expected string, got &value.valueUnstructured{{Value:{}}}",
                    go_syntax(other)
                )),
                (Scalar::Boolean, Value::Bool(_)) => None,
                (Scalar::Boolean, other) => Some(format!("expected boolean, got &{{{}}}", go_plain(other))),
                (_, Value::Array(_) | Value::Object(_)) => {
                    Some(format!("expected any scalar, got &{{{}}}", go_plain(value)))
                }
                _ => None,
            };
            if let Some(text) = text {
                fail(errors, path, text);
            }
        }
        View::List(list) => match value {
            Value::Null => {}
            Value::Array(items) => {
                let mut seen = BTreeMap::new();
                for (position, item) in items.iter().enumerate() {
                    let element = if list.relation == ListRelation::Atomic {
                        PathElement::Index(i64::try_from(position).unwrap_or(i64::MAX))
                    } else {
                        match item_element(schema, list, item) {
                            Ok(element) => element,
                            Err(text) => return fail(errors, path, format!("element {position}: {text}")),
                        }
                    };
                    if seen.insert(element.clone(), ()).is_some() {
                        let at = path_text(path);
                        errors.push(format!("{at}: duplicate entries for key {element}"));
                    }
                    path.push(element);
                    validate_at(schema, list.element, item, path, errors);
                    path.pop();
                }
            }
            other => fail(
                errors,
                path,
                format!("expected list, got &{{{}}}", go_plain(other)),
            ),
        },
        View::Map(map, _) => match value {
            Value::Null => {}
            Value::Object(object) => {
                for (name, below) in object {
                    path.push(PathElement::field(name));
                    match map.field_type(name) {
                        Some(ty) => validate_at(schema, ty, below, path, errors),
                        None => errors.push(format!("{}: field not declared in schema", path_text(path))),
                    }
                    path.pop();
                }
            }
            other => fail(
                errors,
                path,
                format!("expected map, got &{{{}}}", go_plain(other)),
            ),
        },
    }
}

/// A value as Go's `%v` prints it.
fn go_plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".into(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_plain).collect::<Vec<_>>().join(" ")),
        Value::Object(object) => {
            let parts: Vec<String> = object
                .iter()
                .map(|(key, value)| format!("{key}:{}", go_plain(value)))
                .collect();
            format!("map[{}]", parts.join(" "))
        }
        other => other.to_string(),
    }
}

/// A value as Go's `%#v` prints it inside an interface.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Null => "interface {}(nil)".into(),
        Value::Array(items) => {
            format!(
                "[]interface {{}}{{{}}}",
                items.iter().map(go_syntax).collect::<Vec<_>>().join(", ")
            )
        }
        Value::Object(object) => {
            let parts: Vec<String> = object
                .iter()
                .map(|(key, value)| format!("{key:?}:{}", go_syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", parts.join(", "))
        }
        other => other.to_string(),
    }
}
