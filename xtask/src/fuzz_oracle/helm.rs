//! Helm's answers, hundreds from one process.
//!
//! The linter takes any number of charts and tells the error of each. A chart per case, whose template carries its
//! output in an error, so gives outputs and errors of all cases, each untouched by the others, at a third of a
//! millisecond each.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use evenkeel_realparts::Cache;
use tempfile::TempDir;

use super::case::{Answer, Case, INCLUDED, carried, chart};
use super::{engine, set};
use crate::process;

/// Line before the findings of one chart.
const HEADING: &str = "==> Linting ";

/// Start of the finding that is about templates.
const FINDING: &str = "[ERROR] templates/: ";

/// How long Helm may take over one batch. A case that makes it compute for ever, or fill the memory, is found like one that
/// it breaks down over, and is left out.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pinned Helm.
pub(crate) struct Helm {
    binary: PathBuf,
    folder: TempDir,
}

impl Helm {
    /// The one in the cache.
    pub(crate) fn find() -> Result<Self> {
        let binary = Cache::open()?.helm();
        if !binary.is_file() {
            bail!("there is no {}: run `cargo xtask setup`", binary.display());
        }
        Ok(Self {
            binary,
            folder: memory_folder().context("cannot create a folder for charts")?,
        })
    }

    /// Answers all cases, in their order.
    pub(crate) fn answers(&self, cases: &[Case]) -> Result<Vec<Answer>> {
        let (mut together, mut alone, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
        for (index, case) in cases.iter().enumerate() {
            match case {
                Case::Refusal { .. } => alone.push((index, case)),
                Case::Set { .. } => arguments.push((index, case)),
                _ => together.push((index, case)),
            }
        }
        let mut answers = vec![Answer::Unstable; cases.len()];
        let mut keep = |given: Vec<(usize, Answer)>| {
            for (index, answer) in given {
                if let Some(place) = answers.get_mut(index) {
                    *place = answer;
                }
            }
        };
        keep(self.lint(&together)?);
        for (index, case) in alone {
            keep(vec![(index, self.template(case)?)]);
        }
        // An argument that is refused stops the run of all that are in it.
        let (refused, taken): (Vec<_>, Vec<_>) = arguments
            .into_iter()
            .partition(|(_, case)| matches!(engine::answer(case), Answer::Error(_)));
        keep(self.set(&taken)?);
        for one in refused {
            keep(self.set(&[one])?);
        }
        Ok(answers)
    }

    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.binary);
        // Nothing of the user's own settings, and the same zone everywhere.
        command
            .current_dir(folder)
            .env_clear()
            .env("HOME", self.folder.path())
            .env("TZ", "UTC");
        command
    }

    fn lint(&self, cases: &[(usize, &Case)]) -> Result<Vec<(usize, Answer)>> {
        if cases.is_empty() {
            return Ok(Vec::new());
        }
        let folder = tempfile::tempdir_in(self.folder.path())?;
        let mut command = self.command(folder.path());
        command.args(["lint", "--quiet"]);
        for (index, case) in cases {
            write_chart(&folder.path().join(index.to_string()), case)?;
            command.arg(index.to_string());
        }
        let ended = process::bounded(&mut command, PATIENCE)?;
        let found = findings(&String::from_utf8_lossy(&ended.output));
        let said = String::from_utf8_lossy(&ended.errors);
        if !said.contains("chart(s) linted") {
            // It broke down over one of them: which?
            return match cases {
                [(index, _)] if ended.status.is_none() => Ok(vec![(*index, Answer::Unstable)]),
                [(index, _)] => {
                    let line = said.lines().next().unwrap_or_default();
                    Ok(vec![(*index, Answer::Error(format!("BREAKDOWN: {line}")))])
                }
                _ => {
                    let (left, right) = cases.split_at(cases.len() / 2);
                    Ok([self.lint(left)?, self.lint(right)?].concat())
                }
            };
        }
        let silent = Answer::Output(Vec::new());
        Ok(cases
            .iter()
            .map(|(index, _)| (*index, found.get(&index.to_string()).unwrap_or(&silent).clone()))
            .collect())
    }

    fn template(&self, case: &Case) -> Result<Answer> {
        let folder = tempfile::tempdir_in(self.folder.path())?;
        write_chart(folder.path(), case)?;
        let mut command = self.command(folder.path());
        let ended = process::bounded(command.args(["template", "test-release", "."]), PATIENCE)?;
        Ok(match ended.status {
            None => Answer::Unstable,
            Some(status) if status.success() => Answer::Output(Vec::new()),
            Some(_) => carried(&error_of(&String::from_utf8_lossy(&ended.errors))),
        })
    }

    /// All arguments in one run, each below a key of its own; where one is refused, in two halves.
    fn set(&self, cases: &[(usize, &Case)]) -> Result<Vec<(usize, Answer)>> {
        if cases.is_empty() {
            return Ok(Vec::new());
        }
        let folder = tempfile::tempdir_in(self.folder.path())?;
        write_chart(
            &folder.path().join("c"),
            &Case::Set {
                flag: "",
                text: String::new(),
            },
        )?;
        std::fs::write(folder.path().join("c").join(INCLUDED), set::printer(cases.len()))?;
        std::fs::write(folder.path().join("base.yaml"), set::base(cases.len()))?;
        let mut command = self.command(folder.path());
        command.args(["template", "test-release", "c", "-f", "base.yaml"]);
        for (place, (_, case)) in cases.iter().enumerate() {
            if let Case::Set { flag, text } = case {
                command.arg(flag).arg(set::rooted(text, place));
            }
        }
        let output = command.output().context("cannot run Helm")?;
        let answer = carried(&error_of(&String::from_utf8_lossy(&output.stderr)));
        match (cases, answer) {
            ([(index, _)], answer) => Ok(vec![(*index, answer)]),
            (_, Answer::Output(all)) => {
                let all = String::from_utf8_lossy(&all);
                Ok(cases
                    .iter()
                    .zip(all.lines())
                    .enumerate()
                    .map(|(place, ((index, _), line))| {
                        let line = set::as_first(line, place) + "\n";
                        (*index, Answer::Output(line.into_bytes()))
                    })
                    .collect())
            }
            _ => {
                let (left, right) = cases.split_at(cases.len() / 2);
                Ok([self.set(left)?, self.set(right)?].concat())
            }
        }
    }
}

/// A folder in memory where the system has one: thousands of small files are made and removed again.
fn memory_folder() -> std::io::Result<TempDir> {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}

fn write_chart(folder: &Path, case: &Case) -> Result<()> {
    std::fs::create_dir_all(folder.join("templates"))?;
    for (name, data) in chart(case) {
        std::fs::write(folder.join(name), data)?;
    }
    Ok(())
}

/// What Helm says when it stops, without what it adds to every error.
fn error_of(stderr: &str) -> String {
    let text = stderr.rsplit_once("Error: ").map_or(stderr, |(_, rest)| rest);
    let text = text.trim_end();
    text.strip_suffix("\n\nUse --debug flag to render out invalid YAML")
        .unwrap_or(text)
        .to_owned()
}

/// The finding about templates of each chart that has one.
fn findings(stdout: &str) -> HashMap<String, Answer> {
    let mut all = HashMap::new();
    for part in stdout.split(HEADING).skip(1) {
        let Some((name, text)) = part.split_once('\n') else {
            continue;
        };
        let Some((_, text)) = text.split_once(FINDING) else {
            continue;
        };
        // The next finding, if any, starts with its level.
        let end = ["\n[ERROR] ", "\n[WARNING] ", "\n[INFO] "]
            .iter()
            .filter_map(|level| text.find(level))
            .min()
            .unwrap_or(text.len());
        all.insert(name.to_owned(), carried(text.get(..end).unwrap_or(text)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_findings_of_charts_are_told_apart() {
        let all = findings(
            "==> Linting 0\n[ERROR] templates/: a\n  b\n\n==> Linting 7\n[WARNING] x\n\n==> Linting 8\n[ERROR] values.yaml: \
             v\n[ERROR] templates/: cannot load\n[ERROR] : unable\n\tc\n\nError: 3 chart(s) linted\n",
        );
        assert_eq!(all.len(), 2);
        assert_eq!(all["0"], Answer::Error("a\n  b".to_owned()));
        assert_eq!(all["8"], Answer::Error("cannot load".to_owned()));
    }

    #[test]
    fn what_stops_helm_is_its_last_error() {
        let text = "level=WARN\nError: boom\n  here\n\nUse --debug flag to render out invalid YAML\n";
        assert_eq!(error_of(text), "boom\n  here");
    }
}
