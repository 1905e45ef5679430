//! Telemetry through its public face.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod child;
mod logging;
mod metrics;
mod signals;
mod support;
mod tasks;
