//! Tests through the public face.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
