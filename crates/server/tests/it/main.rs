//! The API over HTTP, with a real fleet behind it and simulated clusters.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub
)]

mod administration;
mod archives;
mod clusters;
mod consent;
mod refusals;
mod secrets;
mod serving;
mod status;
mod world;
