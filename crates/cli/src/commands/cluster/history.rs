//! `evenkeel cluster history` and `rollback`.

use clap::Args;
use evenkeel_api::{Client, Configuration, ReconciliationSummary};
use evenkeel_core::{ClusterName, ConfigurationVersion};
use serde::Serialize;

use super::Named;
use super::status::Wait;
use crate::commands::reconciliation;
use crate::output;

#[derive(Debug, Args)]
pub(super) struct RollbackArguments {
    /// The cluster's name
    name: ClusterName,
    /// The version whose components and labels become the newest version
    #[arg(long, value_name = "VERSION")]
    to: u64,
    #[command(flatten)]
    wait: Wait,
}

/// What the command prints for programs.
#[derive(Debug, Serialize)]
struct History {
    configurations: Vec<Configuration>,
    reconciliations: Vec<ReconciliationSummary>,
}

pub(super) async fn run(client: &Client, arguments: Named) -> anyhow::Result<()> {
    let history = History {
        configurations: client.configurations(&arguments.name).await?,
        reconciliations: client.reconciliations(&arguments.name).await?,
    };
    let now = crate::now();
    output::print(arguments.output, &history, || {
        let versions = history.configurations.iter().map(|configuration| {
            let components = configuration
                .spec
                .components
                .iter()
                .map(|component| component.name.as_str());
            [
                configuration.version.to_string(),
                output::age(configuration.created, now),
                components.collect::<Vec<_>>().join(","),
            ]
        });
        let versions = output::table(["VERSION", "AGE", "COMPONENTS"], versions);
        format!(
            "{versions}\n\n{}",
            reconciliation::table(&history.reconciliations)
        )
    })
}

pub(super) async fn rollback(client: &Client, arguments: RollbackArguments) -> anyhow::Result<()> {
    let accepted = client
        .rollback(&arguments.name, ConfigurationVersion(arguments.to))
        .await?;
    output::line(&format!(
        "cluster {} is at version {}, made from version {}",
        accepted.name, accepted.version, arguments.to
    ))?;
    arguments
        .wait
        .until_observed(client, &accepted.name, accepted.version)
        .await
}
