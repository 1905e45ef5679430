//! `evenkeel instances`: the processes of an installation.

use clap::Args;

use crate::commands::Connection;
use crate::output::{self, OutputFormat};

/// List the processes that work on one inventory, and when each was heard of last
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let instances = arguments.connection.client()?.instances().await?;
    let now = crate::now();
    output::print(arguments.output, &instances, || {
        let rows = instances.iter().map(|instance| {
            [
                instance.host.clone(),
                instance.role.clone(),
                instance.state.as_str().to_owned(),
                instance.version.clone(),
                output::age(instance.started, now),
                output::age(instance.last_seen, now),
                instance.id.clone(),
            ]
        });
        output::table(
            ["HOST", "ROLE", "STATE", "VERSION", "AGE", "LAST SEEN", "ID"],
            rows,
        )
    })
}
