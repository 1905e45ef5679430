//! The contract of the store, run on every database, and what only one of them promises.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cases;
mod contract;
mod fixture;
mod postgres;
mod sqlite;
mod statements;
