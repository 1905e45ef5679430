//! Arithmetic on integers (`add`), decimals (`addf`) and floats (`floor`).

use super::args::{ANY, FLOAT, INT, any, int, rest};
use super::cast::{to_float64, to_int64};
use super::decimal::Decimal;
use crate::Error;
use crate::exec::Executor;
use crate::function::Native;
use crate::value::Value;

pub(super) static TABLE: &[Native] = &[
    Native::concrete("add", &[ANY], true, add),
    Native::concrete("add1", &[ANY], false, add1),
    Native::concrete("sub", &[ANY, ANY], false, sub),
    Native::concrete("mul", &[ANY, ANY], true, mul),
    Native::concrete("div", &[ANY, ANY], false, div),
    Native::concrete("mod", &[ANY, ANY], false, modulo),
    Native::concrete("max", &[ANY, ANY], true, max),
    Native::concrete("biggest", &[ANY, ANY], true, max),
    Native::concrete("min", &[ANY, ANY], true, min),
    Native::concrete("maxf", &[ANY, ANY], true, maxf),
    Native::concrete("minf", &[ANY, ANY], true, minf),
    Native::concrete("floor", &[ANY], false, floor),
    Native::concrete("ceil", &[ANY], false, ceil),
    Native::concrete("round", &[ANY, INT, FLOAT], true, round),
    Native::concrete("add1f", &[ANY], false, add1f),
    Native::concrete("addf", &[ANY], true, addf),
    Native::concrete("subf", &[ANY, ANY], true, subf),
    Native::concrete("mulf", &[ANY, ANY], true, mulf),
    Native::concrete("divf", &[ANY, ANY], true, divf),
];

type Result = std::result::Result<Value, Error>;

fn first(args: &[Value]) -> i64 {
    to_int64(any(args, 0))
}

fn second(args: &[Value]) -> i64 {
    to_int64(any(args, 1))
}

fn add(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::int64(args.iter().map(to_int64).fold(0, i64::wrapping_add)))
}

fn add1(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::int64(first(args).wrapping_add(1)))
}

fn sub(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::int64(first(args).wrapping_sub(second(args))))
}

fn mul(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::int64(
        rest(args, 1)
            .iter()
            .map(to_int64)
            .fold(first(args), i64::wrapping_mul),
    ))
}

fn by_zero() -> Error {
    Error::message("runtime error: integer divide by zero")
}

fn div(_: &mut Executor, args: &[Value]) -> Result {
    match second(args) {
        0 => Err(by_zero()),
        divisor => Ok(Value::int64(first(args).wrapping_div(divisor))),
    }
}

fn modulo(_: &mut Executor, args: &[Value]) -> Result {
    match second(args) {
        0 => Err(by_zero()),
        divisor => Ok(Value::int64(first(args).wrapping_rem(divisor))),
    }
}

fn max(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::int64(args.iter().map(to_int64).max().unwrap_or(0)))
}

fn min(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::int64(args.iter().map(to_int64).min().unwrap_or(0)))
}

/// Go's `math.Max`: NaN wins, and 0 is above -0.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a == 0.0 && b == 0.0 {
        if a.is_sign_negative() { b } else { a }
    } else {
        a.max(b)
    }
}

fn maxf(_: &mut Executor, args: &[Value]) -> Result {
    let start = to_float64(any(args, 0));
    Ok(Value::Float(
        rest(args, 1).iter().map(to_float64).fold(start, larger),
    ))
}

fn minf(_: &mut Executor, args: &[Value]) -> Result {
    let start = to_float64(any(args, 0));
    Ok(Value::Float(
        rest(args, 1)
            .iter()
            .map(to_float64)
            .fold(start, |a, b| -larger(-a, -b)),
    ))
}

fn floor(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Float(to_float64(any(args, 0)).floor()))
}

fn ceil(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Float(to_float64(any(args, 0)).ceil()))
}

fn round(_: &mut Executor, args: &[Value]) -> Result {
    let round_on = match args.get(2) {
        Some(Value::Float(round_on)) => *round_on,
        _ => 0.5,
    };
    let power = 10f64.powf(int(args, 1) as f64);
    let digit = power * to_float64(any(args, 0));
    // Only a positive fraction can reach the threshold, so -2.5 becomes -3.
    let rounded = if digit.fract() >= round_on {
        digit.ceil()
    } else {
        digit.floor()
    };
    Ok(Value::Float(rounded / power))
}

fn decimals(
    start: f64,
    others: &[Value],
    op: impl Fn(Decimal, Decimal) -> std::result::Result<Decimal, Error>,
) -> Result {
    let mut result = Decimal::from_float(start)?;
    for other in others {
        result = op(result, Decimal::from_float(to_float64(other))?)?;
    }
    Ok(Value::Float(result.to_float()))
}

fn add1f(_: &mut Executor, args: &[Value]) -> Result {
    decimals(to_float64(any(args, 0)), &[Value::int(1)], Decimal::add)
}

fn addf(_: &mut Executor, args: &[Value]) -> Result {
    decimals(0.0, args, Decimal::add)
}

fn subf(_: &mut Executor, args: &[Value]) -> Result {
    decimals(to_float64(any(args, 0)), rest(args, 1), Decimal::sub)
}

fn mulf(_: &mut Executor, args: &[Value]) -> Result {
    decimals(to_float64(any(args, 0)), rest(args, 1), Decimal::mul)
}

fn divf(_: &mut Executor, args: &[Value]) -> Result {
    decimals(to_float64(any(args, 0)), rest(args, 1), Decimal::div)
}
