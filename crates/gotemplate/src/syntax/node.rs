//! The parse tree of a template.

use std::sync::Arc;

/// A byte position in the text.
pub(crate) type Pos = u32;

/// One parsed template: the main one of a text, or a `define` or `block` inside it.
#[derive(Debug)]
pub struct Tree {
    pub(crate) name: Arc<str>,
    pub(crate) source: Arc<Source>,
    pub(crate) root: List,
}

/// The text that trees were parsed from, for error positions.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<[u8]>,
}

/// A sequence of nodes.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) nodes: Vec<Node>,
}

#[derive(Debug)]
pub(crate) enum Node {
    /// Plain text: a range of the source.
    Text {
        start: Pos,
        end: Pos,
    },
    Action {
        pipe: Pipe,
    },
    If(Box<Branch>),
    With(Box<Branch>),
    Range(Box<Branch>),
    Template(Box<Invoke>),
    Break {
        pos: Pos,
    },
    Continue {
        pos: Pos,
    },
}

/// `if`, `with` or `range`.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pipe: Pipe,
    pub(crate) list: List,
    pub(crate) otherwise: Option<List>,
}

/// `template`, or the call that a `block` leaves.
#[derive(Debug)]
pub(crate) struct Invoke {
    pub(crate) pos: Pos,
    pub(crate) name: Box<str>,
    pub(crate) pipe: Option<Pipe>,
}

/// Commands joined by `|`, with optional declarations.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) pos: Pos,
    pub(crate) assign: bool,
    pub(crate) decl: Vec<Variable>,
    pub(crate) cmds: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) pos: Pos,
    /// Never empty.
    pub(crate) args: Vec<Arg>,
}

/// A variable with fields after it: `$x.a.b` is name `$x` and fields `a`, `b`.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) pos: Pos,
    pub(crate) name: Box<str>,
    pub(crate) fields: Vec<Box<str>>,
}

#[derive(Debug)]
pub(crate) enum Arg {
    Dot {
        pos: Pos,
    },
    Nil {
        pos: Pos,
    },
    Bool {
        pos: Pos,
        value: bool,
    },
    Number {
        pos: Pos,
        number: Box<Number>,
    },
    Str {
        pos: Pos,
        quoted: Box<[u8]>,
        text: Arc<[u8]>,
    },
    Field {
        pos: Pos,
        fields: Vec<Box<str>>,
    },
    Variable(Variable),
    /// A function name.
    Ident {
        pos: Pos,
        name: Box<str>,
    },
    /// A function name or a pipeline in parentheses, followed by fields.
    Chain {
        pos: Pos,
        node: Box<Arg>,
        fields: Vec<Box<str>>,
    },
    Pipe(Box<Pipe>),
}

/// A numeric literal under every type that can hold it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Number {
    pub(crate) text: Box<str>,
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    pub(crate) complex: Option<(f64, f64)>,
}

impl Tree {
    /// Name of the template.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of the text it was parsed from, usually a path inside the chart.
    pub fn source_name(&self) -> &str {
        &self.source.name
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether the template holds nothing but white space and comments.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty(&self.source)
    }

    /// `file:line:column` of a position, the column in bytes from 0.
    pub(crate) fn location(&self, pos: Pos) -> String {
        let text = self.source.text.get(..pos as usize).unwrap_or(&self.source.text);
        let line = 1 + text.iter().filter(|byte| **byte == b'\n').count();
        let column = text.iter().rev().take_while(|byte| **byte != b'\n').count();
        format!("{}:{line}:{column}", self.source.name)
    }
}

impl Source {
    pub(crate) fn slice(&self, start: Pos, end: Pos) -> &[u8] {
        self.text.get(start as usize..end as usize).unwrap_or(&[])
    }
}

impl List {
    pub(crate) fn is_empty(&self, source: &Source) -> bool {
        self.nodes.iter().all(|node| match node {
            Node::Text { start, end } => crate::unicode::trim_space(source.slice(*start, *end)).is_empty(),
            _ => false,
        })
    }
}

impl Arg {
    pub(crate) fn pos(&self) -> Pos {
        match self {
            Self::Dot { pos }
            | Self::Nil { pos }
            | Self::Bool { pos, .. }
            | Self::Number { pos, .. }
            | Self::Str { pos, .. }
            | Self::Field { pos, .. }
            | Self::Ident { pos, .. }
            | Self::Chain { pos, .. } => *pos,
            Self::Variable(variable) => variable.pos,
            Self::Pipe(pipe) => pipe.pos,
        }
    }
}

/// Stack that must be left before dropping one more level of a tree, and the size of the next piece.
const DROP_RED_ZONE: usize = 32 << 10;
const DROP_STACK: usize = 1 << 20;

/// Trees nest as deep as their text says; freeing one must not depend on the thread's stack.
impl Drop for Branch {
    fn drop(&mut self) {
        stacker::maybe_grow(DROP_RED_ZONE, DROP_STACK, || {
            self.list.nodes.clear();
            self.otherwise = None;
        });
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if self.cmds.iter().any(|cmd| {
            cmd.args
                .iter()
                .any(|arg| matches!(arg, Arg::Pipe(_) | Arg::Chain { .. }))
        }) {
            stacker::maybe_grow(DROP_RED_ZONE, DROP_STACK, || self.cmds.clear());
        }
    }
}
