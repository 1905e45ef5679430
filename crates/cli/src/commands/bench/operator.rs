//! The operator: how soon a fleet that is as it should be is known to be so by a process that has just begun, what that costs, and
//! how soon a change is seen.

mod hosts;
mod land;
mod process;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use evenkeel_telemetry::Tasks;

use self::hosts::Hosts;
use self::land::{Land, cluster};
use self::process::Operator;
use super::figures::{Figures, Goal};
use super::sample::p99;
use crate::output;

/// How long all objects may take to become ready, and a process to look at all of them.
const SETTLING_MAX: Duration = Duration::from_secs(3_600);
/// How often it is asked how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// For how long nothing is written before things count as settled.
const QUIET: Duration = Duration::from_secs(3);
/// How long one change may take.
const CHANGE_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Clusters
    #[arg(long, value_name = "COUNT", default_value_t = 5_000)]
    clusters: usize,
    /// Tenants, to which the clusters belong in turn
    #[arg(long, value_name = "COUNT", default_value_t = 500)]
    tenants: usize,
    /// Changes, and new clusters, that are timed
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    changes: usize,
}

pub(super) async fn run(arguments: &Arguments, tasks: Tasks) -> anyhow::Result<Figures> {
    let folder = tempfile::Builder::new()
        .prefix("evenkeel-bench-")
        .tempdir()
        .context("a temporary folder cannot be made")?;
    let kubeconfig = folder.path().join("kubeconfig");
    let hosts = Hosts::start(&tasks).await?;
    output::note(&format!(
        "simulating {} tenants and {} clusters",
        arguments.tenants, arguments.clusters
    ));
    let land = Land::start(&hosts, arguments.tenants, arguments.clusters).await?;
    std::fs::write(&kubeconfig, land.kubeconfig()).context("the kubeconfig cannot be written")?;
    let bench = Bench { land, hosts };
    let figures = bench.run(arguments, &kubeconfig).await;
    bench.land.stop().await;
    figures
}

struct Bench {
    land: Land,
    hosts: Hosts,
}

impl Bench {
    async fn run(&self, arguments: &Arguments, kubeconfig: &Path) -> anyhow::Result<Figures> {
        let mut figures = Figures::default();
        output::note("an operator makes all of it ready");
        let first = Operator::start(kubeconfig, &self.hosts.url()).await?;
        let began = Instant::now();
        self.settle().await?;
        figures.told("first_sync_s", began.elapsed().as_secs_f64(), FIRST);
        first.kill().await?;

        output::note("another one starts");
        self.land.reset_requests();
        self.hosts.reset_reads();
        let written = self.hosts.writes();
        let wanted = self.land.count()?;
        let began = Instant::now();
        let mut operator = Operator::start(kubeconfig, &self.hosts.url()).await?;
        loop {
            let (passes, _) = operator.passes().await?;
            let reached = |(pipeline, count): (&&str, &usize)| {
                passes
                    .get(*pipeline)
                    .is_some_and(|passes| *passes >= *count as u64)
            };
            if wanted.iter().all(reached) {
                break;
            }
            if began.elapsed() > SETTLING_MAX {
                bail!("only so many passes were made: {passes:?}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let synced = began.elapsed();
        // What it does a moment later belongs to its start.
        tokio::time::sleep(QUIET).await;
        let (passes, other) = operator.passes().await?;
        let (requests, writes) = self.land.requests();
        let (most, reads) = self.hosts.most_read();
        output::note(&format!("passes: {passes:?}; read most often: {most}"));
        figures.goal(
            "restart_sync_s",
            synced.as_secs_f64(),
            Goal::AtMost(60.0),
            RESTART,
        );
        let peak = operator.peak()? as f64 / f64::from(1 << 20);
        figures.goal("rss_mb", peak, Goal::AtMost(200.0), MEMORY);
        let writes = writes + self.hosts.writes() - written;
        figures.goal("writes", writes, Goal::AtMost(0.0), WRITES);
        figures.goal(
            "backend_reads_per_subresource_max",
            reads,
            Goal::AtMost(1.0),
            READS,
        );
        figures.told(
            "backend_reads",
            self.hosts.reads(),
            "reads of all sub-resources at the start",
        );
        figures.told(
            "kubernetes_requests",
            requests,
            "requests to the Kubernetes API at the start",
        );
        figures.told("passes", passes.values().sum::<u64>(), "passes at the start");
        figures.told(
            "passes_not_unchanged",
            other,
            "and how many of them found anything to do",
        );

        output::note("changes of clusters");
        let mut times = Vec::new();
        for number in 0..arguments.changes.min(arguments.clusters) {
            let name = format!("changed {number}");
            let began = Instant::now();
            self.land.rename(number, &name)?;
            let path = format!("syn/{}/{}", self.land.tenant_of(number), cluster(number));
            self.hosts.described(&path, &name, CHANGE_MAX).await?;
            times.push(began.elapsed());
        }
        figures.goal("change_p99_ms", p99(&mut times), Goal::AtMost(1_000.0), CHANGE);

        output::note("new clusters");
        let mut times = Vec::new();
        for number in arguments.clusters..arguments.clusters + arguments.changes {
            let began = Instant::now();
            self.land.create_cluster(number)?;
            let path = format!("syn/{}", self.land.tenant_of(number));
            let file = format!("{}.yml", cluster(number));
            self.hosts.has_file(&path, &file, CHANGE_MAX).await?;
            times.push(began.elapsed());
            // Its Secret may not be there yet; then it waits, as at a cluster that is slow with tokens.
            let _ = self.land.issue(number);
        }
        figures.goal(
            "cluster_to_tenant_commit_p99_ms",
            p99(&mut times),
            Goal::AtMost(2_000.0),
            COMMIT,
        );
        let peak = operator.peak()? as f64 / f64::from(1 << 20);
        figures.told(
            "rss_at_the_end_mb",
            peak,
            "the most memory by the end of the bench",
        );
        operator.kill().await?;
        Ok(figures)
    }

    /// Waits until all is ready and nobody writes any more.
    async fn settle(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        let mut before = 0;
        loop {
            tokio::time::sleep(QUIET).await;
            let now = self.land.requests().1 + self.hosts.writes();
            if now == before {
                let (unready, example) = self.land.unready()?;
                if unready == 0 {
                    return Ok(());
                }
                if began.elapsed() > SETTLING_MAX {
                    bail!("{unready} objects are not ready: {example}");
                }
                output::note(&format!("{unready} objects are not ready yet: {example}"));
            }
            before = now;
        }
    }
}

const FIRST: &str =
    "seconds until all was made and ready, by the operator before; with three in which nothing happened";
const RESTART: &str = "seconds from the start of the process until it has looked at every object";
const MEMORY: &str = "the most memory of the process by then";
const WRITES: &str = "writes to Kubernetes, Git host and Vault by then";
const READS: &str = "how often the sub-resource was read by then that was read most often";
const CHANGE: &str = "99 of 100 changes of a Cluster are at the Git host within milliseconds";
const COMMIT: &str = "99 of 100 new Clusters are in the repository of their tenant within milliseconds";
