//! `cargo xtask simulate`: schedules of motherships, workers and faults in virtual time, each from a seed.

use anyhow::Result;
use clap::Args;

use crate::process::{cargo, run as run_command};
use crate::repository::Repository;

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

/// Runs them, optimized.
pub(crate) fn run(repository: &Repository, arguments: &Arguments) -> Result<()> {
    let mut command = cargo(repository);
    command.args([
        "run",
        "--release",
        "--package",
        "evenkeel-fleet",
        "--features",
        "simulation",
    ]);
    command.args(["--example", "simulate", "--"]);
    command.args(["--seed", &arguments.seed.to_string()]);
    command.args(["--schedules", &arguments.schedules.to_string()]);
    if arguments.trace {
        command.arg("--trace");
    }
    run_command(&mut command)
}
