//! `evenkeel local`: components on one cluster, without a mothership.

mod arguments;
mod elsewhere;
mod graph;
mod inputs;
mod operation;
mod progress;
mod report;

use std::sync::Arc;

use anyhow::Context;
use evenkeel_cluster::{Cluster, Owner};
use evenkeel_component::{Kustomize, Reconciler, SiblingSet};
use evenkeel_core::{ClusterSpec, ComponentGraph};
use evenkeel_source::{DirectoryPolicy, Sources};
use evenkeel_steps::Mode;
use evenkeel_telemetry::{CancellationToken, SystemClock, Tasks};

use crate::kubeconfig;
use crate::process::Usage;
use progress::Progress;

pub(crate) use arguments::Arguments;
pub(crate) use inputs::Inputs;
pub(crate) use operation::{Intent, Runner};
pub(crate) use report::ComponentReport;

/// How many components are worked on at one time. Their requests share the client's own bound.
const COMPONENTS_AT_ONCE: usize = 4;

/// `evenkeel plan`: the same as `evenkeel local --plan`.
pub(crate) async fn plan(mut arguments: Arguments, tasks: Tasks) -> anyhow::Result<()> {
    arguments.plan = true;
    Box::pin(run(arguments, tasks)).await
}

pub(crate) async fn run(arguments: Arguments, tasks: Tasks) -> anyhow::Result<()> {
    let components = arguments.components().map_err(Usage)?;
    let agreement = arguments.agreement().map_err(Usage)?;
    let owner = Owner::new(&arguments.fleet_name, arguments.cluster_name.clone())
        .map_err(|error| Usage(error.into()))?;
    let kustomize = arguments.kustomize.named_or_found()?;
    let (archives, fetched) = if arguments.delete {
        Default::default()
    } else {
        tokio::select! {
            fetched = elsewhere::fetch(&arguments, &components, &tasks) => fetched?,
            () = tasks.cancelled() => anyhow::bail!("interrupted: nothing was done"),
        }
    };
    let (inputs, archives) = inputs::read(
        components,
        archives,
        &fetched,
        arguments.delete,
        arguments.hooks(),
    )?;
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
    let reconciler = Reconciler::new(Arc::new(sources), tasks.clone(), Arc::new(SystemClock))?;
    let mut reconciler = reconciler.with_render_limits(arguments.limits.limits());
    if let Some(options) = kustomize {
        reconciler = reconciler.with_kustomize(Kustomize::new(options));
    }
    // Its own token, cancelled below: the user is told of the stop before anything stops.
    let stop = CancellationToken::new();
    let runner = Runner {
        reconciler,
        cluster,
        owner,
        intent: intent(&arguments),
        agreement,
        siblings: siblings(&arguments, &inputs),
        mode: if arguments.plan { Mode::DryRun } else { Mode::Live },
        timeout: arguments.timeout.0,
        cancel: stop.clone(),
    };
    let progress = Progress::new(arguments.output);
    let mut running = Box::pin(graph::run(&graph, &inputs, &runner, &progress));
    let components = tokio::select! {
        biased;
        () = tasks.cancelled() => {
            progress.note("stopping before the next object; Ctrl-C again ends at once");
            stop.cancel();
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
        Intent::Delete {
            wait: arguments.wait,
            strip_finalizers: arguments.strip_finalizers,
        }
    } else {
        Intent::Apply {
            adopt: arguments.adopt,
            on_conflict: arguments.on_conflict,
            wait: arguments.wait,
        }
    }
}

/// The components among which objects may move; none where they only go.
fn siblings(arguments: &Arguments, inputs: &[Inputs]) -> Option<Arc<SiblingSet>> {
    let siblings = || SiblingSet::new(inputs.iter().map(Inputs::sibling).collect());
    (!arguments.delete && inputs.len() > 1).then(|| Arc::new(siblings()))
}

/// In which order the components go; what the types of the arguments cannot check is checked here.
fn graph(arguments: &Arguments, inputs: &[Inputs]) -> anyhow::Result<ComponentGraph> {
    let spec = ClusterSpec {
        name: arguments.cluster_name.clone(),
        tenant: None,
        group: None,
        labels: Default::default(),
        schedule: Default::default(),
        components: inputs.iter().map(Inputs::spec).collect(),
    };
    let graph = spec.validate().map_err(|error| Usage(error.into()))?;
    Ok(if arguments.delete { graph.reversed() } else { graph })
}

/// A client, after the first contact: what keeps every component from being looked at is said once.
async fn connect(arguments: &Arguments) -> anyhow::Result<Cluster> {
    let overrides = kubeconfig::Overrides {
        context: arguments.context.clone(),
        ..Default::default()
    };
    let own = kubeconfig::read(arguments.kubeconfig.as_deref(), &overrides, arguments.allow_exec)?;
    let cluster = own.connect().await?;
    tokio::try_join!(cluster.kubernetes_version(), cluster.discovery())
        .with_context(|| format!("the cluster of {} cannot be used", own.name))?;
    Ok(cluster)
}
