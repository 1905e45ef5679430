//! `merge` and `mergeOverwrite`: what the mergo library does to maps.

use super::args::{MAP, map, plain, rest};
use super::defaults::is_empty;
use crate::Error;
use crate::env::Limit;
use crate::exec::Executor;
use crate::function::Native;
use crate::value::{List, Map, Value};

pub(super) static TABLE: &[Native] = &[
    Native::interface("merge", &[MAP, MAP], true, merge),
    Native::interface("mustMerge", &[MAP, MAP], true, merge),
    Native::interface("mergeOverwrite", &[MAP, MAP], true, merge_overwrite),
    Native::interface("mustMergeOverwrite", &[MAP, MAP], true, merge_overwrite),
];

type Result = std::result::Result<Value, Error>;

fn merge(executor: &mut Executor, args: &[Value]) -> Result {
    merge_all(executor, args, false)
}

fn merge_overwrite(executor: &mut Executor, args: &[Value]) -> Result {
    merge_all(executor, args, true)
}

fn merge_all(executor: &mut Executor, args: &[Value], overwrite: bool) -> Result {
    let mut target = map(args, 0);
    for source in rest(args, 1).iter().filter_map(Value::as_map) {
        if target.is_nil() {
            if source.is_nil() {
                continue;
            }
            target = Map::any();
        }
        merge_into(executor, &target, source, overwrite, 0)?;
    }
    Ok(plain(&target))
}

/// Merges a map into another in place. Nested maps of the source become part of the target, not copies of them.
fn merge_into(
    executor: &mut Executor,
    target: &Map,
    source: &Map,
    overwrite: bool,
    depth: usize,
) -> std::result::Result<(), Error> {
    if depth > executor.limits().value_depth {
        return Err(Error::limit(Limit::ValueDepth(executor.limits().value_depth)));
    }
    if target.same(source) {
        return Ok(());
    }
    executor.charge(source.len() * size_of::<Value>())?;
    for (key, value) in source.to_vec() {
        let existing = target.get(&key);
        match &value {
            Value::Nil => {
                if overwrite {
                    target.insert(key, Value::Nil);
                }
                continue;
            }
            Value::Map(nested) => {
                if let Some(Value::Map(existing)) = &existing
                    && !existing.is_nil()
                {
                    stacker::maybe_grow(64 << 10, 1 << 20, || {
                        merge_into(executor, existing, nested, overwrite, depth + 1)
                    })?;
                    // What was merged stays; only an empty map gives way to the source's.
                    if !existing.is_empty() {
                        continue;
                    }
                }
            }
            Value::List(list) => {
                if overwrite || target.is_empty() {
                    target.insert(key.clone(), value.clone());
                } else if existing.as_ref().is_none_or(Value::is_nil) {
                    target.insert(key.clone(), List::new(list.class(), Vec::new()));
                }
                if existing.as_ref().is_some_and(|existing| !is_empty(existing)) {
                    continue;
                }
            }
            _ => {}
        }
        if overwrite || existing.as_ref().is_none_or(is_empty) {
            target.insert(key, value);
        }
    }
    Ok(())
}
