//! `evenkeel broker`: the inventory and the environment broker's list.

use clap::{Args, Subcommand};
use evenkeel_api::Outcome;

use crate::commands::Connection;
use crate::output::{self, OutputFormat};

/// Compare the inventory with the environment broker's list
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare now, and repair if the setting `sync-repair` says so
    Sync(Sync),
}

#[derive(Debug, Args)]
struct Sync {
    #[command(flatten)]
    connection: Connection,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Command::Sync(sync) = arguments.command;
    let report = sync.connection.client()?.sync_broker().await?;
    if let Some(refused) = &report.refused {
        output::note(&format!("nothing was forgotten: {refused}"));
    }
    output::print(sync.output, &report, || {
        let row = |finding: &str, cluster: &str, runtime: &str, what: String, outcome: &Outcome| {
            let why = match outcome {
                Outcome::Left(why) => why.as_str(),
                Outcome::Told | Outcome::Repaired => "",
            };
            let outcome = outcome.as_str();
            [finding, cluster, runtime, &what, outcome, why].map(ToOwned::to_owned)
        };
        let missing = report.missing.iter().map(|missing| {
            let shoot = missing.shoot.clone();
            row("missing", "", &missing.runtime, shoot, &Outcome::Told)
        });
        let extra = report.extra.iter().map(|extra| {
            let cluster = extra.cluster.as_str();
            row("extra", cluster, &extra.runtime, String::new(), &extra.outcome)
        });
        let differing = report.differing.iter().map(|differing| {
            let what = differing
                .differences
                .iter()
                .map(|one| format!("{}: {} -> {}", one.what, one.ours, one.brokers));
            let what = what.collect::<Vec<_>>().join(", ");
            let cluster = differing.cluster.as_str();
            row("differing", cluster, &differing.runtime, what, &differing.outcome)
        });
        output::table(
            ["FINDING", "CLUSTER", "RUNTIME", "WHAT", "OUTCOME", "WHY"],
            missing.chain(extra).chain(differing),
        )
    })
}
