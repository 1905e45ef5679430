//! Defaults and truth: `default`, `empty`, `coalesce`, `ternary`, `fail`.

use super::args::{ANY, BOOL, STR, any, flag, rest, string};
use crate::Error;
use crate::exec::Executor;
use crate::function::Native;
use crate::value::Value;

pub(super) static TABLE: &[Native] = &[
    Native::interface("default", &[ANY, ANY], true, default),
    Native::concrete("empty", &[ANY], false, empty),
    Native::interface("coalesce", &[ANY], true, coalesce),
    Native::concrete("all", &[ANY], true, all),
    Native::concrete("any", &[ANY], true, any_of),
    Native::interface("ternary", &[ANY, ANY, BOOL], false, ternary),
    Native::concrete("fail", &[STR], false, fail),
];

type Result = std::result::Result<Value, Error>;

/// Sprig's `empty`: nil, false, zero, and strings, slices and maps of length 0. A struct never is.
pub(super) fn is_empty(value: &Value) -> bool {
    !value.truth()
}

fn default(_: &mut Executor, args: &[Value]) -> Result {
    let given = any(args, 1);
    Ok(if is_empty(given) { any(args, 0) } else { given }.clone())
}

fn empty(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Bool(is_empty(any(args, 0))))
}

fn coalesce(_: &mut Executor, args: &[Value]) -> Result {
    Ok(args
        .iter()
        .find(|arg| !is_empty(arg))
        .cloned()
        .unwrap_or(Value::Nil))
}

fn all(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Bool(!args.iter().any(is_empty)))
}

fn any_of(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Bool(rest(args, 0).iter().any(|arg| !is_empty(arg))))
}

fn ternary(_: &mut Executor, args: &[Value]) -> Result {
    Ok(any(args, usize::from(!flag(args, 2))).clone())
}

fn fail(_: &mut Executor, args: &[Value]) -> Result {
    Err(Error::failure(string(args, 0).to_text()))
}
