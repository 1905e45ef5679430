//! The built binary, run as a user runs it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs
)]

mod bench;
mod demo;
mod local;
mod mothership;
mod program;
mod template;
