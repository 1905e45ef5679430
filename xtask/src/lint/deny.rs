//! Licences, banned crates and sources, as deny.toml says: checked by cargo-deny.
//!
//! Its fourth check, of advisories, needs a database from the network that changes by the hour; a commit must not
//! fail for what became known since, so that check is not one of these.

use std::process::Command;

use anyhow::Result;
use evenkeel_realparts::Cache;

use super::Finding;
use crate::process::run;
use crate::repository::Repository;
use crate::setup::cargo_deny;

/// Runs cargo-deny, after compiling it if this machine has not yet.
pub(super) fn check(repository: &Repository) -> Result<Vec<Finding>> {
    let mut command = Command::new(cargo_deny::prepare(&Cache::open()?)?);
    command.current_dir(repository.root());
    // Crates in several versions are many, and no fault of a change: `cargo deny check bans` lists them.
    command.args([
        "check",
        "--hide-inclusion-graph",
        "--allow",
        "duplicate",
        "bans",
        "licenses",
        "sources",
    ]);
    let finding = |error: anyhow::Error| {
        Finding::new(
            "deny.toml",
            format!("{error:#}"),
            "drop what brings the crate, or change deny.toml and say why",
        )
    };
    Ok(run(&mut command).err().map(finding).into_iter().collect())
}
