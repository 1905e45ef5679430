//! cargo-deny, compiled once.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use evenkeel_realparts::Cache;

use super::install;
use crate::process::run_quietly;

/// The release whose checks are ours.
const VERSION: &str = "0.20.2";

/// Brings it unless it is in the cache; gives back where it is.
pub(crate) fn prepare(cache: &Cache) -> Result<PathBuf> {
    let binary = cache.tool("cargo-deny", VERSION);
    let part = format!("cargo-deny {VERSION}");
    install(cache, &part, &binary, |folder| compile(cache, folder))
        .with_context(|| format!("{part} could not be compiled"))?;
    Ok(binary)
}

fn compile(cache: &Cache, folder: &Path) -> Result<()> {
    println!("  compiling cargo-deny {VERSION}; once, about a minute of processor time");
    let target = cache.build().join("cargo-deny-target");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Unoptimised it runs for two seconds, and compiles in a third of the time: 54 s of processor time, not 145 s.
    command.args([
        "install",
        "--debug",
        "--locked",
        "--quiet",
        "cargo-deny",
        "--version",
        VERSION,
        "--root",
    ]);
    command.arg(folder).current_dir(folder);
    command.envs([("CARGO_PROFILE_DEV_DEBUG", "0"), ("CARGO_INCREMENTAL", "0")]);
    command.env("CARGO_TARGET_DIR", &target);
    run_quietly("compiling cargo-deny", &mut command)?;
    std::fs::remove_dir_all(&target).with_context(|| format!("cannot remove {}", target.display()))?;
    // `cargo install` makes a `bin` folder and lists of what it installed.
    std::fs::rename(folder.join("bin/cargo-deny"), folder.join("cargo-deny"))?;
    std::fs::remove_dir(folder.join("bin"))?;
    Ok(())
}
