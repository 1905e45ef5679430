//! `evenkeel local`: components on one cluster, without a mothership.

mod arguments;
mod graph;
mod inputs;
mod kubeconfig;
mod operation;
mod progress;
mod report;

use std::sync::Arc;

use anyhow::Context;
use evenkeel_cluster::{Cluster, ConnectOptions, Limits, Owner};
use evenkeel_component::Reconciler;
use evenkeel_core::{ClusterSpec, ComponentGraph};
use evenkeel_source::{DirectoryPolicy, Sources};
use evenkeel_steps::Mode;
use evenkeel_telemetry::{SystemClock, Tasks};

use crate::process::Usage;
use progress::Progress;

pub(crate) use arguments::Arguments;
pub(crate) use inputs::Inputs;
pub(crate) use operation::{Intent, Runner};
pub(crate) use report::ComponentReport;

/// How many components are worked on at one time. Their requests share the client's own bound.
const COMPONENTS_AT_ONCE: usize = 4;

pub(crate) async fn run(arguments: Arguments, tasks: Tasks) -> anyhow::Result<()> {
    let components = arguments.components().map_err(Usage)?;
    let owner = Owner::new(&arguments.fleet_name, arguments.cluster_name.clone())
        .map_err(|error| Usage(error.into()))?;
    let (inputs, archives) = inputs::read(components, arguments.delete)?;
    let graph = graph(&arguments, &inputs)?;
    let cluster = tokio::select! {
        cluster = connect(&arguments) => cluster?,
        () = tasks.cancelled() => anyhow::bail!("interrupted: nothing was done"),
    };
    let sources = Sources::new(
        DirectoryPolicy::Anywhere,
        Arc::new(archives),
        Arc::new(SystemClock),
        tasks.clone(),
    );
    let runner = Runner {
        reconciler: Reconciler::new(Arc::new(sources), tasks.clone(), Arc::new(SystemClock))?,
        cluster,
        owner,
        intent: intent(&arguments),
        mode: if arguments.plan { Mode::DryRun } else { Mode::Live },
        timeout: arguments.timeout.0,
        cancel: tasks.token(),
    };
    let progress = Progress::new(arguments.output);
    let mut running = Box::pin(graph::run(&graph, &inputs, &runner, &progress));
    let components = tokio::select! {
        biased;
        () = tasks.cancelled() => {
            progress.note("stopping before the next object; Ctrl-C again ends at once");
            running.await
        }
        components = &mut running => components,
    };
    let report = report::Report::new(runner.cluster.server(), components, tasks.is_cancelled());
    report.print(arguments.output, arguments.plan)?;
    report.verdict()
}

fn intent(arguments: &Arguments) -> Intent {
    if arguments.delete {
        Intent::Delete
    } else {
        Intent::Apply {
            adopt: arguments.adopt,
            wait: arguments.wait,
        }
    }
}

/// In which order the components go; what the types of the arguments cannot check is checked here.
fn graph(arguments: &Arguments, inputs: &[Inputs]) -> anyhow::Result<ComponentGraph> {
    let spec = ClusterSpec {
        name: arguments.cluster_name.clone(),
        tenant: None,
        group: None,
        labels: Default::default(),
        components: inputs.iter().map(Inputs::spec).collect(),
    };
    let graph = spec.validate().map_err(|error| Usage(error.into()))?;
    Ok(if arguments.delete { graph.reversed() } else { graph })
}

/// A client, after the first contact: what keeps every component from being looked at is said once.
async fn connect(arguments: &Arguments) -> anyhow::Result<Cluster> {
    let own = kubeconfig::read(
        arguments.kubeconfig.as_deref(),
        arguments.context.as_deref(),
        arguments.allow_exec,
    )?;
    let options = ConnectOptions {
        policy: own.policy,
        limits: Limits::default(),
        clock: Arc::new(SystemClock),
    };
    let cluster = Cluster::connect(&own.content, options)
        .await
        .with_context(|| format!("{} cannot be used", own.name))?;
    tokio::try_join!(cluster.kubernetes_version(), cluster.discovery())
        .with_context(|| format!("the cluster of {} cannot be used", own.name))?;
    Ok(cluster)
}
