//! Evaluates commands, operands and fields.

use super::walk::{State, field_operand};
use super::{Operand, RED_ZONE, STACK};
use crate::Error;
use crate::env::MissingKey;
use crate::function::Callee;
use crate::syntax::{Arg, Command, NodeRef, Number};
use crate::value::{IntKind, Kind, Str, Type, UintKind, Value};

impl<'t> State<'_, 't> {
    pub(super) fn command(
        &mut self,
        dot: &Operand,
        command: &'t Command,
        last: Option<&Operand>,
    ) -> Result<Operand, Error> {
        let Some((first, args)) = command.args.split_first() else {
            return self.error("empty command");
        };
        match first {
            Arg::Field { fields, .. } => {
                self.at = Some(NodeRef::Arg(first));
                return self.fields(dot, dot.clone(), first, fields, args, last);
            }
            Arg::Chain { node, fields, .. } => return self.chain(dot, first, node, fields, args, last),
            Arg::Ident { name, .. } => {
                return self.function(dot, first, NodeRef::Command(command), name, args, last);
            }
            Arg::Pipe(pipe) => {
                self.not_a_function(first, args, last)?;
                return stacker::maybe_grow(RED_ZONE, STACK, || self.pipeline(dot, pipe));
            }
            Arg::Variable(_) => return self.variable(dot, first, args, last),
            _ => {}
        }
        self.at = Some(NodeRef::Arg(first));
        self.not_a_function(first, args, last)?;
        match first {
            Arg::Bool { value, .. } => Ok(Operand::concrete(Value::Bool(*value))),
            Arg::Dot { .. } => Ok(dot.clone()),
            Arg::Nil { .. } => self.error("nil is not a command"),
            Arg::Number { number, .. } => self.constant(number),
            Arg::Str { text, .. } => Ok(Operand::concrete(Value::Str(Str::shared(text)))),
            other => {
                let shown = crate::fmt::quote::text(&self.print_arg(other));
                self.error(format!("can't evaluate command {shown}"))
            }
        }
    }

    pub(super) fn print_arg(&self, arg: &Arg) -> String {
        NodeRef::Arg(arg).print(&self.tree.source)
    }

    fn not_a_function(&self, first: &Arg, args: &[Arg], last: Option<&Operand>) -> Result<(), Error> {
        if args.is_empty() && last.is_none() {
            return Ok(());
        }
        self.error(format!(
            "can't give argument to non-function {}",
            self.print_arg(first)
        ))
    }

    /// A literal where nothing says which type is wanted: its form decides.
    fn constant(&mut self, number: &Number) -> Result<Operand, Error> {
        let text = &*number.text;
        if let Some((re, im)) = number.complex {
            return Ok(Operand::concrete(Value::Complex(re, im)));
        }
        let is_hex =
            text.len() > 2 && text.starts_with('0') && matches!(text.as_bytes().get(1), Some(b'x' | b'X'));
        let is_hex_int = is_hex && !text.contains(['p', 'P']);
        let looks_float = text.contains(['.', 'e', 'E', 'p', 'P']);
        if let Some(float) = number.float
            && !is_hex_int
            && !text.starts_with('\'')
            && looks_float
        {
            return Ok(Operand::concrete(Value::Float(float)));
        }
        match number.int {
            Some(int) => Ok(Operand::concrete(Value::Int(IntKind::Int, int))),
            None => self.error(format!("{text} overflows int")),
        }
    }

    fn chain(
        &mut self,
        dot: &Operand,
        node: &'t Arg,
        inner: &'t Arg,
        fields: &'t [Box<str>],
        args: &'t [Arg],
        last: Option<&Operand>,
    ) -> Result<Operand, Error> {
        self.at = Some(NodeRef::Arg(node));
        let receiver = self.bare(dot, inner)?;
        self.fields(dot, receiver, node, fields, args, last)
    }

    /// An operand where any type will do and interfaces stay as they are: the start of a chain.
    fn bare(&mut self, dot: &Operand, arg: &'t Arg) -> Result<Operand, Error> {
        self.at = Some(NodeRef::Arg(arg));
        match arg {
            Arg::Pipe(pipe) => stacker::maybe_grow(RED_ZONE, STACK, || self.pipeline(dot, pipe)),
            Arg::Ident { name, .. } => self.function(dot, arg, NodeRef::Arg(arg), name, &[], None),
            Arg::Variable(_) => self.variable(dot, arg, &[], None),
            Arg::Field { fields, .. } => self.fields(dot, dot.clone(), arg, fields, &[], None),
            Arg::Chain { node, fields, .. } => {
                stacker::maybe_grow(RED_ZONE, STACK, || self.chain(dot, arg, node, fields, &[], None))
            }
            Arg::Dot { .. } => Ok(dot.clone()),
            Arg::Bool { value, .. } => Ok(Operand::concrete(Value::Bool(*value))),
            Arg::Number { number, .. } => self.constant(number),
            Arg::Str { text, .. } => Ok(Operand::concrete(Value::Str(Str::shared(text)))),
            Arg::Nil { .. } => Ok(Operand::INVALID),
        }
    }

    fn variable(
        &mut self,
        dot: &Operand,
        node: &'t Arg,
        args: &'t [Arg],
        last: Option<&Operand>,
    ) -> Result<Operand, Error> {
        let Arg::Variable(variable) = node else {
            return self.error("not a variable");
        };
        self.at = Some(NodeRef::Arg(node));
        let Some((_, value)) = self.vars.iter().rev().find(|(name, _)| *name == &*variable.name) else {
            return self.error(format!("undefined variable: {}", variable.name));
        };
        let value = value.clone();
        if variable.fields.is_empty() {
            self.not_a_function(node, args, last)?;
            return Ok(value);
        }
        self.fields(dot, value, node, &variable.fields, args, last)
    }

    /// `.X.Y.Z`, possibly followed by arguments for a method Z.
    fn fields(
        &mut self,
        dot: &Operand,
        mut receiver: Operand,
        node: &'t Arg,
        fields: &'t [Box<str>],
        args: &'t [Arg],
        last: Option<&Operand>,
    ) -> Result<Operand, Error> {
        let Some((name, before)) = fields.split_last() else {
            return Ok(receiver);
        };
        for field in before {
            receiver = self.field(dot, receiver, node, field, &[], None)?;
        }
        self.field(dot, receiver, node, name, args, last)
    }

    fn field(
        &mut self,
        dot: &Operand,
        receiver: Operand,
        node: &'t Arg,
        name: &str,
        args: &'t [Arg],
        last: Option<&Operand>,
    ) -> Result<Operand, Error> {
        let has_args = !args.is_empty() || last.is_some();
        match &receiver.value {
            Value::Nil => {
                if receiver.interface {
                    return self.error(format!("nil pointer evaluating interface {{}}.{name}"));
                }
                if self.executor.missing_key() == MissingKey::Error {
                    let shown = crate::fmt::quote::text(name);
                    return self.error(format!("nil data; no entry for key {shown}"));
                }
                return Ok(Operand::INVALID);
            }
            Value::Map(map) => {
                let class = map.class();
                if let Some(method) = class.methods.iter().find(|method| method.name == name) {
                    let called = super::call::Called::Method {
                        receiver: &receiver.value,
                        method,
                    };
                    return self.call(
                        dot,
                        called,
                        method.signature,
                        NodeRef::Arg(node),
                        name,
                        args,
                        last,
                    );
                }
                if has_args {
                    return self.error(format!("{name} is not a method but has arguments"));
                }
                if let Some(value) = map.get(name) {
                    return Ok(Operand::element(value, class.elem));
                }
                return match self.executor.missing_key() {
                    MissingKey::Zero => Ok(Operand::element(Value::zero(class.elem), class.elem)),
                    MissingKey::Invalid => Ok(Operand::INVALID),
                    MissingKey::Error => {
                        let shown = crate::fmt::quote::text(name);
                        self.error(format!("map has no entry for key {shown}"))
                    }
                };
            }
            Value::List(list) => {
                if let Some(method) = list.class().methods.iter().find(|method| method.name == name) {
                    let called = super::call::Called::Method {
                        receiver: &receiver.value,
                        method,
                    };
                    return self.call(
                        dot,
                        called,
                        method.signature,
                        NodeRef::Arg(node),
                        name,
                        args,
                        last,
                    );
                }
            }
            Value::Object(object) => {
                if let Some(signature) = object.method(name) {
                    let called = super::call::Called::Object { object, name };
                    return self.call(dot, called, signature, NodeRef::Arg(node), name, args, last);
                }
                if let Some(value) = object.field(name) {
                    if has_args {
                        return self.error(format!("{name} has arguments but cannot be invoked as function"));
                    }
                    return Ok(field_operand(&**object, name, value));
                }
            }
            _ => {}
        }
        self.error(format!(
            "can't evaluate field {name} in type {}",
            receiver.static_type()
        ))
    }

    pub(super) fn function(
        &mut self,
        dot: &Operand,
        ident: &'t Arg,
        node: NodeRef<'t>,
        name: &str,
        args: &'t [Arg],
        last: Option<&Operand>,
    ) -> Result<Operand, Error> {
        self.at = Some(NodeRef::Arg(ident));
        match self.executor.functions.find(name) {
            Some(Callee::Native(native)) => {
                let called = super::call::Called::Native(native);
                self.call(dot, called, native.signature, node, name, args, last)
            }
            Some(Callee::Closure(closure)) => {
                let signature = closure.signature();
                self.call(
                    dot,
                    super::call::Called::Closure(&closure),
                    signature,
                    node,
                    name,
                    args,
                    last,
                )
            }
            None => {
                let shown = crate::fmt::quote::text(name);
                self.error(format!("{shown} is not a defined function"))
            }
        }
    }

    /// An argument for a parameter of this type.
    pub(super) fn arg(&mut self, dot: &Operand, of: Type, arg: &'t Arg) -> Result<Operand, Error> {
        self.at = Some(NodeRef::Arg(arg));
        let value = match arg {
            Arg::Dot { .. } => dot.clone(),
            Arg::Nil { .. } => {
                if of.can_be_nil() {
                    return Ok(nil_of(of));
                }
                return self.error(format!("cannot assign nil to {of}"));
            }
            Arg::Field { fields, .. } => self.fields(dot, dot.clone(), arg, fields, &[], None)?,
            Arg::Variable(_) => self.variable(dot, arg, &[], None)?,
            Arg::Pipe(pipe) => stacker::maybe_grow(RED_ZONE, STACK, || self.pipeline(dot, pipe))?,
            Arg::Ident { name, .. } => self.function(dot, arg, NodeRef::Arg(arg), name, &[], None)?,
            Arg::Chain { node, fields, .. } => {
                stacker::maybe_grow(RED_ZONE, STACK, || self.chain(dot, arg, node, fields, &[], None))?
            }
            _ => return self.literal(of, arg),
        };
        self.validate(value, of)
    }

    fn literal(&mut self, of: Type, arg: &Arg) -> Result<Operand, Error> {
        let value = match (of, arg) {
            (Type::Any | Type::Reflect, Arg::Number { number, .. }) => return self.constant(number),
            (Type::Any | Type::Reflect | Type::Bool, Arg::Bool { value, .. }) => Value::Bool(*value),
            (Type::Any | Type::Reflect | Type::Str, Arg::Str { text, .. }) => Value::Str(Str::shared(text)),
            (Type::Int(kind), Arg::Number { number, .. }) if number.int.is_some() => {
                Value::Int(kind, number.int.unwrap_or_default())
            }
            (Type::Uint(kind), Arg::Number { number, .. }) if number.uint.is_some() => {
                Value::Uint(kind, number.uint.unwrap_or_default())
            }
            (Type::Float, Arg::Number { number, .. }) if number.float.is_some() => {
                Value::Float(number.float.unwrap_or_default())
            }
            (Type::Complex, Arg::Number { number, .. }) if number.complex.is_some() => {
                let (re, im) = number.complex.unwrap_or_default();
                Value::Complex(re, im)
            }
            _ => {
                let shown = self.print_arg(arg);
                let wanted = match of {
                    Type::Bool => "bool",
                    Type::Str => "string",
                    Type::Int(_) => "integer",
                    Type::Uint(UintKind::Uint | UintKind::Uint8 | UintKind::Uint16)
                    | Type::Uint(UintKind::Uint32 | UintKind::Uint64) => "unsigned integer",
                    Type::Float => "float",
                    Type::Complex => "complex",
                    _ => return self.error(format!("can't handle {shown} for arg of type {of}")),
                };
                return self.error(format!("expected {wanted}; found {shown}"));
            }
        };
        Ok(Operand::concrete(value))
    }

    /// Checks that a value can be given for a parameter of this type.
    pub(super) fn validate(&self, operand: Operand, of: Type) -> Result<Operand, Error> {
        if operand.is_invalid() {
            if of.can_be_nil() {
                return Ok(if let Type::Reflect = of {
                    Operand::INVALID
                } else {
                    nil_of(of)
                });
            }
            return self.error(format!("invalid value; expected {of}"));
        }
        if matches!(of, Type::Any | Type::Reflect) {
            return Ok(operand);
        }
        let Some(actual) = operand.value.go_type() else {
            // A nil interface fits no other type.
            return self.error(format!("wrong type for value; expected {of}; got {}", Type::Any));
        };
        if of.accepts(actual) {
            return Ok(operand);
        }
        // One indirection is free: a pointer where its struct is wanted.
        if let (Kind::Ptr, Type::Object(name)) = (operand.value.kind(), of)
            && operand.value.type_name().strip_prefix('*') == Some(name)
        {
            return Ok(operand);
        }
        self.error(format!("wrong type for value; expected {of}; got {actual}"))
    }
}

/// An untyped nil given for a parameter.
fn nil_of(of: Type) -> Operand {
    match of {
        Type::Any => Operand::interface(Value::Nil),
        Type::Reflect => Operand::INVALID,
        other => Operand::concrete(Value::zero(other)),
    }
}
