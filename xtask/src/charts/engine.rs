//! Runs both engines.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::case::Case;
use super::discovery::ChartPath;
use crate::process;

/// How long one run may take, on a machine that has much else to do.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// The chart that prints values as JSON, so that the generator sees them as Helm reads them.
const PROBE: [(&str, &str); 2] = [
    ("Chart.yaml", "apiVersion: v2\nname: probe\nversion: 0.1.0\n"),
    ("templates/values.yaml", "{{ .Values | toJson }}\n"),
];

/// What a run of an engine gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Whether it exited with 0.
    pub(super) success: bool,
    /// Standard output.
    pub(super) output: Vec<u8>,
    /// Standard error.
    pub(super) errors: String,
    /// Processor time, which other work on the machine does not lengthen as it does wall time.
    pub(super) cpu: Duration,
}

/// What both gave for one case.
pub(super) struct Pair {
    /// Helm's, at least twice.
    pub(super) theirs: Vec<Outcome>,
    /// Evenkeel's.
    pub(super) ours: Outcome,
}

/// Both engines, and the folder for what they read and leave.
pub(super) struct Engines {
    helm: PathBuf,
    evenkeel: PathBuf,
    work: PathBuf,
}

impl Engines {
    /// Finds Helm in the cache and prepares the folder.
    pub(super) fn new(evenkeel: &Path, work: &Path) -> Result<Self> {
        if !evenkeel.is_file() {
            bail!("there is no engine at {}", evenkeel.display());
        }
        let engines = Self {
            helm: evenkeel_realparts::helm()?,
            evenkeel: std::path::absolute(evenkeel)?,
            work: work.to_owned(),
        };
        for (name, text) in PROBE {
            engines.write(&engines.probe().join(name), text.as_bytes())?;
        }
        Ok(engines)
    }

    /// The folder of a chart's cases.
    pub(super) fn folder(&self, chart: &ChartPath) -> PathBuf {
        self.work.join("cases").join(chart.file_name())
    }

    fn probe(&self) -> PathBuf {
        self.work.join("probe")
    }

    /// Renders with Helm.
    pub(super) fn helm(&self, chart: &ChartPath, case: &Case) -> Result<Outcome> {
        self.run(&self.helm, &case.arguments(&chart.path().to_string_lossy()))
    }

    /// Renders with Evenkeel.
    pub(super) fn evenkeel(&self, chart: &ChartPath, case: &Case) -> Result<Outcome> {
        self.run(&self.evenkeel, &case.arguments(&chart.path().to_string_lossy()))
    }

    /// The two commands as one would type them.
    pub(super) fn commands(&self, chart: &ChartPath, case: &Case) -> [String; 2] {
        [&self.helm, &self.evenkeel].map(|program| {
            let arguments = case.arguments(&chart.path().to_string_lossy());
            std::iter::once(program.to_string_lossy().into_owned())
                .chain(arguments)
                .map(|word| quoted(&word))
                .collect::<Vec<_>>()
                .join(" ")
        })
    }

    /// The values of a chart as Helm reads them; null when it cannot.
    pub(super) fn values(&self, chart: &ChartPath) -> Result<serde_json::Value> {
        let path = chart.path().to_string_lossy().into_owned();
        let shown = self.run(&self.helm, &["show".to_owned(), "values".to_owned(), path])?;
        if !shown.success {
            return Ok(serde_json::Value::Null);
        }
        let file = self.folder(chart).join("values.yaml");
        self.write(&file, &shown.output)?;
        let arguments = ["template", "-f"].map(str::to_owned).into_iter();
        let arguments =
            arguments.chain([&file, &self.probe()].map(|path| path.to_string_lossy().into_owned()));
        let printed = self.run(&self.helm, &arguments.collect::<Vec<_>>())?;
        Ok(printed_json(&printed.output).unwrap_or_default())
    }

    /// Writes a file, with the folders above it.
    pub(super) fn write(&self, file: &Path, content: &[u8]) -> Result<()> {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        std::fs::write(file, content).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Writes down what the engines gave.
    pub(super) fn keep(&self, chart: &ChartPath, case: &Case, pair: &Pair) -> Result<()> {
        let folder = self.folder(chart);
        let theirs = pair.theirs.first().map(|outcome| ("helm", outcome));
        for (engine, outcome) in theirs.into_iter().chain([("evenkeel", &pair.ours)]) {
            self.write(
                &folder.join(format!("{}.{engine}.out", case.name)),
                &outcome.output,
            )?;
            self.write(
                &folder.join(format!("{}.{engine}.err", case.name)),
                outcome.errors.as_bytes(),
            )?;
        }
        Ok(())
    }

    fn run(&self, program: &Path, arguments: &[String]) -> Result<Outcome> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.work);
        // No configuration, plugin or repository of the user's plays a part.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HELM_") {
                command.env_remove(name);
            }
        }
        for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(name, self.work.join("helm"));
        }
        let ended = process::bounded(&mut command, TIME_LIMIT)?;
        let mut errors = ended.errors;
        if ended.status.is_none() {
            errors.extend_from_slice(format!("Error: ended after {} s\n", TIME_LIMIT.as_secs()).as_bytes());
        }
        Ok(Outcome {
            success: ended.status.is_some_and(|status| status.success()),
            output: ended.output,
            errors: String::from_utf8_lossy(&errors).into_owned(),
            cpu: ended.cpu,
        })
    }
}

/// What the probe printed.
fn printed_json(output: &[u8]) -> Option<serde_json::Value> {
    let text = std::str::from_utf8(output).ok()?;
    let line = text.lines().find(|line| line.starts_with('{'))?;
    serde_json::from_str(line).ok()
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
    if OsStr::new(word).is_empty() || !word.chars().all(plain) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_probe_prints_is_read() {
        let output = b"---\n# Source: probe/templates/values.yaml\n{\"a\":[1,\"\\u003c\"]}\n";
        assert_eq!(printed_json(output).unwrap(), serde_json::json!({"a": [1, "<"]}));
        assert_eq!(printed_json(b"{?\n"), None);
    }

    #[test]
    fn commands_can_be_pasted() {
        assert_eq!(quoted("--kube-version=1.29.0"), "--kube-version=1.29.0");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
