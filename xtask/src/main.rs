//! Developer commands. `cargo xtask test` is all that a newcomer needs: it prepares the real servers and tools that
//! tests run against, and runs the tests. `cargo xtask lint` checks what the compiler cannot.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool speaks to its user on standard output"
)]

mod charts;
mod earlier_release;
mod fuzz;
mod fuzz_oracle;
mod generate;
mod link_order;
mod lint;
mod process;
mod repository;
mod setup;
mod simulate;
mod statements;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::repository::Repository;

/// Developer commands of Evenkeel.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Prepare the real servers and tools that tests need, in a cache outside the repository.
    Setup,
    /// Prepare, then run all tests, and simulated schedules.
    Test(test::Arguments),
    /// Render charts with Helm and with Evenkeel, and tell where they differ.
    Charts(charts::Arguments),
    /// Render random templates, documents and arguments with Helm and with Evenkeel, and tell where they differ.
    FuzzOracle(fuzz_oracle::Arguments),
    /// Feed the parsers with what a fuzzer makes up (needs a nightly compiler and cargo-fuzz).
    Fuzz(fuzz::Arguments),
    /// Write the files that are made from code: the definitions of the custom resources in `deploy/crds`.
    Generate,
    /// Write down what the inventory asks of databases: `crates/inventory/statements`.
    Statements,
    /// Build the release before this one, and let it work on a database of today's.
    EarlierRelease(earlier_release::Arguments),
    /// Run schedules of motherships, workers and faults in virtual time; a failing seed tells how to see it again.
    Simulate(simulate::Arguments),
    /// Find out which functions a render runs, and have them lie side by side in the binary (needs valgrind).
    LinkOrder(link_order::Arguments),
    /// Check formatting, lints, documentation, licences, and the rules of the house.
    Lint(lint::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = Repository::find().and_then(|repository| match arguments.command {
        Task::Setup => setup::run().map(drop),
        Task::Test(arguments) => test::run(&repository, &arguments),
        Task::Charts(arguments) => charts::run(&repository, &arguments),
        Task::FuzzOracle(arguments) => fuzz_oracle::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&repository, &arguments),
        Task::Generate => generate::run(&repository),
        Task::Statements => statements::run(&repository),
        Task::EarlierRelease(arguments) => earlier_release::run(&repository, &arguments),
        Task::Simulate(arguments) => simulate::run(&repository, &arguments),
        Task::LinkOrder(arguments) => link_order::run(&repository, &arguments),
        Task::Lint(arguments) => lint::run(&repository, &arguments),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
