//! The operator, at real servers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod admission;
mod definitions;
mod deployment;
mod git;
mod gitrepo;
mod permissions;
mod pipelines;
mod planning;
mod process;
mod proofs;
mod recorded;
mod rights;
mod tenancy;
mod vault;
