//! `evenkeel cluster history` and `rollback`.

use clap::Args;
use evenkeel_api::{Client, Configuration, ListHistory, PastStatus, ReconciliationSummary, Rollback};
use evenkeel_core::{ClusterName, ConfigurationVersion};
use serde::Serialize;

use super::Named;
use super::consent::Losses;
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
    losses: Losses,
    #[command(flatten)]
    wait: Wait,
}

/// What the command prints for programs.
#[derive(Debug, Serialize)]
struct History {
    configurations: Vec<Configuration>,
    states: Vec<PastStatus>,
    reconciliations: Vec<ReconciliationSummary>,
}

pub(super) async fn run(client: &Client, arguments: Named) -> anyhow::Result<()> {
    let history = History {
        configurations: client.configurations(&arguments.name).await?,
        states: client
            .history(&arguments.name, &ListHistory::default())
            .await?
            .items,
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
        let states = history.states.iter().map(|past| {
            [
                past.state.to_string(),
                past.observed_version.to_string(),
                output::age(past.since, now),
                output::age(past.since, past.until),
                output::or_dash(past.reason.as_ref()),
            ]
        });
        let states = output::table(["STATE", "VERSION", "AGE", "LASTED", "REASON"], states);
        format!(
            "{versions}\n\n{states}\n\n{}",
            reconciliation::table(&history.reconciliations)
        )
    })
}

pub(super) async fn rollback(client: &Client, arguments: RollbackArguments) -> anyhow::Result<()> {
    let rollback = Rollback {
        to: ConfigurationVersion(arguments.to),
        consent: arguments.losses.consent.into_iter().collect(),
    };
    let accepted = client.rollback(&arguments.name, &rollback).await?;
    output::line(&format!(
        "cluster {} is at version {}, made from version {}",
        accepted.name, accepted.version, arguments.to
    ))?;
    arguments
        .wait
        .until_observed(client, &accepted.name, accepted.version)
        .await
}
