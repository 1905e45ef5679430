//! `evenkeel audit`: who did what, and whether that log is whole.

use std::str::FromStr;

use anyhow::bail;
use clap::{Args, Subcommand};
use evenkeel_api::{Client, KnownHead, ListAudit};
use evenkeel_core::{Digest, HumanDuration};
use jiff::SignedDuration;

use crate::commands::Connection;
use crate::output::{self, OutputFormat};

/// Look at the audit log and prove that it is whole.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List entries, newest first
    List(List),
    /// Walk along the whole log and say whether an entry was changed, added or taken away; exit with 1 when so
    Verify {
        /// The head that an earlier run printed: it must still be a part of the log
        #[arg(long, value_name = "NUMBER:DIGEST")]
        known: Option<Head>,
        /// How the result is printed
        #[arg(short, long, value_enum, default_value_t)]
        output: OutputFormat,
    },
}

#[derive(Debug, Args)]
struct List {
    /// Only about this, like `cluster/prod-1`
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Only what this one did
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// Only of the last, like `24h`
    #[arg(long, value_name = "DURATION")]
    since: Option<HumanDuration>,
    /// The most entries
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// An entry that was the newest one once.
#[derive(Clone, Debug)]
struct Head {
    number: u64,
    digest: Digest,
}

impl FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected NUMBER:DIGEST as `audit verify` prints it, found {text:?}");
        let (number, digest) = text.split_once(':').ok_or_else(wrong)?;
        Ok(Self {
            number: number.parse().map_err(|_| wrong())?,
            digest: digest.parse().map_err(|_| wrong())?,
        })
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let client = arguments.connection.client()?;
    match arguments.command {
        Command::List(arguments) => list(&client, arguments).await,
        Command::Verify { known, output } => verify(&client, known, output).await,
    }
}

async fn list(client: &Client, arguments: List) -> anyhow::Result<()> {
    let since = arguments.since.map(|since| {
        let since = SignedDuration::try_from(since.0).unwrap_or(SignedDuration::MAX);
        crate::now().saturating_sub(since).unwrap_or(jiff::Timestamp::MIN)
    });
    let page = client
        .audit(&ListAudit {
            target: arguments.target,
            actor: arguments.actor,
            since,
            limit: Some(arguments.limit),
            ..ListAudit::default()
        })
        .await?;
    output::print(arguments.output, &page, || {
        let rows = page.items.iter().map(|entry| {
            [
                entry.number.to_string(),
                format!("{:.0}", entry.at),
                entry.actor.clone(),
                entry.action.clone(),
                entry.target.clone(),
                entry.detail.to_string(),
            ]
        });
        output::table(["NUMBER", "AT", "WHO", "WHAT", "ON", "DETAIL"], rows)
    })
}

async fn verify(client: &Client, known: Option<Head>, format: OutputFormat) -> anyhow::Result<()> {
    let verdict = client
        .verify_audit(&KnownHead {
            number: known.as_ref().map(|head| head.number),
            digest: known.map(|head| head.digest),
        })
        .await?;
    output::print(format, &verdict, || match (&verdict.fault, verdict.digest) {
        (Some(fault), _) => format!("broken: {fault}"),
        (None, None) => "the audit log is empty".to_owned(),
        (None, Some(digest)) => format!(
            "{} entries are whole; head {}:{digest}",
            verdict.entries, verdict.head
        ),
    })?;
    if !verdict.intact {
        bail!("the audit log is not whole");
    }
    Ok(())
}
