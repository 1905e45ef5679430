//! The step engine through its public face.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod building;
mod documentation;
mod dry_run;
mod everywhere;
mod frame;
mod hooks;
mod limits;
mod once;
mod permission;
mod policy;
mod properties;
mod running;
mod spans;
mod support;
mod teardown;
