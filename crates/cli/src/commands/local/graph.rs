//! The components in the order of their dependencies; those that do not wait for each other at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenkeel_core::{ComponentGraph, ComponentName};
use evenkeel_steps::Mode;
use futures::stream::{FuturesUnordered, StreamExt as _};

use super::COMPONENTS_AT_ONCE;
use super::inputs::Inputs;
use super::operation::Runner;
use super::progress::Progress;
use super::report::ComponentReport;

/// Runs every component. One that failed keeps those that wait for it from starting; the others go on.
pub(super) async fn run(
    graph: &ComponentGraph,
    inputs: &[Inputs],
    runner: &Runner,
    progress: &Progress,
) -> Vec<ComponentReport> {
    let by_name: BTreeMap<&ComponentName, &Inputs> =
        inputs.iter().map(|inputs| (&inputs.name, inputs)).collect();
    let mut waiting: BTreeSet<&ComponentName> = by_name.keys().copied().collect();
    let mut ended: BTreeMap<&ComponentName, ComponentReport> = BTreeMap::new();
    let mut running = FuturesUnordered::new();
    loop {
        for name in graph.order() {
            let Some(inputs) = by_name.get(name).copied().filter(|_| waiting.contains(name)) else {
                continue;
            };
            match start(graph, inputs, &ended, runner) {
                Start::Later => {}
                Start::Never(report) => {
                    waiting.remove(name);
                    progress.ended(&report);
                    ended.insert(&inputs.name, *report);
                }
                Start::Now if running.len() < COMPONENTS_AT_ONCE => {
                    waiting.remove(name);
                    running.push(one(inputs, runner, progress));
                }
                Start::Now => {}
            }
        }
        match running.next().await {
            Some((name, report)) => {
                ended.insert(name, report);
            }
            // Nothing runs: what could still start was started or refused above, for there is no cycle.
            None => break,
        }
    }
    graph
        .order()
        .iter()
        .filter_map(|name| ended.remove(name))
        .collect()
}

async fn one<'a>(
    inputs: &'a Inputs,
    runner: &Runner,
    progress: &Progress,
) -> (&'a ComponentName, ComponentReport) {
    let component = Arc::new(progress.component(&inputs.name));
    let retrying = |reason: &str| component.retrying(reason);
    let report = Box::pin(runner.run(inputs, Arc::clone(&component) as _, retrying)).await;
    component.finish(&report);
    progress.ended(&report);
    (&inputs.name, report)
}

/// When a component begins.
enum Start {
    Now,
    Later,
    Never(Box<ComponentReport>),
}

fn start(
    graph: &ComponentGraph,
    inputs: &Inputs,
    ended: &BTreeMap<&ComponentName, ComponentReport>,
    runner: &Runner,
) -> Start {
    if runner.cancel.is_cancelled() {
        return Start::Never(Box::new(ComponentReport::not_started(
            &inputs.name,
            &inputs.namespace,
        )));
    }
    // A plan depends on no other one.
    if runner.mode == Mode::DryRun {
        return Start::Now;
    }
    let mut all_ended = true;
    for dependency in graph.depends_on(&inputs.name) {
        match ended.get(dependency) {
            Some(report) if report.is_success() => {}
            Some(report) => {
                return Start::Never(Box::new(ComponentReport::skipped(
                    &inputs.name,
                    &inputs.namespace,
                    report,
                )));
            }
            None => all_ended = false,
        }
    }
    if all_ended { Start::Now } else { Start::Later }
}
