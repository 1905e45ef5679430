//! The `evenkeel` binary: arguments, wiring, output. No logic.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod template;

/// Keeps a fleet of Kubernetes clusters in the state their owners asked for.
#[derive(Debug, Parser)]
#[command(name = "evenkeel", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Render a Helm chart as `helm template` does.
    Template(Box<template::Args>),
}

fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    match command {
        Command::Template(args) => template::run(&args),
    }
}
