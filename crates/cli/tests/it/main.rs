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
mod operator;
mod program;
mod provenance;
mod ran;
mod remote;
mod serving;
mod template;
mod template_cluster;
mod template_flags;
mod template_post_render;
mod template_schema;
mod template_wrong_files;
