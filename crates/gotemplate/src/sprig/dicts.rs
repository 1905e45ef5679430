//! Dictionaries.

use super::args::{ANY, MAP, STR, any, map, plain, rest, string, strings, text};
use crate::Error;
use crate::env::{Limit, Limits};
use crate::exec::Executor;
use crate::fmt::strval;
use crate::function::Native;
use crate::value::{Entries, List, MAP_ANY, Map, Str, Value};

pub(super) static TABLE: &[Native] = &[
    Native::concrete("dict", &[ANY], true, dict),
    Native::interface("get", &[MAP, STR], false, get),
    Native::concrete("set", &[MAP, STR, ANY], false, set),
    Native::concrete("unset", &[MAP, STR], false, unset),
    Native::concrete("hasKey", &[MAP, STR], false, has_key),
    Native::concrete("pluck", &[STR, MAP], true, pluck),
    Native::concrete("keys", &[MAP], true, keys),
    Native::concrete("values", &[MAP], false, values),
    Native::concrete("pick", &[MAP, STR], true, pick),
    Native::concrete("omit", &[MAP, STR], true, omit),
    Native::interface("dig", &[ANY], true, dig),
    Native::interface("deepCopy", &[ANY], false, deep_copy),
    Native::interface("mustDeepCopy", &[ANY], false, deep_copy),
];

type Result = std::result::Result<Value, Error>;

fn dict(executor: &mut Executor, args: &[Value]) -> Result {
    let mut entries = Entries::new();
    for pair in args.chunks(2) {
        let key = strval(any(pair, 0), executor.limits()).map_err(Error::limit)?;
        let value = pair.get(1).cloned().unwrap_or_else(|| Value::from(""));
        entries.insert(key, value);
    }
    Ok(Value::Map(Map::new(&MAP_ANY, entries)))
}

fn get(_: &mut Executor, args: &[Value]) -> Result {
    Ok(map(args, 0).get(text(args, 1)).unwrap_or_else(|| Value::from("")))
}

fn set(_: &mut Executor, args: &[Value]) -> Result {
    let target = map(args, 0);
    if !target.insert(string(args, 1), any(args, 2).clone()) {
        return Err(Error::message("assignment to entry in nil map"));
    }
    Ok(plain(&target))
}

fn unset(_: &mut Executor, args: &[Value]) -> Result {
    let target = map(args, 0);
    target.remove(text(args, 1));
    Ok(plain(&target))
}

fn has_key(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Bool(map(args, 0).contains(text(args, 1))))
}

fn pluck(_: &mut Executor, args: &[Value]) -> Result {
    let key = text(args, 0);
    let found = rest(args, 1)
        .iter()
        .filter_map(|source| source.as_map()?.get(key));
    Ok(Value::List(found.collect::<List>()))
}

fn keys(_: &mut Executor, args: &[Value]) -> Result {
    let maps = args.iter().filter_map(Value::as_map);
    Ok(strings(maps.flat_map(|source| {
        source.to_vec().into_iter().map(|(key, _)| key)
    })))
}

fn values(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::List(
        map(args, 0)
            .to_vec()
            .into_iter()
            .map(|(_, value)| value)
            .collect::<List>(),
    ))
}

fn pick(_: &mut Executor, args: &[Value]) -> Result {
    let source = map(args, 0);
    let picked = rest(args, 1).iter().filter_map(|key| {
        let key = key.as_str()?;
        Some((key.clone(), source.get(key)?))
    });
    Ok(Value::Map(picked.collect::<Map>()))
}

fn omit(_: &mut Executor, args: &[Value]) -> Result {
    let omitted: Vec<&Str> = rest(args, 1).iter().filter_map(Value::as_str).collect();
    let kept = map(args, 0)
        .to_vec()
        .into_iter()
        .filter(|(key, _)| !omitted.contains(&key));
    Ok(Value::Map(kept.collect::<Map>()))
}

fn not_a(value: &Value, wanted: &str) -> Error {
    let actual = if value.is_nil() { "nil" } else { value.type_name() };
    Error::message(format!(
        "interface conversion: interface {{}} is {actual}, not {wanted}"
    ))
}

/// Go's type assertion to `map[string]interface {}`: a named type does not pass.
fn asserted(value: &Value) -> std::result::Result<&Map, Error> {
    match value {
        Value::Map(map) if map.class().name == MAP_ANY.name => Ok(map),
        other => Err(not_a(other, MAP_ANY.name)),
    }
}

fn dig(_: &mut Executor, args: &[Value]) -> Result {
    let (keys, default, source) = match args {
        [keys @ .., default, source] if !keys.is_empty() => (keys, default, source),
        _ => return Err(Error::message("dig needs at least three arguments")),
    };
    asserted(source)?;
    for key in keys {
        if key.as_str().is_none() {
            return Err(not_a(key, "string"));
        }
    }
    let mut current = source.clone();
    for key in keys {
        let Some(next) = key
            .as_str()
            .and_then(|key| asserted(&current).map(|map| map.get(key)).transpose())
        else {
            return Ok(default.clone());
        };
        current = next?;
    }
    Ok(current)
}

fn deep_copy(executor: &mut Executor, args: &[Value]) -> Result {
    if any(args, 0).is_nil() {
        return Err(Error::message(
            "reflect: call of reflect.Value.Type on zero Value",
        ));
    }
    let mut budget = executor.limits().output_bytes / size_of::<Value>();
    copy(any(args, 0), executor.limits(), 0, &mut budget)
}

fn copy(value: &Value, limits: &Limits, depth: usize, budget: &mut usize) -> Result {
    if depth > limits.value_depth {
        return Err(Error::limit(Limit::ValueDepth(limits.value_depth)));
    }
    let Some(left) = budget.checked_sub(1) else {
        return Err(Error::limit(Limit::OutputBytes(limits.output_bytes)));
    };
    *budget = left;
    stacker::maybe_grow(64 << 10, 1 << 20, || match value {
        Value::List(list) if !list.is_nil() => {
            let items = list.to_vec();
            let items = items
                .iter()
                .map(|item| copy(item, limits, depth + 1, budget))
                .collect::<std::result::Result<_, _>>()?;
            Ok(Value::List(List::new(list.class(), items)))
        }
        Value::Map(map) if !map.is_nil() => {
            let mut entries = Entries::new();
            for (key, item) in map.to_vec() {
                entries.insert(key, copy(&item, limits, depth + 1, budget)?);
            }
            Ok(Value::Map(Map::new(map.class(), entries)))
        }
        Value::Object(object) => Ok(object.deep_copy().unwrap_or_else(|| value.clone())),
        other => Ok(other.clone()),
    })
}
