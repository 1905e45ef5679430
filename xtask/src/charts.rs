//! `cargo xtask charts DIR`: renders charts with Helm and with Evenkeel, and tells where they differ.
//!
//! ```text
//! DIR ─▶ discovery ─▶ each chart ─▶ values (default, ci files, generated) + flags = one case
//!                                      │
//!              helm twice, evenkeel once (engine) ─▶ comparison (mask, fault) ─▶ report
//! ```
//!
//! Helm is run twice, since a third of the public charts print passwords, keys or times that are new with each run: what
//! differs between Helm and Helm is masked. Each case is written down so that it can be repeated by hand.

mod case;
mod comparison;
mod discovery;
mod engine;
mod fault;
mod generate;
mod mask;
mod report;
mod seed;
mod values;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::charts::case::Case;
use crate::charts::comparison::Class;
use crate::charts::discovery::ChartPath;
use crate::charts::engine::{Engines, Pair};
use crate::charts::report::{Finished, Report};
use crate::process::{cargo, run_quietly, target_directory};
use crate::repository::Repository;

/// Runs of Helm that are added when two do not explain a difference: an order of keys that Go takes anew each time
/// comes out alike in two runs often enough.
const MORE_RUNS: usize = 10;

/// Between those, so that some of them fall into another second for charts that print the time.
const BETWEEN_RUNS: Duration = Duration::from_millis(120);

/// Arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder whose charts are rendered: those with a Chart.yaml that do not lie in another chart, and archives.
    directory: PathBuf,

    /// Only charts whose path contains this text; may be given more than once.
    #[arg(long = "chart", value_name = "TEXT")]
    charts: Vec<String>,

    /// Processes at the same time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,

    /// Sets of values for each chart besides its own: first the files it carries, then generated ones.
    #[arg(long, value_name = "N", default_value_t = 4)]
    values_sets: usize,

    /// Where the generator of values begins. The same seed makes the same sets.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// The `evenkeel` binary, instead of building it with optimizations.
    #[arg(long, value_name = "FILE")]
    engine: Option<PathBuf>,

    /// Where sets of values and differing outputs are written; by default `charts` beside the build's own folders.
    #[arg(long, value_name = "DIRECTORY")]
    work: Option<PathBuf>,

    /// Lines of each difference that are shown.
    #[arg(long, value_name = "N", default_value_t = 24)]
    diff_lines: usize,

    /// Charts that we render less than this many times faster than Helm are listed.
    #[arg(long, value_name = "TIMES", default_value_t = 5.0)]
    slower_than: f64,

    /// Print the counts as JSON in the last line.
    #[arg(long)]
    json: bool,
}

/// Runs the command. Fails when any case is different.
pub(crate) fn run(repository: &Repository, arguments: &Arguments) -> Result<()> {
    let engine = match &arguments.engine {
        Some(file) => file.clone(),
        None => build(repository)?,
    };
    let report = compare(arguments, &engine)?;
    report.print(arguments.diff_lines, arguments.slower_than);
    if arguments.json {
        println!("{}", report.json());
    }
    match report.count(Class::Different) {
        0 => Ok(()),
        different => bail!("{different} of {} runs are different", report.runs()),
    }
}

/// Builds the binary as it is shipped: the speed is compared as well.
fn build(repository: &Repository) -> Result<PathBuf> {
    let mut command = cargo(repository);
    command.args(["build", "--release", "--package", "evenkeel-cli"]);
    run_quietly("building evenkeel", &mut command)?;
    Ok(target_directory()?.join("release/evenkeel"))
}

/// Renders everything with both engines.
fn compare(arguments: &Arguments, engine: &Path) -> Result<Report> {
    let directory = std::path::absolute(&arguments.directory)?;
    let mut charts = discovery::charts(&directory)?;
    charts.retain(|chart| {
        arguments.charts.is_empty()
            || arguments
                .charts
                .iter()
                .any(|text| chart.name().contains(text.as_str()))
    });
    if charts.is_empty() {
        bail!(
            "no chart below {}: is the folder right, and the filter?",
            directory.display()
        );
    }
    let work = match &arguments.work {
        Some(work) => std::path::absolute(work)?,
        None => target_directory()?.join("charts"),
    };
    let engines = Engines::new(engine, &work)?;

    let next = AtomicUsize::new(0);
    let report = Mutex::new(Report::new(charts.len()));
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(|| {
                while let Some(chart) = charts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match compare_chart(arguments, &engines, chart) {
                        Ok(cases) => lock(&report).add(chart, cases),
                        Err(error) => {
                            *lock(&failure) = Some(error.context(format!("comparing {}", chart.name())));
                            next.store(charts.len(), Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = lock(&failure).take() {
        return Err(error);
    }
    Ok(report
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// All cases of one chart.
fn compare_chart(arguments: &Arguments, engines: &Engines, chart: &ChartPath) -> Result<Vec<Finished>> {
    let cases = values::cases(engines, chart, arguments.values_sets, arguments.seed)?;
    cases
        .into_iter()
        .map(|case| compare_case(engines, chart, case))
        .collect()
}

fn compare_case(engines: &Engines, chart: &ChartPath, case: Case) -> Result<Finished> {
    let pair = Pair {
        theirs: vec![engines.helm(chart, &case)?, engines.helm(chart, &case)?],
        ours: engines.evenkeel(chart, &case)?,
    };
    let mut pair = pair;
    let mut verdict = comparison::compare(&pair);
    for run in 0..MORE_RUNS {
        if verdict.class != Class::Different || !verdict.may_be_chance(run) {
            break;
        }
        std::thread::sleep(BETWEEN_RUNS);
        pair.theirs.push(engines.helm(chart, &case)?);
        verdict = comparison::compare(&pair);
    }
    if verdict.class == Class::Different {
        engines.keep(chart, &case, &pair)?;
    }
    Ok(Finished::new(engines, chart, case, &pair, verdict))
}

#[cfg(test)]
mod tests;
