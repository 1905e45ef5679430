//! Go's template language: lexer, parser, parse tree.

mod lexer;
mod literal;
mod node;
mod parser;
mod print;

pub use node::Tree;
pub(crate) use node::{Arg, Branch, Command, Invoke, List, Node, Number, Pipe};
pub use parser::{Parsed, parse};
pub(crate) use print::NodeRef;
