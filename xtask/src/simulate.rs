//! `cargo xtask simulate`: schedules of motherships, workers and faults in virtual time, each from a seed
//! (docs/simulation.md).

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::process::{cargo, run as run_command, target_directory};
use crate::repository::Repository;

/// How many schedules every run of all tests goes through.
const SCHEDULES_IN_TESTS: u64 = 100_000;

/// What is built anew for it, optimized: the crates whose code a schedule is made of. All others are built as for tests, so
/// that a build right after those takes little; arithmetic and assertions stay checked.
const OPTIMIZED: [&str; 2] = ["evenkeel-inventory", "evenkeel-fleet"];

/// Which schedules.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How many schedules to run, from this seed and those after it.
    #[arg(long, default_value_t = 1_000_000)]
    schedules: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Tell everything that happens.
    #[arg(long)]
    trace: bool,
}

/// Builds the program that runs schedules, and runs them.
pub(crate) fn run(repository: &Repository, arguments: &Arguments) -> Result<()> {
    let mut build = cargo(repository);
    // All of the workspace, so that every crate below has the features that tests have built it with already.
    build.args(["build", "--workspace", "--example", "simulate"]);
    build.args(["--features", "evenkeel-fleet/simulation"]);
    for package in OPTIMIZED {
        build.args(["--config", &format!("profile.dev.package.{package}.opt-level=1")]);
    }
    run_command(&mut build)?;

    let mut command = Command::new(target_directory()?.join("debug/examples/simulate"));
    command.args(["--seed", &arguments.seed.to_string()]);
    command.args(["--schedules", &arguments.schedules.to_string()]);
    if arguments.trace {
        command.arg("--trace");
    }
    run_command(&mut command)
}

/// The part of it that belongs to all tests.
pub(crate) fn run_in_tests(repository: &Repository) -> Result<()> {
    let arguments = Arguments {
        schedules: SCHEDULES_IN_TESTS,
        seed: 1,
        trace: false,
    };
    run(repository, &arguments)
}
