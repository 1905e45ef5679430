//! `evenkeel bench`: measures this program, beside others where there are any.
//!
//! Each bench is one file below `bench/`, ends in [`Figures`](figures::Figures), and takes ratios from runs side by
//! side: two figures of different runs say nothing of each other.

mod children;
mod figures;
mod pass;
mod render;
mod sample;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::process;

/// Measure this program
///
/// Prints a table; with --json the last line of standard output is one JSON object with all figures.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// End with one line that holds all figures as a JSON object
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Rendering a chart: the whole process against the real `helm template`, and inside of a process
    Render(render::Arguments),
    /// Looking at an unchanged component of 100 objects in 10 kinds: requests, counted at the server, and time
    Pass(pass::Arguments),
}

pub(crate) fn run(logs: process::Logs, arguments: Arguments) -> ExitCode {
    let json = arguments.json;
    match arguments.bench {
        // Without threads and TLS: the smaller this process, the less it hides of those that it measures.
        Bench::Render(arguments) => {
            process::exit_code(render::run(&arguments).and_then(|figures| figures.print(json)))
        }
        Bench::Pass(arguments) => process::run(logs.or_quiet(), |tasks| async move {
            tokio::select! {
                figures = Box::pin(pass::run(&arguments, tasks.clone())) => figures?.print(json),
                () = tasks.cancelled() => Err(anyhow::anyhow!("interrupted")),
            }
        }),
    }
}
