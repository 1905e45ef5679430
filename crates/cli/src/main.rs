//! The `evenkeel` binary: arguments, wiring, output. No logic.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod broker;
mod charts;
mod commands;
mod database;
mod diffs;
mod documents;
mod kubeconfig;
mod kubeconfigs;
mod kustomize;
mod limits;
mod order;
mod output;
mod process;
mod scheduling;
mod template;

/// Keeps a fleet of Kubernetes clusters in the state their owners asked for.
#[derive(Debug, Parser)]
#[command(name = "evenkeel", version, arg_required_else_help = true, after_help = EXIT_STATUS)]
struct Cli {
    #[command(flatten)]
    logs: process::Logs,
    #[command(subcommand)]
    command: Command,
}

const EXIT_STATUS: &str = "Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted twice.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at the audit log
    Audit(commands::audit::Arguments),
    /// Measure this program
    Bench(commands::bench::Arguments),
    /// Compare the inventory with the environment broker's list
    Broker(commands::broker::Arguments),
    /// Register, look at, change and delete clusters
    Cluster(commands::cluster::Arguments),
    /// Watch a simulated fleet become ready, drift and heal
    Demo(commands::demo::Arguments),
    /// List the processes that work on one inventory
    Instances(commands::instances::Arguments),
    /// Look at and rotate the keys that encrypt secrets
    Keys(Box<commands::keys::Arguments>),
    /// Run components on one cluster, without a mothership
    Local(Box<commands::local::Arguments>),
    /// Run the control plane
    Mothership(Box<commands::mothership::Arguments>),
    /// Look after tenants, clusters and Git repositories that are custom resources
    Operator(Box<commands::operator::Arguments>),
    /// Show what components would change on one cluster, field by field, and change nothing
    Plan(Box<commands::local::Arguments>),
    /// Look at runs over a cluster
    Reconciliation(commands::reconciliation::Arguments),
    /// Look at and change settings
    Settings(commands::settings::Arguments),
    /// Render a Helm chart as `helm template` does
    Template(Box<template::Arguments>),
}

/// Render a Helm chart as `helm template` does: same flags, same bytes, same exit code.
#[derive(Debug, Parser)]
#[command(name = "evenkeel template", bin_name = "evenkeel template")]
struct Template {
    #[command(flatten)]
    _logs: process::Logs,
    #[command(flatten)]
    arguments: template::Arguments,
}

fn main() -> ExitCode {
    // A render takes a few milliseconds; making the arguments of all other commands would be a good part of that.
    let mut arguments = std::env::args_os();
    let program = arguments.next();
    let command = arguments.next();
    if command.as_deref().is_some_and(|command| command == "template") {
        return match Template::try_parse_from(program.into_iter().chain(arguments)) {
            Ok(Template { arguments, .. }) => template::run(arguments),
            Err(error) => template::refuse(&error),
        };
    }
    if command
        .as_deref()
        .is_some_and(|command| command == commands::bench::SUPERVISE)
    {
        return commands::bench::supervise(arguments);
    }
    let Cli { logs, command } = Cli::parse();
    match command {
        // Reached when flags stand before the command.
        Command::Template(arguments) => template::run(*arguments),
        Command::Bench(arguments) => commands::bench::run(logs, arguments),
        Command::Cluster(arguments) => {
            process::run_until_interrupted(logs, || commands::cluster::run(arguments))
        }
        Command::Demo(arguments) => {
            process::run(logs.or_quiet(), |tasks| commands::demo::run(arguments, tasks))
        }
        Command::Mothership(arguments) => {
            process::run(logs, |tasks| commands::mothership::run(*arguments, tasks))
        }
        Command::Operator(arguments) => {
            process::run(logs, |tasks| commands::operator::run(*arguments, tasks))
        }
        Command::Local(arguments) => {
            process::run(logs.or_quiet(), |tasks| commands::local::run(*arguments, tasks))
        }
        Command::Audit(arguments) => process::run_until_interrupted(logs, || commands::audit::run(arguments)),
        Command::Broker(arguments) => {
            process::run_until_interrupted(logs, || commands::broker::run(arguments))
        }
        Command::Instances(arguments) => {
            process::run_until_interrupted(logs, || commands::instances::run(arguments))
        }
        Command::Keys(arguments) => {
            process::run_until_interrupted(logs.or_quiet(), || commands::keys::run(*arguments))
        }
        Command::Settings(arguments) => {
            process::run_until_interrupted(logs, || commands::settings::run(arguments))
        }
        Command::Plan(arguments) => {
            process::run(logs.or_quiet(), |tasks| commands::local::plan(*arguments, tasks))
        }
        Command::Reconciliation(arguments) => {
            process::run_until_interrupted(logs, || commands::reconciliation::run(arguments))
        }
    }
}

/// The present moment, for ages in tables.
fn now() -> jiff::Timestamp {
    evenkeel_telemetry::time::now()
}
