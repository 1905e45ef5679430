//! Types and kinds.

use super::args::{ANY, STR, any, text};
use crate::Error;
use crate::exec::Executor;
use crate::function::Native;
use crate::value::{Value, deep_equal as equal};

pub(super) static TABLE: &[Native] = &[
    Native::concrete("typeOf", &[ANY], false, type_of),
    Native::concrete("typeIs", &[STR, ANY], false, type_is),
    Native::concrete("typeIsLike", &[STR, ANY], false, type_is_like),
    Native::concrete("kindOf", &[ANY], false, kind_of),
    Native::concrete("kindIs", &[STR, ANY], false, kind_is),
    Native::concrete("deepEqual", &[ANY, ANY], false, deep_equal),
];

type Result = std::result::Result<Value, Error>;

fn type_of(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::from(any(args, 0).type_name()))
}

fn type_is(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Bool(text(args, 0) == any(args, 1).type_name().as_bytes()))
}

fn type_is_like(_: &mut Executor, args: &[Value]) -> Result {
    let name = any(args, 1).type_name();
    let wanted = text(args, 0);
    let pointee = name.strip_prefix('*').map(str::as_bytes);
    Ok(Value::Bool(wanted == name.as_bytes() || Some(wanted) == pointee))
}

fn kind_of(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::from(any(args, 0).kind().name()))
}

fn kind_is(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Bool(
        text(args, 0) == any(args, 1).kind().name().as_bytes(),
    ))
}

fn deep_equal(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Bool(equal(any(args, 0), any(args, 1))))
}
