//! Go's `fmt`: the verbs of `printf`, and how values print.

mod float;
mod printer;
pub(crate) mod quote;

pub(crate) use float::format_float;
pub(crate) use printer::{Printer, sprint, sprintf, sprintln, strval};
