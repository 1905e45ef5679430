//! Charts through the public face.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod bad_input;
mod cases;
mod isolation;
mod oracle;
mod traps;
mod values;
