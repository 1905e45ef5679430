//! `evenkeel cluster delete`.

use std::io::BufRead;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use evenkeel_api::Client;
use evenkeel_core::{ClusterName, DeleteMode};

use super::status::Wait;
use crate::output;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The cluster's name
    name: ClusterName,
    /// What happens to what runs in it
    #[arg(long, value_enum, default_value_t = Mode::Uninstall)]
    mode: Mode,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    wait: Wait,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// Remove its components in reverse order, then the record
    Uninstall,
    /// The same, and the volumes, claims and definitions of kinds that we made, with all data in them
    UninstallAll,
    /// Leave everything running and take our labels off it, then remove the record
    Orphan,
    /// Remove the record alone; for a cluster that no longer exists
    Forget,
}

impl From<Mode> for DeleteMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Uninstall => Self::Uninstall,
            Mode::UninstallAll => Self::UninstallAll,
            Mode::Orphan => Self::Orphan,
            Mode::Forget => Self::Forget,
        }
    }
}

pub(super) async fn run(client: &Client, arguments: Arguments) -> anyhow::Result<()> {
    let mode = DeleteMode::from(arguments.mode);
    if !arguments.yes && output::is_interactive() {
        confirm(&arguments.name, mode)?;
    }
    let accepted = client.delete_cluster(&arguments.name, mode).await?;
    output::line(&format!(
        "cluster {} is being deleted ({})",
        accepted.name,
        mode.as_str()
    ))?;
    arguments.wait.until_deleted(client, &arguments.name).await
}

fn confirm(name: &ClusterName, mode: DeleteMode) -> anyhow::Result<()> {
    output::note(&format!(
        "This deletes cluster {name} ({}). Type its name to go on:",
        mode.as_str()
    ));
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("standard input cannot be read")?;
    if answer.trim() == name.as_str() {
        Ok(())
    } else {
        bail!("nothing was deleted")
    }
}
