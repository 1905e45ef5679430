//! PostgreSQL, which the machine must have: its packages are everywhere, and it takes long to build.

use std::process::Command;

use anyhow::Result;
use evenkeel_realparts::postgres_binaries;

use super::report;
use crate::process::output;

/// Looks for it.
pub(super) fn prepare() -> Result<()> {
    let folder = postgres_binaries()?;
    let version = output(Command::new(folder.join("postgres")).arg("--version"))?;
    let number = version
        .trim()
        .trim_start_matches("postgres (PostgreSQL) ")
        .to_owned();
    let number = number.split(' ').next().unwrap_or_default();
    report(
        &format!("PostgreSQL {number}"),
        &format!("present, in {}", folder.display()),
    );
    Ok(())
}
