//! `evenkeel bench`: measures this program, beside others where there are any.
//!
//! Each bench is one file below `bench/`, ends in [`Figures`](figures::Figures), and takes ratios from runs side by
//! side: two figures of different runs say nothing of each other.

mod apply;
mod children;
mod figures;
mod operator;
mod pass;
mod queue;
mod render;
mod sample;
mod scheduler;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::process;

pub(crate) use children::{SUPERVISE, supervise};

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
    /// Applying a chart of 200 objects at one real API server, beside Helm, kubectl and Flux's apply engine; healing drift
    #[command(after_help = apply::KEYS)]
    Apply(apply::Arguments),
    /// The operator on a simulated API with doubled backends: its start on a fleet that is as it should be, and changes
    Operator(operator::Arguments),
    /// Rendering a chart: the whole process against the real `helm template`, and inside of a process
    Render(render::Arguments),
    /// Looking at an unchanged component of 100 objects in 10 kinds: requests, counted at the server, and time
    Pass(pass::Arguments),
    /// The queue on SQLite and PostgreSQL, each commit on the disk: claims, and operations from claim to final report
    Queue(queue::Arguments),
    /// The scheduler: cost of a pass in small and large inventories and in rows, time from a change to its claim, an install
    Scheduler(scheduler::Arguments),
}

pub(crate) fn run(logs: process::Logs, arguments: Arguments) -> ExitCode {
    let json = arguments.json;
    match arguments.bench {
        // Without threads and TLS, which would take part of the machine from the programs that it measures.
        Bench::Render(arguments) => {
            process::exit_code(render::run(&arguments).and_then(|figures| figures.print(json)))
        }
        Bench::Apply(arguments) => process::run(logs.or_quiet(), |tasks| async move {
            tokio::select! {
                figures = Box::pin(apply::run(&arguments, tasks.clone())) => figures?.print(json),
                () = tasks.cancelled() => Err(anyhow::anyhow!("interrupted")),
            }
        }),
        Bench::Queue(arguments) => process::run(logs.or_quiet(), |tasks| async move {
            tokio::select! {
                figures = Box::pin(queue::run(&arguments)) => figures?.print(json),
                () = tasks.cancelled() => Err(anyhow::anyhow!("interrupted")),
            }
        }),
        Bench::Scheduler(arguments) => process::run(logs.or_quiet(), |tasks| async move {
            tokio::select! {
                figures = Box::pin(scheduler::run(&arguments, tasks.clone())) => figures?.print(json),
                () = tasks.cancelled() => Err(anyhow::anyhow!("interrupted")),
            }
        }),
        Bench::Operator(arguments) => process::run(logs.or_quiet(), |tasks| async move {
            tokio::select! {
                figures = Box::pin(operator::run(&arguments, tasks.clone())) => figures?.print(json),
                () = tasks.cancelled() => Err(anyhow::anyhow!("interrupted")),
            }
        }),
        Bench::Pass(arguments) => process::run(logs.or_quiet(), |tasks| async move {
            tokio::select! {
                figures = Box::pin(pass::run(&arguments, tasks.clone())) => figures?.print(json),
                () = tasks.cancelled() => Err(anyhow::anyhow!("interrupted")),
            }
        }),
    }
}
