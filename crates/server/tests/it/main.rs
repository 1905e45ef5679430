//! The APIs over HTTP: that of the fleet with a real fleet behind it and simulated clusters, that of Lieutenant with a real
//! Kubernetes API server behind it.
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
mod lieutenant;
mod refusals;
mod secrets;
mod serving;
mod status;
mod world;
