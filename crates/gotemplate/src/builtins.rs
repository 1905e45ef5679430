//! The functions of Go's text/template itself.

mod compare;
mod escape;
mod index;

use crate::Error;
use crate::exec::{Executor, Operand, printable_copy};
use crate::fmt::{sprint, sprintf, sprintln};
use crate::function::{Body, BuiltinFn, Native};
use crate::value::{Returns, Signature, Type, Value};

/// Tables of this module's functions.
pub(crate) static TABLES: &[&[Native]] = &[BUILTINS];

const REFLECT_1: &[Type] = &[Type::Reflect];
const REFLECT_2: &[Type] = &[Type::Reflect, Type::Reflect];
const ANY_1: &[Type] = &[Type::Any];

const fn builtin(name: &'static str, params: &'static [Type], variadic: bool, body: BuiltinFn) -> Native {
    Native {
        name,
        signature: Signature {
            params,
            variadic,
            returns: Returns::Concrete,
        },
        body: Body::Builtin(body),
    }
}

const fn special(name: &'static str, body: Body) -> Native {
    Native {
        name,
        signature: Signature {
            params: REFLECT_2,
            variadic: true,
            returns: Returns::Concrete,
        },
        body,
    }
}

static BUILTINS: &[Native] = &[
    special("and", Body::ShortCircuit { stop_at: false }),
    special("or", Body::ShortCircuit { stop_at: true }),
    special("call", Body::Call),
    builtin("html", ANY_1, true, html),
    builtin("js", ANY_1, true, js),
    builtin("urlquery", ANY_1, true, url_query),
    builtin("index", REFLECT_2, true, index::index),
    builtin("slice", REFLECT_2, true, index::slice),
    builtin("len", REFLECT_1, false, index::len),
    builtin("not", REFLECT_1, false, not),
    Native::concrete("print", ANY_1, true, print),
    Native::concrete("println", ANY_1, true, println),
    Native::concrete("printf", &[Type::Str, Type::Any], true, printf),
    builtin("eq", REFLECT_2, true, compare::eq),
    builtin("ne", REFLECT_2, false, compare::ne),
    builtin("lt", REFLECT_2, false, compare::lt),
    builtin("le", REFLECT_2, false, compare::le),
    builtin("gt", REFLECT_2, false, compare::gt),
    builtin("ge", REFLECT_2, false, compare::ge),
];

fn not(_: &mut Executor, args: &[Operand]) -> Result<Operand, Error> {
    let truth = args.first().is_some_and(|arg| arg.value.truth());
    Ok(Operand::concrete(Value::Bool(!truth)))
}

fn print(executor: &mut Executor, args: &[Value]) -> Result<Value, Error> {
    sprint(args, executor.limits())
        .map(Value::from)
        .map_err(Error::limit)
}

fn println(executor: &mut Executor, args: &[Value]) -> Result<Value, Error> {
    sprintln(args, executor.limits())
        .map(Value::from)
        .map_err(Error::limit)
}

fn printf(executor: &mut Executor, args: &[Value]) -> Result<Value, Error> {
    let Some((Value::Str(format), args)) = args.split_first() else {
        return Err(Error::message("printf needs a format"));
    };
    sprintf(format.as_bytes(), args, executor.limits())
        .map(Value::from)
        .map_err(Error::limit)
}

/// The text of all operands: `fmt.Sprint`, with a missing value as `<no value>`.
fn text_of(executor: &Executor, args: &[Operand]) -> Result<Vec<u8>, Error> {
    if let [
        Operand {
            value: Value::Str(text),
            ..
        },
    ] = args
    {
        return Ok(text.as_bytes().to_vec());
    }
    let args: Vec<Value> = args
        .iter()
        .map(|arg| match &arg.value {
            Value::Nil => Value::from("<no value>"),
            value => printable_copy(value),
        })
        .collect();
    sprint(&args, executor.limits()).map_err(Error::limit)
}

fn html(executor: &mut Executor, args: &[Operand]) -> Result<Operand, Error> {
    let text = text_of(executor, args)?;
    Ok(Operand::concrete(escape::html(&text).into()))
}

fn js(executor: &mut Executor, args: &[Operand]) -> Result<Operand, Error> {
    let text = text_of(executor, args)?;
    Ok(Operand::concrete(escape::js(&text).into()))
}

fn url_query(executor: &mut Executor, args: &[Operand]) -> Result<Operand, Error> {
    let text = text_of(executor, args)?;
    Ok(Operand::concrete(escape::url_query(&text).into()))
}
