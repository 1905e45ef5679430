//! `eq`, `ne`, `lt`, `le`, `gt`, `ge`.

use std::cmp::Ordering;

use crate::Error;
use crate::exec::{Executor, Operand};
use crate::fmt::sprintf;
use crate::value::{Kind, Value};

const BAD_TYPE: &str = "invalid type for comparison";

/// Go's classes of comparable basic types.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Invalid,
    Bool,
    Complex,
    Int,
    Float,
    Str,
    Uint,
}

/// The number inside a named type such as `time.Duration`, which Go compares like any other.
pub(super) fn underlying(value: &Value) -> Option<Value> {
    match value {
        Value::Object(object) if matches!(object.kind(), Kind::Int | Kind::Int64) => object.data(),
        _ => None,
    }
}

fn basic(value: &Value) -> Basic {
    match value {
        Value::Bool(_) => Basic::Bool,
        Value::Int(..) => Basic::Int,
        Value::Uint(..) => Basic::Uint,
        Value::Float(_) => Basic::Float,
        Value::Complex(..) => Basic::Complex,
        Value::Str(_) => Basic::Str,
        _ => Basic::Invalid,
    }
}

/// Whether the value is nil in Go: no value, or a nil slice or map.
fn is_nil(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::List(list) => list.is_nil(),
        Value::Map(map) => map.is_nil(),
        _ => false,
    }
}

fn incompatible(a: &Value, b: &Value) -> Error {
    Error::message(format!(
        "incompatible types for comparison: {} and {}",
        a.type_name(),
        b.type_name()
    ))
}

fn show(executor: &Executor, format: &str, value: &Value) -> Result<String, Error> {
    let text =
        sprintf(format.as_bytes(), std::slice::from_ref(value), executor.limits()).map_err(Error::limit)?;
    Ok(crate::value::lossy(&text))
}

fn equal(executor: &Executor, a: &Value, b: &Value) -> Result<bool, Error> {
    let (inner_a, inner_b) = (underlying(a), underlying(b));
    let (plain_a, plain_b) = (inner_a.as_ref().unwrap_or(a), inner_b.as_ref().unwrap_or(b));
    Ok(match (plain_a, plain_b) {
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(_, a), Value::Int(_, b)) => a == b,
        (Value::Uint(_, a), Value::Uint(_, b)) => a == b,
        (Value::Int(_, int), Value::Uint(_, uint)) | (Value::Uint(_, uint), Value::Int(_, int)) => {
            u64::try_from(*int).is_ok_and(|int| int == *uint)
        }
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Complex(ar, ai), Value::Complex(br, bi)) => ar == br && ai == bi,
        (Value::Str(a), Value::Str(b)) => a == b,
        _ if basic(plain_a) != basic(plain_b) => {
            if !a.is_nil() && !b.is_nil() {
                return Err(incompatible(a, b));
            }
            false
        }
        _ => {
            if a.kind() != b.kind() && !a.is_nil() && !b.is_nil() {
                return Err(Error::message(format!(
                    "non-comparable types {}: {}, {}: {}",
                    show(executor, "%s", a)?,
                    a.type_name(),
                    b.type_name(),
                    show(executor, "%v", b)?
                )));
            }
            if is_nil(a) || is_nil(b) {
                return Ok(is_nil(a) == is_nil(b));
            }
            match (a, b) {
                (Value::Object(a), Value::Object(b)) => a.type_name() == b.type_name() && a.equals(&**b),
                _ => {
                    return Err(Error::message(format!(
                        "non-comparable type {}: {}",
                        show(executor, "%s", b)?,
                        b.type_name()
                    )));
                }
            }
        }
    })
}

fn less(a: &Value, b: &Value) -> Result<bool, Error> {
    let (inner_a, inner_b) = (underlying(a), underlying(b));
    let (plain_a, plain_b) = (inner_a.as_ref().unwrap_or(a), inner_b.as_ref().unwrap_or(b));
    if basic(plain_a) == Basic::Invalid || basic(plain_b) == Basic::Invalid {
        return Err(Error::message(BAD_TYPE));
    }
    Ok(match (plain_a, plain_b) {
        (Value::Int(_, a), Value::Int(_, b)) => a < b,
        (Value::Uint(_, a), Value::Uint(_, b)) => a < b,
        (Value::Int(_, a), Value::Uint(_, b)) => u64::try_from(*a).map_or(true, |a| a < *b),
        (Value::Uint(_, a), Value::Int(_, b)) => u64::try_from(*b).is_ok_and(|b| *a < b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b) == Some(Ordering::Less),
        (Value::Str(a), Value::Str(b)) => a < b,
        _ if basic(plain_a) != basic(plain_b) => return Err(incompatible(a, b)),
        _ => return Err(Error::message(BAD_TYPE)),
    })
}

fn pair(args: &[Operand]) -> (&Value, &Value) {
    match args {
        [a, b, ..] => (&a.value, &b.value),
        [a] => (&a.value, &Value::Nil),
        [] => (&Value::Nil, &Value::Nil),
    }
}

const fn truth(value: bool) -> Operand {
    Operand::concrete(Value::Bool(value))
}

pub(super) fn eq(executor: &mut Executor, args: &[Operand]) -> Result<Operand, Error> {
    let Some((first, others)) = args.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Err(Error::message("missing argument for comparison"));
    };
    for other in others {
        if equal(executor, &first.value, &other.value)? {
            return Ok(truth(true));
        }
    }
    Ok(truth(false))
}

pub(super) fn ne(executor: &mut Executor, args: &[Operand]) -> Result<Operand, Error> {
    let (a, b) = pair(args);
    Ok(truth(!equal(executor, a, b)?))
}

pub(super) fn lt(_: &mut Executor, args: &[Operand]) -> Result<Operand, Error> {
    let (a, b) = pair(args);
    Ok(truth(less(a, b)?))
}

fn less_or_equal(executor: &Executor, a: &Value, b: &Value) -> Result<bool, Error> {
    Ok(less(a, b)? || equal(executor, a, b)?)
}

pub(super) fn le(executor: &mut Executor, args: &[Operand]) -> Result<Operand, Error> {
    let (a, b) = pair(args);
    Ok(truth(less_or_equal(executor, a, b)?))
}

pub(super) fn gt(executor: &mut Executor, args: &[Operand]) -> Result<Operand, Error> {
    let (a, b) = pair(args);
    Ok(truth(!less_or_equal(executor, a, b)?))
}

pub(super) fn ge(_: &mut Executor, args: &[Operand]) -> Result<Operand, Error> {
    let (a, b) = pair(args);
    Ok(truth(!less(a, b)?))
}
