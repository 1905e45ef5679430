//! The scheduler: what a pass costs in a small and in a large inventory and in rows, how soon a change is claimed on an idle
//! and on a busy fleet, and how soon an installation in three stages is ready.

mod cost;
mod fleet;

use anyhow::Context as _;
use clap::Args;
use evenkeel_telemetry::Tasks;

use self::fleet::Bench;
use super::figures::{Figures, Goal};
use crate::output;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Clusters of the large inventory, all of them due by interval while changes are claimed
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    clusters: usize,
    /// Clusters of the small inventory
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    few: usize,
    /// Changes whose claims are timed, on the idle and on the busy fleet each
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    changes: usize,
}

pub(super) async fn run(arguments: &Arguments, tasks: Tasks) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    output::note(&format!(
        "passes over {} clusters in an inventory of {} and one of {}",
        cost::PASSES,
        arguments.few,
        arguments.clusters
    ));
    // In the working directory: a temporary one may be in memory, where no commit waits for a disk.
    let folder = tempfile::Builder::new()
        .prefix("evenkeel-bench-")
        .tempdir_in(".")
        .context("a folder cannot be made here")?;
    let ratio = cost::ratio(folder.path(), arguments.few, arguments.clusters).await?;
    figures.goal("cost_ratio_100k_to_1k", ratio.ratio, Goal::AtMost(1.1), RATIO);
    figures.told(
        "pass_us_1k",
        ratio.few_micros,
        "microseconds of a pass in the small inventory",
    );
    figures.told("pass_us_100k", ratio.many_micros, "and in the large one");

    output::note("rows of passes");
    let bench = Bench::start(&folder.path().join("idle"), 0, tasks.clone()).await?;
    let rows = bench.rows().await?;
    figures.goal("rows_per_changed_pass", rows.changed, Goal::AtMost(10.0), CHANGED);
    figures.goal(
        "rows_per_further_component",
        rows.further,
        Goal::AtMost(3.0),
        FURTHER,
    );
    figures.goal("rows_per_noop_pass", rows.noop, Goal::AtMost(1.0), NOOP);

    output::note("an installation in three stages");
    let ready = bench.install_ready().await?;
    figures.goal("install_ready_s", ready, Goal::AtMost(3.0), INSTALL);

    output::note("changes of an idle fleet");
    let idle = bench.change_to_claim(arguments.changes).await?;
    figures.goal("idle.change_to_claim_p99_ms", idle, Goal::AtMost(50.0), CLAIM);
    bench.stop().await;
    output::note(&format!("changes while {} clusters are due", arguments.clusters));
    let bench = Bench::start(&folder.path().join("busy"), arguments.clusters, tasks).await?;
    let busy = bench.change_to_claim(arguments.changes).await?;
    figures.goal("busy.change_to_claim_p99_ms", busy, Goal::AtMost(50.0), CLAIM);
    let left = bench.still_due().await?;
    figures.told(
        "busy.due_at_the_end",
        left,
        "clusters that were still due when the last change was claimed",
    );
    bench.stop().await;
    Ok(figures)
}

const RATIO: &str = "time of a pass over an unchanged cluster, in the large inventory to the small one";
const CHANGED: &str = "rows that a run over one changed component adds";
const FURTHER: &str = "and that it adds for each further changed component";
const NOOP: &str = "rows that a check writes which finds nothing to do";
const INSTALL: &str =
    "seconds from the request to ready: definitions, a mesh, two components on it, half a second each";
const CLAIM: &str = "99 of 100 changes are claimed within milliseconds after they were sent";
