//! Walks the nodes of a template and writes its output.

use super::{Executor, Operand, RED_ZONE, STACK};
use crate::env::Limits;
use crate::error::Frame;
use crate::fmt::{Printer, format_float};
use crate::syntax::{Branch, Invoke, List, Node, NodeRef, Pipe};
use crate::template_set::TemplateSet;
use crate::value::{IntKind, Kind, Type, UintKind, Value};
use crate::{Error, Tree};

/// What a node leaves behind for the loop around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// One template being executed.
pub(super) struct State<'x, 't> {
    pub(super) executor: &'x mut Executor,
    set: &'t TemplateSet,
    pub(super) tree: &'t Tree,
    pub(super) vars: Vec<(&'t str, Operand)>,
    /// The node that errors point at.
    pub(super) at: Option<NodeRef<'t>>,
    out: &'x mut Vec<u8>,
}

impl<'x, 't> State<'x, 't> {
    pub(super) fn new(
        executor: &'x mut Executor,
        set: &'t TemplateSet,
        tree: &'t Tree,
        data: Value,
        out: &'x mut Vec<u8>,
    ) -> Self {
        Self {
            executor,
            set,
            tree,
            vars: vec![("$", Operand::concrete(data))],
            at: None,
            out,
        }
    }

    pub(super) fn run(&mut self) -> Result<(), Error> {
        let dot = self
            .vars
            .first()
            .map_or(Operand::INVALID, |(_, value)| value.clone());
        let tree = self.tree;
        self.list(&dot, &tree.root)?;
        Ok(())
    }

    /// An error at the current node.
    pub(super) fn error<T>(&self, message: impl Into<String>) -> Result<T, Error> {
        Err(self.locate(Error::message(message), None))
    }

    /// Adds the current node to an error.
    pub(super) fn locate(&self, error: Error, function: Option<&str>) -> Error {
        let frame = match self.at {
            Some(node) => Frame::Action {
                template: self.tree.name().to_owned(),
                location: self.tree.location(node.pos()),
                node: node.print(&self.tree.source),
                function: function.map(str::to_owned),
            },
            None => Frame::Context(format!("template: {}: ", self.tree.name())),
        };
        error.at(frame)
    }

    fn list(&mut self, dot: &Operand, list: &'t List) -> Result<Flow, Error> {
        for node in &list.nodes {
            match self.node(dot, node)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn node(&mut self, dot: &Operand, node: &'t Node) -> Result<Flow, Error> {
        self.at = Some(NodeRef::Node(node));
        match node {
            Node::Text { start, end } => {
                self.out.extend_from_slice(self.tree.source.slice(*start, *end));
                self.check_output()?;
            }
            Node::Action { pipe } => {
                // Variables stay until the end of the enclosing block; an action that declares prints nothing.
                let value = self.pipeline(dot, pipe)?;
                if pipe.decl.is_empty() {
                    self.at = Some(NodeRef::Node(node));
                    self.print(node, &value)?;
                }
            }
            Node::If(branch) => return self.grow(|state| state.if_or_with(dot, branch, false)),
            Node::With(branch) => return self.grow(|state| state.if_or_with(dot, branch, true)),
            Node::Range(branch) => return self.grow(|state| state.range(dot, branch)),
            Node::Template(invoke) => self.template(dot, invoke)?,
            Node::Break { .. } => return Ok(Flow::Break),
            Node::Continue { .. } => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn grow<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        stacker::maybe_grow(RED_ZONE, STACK, || f(self))
    }

    fn check_output(&self) -> Result<(), Error> {
        match self.executor.check_output(self.out.len()) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.locate(error, None)),
        }
    }

    fn if_or_with(&mut self, dot: &Operand, branch: &'t Branch, with: bool) -> Result<Flow, Error> {
        let mark = self.vars.len();
        let value = self.pipeline(dot, &branch.pipe)?;
        let flow = if value.value.truth() {
            self.list(if with { &value } else { dot }, &branch.list)
        } else if let Some(otherwise) = &branch.otherwise {
            self.list(dot, otherwise)
        } else {
            Ok(Flow::Next)
        };
        self.vars.truncate(mark);
        flow
    }

    fn range(&mut self, dot: &Operand, branch: &'t Branch) -> Result<Flow, Error> {
        let mark = self.vars.len();
        let flow = self.range_over(dot, branch);
        self.vars.truncate(mark);
        flow
    }

    fn range_over(&mut self, dot: &Operand, branch: &'t Branch) -> Result<Flow, Error> {
        let value = self.pipeline(dot, &branch.pipe)?.value;
        let mut any = false;
        match &value {
            Value::Nil => {}
            Value::Int(kind, count) => {
                self.range_int(
                    branch,
                    &value,
                    (*count).max(0) as u64,
                    |n| Value::Int(*kind, n as i64),
                    &mut any,
                )?;
            }
            Value::Uint(kind, count) => {
                self.range_int(branch, &value, *count, |n| Value::Uint(*kind, n), &mut any)?;
            }
            Value::List(list) => {
                let elem = list.class().elem;
                // Go takes the length first; elements may change meanwhile.
                for index in 0..list.len() {
                    let Some(item) = list.get(index) else { break };
                    any = true;
                    let key = Operand::concrete(Value::Int(IntKind::Int, index as i64));
                    if self.pass(branch, key, Operand::element(item, elem))? {
                        break;
                    }
                }
            }
            Value::Bytes(bytes) => {
                for (index, byte) in bytes.iter().enumerate() {
                    any = true;
                    let key = Operand::concrete(Value::Int(IntKind::Int, index as i64));
                    let item = Operand::concrete(Value::Uint(UintKind::Uint8, u64::from(*byte)));
                    if self.pass(branch, key, item)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                let elem = map.class().elem;
                // A copy, as Go's sorted one: the body may change the map.
                for (key, item) in map.to_vec() {
                    any = true;
                    if self.pass(
                        branch,
                        Operand::concrete(Value::Str(key)),
                        Operand::element(item, elem),
                    )? {
                        break;
                    }
                }
            }
            other => {
                let shown = self.show(other)?;
                return self.error(format!("range can't iterate over {shown}"));
            }
        }
        if !any && let Some(otherwise) = &branch.otherwise {
            return self.list(dot, otherwise);
        }
        Ok(Flow::Next)
    }

    fn range_int(
        &mut self,
        branch: &'t Branch,
        value: &Value,
        count: u64,
        item: impl Fn(u64) -> Value,
        any: &mut bool,
    ) -> Result<(), Error> {
        if branch.pipe.decl.len() > 1 {
            let shown = self.show(value)?;
            return self.error(format!(
                "can't use {shown} to iterate over more than one variable"
            ));
        }
        for n in 0..count {
            *any = true;
            if self.pass(branch, Operand::INVALID, Operand::concrete(item(n)))? {
                break;
            }
        }
        Ok(())
    }

    /// One pass of a loop; true ends it.
    fn pass(&mut self, branch: &'t Branch, key: Operand, item: Operand) -> Result<bool, Error> {
        if let Err(error) = self.executor.count_iteration() {
            return Err(self.locate(error, None));
        }
        let mark = self.vars.len();
        let pipe = &branch.pipe;
        match (pipe.decl.as_slice(), pipe.assign) {
            ([], _) => {}
            ([one], true) => self.set_var(&one.name, item.clone())?,
            ([first, second, ..], true) => {
                self.set_var(&first.name, key)?;
                self.set_var(&second.name, item.clone())?;
            }
            // The pipeline has pushed the variables; the last one is the element.
            ([_], false) => self.set_top(1, item.clone()),
            ([_, _, ..], false) => {
                self.set_top(1, item.clone());
                self.set_top(2, key);
            }
        }
        let flow = self.list(&item, &branch.list)?;
        self.vars.truncate(mark);
        Ok(flow == Flow::Break)
    }

    fn set_top(&mut self, from_top: usize, value: Operand) {
        if let Some(slot) = self
            .vars
            .len()
            .checked_sub(from_top)
            .and_then(|index| self.vars.get_mut(index))
        {
            slot.1 = value;
        }
    }

    pub(super) fn set_var(&mut self, name: &str, value: Operand) -> Result<(), Error> {
        match self.vars.iter_mut().rev().find(|(var, _)| *var == name) {
            Some((_, slot)) => {
                *slot = value;
                Ok(())
            }
            None => self.error(format!("undefined variable: {name}")),
        }
    }

    fn template(&mut self, dot: &Operand, invoke: &'t Invoke) -> Result<(), Error> {
        let set = self.set;
        let Some(tree) = set.get(&invoke.name) else {
            let name = crate::fmt::quote::text(&invoke.name);
            return self.error(format!("template {name} not defined"));
        };
        if let Err(error) = self.executor.enter() {
            return Err(self.locate(error, None));
        }
        let dot = match &invoke.pipe {
            Some(pipe) => self.pipeline(dot, pipe),
            None => Ok(Operand::INVALID),
        };
        let result = dot.and_then(|dot| {
            stacker::maybe_grow(RED_ZONE, STACK, || {
                // No dynamic scoping: the template inherits no variables.
                State {
                    executor: &mut *self.executor,
                    set,
                    tree,
                    vars: vec![("$", dot)],
                    at: None,
                    out: &mut *self.out,
                }
                .run()
            })
        });
        self.executor.depth -= 1;
        result
    }

    /// A value as `%v` shows it, for error texts.
    pub(super) fn show(&self, value: &Value) -> Result<String, Error> {
        match crate::fmt::sprint(std::slice::from_ref(value), self.executor.limits()) {
            Ok(text) => Ok(crate::value::lossy(&text)),
            Err(limit) => Err(self.locate(Error::limit(limit), None)),
        }
    }

    fn print(&mut self, node: &'t Node, value: &Operand) -> Result<(), Error> {
        match &value.value {
            Value::Str(text) => self.out.extend_from_slice(text.as_bytes()),
            Value::Nil => self.out.extend_from_slice(b"<no value>"),
            Value::Bool(flag) => self.out.extend_from_slice(if *flag { b"true" } else { b"false" }),
            Value::Int(_, int) => self.out.extend_from_slice(int.to_string().as_bytes()),
            Value::Float(float) => self
                .out
                .extend_from_slice(format_float(*float, b'g', None).as_bytes()),
            Value::Func(_) => {
                let shown = NodeRef::Node(node).print(&self.tree.source);
                return self.error(format!("can't print {shown} of type {}", value.value.type_name()));
            }
            other => {
                let limits: Limits = *self.executor.limits();
                let out = std::mem::take(self.out);
                let mut printer = Printer::append(out, &limits);
                printer.arg(&printable(other), 'v');
                match printer.finish() {
                    Ok(out) => *self.out = out,
                    Err(limit) => return Err(self.locate(Error::limit(limit), None)),
                }
            }
        }
        self.check_output()
    }

    /// The pipeline's value, with its variables declared or assigned.
    pub(super) fn pipeline(&mut self, dot: &Operand, pipe: &'t Pipe) -> Result<Operand, Error> {
        self.at = Some(NodeRef::Pipe(pipe));
        let mut value: Option<Operand> = None;
        for command in &pipe.cmds {
            // What an interface holds is dug out between the stages.
            value = Some(self.command(dot, command, value.as_ref())?.unwrapped());
        }
        let value = value.unwrap_or(Operand::INVALID);
        for variable in &pipe.decl {
            if pipe.assign {
                self.set_var(&variable.name, value.clone())?;
            } else {
                self.vars.push((&variable.name, value.clone()));
            }
        }
        Ok(value)
    }
}

/// What Go prints of a value: one with a `String` method, of its own or of a pointer to it, as that says; a pointer to
/// a struct without one as the struct.
pub(crate) fn printable(value: &Value) -> Value {
    if let Value::Object(object) = value
        && object.string().is_none()
        && let Some(text) = object.string_in_place()
    {
        return Value::Str(text);
    }
    printable_copy(value)
}

/// The same of an argument, which is a copy: it has no methods of a pointer to it.
pub(crate) fn printable_copy(value: &Value) -> Value {
    match value {
        Value::Object(object) if object.string().is_none() && object.kind() == Kind::Ptr => {
            Value::object(Pointee(std::rc::Rc::clone(object)))
        }
        _ => value.clone(),
    }
}

/// The struct behind a pointer.
struct Pointee(std::rc::Rc<dyn crate::Object>);

impl crate::Object for Pointee {
    fn type_name(&self) -> &'static str {
        self.0.type_name().trim_start_matches('*')
    }

    fn kind(&self) -> Kind {
        Kind::Struct
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.0.fields()
    }

    fn printed_fields(&self) -> Vec<(&'static str, Value)> {
        self.0.printed_fields()
    }

    fn equals(&self, other: &dyn crate::Object) -> bool {
        other
            .as_any()
            .downcast_ref::<Self>()
            .is_some_and(|other| self.0.equals(&*other.0))
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// Go's static types of fields are not known to objects; interfaces are the exception.
pub(super) fn field_operand(object: &dyn crate::Object, name: &str, value: Value) -> Operand {
    if object.field_is_interface(name) {
        Operand::element(value, Type::Any)
    } else {
        Operand::concrete(value)
    }
}
