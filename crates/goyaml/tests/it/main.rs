//! Tests through the public face.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod helm_tables;
mod limits;
mod nodes;
mod properties;
mod reading;
