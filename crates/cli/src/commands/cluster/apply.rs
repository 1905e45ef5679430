//! `evenkeel cluster apply`.

use std::path::PathBuf;

use clap::Args;
use evenkeel_api::{AcceptedChange, Client};

use super::consent::Losses;
use super::status::Wait;
use crate::{documents, output};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A file with one or more cluster documents, YAML or JSON; `-` is standard input
    #[arg(short, long = "file", required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A kubeconfig to send along; without it the stored one is kept
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    losses: Losses,
    #[command(flatten)]
    wait: Wait,
}

pub(super) async fn run(client: &Client, arguments: Arguments) -> anyhow::Result<()> {
    let kubeconfig = arguments
        .kubeconfig
        .as_deref()
        .map(documents::kubeconfig)
        .transpose()?;
    // Every document is read before the first is sent: a typing error in the last one changes nothing.
    let mut read = Vec::new();
    for file in &arguments.files {
        read.extend(documents::read(file)?);
    }
    let mut accepted = Vec::new();
    for mut document in read {
        if kubeconfig.is_some() {
            document.kubeconfig.clone_from(&kubeconfig);
        }
        document.consent.extend(&arguments.losses.consent);
        let answer = client.put_cluster(&document).await?;
        let what = match answer.change {
            AcceptedChange::Created => "created",
            AcceptedChange::Changed => "changed",
            AcceptedChange::Unchanged => "unchanged",
        };
        output::line(&format!(
            "cluster {} {what}, version {}",
            answer.name, answer.version
        ))?;
        accepted.push(answer);
    }
    for answer in accepted {
        arguments
            .wait
            .until_observed(client, &answer.name, answer.version)
            .await?;
    }
    Ok(())
}
