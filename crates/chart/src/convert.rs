//! Between plain value trees (shared by threads) and template values (shared mappings, one render).

use evenkeel_gotemplate::{List, Map, Value};
use evenkeel_goyaml as goyaml;

/// A plain mapping as a template mapping, with fresh mappings and lists below.
pub(crate) fn map_from_yaml(map: &goyaml::Map) -> Map {
    map.iter()
        .map(|(key, value)| (key.as_str().into(), value.into()))
        .collect()
}

/// Values as a plain tree. Only what came from a plain tree gets here: text is UTF-8 and nothing is an object.
pub(crate) fn to_yaml(value: &Value) -> goyaml::Value {
    match value {
        Value::Bool(b) => goyaml::Value::Bool(*b),
        Value::Int(_, i) => goyaml::Value::Int(*i),
        Value::Uint(_, u) => goyaml::Value::Uint(*u),
        Value::Float(f) => goyaml::Value::Float(*f),
        Value::Str(text) => goyaml::Value::String(text.to_text()),
        Value::List(list) => goyaml::Value::List(list.with(|items| items.iter().map(to_yaml).collect())),
        Value::Map(map) => goyaml::Value::Map(map_to_yaml(map)),
        Value::Nil | Value::Complex(..) | Value::Bytes(_) | Value::Object(_) | Value::Func(_) => {
            goyaml::Value::Null
        }
    }
}

/// A template mapping as a plain one.
pub(crate) fn map_to_yaml(map: &Map) -> goyaml::Map {
    map.to_vec()
        .into_iter()
        .map(|(key, value)| (key.to_text(), to_yaml(&value)))
        .collect()
}

/// A copy that shares nothing with the original.
pub(crate) fn deep_copy(map: &Map) -> Map {
    map.to_vec()
        .into_iter()
        .map(|(key, value)| (key, copy(&value)))
        .collect()
}

fn copy(value: &Value) -> Value {
    match value {
        Value::Map(map) => Value::Map(deep_copy(map)),
        Value::List(list) => Value::List(list.with(|items| items.iter().map(copy).collect::<List>())),
        other => other.clone(),
    }
}
