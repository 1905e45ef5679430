//! Conversions between numbers, by the rules of the cast library: what cannot be converted is 0.

use super::args::{ANY, STR, any, text};
use crate::Error;
use crate::exec::Executor;
use crate::fmt::sprint;
use crate::function::Native;
use crate::strconv::{parse_float, parse_int};
use crate::value::Value;

pub(super) static TABLE: &[Native] = &[
    Native::concrete("int", &[ANY], false, int),
    Native::concrete("int64", &[ANY], false, int64),
    Native::concrete("float64", &[ANY], false, float64),
    Native::concrete("atoi", &[STR], false, atoi),
    Native::concrete("toDecimal", &[ANY], false, to_decimal),
];

type Result = std::result::Result<Value, Error>;

/// Go's conversion on amd64: out of range is the smallest integer.
pub(super) fn float_to_int(float: f64) -> i64 {
    if (i64::MIN as f64..-(i64::MIN as f64)).contains(&float) {
        float as i64
    } else {
        i64::MIN
    }
}

/// `"8.00"` is 8; anything but zeros after the point stays.
fn without_zero_decimals(text: &[u8]) -> &[u8] {
    let mut found_zero = false;
    for (index, byte) in text.iter().enumerate().rev() {
        match byte {
            b'.' if found_zero => return text.get(..index).unwrap_or(text),
            b'.' => {}
            b'0' => found_zero = true,
            _ => return text,
        }
    }
    text
}

/// `cast.ToInt64`
pub(super) fn to_int64(value: &Value) -> i64 {
    match value {
        Value::Int(_, int) => *int,
        Value::Uint(_, uint) => *uint as i64,
        Value::Float(float) => float_to_int(*float),
        Value::Bool(flag) => i64::from(*flag),
        Value::Str(text) => parse_int(without_zero_decimals(text.as_bytes()), 0).unwrap_or(0),
        _ => 0,
    }
}

/// `cast.ToFloat64`
pub(super) fn to_float64(value: &Value) -> f64 {
    match value {
        Value::Int(_, int) => *int as f64,
        Value::Uint(_, uint) => *uint as f64,
        Value::Float(float) => *float,
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::Str(text) => parse_float(text.as_bytes()).unwrap_or(0.0),
        _ => 0.0,
    }
}

fn int(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::int(to_int64(any(args, 0))))
}

fn int64(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::int64(to_int64(any(args, 0))))
}

fn float64(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Float(to_float64(any(args, 0))))
}

fn atoi(_: &mut Executor, args: &[Value]) -> Result {
    let parsed = parse_int(text(args, 0), 10);
    Ok(Value::int(match parsed {
        Ok(int) => int,
        // strconv gives the nearest value with a range error, and Sprig drops the error.
        Err(crate::strconv::NumError::Range) if text(args, 0).starts_with(b"-") => i64::MIN,
        Err(crate::strconv::NumError::Range) => i64::MAX,
        Err(crate::strconv::NumError::Syntax) => 0,
    }))
}

fn to_decimal(executor: &mut Executor, args: &[Value]) -> Result {
    let shown = sprint(std::slice::from_ref(any(args, 0)), executor.limits()).map_err(Error::limit)?;
    Ok(Value::int64(parse_int(&shown, 8).unwrap_or(0)))
}
