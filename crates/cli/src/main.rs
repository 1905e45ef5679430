//! The `evenkeel` binary: arguments, wiring, output. No logic.
fn main() {}
