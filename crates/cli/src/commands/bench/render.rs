//! Rendering the chart that `helm create` writes, as a whole process against the real Helm, and inside of a process.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use evenkeel_chart::{Capabilities, Chart, Release, ValueSources, render};
use evenkeel_realparts as realparts;

use super::children::{Usage, measure, own_peak};
use super::figures::{Figures, Goal};
use super::sample::{median, millis};
use crate::template;

/// The chart's name, and the release's.
const NAME: &str = "demo";
/// How often the chart is rendered inside of this process, at the most and for at most how long.
const RENDERS: usize = 500;
const RENDERS_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// How many times each program is run, in turn
    #[arg(long, value_name = "NUMBER", default_value_t = 15, value_parser = clap::value_parser!(u16).range(11..=1000))]
    pairs: u16,
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
    programs.write_chart()?;
    programs.compare()?;

    let (mut theirs, mut our_own) = (Vec::new(), Vec::new());
    for _ in 0..arguments.pairs {
        theirs.push(measure(&mut programs.template(programs.helm))?);
        our_own.push(measure(&mut programs.template(programs.ours))?);
    }
    // Asked before anything else makes this process larger.
    let hidden_below = own_peak();
    let times = |used: &[Usage]| median(used.iter().map(|used| used.time).collect());
    let peaks = |used: &[Usage]| median(used.iter().map(|used| used.peak).collect());
    let (their_time, our_time) = (times(&theirs), times(&our_own));
    let (their_peak, our_peak) = (peaks(&theirs), peaks(&our_own));

    let mut figures = Figures::default();
    figures.goal(
        "template_speedup",
        their_time.as_secs_f64() / our_time.as_secs_f64().max(f64::EPSILON),
        Goal::AtLeast(10.0),
        "wall time of `helm template` over that of `evenkeel template`, whole processes",
    );
    let hidden = match hidden_below {
        Some(below) if our_peak <= below => "; an upper bound, for the measuring process is as large",
        _ => "",
    };
    figures.goal(
        "template_memory_ratio",
        our_peak as f64 / (their_peak as f64).max(1.0),
        Goal::AtMost(0.2),
        format!("peak memory of `evenkeel template` over that of `helm template`{hidden}"),
    );
    figures.told(
        "template_ms",
        millis(our_time),
        "`evenkeel template`, whole process",
    );
    figures.told(
        "helm_template_ms",
        millis(their_time),
        "`helm template`, whole process",
    );
    figures.told(
        "template_mib",
        mebibytes(our_peak),
        "peak memory of `evenkeel template`",
    );
    figures.told(
        "helm_template_mib",
        mebibytes(their_peak),
        "peak memory of `helm template`",
    );
    let (render_time, parse_time) = inside(&folder.path().join(NAME))?;
    figures.goal(
        "render_ms",
        millis(render_time),
        Goal::AtMost(1.0),
        "rendering the same chart inside of a process, parsed before",
    );
    figures.told(
        "parse_ms",
        millis(parse_time),
        "parsing it, its files read before",
    );
    Ok(figures)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

/// Both programs and where they run.
struct Programs<'a> {
    helm: &'a OsStr,
    ours: &'a OsStr,
    folder: &'a Path,
}

impl Programs<'_> {
    /// A program that touches nothing outside of the folder.
    fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder);
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(variable, self.folder.join("home"));
        }
        command
    }

    fn template(&self, program: &OsStr) -> Command {
        let mut command = self.command(program);
        command.args(["template", NAME, NAME]);
        command
    }

    fn write_chart(&self) -> anyhow::Result<()> {
        let created = output(self.command(self.helm).args(["create", NAME]))?;
        if !created.status.success() {
            bail!(
                "`helm create` failed: {}",
                String::from_utf8_lossy(&created.stderr).trim()
            );
        }
        Ok(())
    }

    /// A comparison of times says something only while both do the same.
    fn compare(&self) -> anyhow::Result<()> {
        let (theirs, ours) = (
            output(&mut self.template(self.helm))?,
            output(&mut self.template(self.ours))?,
        );
        for (program, output) in [("helm", &theirs), ("evenkeel", &ours)] {
            if !output.status.success() {
                bail!(
                    "`{program} template` failed: {}",
                    String::from_utf8_lossy(&output.stderr).trim()
                );
            }
        }
        if theirs.stdout != ours.stdout {
            bail!("the two programs print different manifests: there is nothing to compare");
        }
        Ok(())
    }
}

fn output(command: &mut Command) -> anyhow::Result<Output> {
    let program = command.get_program().to_owned();
    command
        .output()
        .with_context(|| format!("{} cannot be started", program.display()))
}

/// How long one render, and parsing, take inside of this process.
fn inside(chart: &Path) -> anyhow::Result<(Duration, Duration)> {
    let files = evenkeel_source::read_directory(chart, None)?;
    let parse = || Chart::from_files(files.iter().map(|file| (file.path.clone(), file.content.clone())));
    let values = ValueSources::default().merge(|path| Err(format!("{path} is not to be read")))?;
    let release = Release::install(NAME, "default");
    let capabilities = Capabilities::default();
    let chart = parse()?;
    let render_time = repeat(|| {
        let options = template::options();
        render(&chart, &values, &release, &capabilities, options)
            .map(drop)
            .map_err(anyhow::Error::from)
    })?;
    let parse_time = repeat(|| parse().map(drop).map_err(anyhow::Error::from))?;
    Ok((render_time, parse_time))
}

fn repeat(mut work: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let mut times = Vec::with_capacity(RENDERS);
    let begun = Instant::now();
    while times.len() < RENDERS && (times.is_empty() || begun.elapsed() < RENDERS_WITHIN) {
        let started = Instant::now();
        work()?;
        times.push(started.elapsed());
    }
    Ok(median(times))
}
