//! `evenkeel cluster reconcile`, `suspend` and `resume`.

use clap::Args;
use evenkeel_api::{Client, Reconcile, Suspend};
use evenkeel_core::{ClusterName, ComponentName, HumanDuration};
use jiff::Timestamp;

use super::status::Wait;
use crate::output;

#[derive(Debug, Args)]
pub(super) struct ReconcileArguments {
    /// The cluster's name
    name: ClusterName,
    /// Also outside of its maintenance windows, and with component versions that are held back because they fail elsewhere
    #[arg(long)]
    force: bool,
    /// Run these components even though they do not differ; whatever differs is done anyway
    #[arg(long = "component", value_name = "NAME", value_delimiter = ',')]
    components: Vec<ComponentName>,
    #[command(flatten)]
    wait: Wait,
}

#[derive(Debug, Args)]
pub(super) struct SuspendArguments {
    /// The cluster's name
    name: ClusterName,
    /// How long; until it is resumed when left out
    #[arg(long = "for", value_name = "DURATION")]
    within: Option<HumanDuration>,
    /// Until when, like 2026-07-01T06:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "within")]
    until: Option<Timestamp>,
}

#[derive(Debug, Args)]
pub(super) struct ResumeArguments {
    /// The cluster's name
    name: ClusterName,
    #[command(flatten)]
    wait: Wait,
}

pub(super) async fn reconcile(client: &Client, arguments: ReconcileArguments) -> anyhow::Result<()> {
    let known = client.status(&arguments.name).await?;
    let components: Vec<&str> = arguments.components.iter().map(ComponentName::as_str).collect();
    let asked = Reconcile {
        force: arguments.force,
        components: (!components.is_empty()).then(|| components.join(",")),
    };
    let accepted = client.reconcile_for(&arguments.name, &asked).await?;
    output::line(&format!("cluster {} is due now", accepted.name))?;
    arguments.wait.after_look(client, &arguments.name, known).await
}

pub(super) async fn suspend(client: &Client, arguments: SuspendArguments) -> anyhow::Result<()> {
    let suspend = Suspend {
        until: arguments.until,
        within: arguments.within,
    };
    let suspension = client.suspend(&arguments.name, &suspend).await?;
    let name = &arguments.name;
    output::line(&match suspension.until {
        Some(until) => format!("cluster {name} is suspended until {until:.0}"),
        None => format!("cluster {name} is suspended until it is resumed"),
    })
}

pub(super) async fn resume(client: &Client, arguments: ResumeArguments) -> anyhow::Result<()> {
    let known = client.status(&arguments.name).await?;
    let accepted = client.resume(&arguments.name).await?;
    output::line(&format!("cluster {} goes on", accepted.name))?;
    arguments.wait.after_look(client, &arguments.name, known).await
}
