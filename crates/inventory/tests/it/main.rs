//! The contract of the store, run on every database, and what only SQLite promises.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;
mod fixture;
mod sqlite;
