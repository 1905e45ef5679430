//! `cargo xtask generate`: writes the files that are made from code. A test of the crate that has the code fails while one
//! is not current.

use anyhow::Result;

use crate::process::{cargo, run as run_program};
use crate::repository::Repository;

/// Runs the command. A program of its own writes them: this one is to be compiled before the Kubernetes client is.
pub(crate) fn run(repository: &Repository) -> Result<()> {
    let mut command = cargo(repository);
    command.args([
        "run",
        "--quiet",
        "--package",
        "evenkeel-operator",
        "--example",
        "crds",
    ]);
    run_program(&mut command)
}
