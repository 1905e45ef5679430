//! `evenkeel operator plan`: what would be done, step by step. Nothing is changed.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use clap::Args;
use evenkeel_operator::{ObjectPlan, OperatorSettings, PlannedKind, Planner, Scope, Selection};
use evenkeel_telemetry::{SystemClock, Tasks};
use kube::Client;

use super::arguments::Shared;
use crate::documents;
use crate::output::{self, OutputFormat};
use crate::process::{Differs, Usage};

/// Show what the operator would do: for each object the steps, what each would change, and why others would not run.
#[derive(Debug, Args)]
#[command(next_line_help = true, after_help = EXIT_STATUS)]
pub(crate) struct Arguments {
    /// An object, as kind/name or kind/namespace/name, such as cluster/c-one; without any, all that are looked after
    #[arg(value_name = "OBJECT", conflicts_with = "files")]
    objects: Vec<String>,
    /// Objects as somebody would apply them: what would be done once they had; `-` reads standard input
    #[arg(short, long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Show only objects that would be changed, waited for, or failed
    #[arg(long)]
    changed: bool,
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    shared: Shared,
}

const EXIT_STATUS: &str = "\
Nothing is written at the API server, at no Git host and not in Vault; logging in there is all that is asked for. No secret is shown.

Exit status: 0 nothing would be changed, 1 failed, 2 something would be changed (or wrong usage, which prints nothing on standard output).";

pub(super) async fn run(arguments: Arguments, tasks: Tasks) -> anyhow::Result<()> {
    let settings = arguments.shared.settings().map_err(Usage)?;
    let selections = arguments.selections(&settings).map_err(Usage)?;
    let mut config = arguments.shared.config().await?;
    // Nobody passes again: a server that has only begun with a kind, or has enough for a moment, is asked once more by the client.
    config.default_retry = true;
    let client = Client::try_from(config).context("the cluster cannot be used")?;
    let planner = Planner::new(&settings, client, Arc::new(SystemClock), tasks)?;
    let mut plans = Vec::new();
    for selection in &selections {
        plans.extend(planner.plan(selection).await?);
    }
    for file in &arguments.files {
        for (place, document) in documents::trees(file)? {
            match planner.plan_applied(&document).await.context(place)? {
                Some(plan) => plans.push(plan),
                None => output::note(&format!(
                    "left out: {} {}, which is not looked after",
                    document["kind"].as_str().unwrap_or("an object"),
                    document["metadata"]["name"].as_str().unwrap_or_default()
                )),
            }
        }
    }
    let differs = plans.iter().any(ObjectPlan::has_changes);
    if arguments.changed {
        plans.retain(|plan| plan.conclusion != "unchanged");
    }
    output::print(arguments.output, &plans, || text(&plans))?;
    if differs { Err(Differs.into()) } else { Ok(()) }
}

fn text(plans: &[ObjectPlan]) -> String {
    let changed = plans.iter().filter(|plan| plan.has_changes()).count();
    let mut text: String = plans.iter().map(|plan| format!("{plan}\n")).collect();
    text += &format!("{} objects, of which {changed} would be changed", plans.len());
    text
}

impl Arguments {
    fn selections(&self, settings: &OperatorSettings) -> anyhow::Result<Vec<Selection>> {
        if self.objects.is_empty() {
            return Ok(if self.files.is_empty() {
                vec![Selection::All]
            } else {
                Vec::new()
            });
        }
        let home = match &settings.scope {
            Scope::Namespace(namespace) => Some(namespace.as_str()),
            Scope::All => None,
        };
        self.objects.iter().map(|text| selection(text, home)).collect()
    }
}

/// An object as people name it.
fn selection(text: &str, home: Option<&str>) -> anyhow::Result<Selection> {
    let parts: Vec<&str> = text.split('/').collect();
    let (kind, namespace, name) = match (&parts[..], home) {
        ([kind, name], Some(home)) => (kind, home, name),
        ([kind, namespace, name], _) => (kind, *namespace, name),
        ([_, _], None) => {
            return Err(anyhow!(
                "{text:?} names no namespace: write it as kind/namespace/name"
            ));
        }
        _ => {
            return Err(anyhow!(
                "{text:?} is no object: write it as kind/name, such as cluster/c-one"
            ));
        }
    };
    let kind = PlannedKind::parse(kind)
        .ok_or_else(|| anyhow!("{kind:?} is no kind that is looked after: tenant, cluster or gitrepo"))?;
    Ok(Selection::One {
        kind,
        namespace: namespace.to_owned(),
        name: (*name).to_owned(),
    })
}
