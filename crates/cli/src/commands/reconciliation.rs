//! `evenkeel reconciliation`: what happened to a cluster, run by run, step by step.

use clap::{Args, Subcommand};
use evenkeel_api::{Client, Operation, Reconciliation, ReconciliationSummary};
use evenkeel_core::{ClusterName, ReconciliationId};

use crate::commands::Connection;
use crate::output::{self, OutputFormat};

/// Look at runs over a cluster.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the reconciliations of a cluster, newest first
    List {
        /// The cluster's name
        cluster: ClusterName,
        /// How the result is printed
        #[arg(short, long, value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Show one reconciliation: its operations, their steps and every object they touched
    Get {
        /// The reconciliation's id
        id: ReconciliationId,
        /// How the result is printed
        #[arg(short, long, value_enum, default_value_t)]
        output: OutputFormat,
    },
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = arguments.connection.client()?;
    match arguments.command {
        Command::List { cluster, output } => list(&client, &cluster, output).await,
        Command::Get { id, output } => get(&client, &id, output).await,
    }
}

async fn list(client: &Client, cluster: &ClusterName, format: OutputFormat) -> anyhow::Result<()> {
    let runs = client.reconciliations(cluster).await?;
    output::print(format, &runs, || table(&runs))
}

/// Runs, one a row.
pub(crate) fn table(runs: &[ReconciliationSummary]) -> String {
    let now = crate::now();
    let rows = runs.iter().map(|run| {
        [
            run.id.to_string(),
            run.version.to_string(),
            run.strategy.as_str().to_owned(),
            run.cause.as_str().to_owned(),
            run.state.to_string(),
            output::age(run.started, now),
            output::age(run.started, run.finished.unwrap_or(now)),
        ]
    });
    output::table(
        [
            "RECONCILIATION",
            "VERSION",
            "STRATEGY",
            "CAUSE",
            "STATE",
            "AGE",
            "TOOK",
        ],
        rows,
    )
}

async fn get(client: &Client, id: &ReconciliationId, format: OutputFormat) -> anyhow::Result<()> {
    let run = client.reconciliation(id).await?;
    output::print(format, &run, || report(&run))
}

fn report(run: &Reconciliation) -> String {
    let head = output::table(
        ["RECONCILIATION", "VERSION", "STRATEGY", "CAUSE", "STATE"],
        [[
            run.summary.id.to_string(),
            run.summary.version.to_string(),
            run.summary.strategy.as_str().to_owned(),
            run.summary.cause.as_str().to_owned(),
            run.summary.state.to_string(),
        ]],
    );
    run.operations.iter().fold(head, |text, operation| {
        format!("{text}\n\n{}", operation_report(operation))
    })
}

fn operation_report(operation: &Operation) -> String {
    let mut text = output::table(
        ["COMPONENT", "STATE", "ATTEMPTS", "OPERATION", "REASON"],
        [[
            operation.component.to_string(),
            operation.state.kind().to_string(),
            operation.attempts.to_string(),
            operation.id.to_string(),
            output::or_dash(operation.state.reason()),
        ]],
    );
    if !operation.timeline.is_empty() {
        let rows = operation.timeline.iter().map(|entry| {
            [
                format!("  {:.3}", entry.at),
                entry.level.as_str().to_owned(),
                output::or_dash(entry.step.as_ref()),
                entry.message.clone(),
            ]
        });
        text = format!(
            "{text}\n{}",
            output::table(["  AT", "LEVEL", "STEP", "MESSAGE"], rows)
        );
    }
    if !operation.changes.is_empty() {
        let rows = operation
            .changes
            .iter()
            .map(|change| [format!("  {}", change.action), change.object.to_string()]);
        text = format!("{text}\n{}", output::table(["  ACTION", "OBJECT"], rows));
    }
    text
}
