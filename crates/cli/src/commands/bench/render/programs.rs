//! Both programs, as whole processes.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, bail};

use super::charts::{BenchChart, CREATED};
use crate::commands::bench::children::{Usage, measure};
use crate::commands::bench::sample::median;

/// The release that is rendered.
pub(super) const RELEASE: &str = "demo";

/// Both programs and where they run.
pub(super) struct Programs<'a> {
    pub(super) helm: &'a OsStr,
    pub(super) ours: &'a OsStr,
    pub(super) folder: &'a Path,
}

/// What both programs took for one chart, each the median of its runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) helm: Usage,
    pub(super) ours: Usage,
}

impl Pair {
    /// How many times faster ours is.
    pub(super) fn speedup(&self) -> f64 {
        self.helm.time.as_secs_f64() / self.ours.time.as_secs_f64().max(f64::EPSILON)
    }

    /// Our peak of memory as a part of Helm's.
    pub(super) fn memory_ratio(&self) -> f64 {
        self.ours.peak as f64 / (self.helm.peak as f64).max(1.0)
    }
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

    fn template(&self, program: &OsStr, chart: &BenchChart) -> Command {
        let mut command = self.command(program);
        command.args(["template", RELEASE, chart.name]).args(chart.args);
        command
    }

    /// Lets Helm write the chart that it writes for a beginner.
    pub(super) fn create_chart(&self) -> anyhow::Result<()> {
        let created = output(self.command(self.helm).args(["create", CREATED]))?;
        if !created.status.success() {
            bail!(
                "`helm create` failed: {}",
                String::from_utf8_lossy(&created.stderr).trim()
            );
        }
        Ok(())
    }

    /// A comparison of times says something only while both do the same.
    pub(super) fn compare(&self, chart: &BenchChart) -> anyhow::Result<()> {
        let (theirs, ours) = (
            output(&mut self.template(self.helm, chart))?,
            output(&mut self.template(self.ours, chart))?,
        );
        for (program, output) in [("helm", &theirs), ("evenkeel", &ours)] {
            if !output.status.success() {
                bail!(
                    "`{program} template` of chart {} failed: {}",
                    chart.name,
                    String::from_utf8_lossy(&output.stderr).trim()
                );
            }
        }
        if theirs.stdout != ours.stdout {
            bail!(
                "the two programs print different manifests for chart {}: there is nothing to compare",
                chart.name
            );
        }
        Ok(())
    }

    /// Runs both in turn.
    pub(super) fn measure(&self, chart: &BenchChart, pairs: u16) -> anyhow::Result<Pair> {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..pairs {
            theirs.push(measure(&self.template(self.helm, chart))?);
            ours.push(measure(&self.template(self.ours, chart))?);
        }
        Ok(Pair {
            helm: middle(&theirs),
            ours: middle(&ours),
        })
    }
}

fn middle(used: &[Usage]) -> Usage {
    let times: Vec<Duration> = used.iter().map(|used| used.time).collect();
    Usage {
        time: median(times),
        peak: median(used.iter().map(|used| used.peak).collect()),
        floor: used.iter().filter_map(|used| used.floor).max(),
    }
}

fn output(command: &mut Command) -> anyhow::Result<Output> {
    let program = command.get_program().to_owned();
    command
        .output()
        .with_context(|| format!("{} cannot be started", program.display()))
}
