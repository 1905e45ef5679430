//! Applying: whole processes against Helm, kubectl and Flux at one real API server; and how long drift lives.
//!
//! The programs take turns, each in a namespace of its own that exists already, and none begins before the controllers
//! have come to rest. None waits for anything to become ready.

mod bystander;
mod chart;
mod drift;
mod programs;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use evenkeel_cluster::TrackedSize;
use evenkeel_realparts::{Cluster, ControlPlane};
use evenkeel_telemetry::Tasks;

use self::bystander::Bystander;
use self::programs::{Act, Program, Programs};
use super::children;
use super::figures::{Figures, Goal};
use super::sample::{median, millis, p99};
use crate::output;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// How many times each program installs the chart and applies it again, in turn
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// How many objects of each of ten kinds the chart has
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
    objects: u16,
    /// How many edits of others are healed
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    edits: u16,
}

/// Of how many objects the memory is measured that watching takes.
const TRACKED: usize = 100_000;

/// What the keys of the JSON object mean.
pub(super) const KEYS: &str = "\
Keys of the JSON object (ratios of medians, whole processes, ours over theirs):
  install_vs_helm, install_vs_kubectl, install_vs_flux   first install of the chart
  noop_vs_helm, noop_vs_kubectl, noop_vs_flux            the same again, nothing changed
  install_ms, noop_ms, install_helm_ms, ...              the medians themselves
  drift_heal_p99_ms, drift_heal_ms                       how long the edit of somebody else lives
  bytes_per_object                                       memory for each object that is watched

Needs what `cargo xtask setup` prepares: control plane, helm, kubectl, fluxssa.";

/// What one program took, run by run.
#[derive(Debug, Default)]
struct Times {
    install: Vec<Duration>,
    again: Vec<Duration>,
}

pub(super) async fn run(arguments: &Arguments, tasks: Tasks) -> anyhow::Result<Figures> {
    let folder = tempfile::Builder::new()
        .prefix("evenkeel-bench-")
        .tempdir()
        .context("a temporary folder cannot be made")?;
    output::note("starting a real API server");
    let start = || {
        let control_plane = ControlPlane::start()?;
        let cluster = control_plane.start_cluster("bench")?;
        Ok::<_, evenkeel_realparts::Error>((control_plane, cluster))
    };
    let started = tasks.blocking("start a control plane", start).await?;
    let (_control_plane, cluster) = started.context("no real API server can be had")?;
    chart::write(&folder.path().join(programs::CHART), arguments.objects)?;
    let bench = Bench {
        programs: Programs::find(cluster.kubeconfig_file(), folder.path())?,
        bystander: Bystander::connect(cluster.kubeconfig()).await?,
        objects: arguments.objects,
        tasks,
    };
    let mut figures = Figures::default();
    bench.compare(&mut figures, arguments.rounds).await?;
    output::note("healing edits of others");
    heal(&mut figures, arguments, &cluster, &bench, folder.path()).await?;
    let tracked = TrackedSize::measure(TRACKED);
    figures.goal(
        "bytes_per_object",
        tracked.bytes_per_object(),
        Goal::AtMost(64.0),
        format!("memory for each watched object, of {}", tracked.objects),
    );
    Ok(figures)
}

/// The programs and the cluster they work on.
struct Bench {
    programs: Programs,
    bystander: Bystander,
    objects: u16,
    tasks: Tasks,
}

impl Bench {
    /// Lets all programs install the chart and apply it again, and tells how their times compare.
    async fn compare(&self, figures: &mut Figures, rounds: u16) -> anyhow::Result<()> {
        let mut times = [(); Program::ALL.len()].map(|()| Times::default());
        // The first round is not counted: programs fill their caches, and what they do is compared.
        for round in 0..=rounds {
            output::note(&match round {
                0 => format!(
                    "each program installs {} objects once, unmeasured",
                    usize::from(self.objects) * chart::KINDS
                ),
                _ => format!("round {round} of {rounds}"),
            });
            self.round(round, &mut times).await?;
        }
        tell(figures, &times, usize::from(self.objects) * chart::KINDS);
        Ok(())
    }

    async fn round(&self, round: u16, times: &mut [Times; Program::ALL.len()]) -> anyhow::Result<()> {
        let name = |program: Program| format!("{}-{round}", program.name());
        let namespaces = Program::ALL.map(name);
        for namespace in &namespaces {
            self.bystander.create_namespace(namespace).await?;
            self.programs.render(namespace)?;
        }
        let mut turns: Vec<_> = Program::ALL.into_iter().zip(times).collect();
        // Another one begins each round, so that none has always the same one before it.
        turns.rotate_left(usize::from(round) % Program::ALL.len());
        for (program, times) in turns {
            let name = name(program);
            let [install, again] =
                [Act::Install, Act::Again].map(|act| self.programs.apply(program, act, &name));
            if round == 0 {
                self.unmeasured(install).await?;
                self.unmeasured(again).await?;
                self.check(program, &name).await?;
                continue;
            }
            times.install.push(self.measured(install).await?);
            times.again.push(self.measured(again).await?);
        }
        // What is left in the cluster would make later rounds slower.
        self.unmeasured(self.programs.delete(&name(Program::Evenkeel)))
            .await?;
        self.bystander.delete_namespaces(&namespaces).await
    }

    async fn measured(&self, command: Command) -> anyhow::Result<Duration> {
        self.bystander.settle().await?;
        let used = self
            .tasks
            .blocking("a program", move || children::measure(&command))
            .await??;
        Ok(used.time)
    }

    async fn unmeasured(&self, mut command: Command) -> anyhow::Result<()> {
        self.tasks
            .blocking("a program", move || programs::run(&mut command))
            .await??;
        Ok(())
    }

    /// A comparison of times says something only while all do the same.
    async fn check(&self, program: Program, namespace: &str) -> anyhow::Result<()> {
        for resource in chart::kinds() {
            let found = self.bystander.count(&resource, namespace).await?;
            if found != usize::from(self.objects) {
                bail!(
                    "{} left {found} objects of kind {}, expected {}: there is nothing to compare",
                    program.name(),
                    resource.kind,
                    self.objects
                );
            }
        }
        Ok(())
    }
}

/// The figures of whole processes: medians, and their quotients.
fn tell(figures: &mut Figures, times: &[Times; Program::ALL.len()], objects: usize) {
    let [ours, helm, kubectl, flux] = times;
    let of = |times: &Vec<Duration>| millis(median(times.clone()));
    let ratio = |a: &Vec<Duration>, b: &Vec<Duration>| of(a) / of(b).max(f64::EPSILON);
    let (install, again) = (&ours.install, &ours.again);
    for (name, theirs, most, peer) in [
        ("install_vs_helm", &helm.install, 0.5, "`helm install`"),
        (
            "install_vs_kubectl",
            &kubectl.install,
            0.5,
            "`kubectl apply --server-side`",
        ),
        ("install_vs_flux", &flux.install, 0.3, "Flux's apply engine"),
    ] {
        let meaning = format!(
            "`evenkeel local --wait=false` installing {objects} objects over {peer}, whole processes"
        );
        figures.goal(name, ratio(install, theirs), Goal::AtMost(most), meaning);
    }
    for (name, theirs, most, peer) in [
        ("noop_vs_helm", &helm.again, 0.03, "`helm upgrade`"),
        (
            "noop_vs_kubectl",
            &kubectl.again,
            0.08,
            "`kubectl apply --server-side`",
        ),
        ("noop_vs_flux", &flux.again, 0.1, "Flux's apply engine"),
    ] {
        let meaning = format!("the same with nothing changed over {peer}");
        figures.goal(name, ratio(again, theirs), Goal::AtMost(most), meaning);
    }
    for (name, times, meaning) in [
        (
            "install_ms",
            &ours.install,
            "`evenkeel local --wait=false`, first install",
        ),
        ("install_helm_ms", &helm.install, "`helm install`"),
        (
            "install_kubectl_ms",
            &kubectl.install,
            "`kubectl apply --server-side`, first install",
        ),
        (
            "install_flux_ms",
            &flux.install,
            "Flux's apply engine, first install",
        ),
        (
            "noop_ms",
            &ours.again,
            "`evenkeel local --wait=false`, nothing changed",
        ),
        ("noop_helm_ms", &helm.again, "`helm upgrade`, nothing changed"),
        (
            "noop_kubectl_ms",
            &kubectl.again,
            "`kubectl apply --server-side`, nothing changed",
        ),
        (
            "noop_flux_ms",
            &flux.again,
            "Flux's apply engine, nothing changed",
        ),
    ] {
        figures.told(name, of(times), meaning);
    }
}

/// How long foreign edits live.
async fn heal(
    figures: &mut Figures,
    arguments: &Arguments,
    cluster: &Cluster,
    bench: &Bench,
    folder: &std::path::Path,
) -> anyhow::Result<()> {
    let edits = usize::from(arguments.edits);
    let measured = drift::measure(cluster.kubeconfig(), folder, &bench.bystander, edits);
    let mut times = Box::pin(measured).await?;
    figures.goal(
        "drift_heal_p99_ms",
        p99(&mut times),
        Goal::AtMost(1_000.0),
        format!("99 of 100 of {edits} edits of others are undone by a mothership within this time"),
    );
    figures.told("drift_heal_ms", millis(median(times)), "half of them");
    Ok(())
}
