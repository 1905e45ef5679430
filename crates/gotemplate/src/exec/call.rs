//! Calls functions and methods: counts and checks arguments, runs the body, says where it failed.

use std::rc::Rc;

use super::walk::State;
use super::{Executor, Operand};
use crate::Error;
use crate::function::{Body, Closure, Native};
use crate::syntax::{Arg, NodeRef};
use crate::value::{Method, Object, Returns, Signature, Type, Value};

/// What is called.
pub(super) enum Called<'c> {
    Native(&'static Native),
    Closure(&'c Rc<Closure>),
    Method {
        receiver: &'c Value,
        method: &'static Method,
    },
    Object {
        object: &'c Rc<dyn Object>,
        name: &'c str,
    },
}

impl<'t> State<'_, 't> {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn call(
        &mut self,
        dot: &Operand,
        called: Called<'_>,
        signature: Signature,
        node: NodeRef<'t>,
        name: &str,
        args: &'t [Arg],
        last: Option<&Operand>,
    ) -> Result<Operand, Error> {
        let given = args.len() + usize::from(last.is_some());
        if signature.variadic {
            let fixed = signature.params.len() - 1;
            if given < fixed {
                let count = args.len();
                return self.error(format!(
                    "wrong number of args for {name}: want at least {fixed} got {count}"
                ));
            }
        } else if given != signature.params.len() {
            let wanted = signature.params.len();
            return self.error(format!(
                "wrong number of args for {name}: want {wanted} got {given}"
            ));
        }
        if let Called::Native(native) = &called {
            match native.body {
                Body::ShortCircuit { stop_at } => return self.short_circuit(dot, stop_at, args, last),
                Body::Builtin(body) => {
                    let operands = self.operands(dot, signature, args, last)?;
                    let result = body(self.executor, &operands);
                    return self.finish(result, node, name);
                }
                Body::Call => {
                    let operands = self.operands(dot, signature, args, last)?;
                    let callee = match (args.first(), last) {
                        (Some(arg), _) => self.print_arg(arg),
                        (None, Some(last)) => format!("<{} Value>", last.value.type_name()),
                        (None, None) => String::new(),
                    };
                    let result = call_value(self.executor, &callee, &operands);
                    return self.finish(result, node, name);
                }
                Body::Native(_) => {}
            }
        }
        let mut values = self.executor.take_args();
        for (index, arg) in args.iter().enumerate() {
            values.push(copied(self.arg(dot, signature.param(index), arg)?.value));
        }
        if let Some(last) = last {
            values.push(copied(
                self.validate(last.clone(), signature.param(values.len()))?.value,
            ));
        }
        let result = match called {
            Called::Native(native) => match native.body {
                Body::Native(body) => body(self.executor, &values),
                _ => Err(Error::message("not a native function")),
            },
            Called::Closure(closure) => closure.call(self.executor, &values),
            Called::Method { receiver, method } => (method.call)(self.executor, receiver, &values),
            Called::Object { object, name } => object.call(self.executor, name, &values),
        };
        self.executor.give_args(values);
        let result = result.map(|value| match signature.returns {
            Returns::Interface => Operand::interface(value),
            Returns::Concrete => Operand::concrete(value),
        });
        self.finish(result, node, name)
    }

    fn operands(
        &mut self,
        dot: &Operand,
        signature: Signature,
        args: &'t [Arg],
        last: Option<&Operand>,
    ) -> Result<Vec<Operand>, Error> {
        let mut operands = Vec::with_capacity(args.len() + 1);
        for (index, arg) in args.iter().enumerate() {
            operands.push(self.arg(dot, signature.param(index), arg)?);
        }
        if let Some(last) = last {
            operands.push(self.validate(last.clone(), signature.param(operands.len()))?);
        }
        Ok(operands)
    }

    /// Accounts for the result, or says which call failed.
    fn finish(
        &mut self,
        result: Result<Operand, Error>,
        node: NodeRef<'t>,
        name: &str,
    ) -> Result<Operand, Error> {
        let result = result.and_then(|operand| {
            if let Value::Str(text) = &operand.value {
                self.executor.charge(text.len())?;
            }
            Ok(operand)
        });
        result.map_err(|error| {
            self.at = Some(node);
            self.locate(error, Some(name))
        })
    }

    /// `and`, `or`: the first argument that decides, or the last one.
    fn short_circuit(
        &mut self,
        dot: &Operand,
        stop_at: bool,
        args: &'t [Arg],
        last: Option<&Operand>,
    ) -> Result<Operand, Error> {
        let mut value = Operand::INVALID;
        for arg in args {
            value = self.arg(dot, Type::Reflect, arg)?;
            if value.value.truth() == stop_at {
                return Ok(value);
            }
        }
        match last {
            Some(last) => self.validate(last.clone(), Type::Reflect),
            None => Ok(value),
        }
    }
}

/// An argument of a function is a copy, and a copy of a struct has no methods of a pointer to it.
fn copied(value: Value) -> Value {
    match &value {
        Value::Object(object) if object.string().is_none() && object.string_in_place().is_some() => {
            Value::object(Copied(Rc::clone(object)))
        }
        _ => value,
    }
}

/// The copy of a struct: all of it but [`Object::string_in_place`].
struct Copied(Rc<dyn Object>);

impl Object for Copied {
    fn type_name(&self) -> &'static str {
        self.0.type_name()
    }

    fn kind(&self) -> crate::Kind {
        self.0.kind()
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.0.fields()
    }

    fn json_fields(&self) -> Vec<(&'static str, Value)> {
        self.0.json_fields()
    }

    fn printed_fields(&self) -> Vec<(&'static str, Value)> {
        self.0.printed_fields()
    }

    fn data(&self) -> Option<Value> {
        self.0.data()
    }

    fn deep_copy(&self) -> Option<Value> {
        self.0.deep_copy().map(copied)
    }

    fn equals(&self, other: &dyn Object) -> bool {
        self.0.equals(other)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self.0.as_any()
    }
}

/// The builtin `call`: calls a function value.
fn call_value(executor: &mut Executor, name: &str, operands: &[Operand]) -> Result<Operand, Error> {
    let Some((function, args)) = operands.split_first() else {
        return Err(Error::message("call of nil"));
    };
    let function = match &function.value {
        Value::Func(function) => function,
        Value::Nil => return Err(Error::message("call of nil")),
        other => {
            return Err(Error::message(format!(
                "non-function {name} of type {}",
                other.type_name()
            )));
        }
    };
    let signature = function.signature();
    let (given, wanted) = (args.len(), signature.params.len());
    if signature.variadic {
        if given + 1 < wanted {
            let fixed = wanted - 1;
            return Err(Error::message(format!(
                "wrong number of args for {name}: got {given} want at least {fixed}"
            )));
        }
    } else if given != wanted {
        return Err(Error::message(format!(
            "wrong number of args for {name}: got {given} want {wanted}"
        )));
    }
    let mut values = Vec::with_capacity(given);
    for (index, arg) in args.iter().enumerate() {
        let of = signature.param(index);
        let value = match arg.value.go_type() {
            None if of.can_be_nil() => Value::zero(of),
            None => {
                return Err(Error::message(format!(
                    "arg {index}: value is nil; should be of type {of}"
                )));
            }
            Some(actual) if of.accepts(actual) => arg.value.clone(),
            Some(actual) => {
                return Err(Error::message(format!(
                    "arg {index}: value has type {actual}; should be {of}"
                )));
            }
        };
        values.push(value);
    }
    function
        .call(executor, &values)
        .map(|value| match signature.returns {
            Returns::Interface => Operand::interface(value),
            Returns::Concrete => Operand::concrete(value),
        })
}
