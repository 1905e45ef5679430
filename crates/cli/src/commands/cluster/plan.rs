//! `evenkeel cluster plan`: what the next reconciliation would do, field by field.

use anyhow::bail;
use clap::Args;
use evenkeel_api::{Client, ClusterPlan, ComponentPlan, PlannedWork};
use evenkeel_core::ClusterName;

use crate::diffs;
use crate::output::{self, OutputFormat};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The cluster's name
    name: ClusterName,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(super) async fn run(client: &Client, arguments: Arguments) -> anyhow::Result<()> {
    let plan = client.plan(&arguments.name).await?;
    output::print(arguments.output, &plan, || text(&plan))?;
    let unplanned = plan
        .components
        .iter()
        .filter(|component| component.plan.is_none())
        .count();
    if unplanned > 0 {
        bail!(
            "{unplanned} of {} components could not be planned",
            plan.components.len()
        );
    }
    Ok(())
}

fn text(plan: &ClusterPlan) -> String {
    let mut parts = vec![format!("cluster {} at version {}", plan.name, plan.version)];
    parts.extend(plan.components.iter().map(component));
    parts.join("\n\n")
}

fn component(component: &ComponentPlan) -> String {
    let mut title = component.name.to_string();
    if let Some(namespace) = &component.namespace {
        title.push_str(&format!(" in namespace {namespace}"));
    }
    if component.work != PlannedWork::Apply {
        title.push_str(&format!(" ({}, no longer asked for)", component.work.as_str()));
    }
    let Some(plan) = &component.plan else {
        return format!(
            "{title}: {}",
            component.reason.as_deref().unwrap_or("not planned")
        );
    };
    let mut text = format!("{title}: {plan}");
    if let Some(reason) = &component.reason {
        text.push_str(&format!("\n{reason}"));
    }
    if let Some(changes) = diffs::plan(plan, &component.diffs) {
        text.push('\n');
        text.push_str(&changes);
    }
    text
}
