//! Real servers: started, used, ended.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cluster;
mod gitea;
mod leftovers;
mod stand_ins;
mod support;
mod vault;
