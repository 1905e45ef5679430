//! Access to checked arguments. The executor has compared them with the signature, so a wrong kind cannot come;
//! what is read instead of one is the type's zero.

use crate::value::{List, MAP_ANY, Map, Str, Type, Value};

pub(super) const ANY: Type = Type::Any;
pub(super) const STR: Type = Type::Str;
pub(super) const INT: Type = Type::INT;
pub(super) const BOOL: Type = Type::Bool;
pub(super) const FLOAT: Type = Type::Float;
pub(super) const LIST: Type = Type::LIST;
pub(super) const MAP: Type = Type::MAP;

pub(super) fn any(args: &[Value], index: usize) -> &Value {
    args.get(index).unwrap_or(&Value::Nil)
}

pub(super) fn text(args: &[Value], index: usize) -> &[u8] {
    match args.get(index) {
        Some(Value::Str(text)) => text.as_bytes(),
        _ => &[],
    }
}

pub(super) fn string(args: &[Value], index: usize) -> Str {
    match args.get(index) {
        Some(Value::Str(text)) => text.clone(),
        _ => Str::EMPTY,
    }
}

pub(super) fn int(args: &[Value], index: usize) -> i64 {
    match args.get(index) {
        Some(Value::Int(_, int)) => *int,
        _ => 0,
    }
}

pub(super) fn flag(args: &[Value], index: usize) -> bool {
    matches!(args.get(index), Some(Value::Bool(true)))
}

pub(super) fn list(args: &[Value], index: usize) -> Vec<Value> {
    match args.get(index) {
        Some(Value::List(list)) => list.to_vec(),
        _ => Vec::new(),
    }
}

pub(super) fn map(args: &[Value], index: usize) -> Map {
    match args.get(index) {
        Some(Value::Map(map)) => map.clone(),
        _ => Map::nil(&MAP_ANY),
    }
}

/// Further arguments of a variadic function.
pub(super) fn rest(args: &[Value], index: usize) -> &[Value] {
    args.get(index..).unwrap_or_default()
}

/// The value seen as `map[string]interface {}`, which a Go function returns whatever named type it was given.
pub(super) fn plain(map: &Map) -> Value {
    Value::Map(map.with_class(&MAP_ANY))
}

pub(super) fn strings(items: impl IntoIterator<Item = Str>) -> Value {
    Value::List(List::strings(items))
}
