//! The built binary, run as a user runs it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod bench;
mod local;
mod template;
