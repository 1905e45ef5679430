//! Lists.

use super::args::{ANY, INT, any, int, rest};
use super::cast;
use super::defaults::is_empty;
use crate::Error;
use crate::exec::Executor;
use crate::function::{Native, NativeFn};
use crate::value::{LIST_ANY, LIST_INT, LIST_LIST, List, UintKind, Value, deep_equal};

pub(super) static TABLE: &[Native] = &[
    Native::concrete("list", &[ANY], true, list),
    Native::concrete("tuple", &[ANY], true, list),
    pair("append", append),
    pair("push", append),
    pair("mustAppend", append),
    pair("mustPush", append),
    pair("prepend", prepend),
    pair("mustPrepend", prepend),
    Native::interface("first", &[ANY], false, first),
    Native::interface("mustFirst", &[ANY], false, first),
    Native::interface("last", &[ANY], false, last),
    Native::interface("mustLast", &[ANY], false, last),
    single("rest", tail),
    single("mustRest", tail),
    single("initial", initial),
    single("mustInitial", initial),
    single("reverse", reverse),
    single("mustReverse", reverse),
    single("uniq", uniq),
    single("mustUniq", uniq),
    single("compact", compact),
    single("mustCompact", compact),
    Native::concrete("without", &[ANY, ANY], true, without),
    Native::concrete("mustWithout", &[ANY, ANY], true, without),
    Native::concrete("has", &[ANY, ANY], false, has),
    Native::concrete("mustHas", &[ANY, ANY], false, has),
    Native::interface("slice", &[ANY, ANY], true, slice),
    Native::interface("mustSlice", &[ANY, ANY], true, slice),
    Native::interface("concat", &[ANY], true, concat),
    Native::concrete("chunk", &[INT, ANY], false, chunk),
    Native::concrete("mustChunk", &[INT, ANY], false, chunk),
    Native::concrete("until", &[INT], false, until),
    Native::concrete("untilStep", &[INT, INT, INT], false, until_step),
    Native::concrete("seq", &[INT], true, seq),
];

const fn single(name: &'static str, call: NativeFn) -> Native {
    Native::concrete(name, &[ANY], false, call)
}

const fn pair(name: &'static str, call: NativeFn) -> Native {
    Native::concrete(name, &[ANY, ANY], false, call)
}

type Result = std::result::Result<Value, Error>;

/// The elements of any slice, or Sprig's refusal with `what` it wanted to do.
fn items(value: &Value, what: &str) -> std::result::Result<Vec<Value>, Error> {
    match value {
        Value::List(list) => Ok(list.to_vec()),
        Value::Bytes(bytes) => Ok(bytes
            .iter()
            .map(|byte| Value::Uint(UintKind::Uint8, u64::from(*byte)))
            .collect()),
        other => Err(refused(other, what, "")),
    }
}

fn refused(value: &Value, what: &str, after: &str) -> Error {
    // Sprig asks a nil interface for its type.
    if value.is_nil() {
        return Error::message("runtime error: invalid memory address or nil pointer dereference");
    }
    Error::message(format!("{what} {}{after}", value.kind().name()))
}

fn made(executor: &mut Executor, items: Vec<Value>) -> Result {
    executor.charge(items.len() * size_of::<Value>())?;
    Ok(Value::List(List::any(items)))
}

fn list(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::List(List::any(args.to_vec())))
}

fn append(executor: &mut Executor, args: &[Value]) -> Result {
    let mut items = items(any(args, 0), "Cannot push on type")?;
    items.push(any(args, 1).clone());
    made(executor, items)
}

fn prepend(executor: &mut Executor, args: &[Value]) -> Result {
    let mut items = items(any(args, 0), "Cannot prepend on type")?;
    items.insert(0, any(args, 1).clone());
    made(executor, items)
}

fn first(_: &mut Executor, args: &[Value]) -> Result {
    match any(args, 0) {
        Value::List(list) => Ok(list.get(0).unwrap_or(Value::Nil)),
        other => Ok(items(other, "Cannot find first on type")?
            .into_iter()
            .next()
            .unwrap_or(Value::Nil)),
    }
}

fn last(_: &mut Executor, args: &[Value]) -> Result {
    Ok(items(any(args, 0), "Cannot find last on type")?
        .pop()
        .unwrap_or(Value::Nil))
}

fn tail(executor: &mut Executor, args: &[Value]) -> Result {
    let mut items = items(any(args, 0), "Cannot find rest on type")?;
    if items.is_empty() {
        return Ok(Value::List(List::nil(&LIST_ANY)));
    }
    items.remove(0);
    made(executor, items)
}

fn initial(executor: &mut Executor, args: &[Value]) -> Result {
    let mut items = items(any(args, 0), "Cannot find initial on type")?;
    if items.pop().is_none() {
        return Ok(Value::List(List::nil(&LIST_ANY)));
    }
    made(executor, items)
}

fn reverse(executor: &mut Executor, args: &[Value]) -> Result {
    let mut items = items(any(args, 0), "Cannot find reverse on type")?;
    items.reverse();
    made(executor, items)
}

fn contains(items: &[Value], wanted: &Value) -> bool {
    items.iter().any(|item| deep_equal(wanted, item))
}

fn uniq(executor: &mut Executor, args: &[Value]) -> Result {
    let mut kept: Vec<Value> = Vec::new();
    for item in items(any(args, 0), "Cannot find uniq on type")? {
        executor.charge(kept.len())?;
        if !contains(&kept, &item) {
            kept.push(item);
        }
    }
    made(executor, kept)
}

fn compact(executor: &mut Executor, args: &[Value]) -> Result {
    let mut items = items(any(args, 0), "Cannot compact on type")?;
    items.retain(|item| !is_empty(item));
    made(executor, items)
}

fn without(executor: &mut Executor, args: &[Value]) -> Result {
    let mut items = items(any(args, 0), "Cannot find without on type")?;
    let omitted = rest(args, 1);
    items.retain(|item| !contains(omitted, item));
    made(executor, items)
}

fn has(_: &mut Executor, args: &[Value]) -> Result {
    let haystack = any(args, 1);
    if haystack.is_nil() {
        return Ok(Value::Bool(false));
    }
    if let Value::List(list) = haystack {
        return Ok(Value::Bool(list.with(|items| contains(items, any(args, 0)))));
    }
    Ok(Value::Bool(contains(
        &items(haystack, "Cannot find has on type")?,
        any(args, 0),
    )))
}

fn slice(executor: &mut Executor, args: &[Value]) -> Result {
    let source = any(args, 0);
    let length = match source {
        Value::List(list) => list.len(),
        Value::Bytes(bytes) => bytes.len(),
        other => return Err(refused(other, "list should be type of slice or array but", "")),
    };
    if length == 0 {
        return Ok(Value::Nil);
    }
    let start = args.get(1).map_or(0, cast::to_int64);
    let end = args.get(2).map_or(length as i64, cast::to_int64);
    let out_of_bounds = || Error::message("reflect.Value.Slice: slice index out of bounds");
    let range = match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) => start..end,
        _ => return Err(out_of_bounds()),
    };
    match source {
        Value::List(list) => {
            let items = list
                .with(|items| items.get(range).map(<[Value]>::to_vec))
                .ok_or_else(out_of_bounds)?;
            executor.charge(items.len() * size_of::<Value>())?;
            Ok(Value::List(List::new(list.class(), items)))
        }
        Value::Bytes(bytes) => Ok(Value::Bytes(bytes.get(range).ok_or_else(out_of_bounds)?.into())),
        other => Ok(other.clone()),
    }
}

fn concat(executor: &mut Executor, args: &[Value]) -> Result {
    let mut all = Vec::new();
    for arg in args {
        all.append(&mut items(arg, "").map_err(|_| refused(arg, "Cannot concat type", " as list"))?);
    }
    if all.is_empty() {
        return Ok(Value::List(List::nil(&LIST_ANY)));
    }
    made(executor, all)
}

/// Sprig computes with floats and lets a size below one go wrong in its own ways.
fn chunk(executor: &mut Executor, args: &[Value]) -> Result {
    let size = int(args, 0);
    let items = items(any(args, 1), "Cannot chunk type")?;
    let bad_length = || Error::message("runtime error: makeslice: len out of range");
    let count = cast::float_to_int(((items.len() as f64 - 1.0) / size as f64).floor() + 1.0);
    let count = usize::try_from(count)
        .ok()
        .filter(|count| *count <= items.len())
        .ok_or_else(bad_length)?;
    executor.charge(items.len() * size_of::<Value>())?;
    let mut chunks = Vec::with_capacity(count);
    for index in 0..count {
        let mut length = size;
        if index + 1 == count {
            let rest = cast::float_to_int((items.len() as f64 % size as f64).floor());
            length = if rest == 0 { size } else { rest };
        }
        let length = usize::try_from(length).map_err(|_| bad_length())?;
        let start = usize::try_from(size).unwrap_or(0) * index;
        let chunk = items.get(start..start + length).unwrap_or_default();
        chunks.push(Value::List(List::any(chunk.to_vec())));
    }
    Ok(Value::List(List::new(&LIST_LIST, chunks)))
}

/// Sprig's `untilStep`.
fn steps(executor: &mut Executor, start: i64, stop: i64, step: i64) -> std::result::Result<Vec<i64>, Error> {
    let down = stop < start;
    if step == 0 || down != (step < 0) {
        return Ok(Vec::new());
    }
    let count = start.abs_diff(stop).div_ceil(step.unsigned_abs());
    executor.charge(
        usize::try_from(count)
            .unwrap_or(usize::MAX)
            .saturating_mul(size_of::<Value>()),
    )?;
    let mut out = Vec::with_capacity(count as usize);
    let mut at = start;
    for _ in 0..count {
        out.push(at);
        at = at.wrapping_add(step);
    }
    Ok(out)
}

fn ints(items: Vec<i64>) -> Value {
    Value::List(List::new(&LIST_INT, items.into_iter().map(Value::int).collect()))
}

fn until(executor: &mut Executor, args: &[Value]) -> Result {
    let count = int(args, 0);
    Ok(ints(steps(executor, 0, count, if count < 0 { -1 } else { 1 })?))
}

fn until_step(executor: &mut Executor, args: &[Value]) -> Result {
    Ok(ints(steps(executor, int(args, 0), int(args, 1), int(args, 2))?))
}

fn seq(executor: &mut Executor, args: &[Value]) -> Result {
    let numbers = match args.len() {
        1 => {
            let end = int(args, 0);
            let step = if end < 1 { -1 } else { 1 };
            steps(executor, 1, end.wrapping_add(step), step)?
        }
        2 => {
            let (start, end) = (int(args, 0), int(args, 1));
            let step = if end < start { -1 } else { 1 };
            steps(executor, start, end.wrapping_add(step), step)?
        }
        3 => {
            let (start, step, end) = (int(args, 0), int(args, 1), int(args, 2));
            if end < start && step > 0 {
                return Ok(Value::from(""));
            }
            let beyond = if end < start { -1 } else { 1 };
            steps(executor, start, end.wrapping_add(beyond), step)?
        }
        _ => return Ok(Value::from("")),
    };
    let shown: Vec<String> = numbers.iter().map(i64::to_string).collect();
    Ok(Value::from(shown.join(" ")))
}
