//! Rendering: whole processes against the real Helm, chart by chart, and inside of one process.

mod charts;
mod inside;
mod programs;

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use evenkeel_realparts as realparts;

use self::programs::{Pair, Programs};
use super::children::Usage;
use super::figures::{Figures, Goal};
use super::sample::millis;
use crate::output;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// How many times each program is run for each chart, in turn
    #[arg(long, value_name = "NUMBER", default_value_t = 11, value_parser = clap::value_parser!(u16).range(3..=1000))]
    pairs: u16,
    /// Of how many different values one chart is rendered inside of this process
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    renders: usize,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Figures> {
    let helm = realparts::helm()?;
    let ours = std::env::current_exe().context("the path of this program cannot be found")?;
    let folder = tempfile::Builder::new()
        .prefix("evenkeel-bench-")
        .tempdir()
        .context("a temporary folder cannot be made")?;
    let programs = Programs {
        helm: helm.as_os_str(),
        ours: ours.as_os_str(),
        folder: folder.path(),
    };
    charts::write(folder.path())?;
    programs.create_chart()?;
    for chart in &charts::ALL {
        programs.compare(chart)?;
    }
    let mut pairs = Vec::new();
    for chart in &charts::ALL {
        pairs.push((chart.name, programs.measure(chart, arguments.pairs)?));
    }
    show(&pairs)?;

    let mut figures = Figures::default();
    processes(&mut figures, &pairs);
    let inside = inside::measure(folder.path())?;
    figures.goal(
        "parse_mb_per_s",
        inside.parsed_bytes as f64 / 1e6 / inside.parse_time.as_secs_f64().max(f64::EPSILON),
        Goal::AtLeast(50.0),
        "files of all charts in memory, until they are ready to render",
    );
    figures.goal(
        "typical_render_ms",
        millis(inside.typical_render),
        Goal::AtMost(1.0),
        "one render of the chart of `helm create`, parsed before",
    );
    figures.told("typical_parse_ms", millis(inside.typical_parse), "parsing it");
    figures.told(
        "median_render_ms",
        millis(inside.median_render),
        "one render, the middle of all charts",
    );
    let fleet = inside::fleet(folder.path(), arguments.renders)?;
    figures.told(
        "renders_per_s",
        fleet.per_second,
        format!(
            "one chart with {} different values on {} threads",
            arguments.renders, fleet.threads
        ),
    );
    if let Some(growth) = fleet.growth {
        figures.goal(
            "rss_growth_mb",
            growth as f64 / 1e6,
            Goal::AtMost(8.0),
            "what this process grew by over these renders",
        );
    }
    Ok(figures)
}

/// The figures of whole processes: medians over the charts.
fn processes(figures: &mut Figures, pairs: &[(&str, Pair)]) {
    let middle = |of: &dyn Fn(&Pair) -> f64| {
        let mut all: Vec<f64> = pairs.iter().map(|(_, pair)| of(pair)).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    let is_hidden = |used: Usage| used.floor.is_some_and(|floor| used.peak <= floor);
    let hidden = if pairs.iter().any(|(_, pair)| is_hidden(pair.ours)) {
        "; an upper bound, for the process that starts it is as large"
    } else {
        ""
    };
    figures.goal(
        "template_speedup",
        middle(&Pair::speedup),
        Goal::AtLeast(10.0),
        "wall time of `helm template` over that of `evenkeel template`, whole processes",
    );
    figures.goal(
        "template_memory_ratio",
        middle(&Pair::memory_ratio),
        Goal::AtMost(0.2),
        format!("peak memory of `evenkeel template` over that of `helm template`{hidden}"),
    );
    let ms = |time: Duration| millis(time);
    figures.told(
        "template_ms",
        middle(&|pair| ms(pair.ours.time)),
        "`evenkeel template`, whole process",
    );
    figures.told(
        "helm_template_ms",
        middle(&|pair| ms(pair.helm.time)),
        "`helm template`, whole process",
    );
    figures.told(
        "template_mib",
        middle(&|pair| mebibytes(pair.ours.peak)),
        "peak memory of `evenkeel template`",
    );
    figures.told(
        "helm_template_mib",
        middle(&|pair| mebibytes(pair.helm.peak)),
        "peak memory of `helm template`",
    );
    figures.told(
        "charts",
        pairs.len() as u64,
        "how many charts these are the medians of",
    );
}

/// Prints what each chart took.
fn show(pairs: &[(&str, Pair)]) -> anyhow::Result<()> {
    let rows = pairs.iter().map(|(name, pair)| {
        [
            (*name).to_owned(),
            format!("{:.1}", millis(pair.helm.time)),
            format!("{:.1}", millis(pair.ours.time)),
            format!("{:.1}", pair.speedup()),
            format!("{:.1}", mebibytes(pair.helm.peak)),
            format!("{:.1}", mebibytes(pair.ours.peak)),
            format!("{:.3}", pair.memory_ratio()),
        ]
    });
    let header = [
        "CHART", "HELM MS", "OURS MS", "SPEEDUP", "HELM MIB", "OURS MIB", "RATIO",
    ];
    output::line(&output::table(header, rows))
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}
