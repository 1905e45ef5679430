//! The fleet on simulated clusters: what a person sees of it, through its requests.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod changes;
mod deletion;
mod failures;
mod installs;
mod repairs;
mod requests;
mod restart;
mod world;
