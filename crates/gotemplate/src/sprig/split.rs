//! Strings to lists and back: `splitList`, `join`, `sortAlpha`.

use super::args::{ANY, INT, STR, any, int, string, strings, text};
use crate::Error;
use crate::exec::Executor;
use crate::fmt::strval;
use crate::function::Native;
use crate::value::{Entries, List, MAP_STR, Map, Str, Type, Value};

pub(super) static TABLE: &[Native] = &[
    Native::concrete("split", &[STR, STR], false, split),
    Native::concrete("splitList", &[STR, STR], false, split_list),
    Native::concrete("splitn", &[STR, INT, STR], false, splitn),
    Native::concrete("toStrings", &[ANY], false, to_strings),
    Native::concrete("join", &[STR, ANY], false, join),
    Native::concrete("sortAlpha", &[ANY], false, sort_alpha),
];

type Result = std::result::Result<Value, Error>;

/// `strings.SplitN`; a negative limit means all.
pub(super) fn parts(source: &[u8], separator: &[u8], limit: i64) -> Vec<Str> {
    if limit == 0 {
        return Vec::new();
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut out = Vec::new();
    let mut rest = source;
    if separator.is_empty() {
        while !rest.is_empty() && out.len() + 1 < limit {
            let (_, width) = crate::unicode::decode(rest);
            let (head, tail) = rest.split_at(width.max(1).min(rest.len()));
            out.push(Str::new(head));
            rest = tail;
        }
        if !rest.is_empty() {
            out.push(Str::new(rest));
        }
        return out;
    }
    while out.len() + 1 < limit {
        let Some(at) = memchr::memmem::find(rest, separator) else {
            break;
        };
        out.push(Str::new(rest.get(..at).unwrap_or_default()));
        rest = rest.get(at + separator.len()..).unwrap_or_default();
    }
    out.push(Str::new(rest));
    out
}

fn numbered(parts: Vec<Str>) -> Value {
    let entries: Entries = parts
        .into_iter()
        .enumerate()
        .map(|(index, part)| (format!("_{index}").into(), Value::Str(part)))
        .collect();
    Value::Map(Map::new(&MAP_STR, entries))
}

fn split(_: &mut Executor, args: &[Value]) -> Result {
    Ok(numbered(parts(text(args, 1), text(args, 0), -1)))
}

fn splitn(_: &mut Executor, args: &[Value]) -> Result {
    Ok(numbered(parts(text(args, 2), text(args, 0), int(args, 1))))
}

fn split_list(_: &mut Executor, args: &[Value]) -> Result {
    Ok(strings(parts(text(args, 1), text(args, 0), -1)))
}

/// Sprig's `strslice`: the texts of a list's elements without nil ones, or of the value itself.
fn texts(executor: &Executor, value: &Value) -> std::result::Result<Vec<Str>, Error> {
    let shown = |value: &Value| strval(value, executor.limits()).map_err(Error::limit);
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::List(list) => {
            list.with(|items| items.iter().filter(|item| !item.is_nil()).map(shown).collect())
        }
        Value::Bytes(bytes) => Ok(bytes.iter().map(|byte| byte.to_string().into()).collect()),
        other => Ok(vec![shown(other)?]),
    }
}

/// Whether it is a `[]string`: of a list with a type of its own Go makes a plain one first.
fn is_strings(list: &List) -> bool {
    matches!(list.class().elem, Type::Str) && !list.class().named
}

fn to_strings(executor: &mut Executor, args: &[Value]) -> Result {
    match any(args, 0) {
        Value::List(list) if is_strings(list) => Ok(Value::List(list.clone())),
        other => Ok(strings(texts(executor, other)?)),
    }
}

fn join(executor: &mut Executor, args: &[Value]) -> Result {
    let separator = string(args, 0);
    let parts = texts(executor, any(args, 1))?;
    let size = parts.iter().map(|part| part.len() + separator.len()).sum();
    executor.charge(size)?;
    let mut out = Vec::with_capacity(size);
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(separator.as_bytes());
        }
        out.extend_from_slice(part.as_bytes());
    }
    Ok(Value::from(out))
}

fn sort_alpha(executor: &mut Executor, args: &[Value]) -> Result {
    match any(args, 0) {
        // Go sorts a []string in place: whoever shares it sees it sorted.
        Value::List(list) if is_strings(list) => {
            list.update(|items| {
                items.sort_by(|a, b| match (a, b) {
                    (Value::Str(a), Value::Str(b)) => a.cmp(b),
                    _ => std::cmp::Ordering::Equal,
                });
            });
            Ok(Value::List(list.clone()))
        }
        other @ (Value::List(_) | Value::Bytes(_)) => {
            let mut parts = texts(executor, other)?;
            parts.sort();
            Ok(strings(parts))
        }
        other => Ok(strings([strval(other, executor.limits()).map_err(Error::limit)?])),
    }
}
