//! `evenkeel mothership` and the commands that speak to it, on real control planes.
//!
//! Each test has a mothership and a database of its own; the two clusters are shared, one test at a time.

mod administration;
mod arguments;
mod consent;
mod crashes;
mod deletions;
mod failures;
mod formats;
mod lifecycle;
mod several;
pub(crate) mod world;
