//! `evenkeel cluster`: the clusters of a mothership.

mod apply;
mod changes;
mod consent;
mod control;
mod delete;
mod history;
mod list;
mod plan;
mod status;

use clap::{Args, Subcommand};
use evenkeel_api::Client;
use evenkeel_core::ClusterName;

use crate::commands::Connection;
use crate::output::{self, OutputFormat};

/// Register, look at, change and delete clusters.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create or change the clusters of a file
    Apply(apply::Arguments),
    /// Show what a cluster should run; secret values are masked
    Get(Named),
    /// List clusters
    List(list::Arguments),
    /// Show how a cluster and its components are
    Status(status::Arguments),
    /// Show what a reconciliation would do now, field by field, and do nothing
    Plan(plan::Arguments),
    /// Reconcile a cluster now
    Reconcile(control::ReconcileArguments),
    /// Leave a cluster alone, for a while or until it is resumed; deleting it is still done
    Suspend(control::SuspendArguments),
    /// Go on with a suspended cluster
    Resume(control::ResumeArguments),
    /// Take the cluster that answers now for the one that is meant, after its control plane was made anew
    ConfirmIdentity(Waited),
    /// Show the configuration versions, states and reconciliations of a cluster
    History(Named),
    /// Show what was done to which object of a cluster
    Changes(changes::Arguments),
    /// Make the components and labels of an older version the newest version
    Rollback(history::RollbackArguments),
    /// Show what would be deleted only with consent, and give it
    Consent(consent::Arguments),
    /// Remove a cluster's components, then its record
    Delete(delete::Arguments),
}

/// A command on one cluster.
#[derive(Debug, Args)]
struct Named {
    /// The cluster's name
    name: ClusterName,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// A command on one cluster whose effect can be waited for.
#[derive(Debug, Args)]
struct Waited {
    /// The cluster's name
    name: ClusterName,
    #[command(flatten)]
    wait: status::Wait,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = arguments.connection.client()?;
    match arguments.command {
        Command::Apply(arguments) => apply::run(&client, arguments).await,
        Command::Get(arguments) => get(&client, arguments).await,
        Command::List(arguments) => list::run(&client, arguments).await,
        Command::Status(arguments) => status::run(&client, arguments).await,
        Command::Plan(arguments) => plan::run(&client, arguments).await,
        Command::Reconcile(arguments) => control::reconcile(&client, arguments).await,
        Command::Suspend(arguments) => control::suspend(&client, arguments).await,
        Command::Resume(arguments) => control::resume(&client, arguments).await,
        Command::ConfirmIdentity(arguments) => confirm_identity(&client, arguments).await,
        Command::History(arguments) => history::run(&client, arguments).await,
        Command::Changes(arguments) => changes::run(&client, arguments).await,
        Command::Rollback(arguments) => history::rollback(&client, arguments).await,
        Command::Consent(arguments) => consent::run(&client, arguments).await,
        Command::Delete(arguments) => delete::run(&client, arguments).await,
    }
}

async fn get(client: &Client, arguments: Named) -> anyhow::Result<()> {
    let cluster = client.cluster(&arguments.name).await?;
    output::print(arguments.output, &cluster, || {
        let header = ["NAME", "STATE", "VERSION", "TENANT", "GROUP", "COMPONENTS", "ID"];
        let components: Vec<_> = cluster
            .spec
            .components
            .iter()
            .map(|component| component.name.as_str())
            .collect();
        let row = [
            cluster.spec.name.to_string(),
            cluster.state.to_string(),
            cluster.version.to_string(),
            output::or_dash(cluster.spec.tenant.as_ref()),
            output::or_dash(cluster.spec.group.as_ref()),
            if components.is_empty() {
                "-".to_owned()
            } else {
                components.join(",")
            },
            cluster.id.to_string(),
        ];
        output::table(header, [row])
    })
}

async fn confirm_identity(client: &Client, arguments: Waited) -> anyhow::Result<()> {
    let known = client.status(&arguments.name).await?;
    let accepted = client.confirm_identity(&arguments.name).await?;
    output::line(&format!(
        "cluster {} is taken for the one that answers now",
        accepted.name
    ))?;
    arguments.wait.after_look(client, &arguments.name, known).await
}
