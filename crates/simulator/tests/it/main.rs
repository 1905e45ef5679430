//! The simulator through its public face: by its recorded twin, by kube-rs and by kubectl.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs
)]

mod support;

mod behaviours;
mod faults;
mod fleet;
mod kube_client;
mod kubectl;
mod replay;
mod watches;
