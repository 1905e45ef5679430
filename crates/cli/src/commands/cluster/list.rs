//! `evenkeel cluster list`.

use clap::Args;
use evenkeel_api::{Client, ClusterPage, ListClusters};
use evenkeel_core::{ClusterState, ComponentName};

use crate::output::{self, OutputFormat};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Only clusters in this state
    #[arg(long)]
    state: Option<ClusterState>,
    /// Only clusters of this tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Only clusters of this group
    #[arg(long)]
    group: Option<String>,
    /// Only clusters with this label
    #[arg(short = 'l', long, value_name = "KEY=VALUE")]
    label: Option<String>,
    /// Only clusters that run this component
    #[arg(long)]
    component: Option<ComponentName>,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(super) async fn run(client: &Client, arguments: Arguments) -> anyhow::Result<()> {
    let mut list = ListClusters {
        state: arguments.state,
        tenant: arguments.tenant,
        group: arguments.group,
        label: arguments.label,
        component: arguments.component,
        limit: None,
        after: None,
    };
    let mut all = ClusterPage {
        items: Vec::new(),
        next: None,
    };
    loop {
        let page = client.clusters(&list).await?;
        all.items.extend(page.items);
        match page.next {
            Some(next) => list.after = Some(next),
            None => break,
        }
    }
    let now = crate::now();
    output::print(arguments.output, &all, || {
        let header = ["NAME", "STATE", "SINCE", "VERSION", "TENANT", "REASON"];
        let rows = all.items.iter().map(|cluster| {
            [
                cluster.name.to_string(),
                cluster.state.to_string(),
                output::age(cluster.since, now),
                cluster.version.to_string(),
                output::or_dash(cluster.tenant.as_ref()),
                output::or_dash(cluster.reason.as_ref()),
            ]
        });
        output::table(header, rows)
    })
}
