//! Looking at an unchanged component of 100 objects in 10 kinds: how many requests, how long.

pub(super) mod chart;
mod server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use evenkeel_cluster::{
    Cluster, ConnectOptions, Expected, KubeconfigPolicy, Limits, Owner, RequestCounts, Verdict,
};
use evenkeel_component::{Agreement, Reconciler};
use evenkeel_core::{ClusterName, ComponentName, Namespace, Sensitive, SourceRef};
use evenkeel_source::{DirectoryPolicy, NoArchives, Sources};
use evenkeel_steps::{Mode, Unobserved};
use evenkeel_telemetry::{SystemClock, Tasks};

use self::server::{Counted, Server};
use super::figures::{Figures, Goal};
use super::sample::{median, millis};
use crate::commands::local::{ComponentReport, Inputs, Intent, Runner};
use crate::output;

/// How often the unchanged component is looked at.
const CHECKS: usize = 25;
/// How often it is looked at before that, at most, for controllers that still write statuses, and the pause between.
const SETTLING_CHECKS: usize = 100;
const SETTLING_PAUSE: Duration = Duration::from_millis(50);
/// How long the component may take to become ready.
const TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// On a simulated cluster instead of a real API server
    #[arg(long)]
    simulated: bool,
}

pub(super) async fn run(arguments: &Arguments, tasks: Tasks) -> anyhow::Result<Figures> {
    let folder = tempfile::Builder::new()
        .prefix("evenkeel-bench-")
        .tempdir()
        .context("a temporary folder cannot be made")?;
    let path = folder
        .path()
        .to_str()
        .context("the temporary folder's path is not UTF-8")?;
    chart::write(folder.path())?;
    if !arguments.simulated {
        output::note("starting a real API server");
    }
    let server = Server::start(arguments.simulated, &tasks).await?;
    let figures = Box::pin(Bench::connect(&server, path, tasks)).await?.run().await;
    server.stop().await;
    figures
}

/// The component and its cluster.
struct Bench<'a> {
    server: &'a Server,
    inputs: Inputs,
    runner: Runner,
}

impl<'a> Bench<'a> {
    async fn connect(server: &'a Server, path: &str, tasks: Tasks) -> anyhow::Result<Self> {
        let options = ConnectOptions {
            policy: KubeconfigPolicy::Registered,
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
        };
        let cluster = Cluster::connect(&Sensitive::new(server.kubeconfig().to_owned()), options).await?;
        // What a client asks once in its life is no part of a look at a component.
        tokio::try_join!(cluster.uid(), cluster.kubernetes_version(), cluster.discovery())?;
        let sources = Sources::new(
            DirectoryPolicy::Anywhere,
            Arc::new(NoArchives),
            Arc::new(SystemClock),
            tasks.clone(),
        );
        let runner = Runner {
            reconciler: Reconciler::new(Arc::new(sources), tasks.clone(), Arc::new(SystemClock))?,
            cluster,
            owner: Owner::new("bench", ClusterName::new("bench")?)?,
            agreement: Agreement::Nothing,
            siblings: None,
            intent: Intent::Apply {
                adopt: false,
                on_conflict: Default::default(),
                wait: true,
            },
            mode: Mode::Live,
            timeout: TIMEOUT,
            cancel: tasks.token(),
        };
        let inputs = Inputs {
            name: ComponentName::new("bench")?,
            source: SourceRef::Directory {
                path: path.to_owned(),
            },
            namespace: Namespace::new("bench")?,
            values: Default::default(),
            depends_on: Vec::new(),
            readiness: Default::default(),
            hooks: Default::default(),
        };
        Ok(Self {
            server,
            inputs,
            runner,
        })
    }

    async fn run(&self) -> anyhow::Result<Figures> {
        let mut figures = Figures::default();
        output::note("installing one component of 100 objects in 10 kinds");
        let (installed, counted) = self.operation().await?;
        // The namespace comes on top.
        if installed.objects.created != chart::OBJECTS + 1 {
            bail!(
                "{} objects were created, expected {}",
                installed.objects.created,
                chart::OBJECTS + 1
            );
        }
        let (install_seconds, install_requests) = (installed.seconds, counted.requests);

        let considered = self
            .runner
            .reconciler
            .consider(&self.target(), &self.inputs.spec())
            .await?;
        let expected = [Expected {
            component: self.inputs.name.clone(),
            inputs: Some(considered.all),
            readiness: Default::default(),
        }];
        self.settle(&expected).await?;
        let (mut times, mut requests, mut writes) = (Vec::new(), Vec::new(), 0);
        for _ in 0..CHECKS {
            let (time, counted) = self.check(&expected).await?;
            times.push(time);
            requests.push(counted.requests);
            writes += counted.writes;
        }
        let worst = requests.iter().copied().max().unwrap_or_default();
        figures.goal(
            "noop_requests",
            worst,
            Goal::AtMost((chart::KINDS + 1) as f64),
            format!("requests of one check of the unchanged component, the most of {CHECKS}, counted at the server"),
        );
        figures.goal(
            "noop_writes",
            writes,
            Goal::AtMost(0.0),
            format!("writes of all {CHECKS} checks, counted at the server"),
        );
        figures.told("noop_ms", millis(median(times)), "one such check");

        let (again, counted) = self.operation().await?;
        if again.objects.unchanged != chart::OBJECTS || !counted.is_read_only() {
            bail!("an operation on the unchanged component changed something: {counted:?}");
        }
        figures.told(
            "operation_requests",
            counted.requests,
            "requests of a whole operation on the unchanged component, render included",
        );
        figures.told("operation_ms", again.seconds * 1_000.0, "that operation");
        figures.told(
            "install_ms",
            install_seconds * 1_000.0,
            "installing it, until everything is ready",
        );
        figures.told("install_requests", install_requests, "requests of that");
        Ok(figures)
    }

    fn target(&self) -> evenkeel_cluster::ComponentTarget {
        self.runner
            .cluster
            .component(&self.runner.owner, &self.inputs.name)
    }

    /// One operation, which must succeed, and what the server was asked for it.
    async fn operation(&self) -> anyhow::Result<(ComponentReport, Counted)> {
        let mark = self.server.mark()?;
        let report = Box::pin(self.runner.run(&self.inputs, Arc::new(Unobserved), |_| {})).await;
        if !report.is_success() {
            bail!(
                "the component failed: {}",
                report.reason.as_deref().unwrap_or("no reason was given")
            );
        }
        Ok((report, self.server.since(&mark)?))
    }

    /// Checks until the controllers have written the last of their statuses: each such write is worth one GET, once.
    async fn settle(&self, expected: &[Expected]) -> anyhow::Result<()> {
        for _ in 0..SETTLING_CHECKS {
            let (_, counted) = self.check(expected).await?;
            if counted.requests <= chart::KINDS as u64 + 1 {
                break;
            }
            tokio::time::sleep(SETTLING_PAUSE).await;
        }
        Ok(())
    }

    /// One check, which must find nothing, and what the server was asked for it.
    async fn check(&self, expected: &[Expected]) -> anyhow::Result<(Duration, Counted)> {
        let (mark, sent) = (self.server.mark()?, self.runner.cluster.requests());
        let started = Instant::now();
        let check = self.runner.cluster.check(&self.runner.owner, expected).await?;
        let time = started.elapsed();
        match check.components.get(&self.inputs.name) {
            Some(Verdict::Unchanged) => {}
            verdict => bail!("the component should be unchanged, and is {verdict:?}"),
        }
        let counted = self.server.since(&mark)?;
        agree(&counted, &self.runner.cluster.requests().since(&sent))?;
        Ok((time, counted))
    }
}

/// Both ends must have counted the same, or the count is not to be trusted.
fn agree(counted: &Counted, sent: &RequestCounts) -> anyhow::Result<()> {
    if counted.requests != sent.total() || counted.writes != sent.writes() {
        bail!(
            "the server counted {} requests and {} writes, the client {} and {}",
            counted.requests,
            counted.writes,
            sent.total(),
            sent.writes()
        );
    }
    Ok(())
}
