//! Developer commands: set-up, tests, lint.
fn main() {}
