//! rustfmt, clippy and rustdoc, whose findings are printed by themselves.

use anyhow::{Context as _, Result};

use super::Finding;
use crate::process::{cargo, output, run, run_quietly};
use crate::repository::Repository;

/// rustfmt changes nothing.
pub(super) fn fmt(repository: &Repository) -> Result<Vec<Finding>> {
    component(repository, "fmt", "rustfmt")?;
    let result = run(cargo(repository).args(["fmt", "--all", "--check"]));
    Ok(finding(result, "cargo fmt --all"))
}

/// clippy says nothing, of tests and benches neither.
pub(super) fn clippy(repository: &Repository) -> Result<Vec<Finding>> {
    component(repository, "clippy", "clippy")?;
    let mut command = cargo(repository);
    command.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    Ok(finding(run(&mut command), "see what is printed above"))
}

/// rustdoc says nothing.
pub(super) fn doc(repository: &Repository) -> Result<Vec<Finding>> {
    let mut command = cargo(repository);
    command
        .args(["doc", "--no-deps", "--workspace"])
        .env("RUSTDOCFLAGS", "-D warnings");
    Ok(finding(run(&mut command), "see what is printed above"))
}

fn finding(result: Result<()>, remedy: &str) -> Vec<Finding> {
    result
        .err()
        .map(|error| Finding::new("workspace", format!("{error:#}"), remedy))
        .into_iter()
        .collect()
}

/// Sees to it that a component of the toolchain is there: a minimal one has neither.
fn component(repository: &Repository, command: &str, name: &str) -> Result<()> {
    if output(cargo(repository).args([command, "--version"])).is_ok() {
        return Ok(());
    }
    println!("  installing {name}, which this toolchain lacks");
    let mut rustup = std::process::Command::new("rustup");
    rustup
        .current_dir(repository.root())
        .args(["component", "add", name]);
    run_quietly("installing", &mut rustup)
        .with_context(|| format!("cargo {command} is missing, and could not be installed"))
}
