//! Prints nodes back as text, for `at <…>` in errors: Go's `String` methods.

use super::node::{Arg, Branch, Command, List, Node, Pipe, Source, Variable};
use crate::fmt::quote;

const RED_ZONE: usize = 64 << 10;
const STACK: usize = 1 << 20;

/// Anything that an execution error can point at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeRef<'t> {
    Node(&'t Node),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Arg(&'t Arg),
}

impl NodeRef<'_> {
    pub(crate) fn pos(self) -> super::node::Pos {
        match self {
            Self::Node(node) => match node {
                Node::Text { start, .. } => *start,
                Node::Action { pipe } => pipe.pos,
                Node::If(branch) | Node::With(branch) | Node::Range(branch) => branch.pipe.pos,
                Node::Template(invoke) => invoke.pos,
                Node::Break { pos } | Node::Continue { pos } => *pos,
            },
            Self::Pipe(pipe) => pipe.pos,
            Self::Command(command) => command.pos,
            Self::Arg(arg) => arg.pos(),
        }
    }

    /// The text of the node by Go's rules.
    pub(crate) fn print(self, source: &Source) -> String {
        let mut printer = NodePrinter {
            source,
            out: Vec::new(),
        };
        match self {
            Self::Node(node) => printer.node(node),
            Self::Pipe(pipe) => printer.pipe(pipe),
            Self::Command(command) => printer.command(command),
            Self::Arg(arg) => printer.arg(arg),
        }
        crate::value::lossy(&printer.out)
    }
}

struct NodePrinter<'s> {
    source: &'s Source,
    out: Vec<u8>,
}

impl NodePrinter<'_> {
    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn list(&mut self, list: &List) {
        for node in &list.nodes {
            self.node(node);
        }
    }

    fn node(&mut self, node: &Node) {
        stacker::maybe_grow(RED_ZONE, STACK, || match node {
            Node::Text { start, end } => self.out.extend_from_slice(self.source.slice(*start, *end)),
            Node::Action { pipe } => {
                self.put("{{");
                self.pipe(pipe);
                self.put("}}");
            }
            Node::If(branch) => self.branch("if", branch),
            Node::With(branch) => self.branch("with", branch),
            Node::Range(branch) => self.branch("range", branch),
            Node::Template(invoke) => {
                self.put("{{template ");
                self.put(&quote::text(&invoke.name));
                if let Some(pipe) = &invoke.pipe {
                    self.put(" ");
                    self.pipe(pipe);
                }
                self.put("}}");
            }
            Node::Break { .. } => self.put("{{break}}"),
            Node::Continue { .. } => self.put("{{continue}}"),
        });
    }

    fn branch(&mut self, keyword: &str, branch: &Branch) {
        self.put("{{");
        self.put(keyword);
        self.put(" ");
        self.pipe(&branch.pipe);
        self.put("}}");
        self.list(&branch.list);
        if let Some(otherwise) = &branch.otherwise {
            self.put("{{else}}");
            self.list(otherwise);
        }
        self.put("{{end}}");
    }

    fn variable(&mut self, variable: &Variable) {
        self.put(&variable.name);
        self.fields(&variable.fields);
    }

    fn fields(&mut self, fields: &[Box<str>]) {
        for field in fields {
            self.put(".");
            self.put(field);
        }
    }

    fn pipe(&mut self, pipe: &Pipe) {
        for (index, variable) in pipe.decl.iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            self.variable(variable);
        }
        if !pipe.decl.is_empty() {
            self.put(if pipe.assign { " = " } else { " := " });
        }
        for (index, command) in pipe.cmds.iter().enumerate() {
            if index > 0 {
                self.put(" | ");
            }
            self.command(command);
        }
    }

    fn command(&mut self, command: &Command) {
        for (index, arg) in command.args.iter().enumerate() {
            if index > 0 {
                self.put(" ");
            }
            self.nested(arg);
        }
    }

    /// A pipeline inside something else stands in parentheses.
    fn nested(&mut self, arg: &Arg) {
        match arg {
            Arg::Pipe(pipe) => stacker::maybe_grow(RED_ZONE, STACK, || {
                self.put("(");
                self.pipe(pipe);
                self.put(")");
            }),
            _ => self.arg(arg),
        }
    }

    fn arg(&mut self, arg: &Arg) {
        match arg {
            Arg::Dot { .. } => self.put("."),
            Arg::Nil { .. } => self.put("nil"),
            Arg::Bool { value, .. } => self.put(if *value { "true" } else { "false" }),
            Arg::Number { number, .. } => self.put(&number.text),
            Arg::Str { quoted, .. } => self.out.extend_from_slice(quoted),
            Arg::Field { fields, .. } => self.fields(fields),
            Arg::Variable(variable) => self.variable(variable),
            Arg::Ident { name, .. } => self.put(name),
            Arg::Chain { node, fields, .. } => {
                self.nested(node);
                self.fields(fields);
            }
            Arg::Pipe(pipe) => self.pipe(pipe),
        }
    }
}
