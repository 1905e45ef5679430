//! `evenkeel cluster apply`.

use std::path::PathBuf;

use clap::Args;
use evenkeel_api::{AcceptedChange, Client};
use evenkeel_core::{GardenerShoot, Kubeconfig, KubeconfigFrom, KubeconfigSecret};

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
    /// Read the kubeconfig from a Secret in the mothership's own cluster, whenever it is needed; without a value, key
    /// `config` of Secret `kubeconfig-ID` for the cluster's id
    #[arg(
        long,
        value_name = "[NAMESPACE/][NAME][:KEY]",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with = "kubeconfig"
    )]
    kubeconfig_secret: Option<KubeconfigSecret>,
    /// Ask Gardener for short-lived credentials of this shoot, whenever they are needed
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        conflicts_with_all = ["kubeconfig", "kubeconfig_secret"]
    )]
    gardener_shoot: Option<GardenerShoot>,
    #[command(flatten)]
    losses: Losses,
    #[command(flatten)]
    wait: Wait,
}

impl Arguments {
    /// How the clusters are reached, if that is said here.
    fn kubeconfig(&self) -> anyhow::Result<Option<Kubeconfig>> {
        if let Some(file) = &self.kubeconfig {
            return Ok(Some(documents::kubeconfig(file)?.into()));
        }
        let secret = self.kubeconfig_secret.clone().map(KubeconfigFrom::Secret);
        let from = secret.or_else(|| self.gardener_shoot.clone().map(KubeconfigFrom::GardenerShoot));
        Ok(from.map(Kubeconfig::From))
    }
}

pub(super) async fn run(client: &Client, arguments: Arguments) -> anyhow::Result<()> {
    let kubeconfig = arguments.kubeconfig()?;
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
