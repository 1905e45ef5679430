//! Inside of one process: parsing, rendering, and rendering one chart for a whole fleet.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use evenkeel_chart::{Capabilities, Chart, Release, Rendered, ValueSources, ValuesFile, render};
use evenkeel_source::File;

use super::charts::{self, BenchChart};
use super::programs::RELEASE;
use crate::commands::bench::sample::median;
use crate::template;

/// How often something is done at the most, and for at most how long.
const TIMES: usize = 300;
const WITHIN: Duration = Duration::from_millis(1_500);
/// On how many threads the fleet's chart is rendered.
const THREADS: usize = 2;
/// The chart that a fleet renders.
const OF_FLEET: &str = "web";

/// What parsing and rendering take.
pub(super) struct Inside {
    /// Bytes of all files, and how long turning them into charts ready to render takes.
    pub(super) parsed_bytes: u64,
    pub(super) parse_time: Duration,
    /// The chart that `helm create` writes.
    pub(super) typical_parse: Duration,
    pub(super) typical_render: Duration,
    /// The middle of all charts.
    pub(super) median_render: Duration,
}

/// A chart's files and how it is rendered.
struct Loaded {
    files: Vec<File>,
    values: evenkeel_goyaml::Value,
}

impl Loaded {
    fn read(folder: &Path, chart: &BenchChart) -> anyhow::Result<Self> {
        let files = evenkeel_source::read_directory(&folder.join(chart.name), None)?;
        let mut sources = ValueSources::default();
        if let ["--set", value] = chart.args {
            sources.typed.push((*value).to_owned());
        }
        Ok(Self {
            files,
            values: sources.merge(|path| Err(format!("{path} is not to be read")))?,
        })
    }

    fn parse(&self) -> anyhow::Result<Chart> {
        let files = self.files.iter();
        Ok(Chart::from_files(
            files.map(|file| (file.path.clone(), file.content.clone())),
        )?)
    }

    fn render(&self, chart: &Chart) -> anyhow::Result<Rendered> {
        one(chart, &self.values)
    }
}

fn one(chart: &Chart, values: &evenkeel_goyaml::Value) -> anyhow::Result<Rendered> {
    let release = Release::install(RELEASE, "default");
    Ok(render(
        chart,
        values,
        &release,
        &Capabilities::default(),
        template::options(),
    )?)
}

/// Parses and renders all charts.
pub(super) fn measure(folder: &Path) -> anyhow::Result<Inside> {
    let mut inside = Inside {
        parsed_bytes: 0,
        parse_time: Duration::ZERO,
        typical_parse: Duration::ZERO,
        typical_render: Duration::ZERO,
        median_render: Duration::ZERO,
    };
    let mut renders = Vec::new();
    for bench in &charts::ALL {
        let loaded = Loaded::read(folder, bench)?;
        let chart = loaded.parse()?;
        loaded.render(&chart)?;
        let render_time = repeat(|| loaded.render(&chart).map(drop))?;
        let parse_time = repeat(|| {
            let chart = loaded.parse()?;
            chart.prepare(&loaded.values)?;
            Ok(())
        })?;
        if bench.name == charts::CREATED {
            (inside.typical_render, inside.typical_parse) = (render_time, parse_time);
        }
        renders.push(render_time);
        let bytes: usize = loaded.files.iter().map(|file| file.content.len()).sum();
        inside.parsed_bytes += bytes as u64;
        inside.parse_time += parse_time;
    }
    inside.median_render = median(renders);
    Ok(inside)
}

fn repeat(mut work: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let mut times = Vec::with_capacity(TIMES);
    let begun = Instant::now();
    while times.len() < TIMES && (times.is_empty() || begun.elapsed() < WITHIN) {
        let started = Instant::now();
        work()?;
        times.push(started.elapsed());
    }
    Ok(median(times))
}

/// One chart, parsed once, for a fleet in which each cluster has its own values.
pub(super) struct Fleet {
    pub(super) per_second: f64,
    /// What the process grew by after a tenth as many renders, in bytes; none where the kernel does not say.
    pub(super) growth: Option<u64>,
    pub(super) threads: usize,
}

/// Renders the fleet's chart with values that are all different.
pub(super) fn fleet(folder: &Path, renders: usize) -> anyhow::Result<Fleet> {
    let warm = renders / 10;
    let bench = charts::ALL.iter().find(|chart| chart.name == OF_FLEET);
    let chart = Loaded::read(folder, bench.context("the fleet's chart is missing")?)?.parse()?;
    batch(&chart, 0..warm)?;
    let before = resident();
    let started = Instant::now();
    batch(&chart, warm..warm + renders)?;
    let took = started.elapsed();
    let growth = before
        .zip(resident())
        .map(|(before, after)| after.saturating_sub(before));
    Ok(Fleet {
        per_second: renders as f64 / took.as_secs_f64().max(f64::EPSILON),
        growth,
        threads: THREADS,
    })
}

/// Renders clusters of these numbers, on all threads.
fn batch(chart: &Chart, numbers: std::ops::Range<usize>) -> anyhow::Result<()> {
    let next = AtomicUsize::new(numbers.start);
    let work = || -> anyhow::Result<usize> {
        let mut bytes = 0;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                return Ok(bytes);
            }
            let text = format!(
                "replicaCount: {}\nfullnameOverride: site-{number}\npodAnnotations: {{cluster: \"{number}\"}}\n",
                number % 7
            );
            let sources = ValueSources {
                files: vec![ValuesFile {
                    name: "cluster".to_owned(),
                    text: text.into_bytes(),
                }],
                ..ValueSources::default()
            };
            let values = sources.merge(|path| Err(format!("{path} is not to be read")))?;
            let rendered = one(chart, &values)?;
            // What nobody looks at might not be made.
            bytes += rendered
                .manifests
                .iter()
                .map(|manifest| manifest.text.len())
                .sum::<usize>();
        }
    };
    let bytes = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| bail!("a rendering thread panicked"))
            })
            .sum::<anyhow::Result<usize>>()
    })?;
    if bytes == 0 && !numbers.is_empty() {
        bail!("nothing was rendered");
    }
    Ok(())
}

/// What this process holds in memory now, in bytes.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}
