//! `evenkeel cluster changes`: what was done to which object.

use clap::Args;
use evenkeel_api::{ChangePage, Client, ListChanges};
use evenkeel_core::{ClusterName, ComponentName, HumanDuration};
use jiff::SignedDuration;

use crate::output::{self, OutputFormat};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The cluster's name
    name: ClusterName,
    /// Only what this component did
    #[arg(long, value_name = "NAME")]
    component: Option<ComponentName>,
    /// Only objects of this kind, or this object: `Deployment`, `Deployment/web`
    #[arg(long, value_name = "KIND[/NAME]")]
    object: Option<String>,
    /// Only objects in this namespace
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Only of the last, like `24h`
    #[arg(long, value_name = "DURATION")]
    since: Option<HumanDuration>,
    /// The most changes
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(super) async fn run(client: &Client, arguments: Arguments) -> anyhow::Result<()> {
    let since = arguments.since.map(|since| {
        let since = SignedDuration::try_from(since.0).unwrap_or(SignedDuration::MAX);
        crate::now().saturating_sub(since).unwrap_or(jiff::Timestamp::MIN)
    });
    let (kind, name) = match arguments.object.as_deref().map(|object| object.split_once('/')) {
        Some(Some((kind, name))) => (Some(kind.to_owned()), Some(name.to_owned())),
        _ => (arguments.object.clone(), None),
    };
    let limit = arguments.limit as usize;
    let mut list = ListChanges {
        component: arguments.component,
        kind,
        namespace: arguments.namespace,
        name,
        since,
        limit: Some(arguments.limit),
        ..ListChanges::default()
    };
    let mut all = ChangePage {
        items: Vec::new(),
        next: None,
    };
    loop {
        let page = client.changes(&arguments.name, &list).await?;
        all.items.extend(page.items);
        all.next = page.next;
        if all.items.len() >= limit || all.next.is_none() {
            break;
        }
        list.after.clone_from(&all.next);
    }
    all.items.truncate(limit);
    output::print(arguments.output, &all, || {
        let rows = all.items.iter().map(|change| {
            [
                format!("{:.0}", change.at),
                change.action.to_string(),
                change.object.to_string(),
                change.component.to_string(),
                change.reconciliation.to_string(),
            ]
        });
        output::table(["AT", "ACTION", "OBJECT", "COMPONENT", "RECONCILIATION"], rows)
    })
}
