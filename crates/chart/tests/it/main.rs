//! Charts through the public face.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cases;
mod isolation;
mod values;
