//! The fleet on simulated clusters: what a person sees of it, through its requests.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod administration;
mod broker;
mod broker_words;
mod changes;
mod consent;
mod deletion;
mod dry_run;
mod failures;
mod installs;
mod instances;
mod kubeconfigs;
mod moves;
mod planner;
mod repairs;
mod requests;
mod restart;
mod schedule;
mod simulation;
mod supersede;
mod watches;
mod world;
