//! `evenkeel settings`: settings of the fleet, of groups and of clusters.

use clap::{Args, Subcommand};
use evenkeel_api::{Client, PutSetting, Setting, SettingFor};
use evenkeel_core::ClusterName;

use crate::commands::Connection;
use crate::output::{self, OutputFormat};

/// Look at and change settings: for everyone, for a group, or for one cluster.
///
/// What is set for a cluster counts more than what is set for its group, that more than what is set for everyone, and
/// that more than what the motherships were started with.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List all settings with the values that count
    List {
        #[command(flatten)]
        of: For,
        /// How the result is printed
        #[arg(short, long, value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Set a setting
    Set {
        /// Its name
        name: String,
        /// Its value: `true` or `false`, a whole number, or a time like `1h30m`
        value: String,
        #[command(flatten)]
        of: For,
    },
    /// Take a setting back, so that the next wider one counts
    Unset {
        /// Its name
        name: String,
        #[command(flatten)]
        of: For,
    },
}

/// Whom a setting is for.
#[derive(Debug, Args)]
struct For {
    /// For this cluster
    #[arg(long, value_name = "NAME", conflicts_with = "group")]
    cluster: Option<ClusterName>,
    /// For the clusters of this group
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
}

impl From<For> for SettingFor {
    fn from(of: For) -> Self {
        Self {
            cluster: of.cluster,
            group: of.group,
        }
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = arguments.connection.client()?;
    match arguments.command {
        Command::List { of, output } => list(&client, &of.into(), output).await,
        Command::Set { name, value, of } => {
            // The setting's type decides what the text means.
            let put = PutSetting { value: value.into() };
            said(&client.put_setting(&name, &of.into(), &put).await?)
        }
        Command::Unset { name, of } => said(&client.remove_setting(&name, &of.into()).await?),
    }
}

async fn list(client: &Client, of: &SettingFor, format: OutputFormat) -> anyhow::Result<()> {
    let settings = client.settings(of).await?;
    output::print(format, &settings, || {
        let rows = settings.iter().map(|setting| {
            [
                setting.name.clone(),
                value(setting),
                output::or_dash(setting.layer.as_ref()),
                setting.expected.clone(),
                setting.about.clone(),
            ]
        });
        output::table(["NAME", "VALUE", "FROM", "EXPECTED", "ABOUT"], rows)
    })
}

fn said(setting: &Setting) -> anyhow::Result<()> {
    output::line(&match &setting.layer {
        Some(layer) => format!("{} is {} (from {layer})", setting.name, value(setting)),
        None => format!("{} is as the motherships were started", setting.name),
    })
}

fn value(setting: &Setting) -> String {
    match &setting.value {
        None => "-".to_owned(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}
