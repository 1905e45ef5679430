//! The type of `.Values`, `.Template` and the dot: `common.Values`, a mapping with methods.

use evenkeel_gotemplate::{
    Error, Executor, Map, MapClass, Method, Returns, Signature, Type, Value, go_quoted,
};
use evenkeel_goyaml as goyaml;

use crate::convert::map_to_yaml;

/// `common.Values`; its methods hide keys of the same names.
pub(super) static VALUES: MapClass = MapClass {
    name: "common.Values",
    elem: Type::Any,
    named: true,
    methods: &[
        Method {
            name: "AsMap",
            signature: Signature::fixed(&[], Returns::Concrete),
            call: as_map,
        },
        Method {
            name: "YAML",
            signature: Signature::fixed(&[], Returns::Concrete),
            call: yaml,
        },
        Method {
            name: "Table",
            signature: Signature::fixed(&[Type::Str], Returns::Concrete),
            call: get_table,
        },
        Method {
            name: "PathValue",
            signature: Signature::fixed(&[Type::Str], Returns::Interface),
            call: path_value,
        },
    ],
};

fn own(value: &Value) -> Result<&Map, Error> {
    value
        .as_map()
        .ok_or_else(|| Error::message("not a common.Values"))
}

fn path(args: &[Value]) -> String {
    args.first()
        .and_then(Value::as_str)
        .map(|text| text.to_text())
        .unwrap_or_default()
}

fn as_map(_: &mut Executor, receiver: &Value, _: &[Value]) -> Result<Value, Error> {
    let map = own(receiver)?;
    let map = if map.is_empty() {
        Map::any()
    } else {
        map.with_class(&evenkeel_gotemplate::MAP_ANY)
    };
    Ok(Value::Map(map))
}

fn yaml(_: &mut Executor, receiver: &Value, _: &[Value]) -> Result<Value, Error> {
    let tree = goyaml::Value::Map(map_to_yaml(own(receiver)?));
    Ok(Value::from(goyaml::to_yaml(&tree)))
}

fn walk(from: &Map, path: &str) -> Result<Map, Error> {
    path.split('.')
        .try_fold(from.clone(), |map, name| match map.get(name) {
            Some(Value::Map(inner)) => Ok(inner),
            _ => Err(Error::message(format!("{} is not a table", go_quoted(name)))),
        })
}

fn get_table(_: &mut Executor, receiver: &Value, args: &[Value]) -> Result<Value, Error> {
    Ok(Value::Map(walk(own(receiver)?, &path(args))?.with_class(&VALUES)))
}

fn path_value(_: &mut Executor, receiver: &Value, args: &[Value]) -> Result<Value, Error> {
    let path = path(args);
    if path.is_empty() {
        return Err(Error::message("YAML path cannot be empty"));
    }
    let map = own(receiver)?;
    let (holder, name) = match path.rsplit_once('.') {
        Some((tables, name)) => (walk(map, tables).ok(), name),
        None => (Some(map.clone()), path.as_str()),
    };
    match holder.and_then(|holder| holder.get(name)) {
        Some(value) if !matches!(value, Value::Map(_)) => Ok(value),
        _ => Err(Error::message(format!("{} is not a value", go_quoted(name)))),
    }
}
