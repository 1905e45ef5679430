//! What fuzz targets share: rendering with bounds, templates and archives made from arbitrary bytes.
//!
//! libFuzzer judges: a panic, more than 2 GB of memory or more than 10 s for one input is a fault. Beyond that each
//! target asserts what must hold for whatever was accepted. `cargo xtask fuzz` runs them.

mod archive;
mod engine;
mod template;

pub use archive::chart_archive;
pub use engine::{bounds, outcome, render};
pub use template::Program;
