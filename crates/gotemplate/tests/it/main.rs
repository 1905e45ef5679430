//! Tests through the public face.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod crypto;
mod found;
mod go_tables;
mod helm;
mod keys;
mod language;
mod limits;
mod objects;
mod oracle;
mod properties;
