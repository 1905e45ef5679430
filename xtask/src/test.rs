//! `cargo xtask test`: prepare, then run all tests.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::process::{cargo, describe};
use crate::repository::Repository;
use crate::setup;

/// Arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only the tests of this package; may be given more than once.
    #[arg(short, long)]
    package: Vec<String>,

    /// Arguments for the test runner: part of a test's name, `--nocapture`, …
    #[arg(last = true)]
    runner: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(repository: &Repository, arguments: &Arguments) -> Result<()> {
    let cache = setup::run()?;

    let started = Instant::now();
    let mut command = cargo(repository);
    // Every failure is wanted, not only those of the first binary that has one.
    command.args(["test", "--no-fail-fast"]);
    if arguments.package.is_empty() {
        command.arg("--workspace");
    }
    for package in &arguments.package {
        command.args(["--package", package]);
    }
    if !arguments.runner.is_empty() {
        command.arg("--").args(&arguments.runner);
    }
    // A relative path would mean another folder to each test: they run in the folders of their crates.
    command.env("EVENKEEL_CACHE", cache.root());
    // A snapshot that differs is a failure here, not a file to look at later.
    command.env("INSTA_UPDATE", "no");
    let line = describe(&command);
    println!("\n{line}");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{line}`"))?;
    let mut tally = Tally::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.context("cannot read the output of the tests")?;
            println!("{line}");
            tally.read(&line);
        }
    }
    let status = child.wait().context("cannot wait for the tests")?;
    println!("\n{} in {} s", tally.summary(), started.elapsed().as_secs());
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    if tally.passed == 0 {
        bail!("no test ran: does the filter match any?");
    }
    Ok(())
}

/// Sums the closing lines of all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    binaries: usize,
    passed: usize,
    failed: usize,
    ignored: usize,
    failures: Vec<String>,
}

impl Tally {
    fn read(&mut self, line: &str) {
        if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failures.push(name.to_owned());
        }
        let Some(counts) = line.strip_prefix("test result: ") else {
            return;
        };
        self.binaries += 1;
        // "ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.10s"
        for part in counts.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<usize>() else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    fn summary(&self) -> String {
        let mut text = format!(
            "{} passed; {} failed; {} ignored",
            self.passed, self.failed, self.ignored
        );
        if !self.failures.is_empty() {
            text = format!("failed:\n    {}\n{text}", self.failures.join("\n    "));
        }
        format!("{text}; {} test binaries", self.binaries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_summed_and_failures_named() {
        let mut tally = Tally::default();
        for line in [
            "test store::claims ... ok",
            "test store::leases ... FAILED",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            "test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 3 filtered out; finished in 12.34s",
            "test result: not one of ours",
        ] {
            tally.read(line);
        }
        assert_eq!((tally.passed, tally.failed, tally.ignored), (13, 1, 2));
        assert!(
            tally
                .summary()
                .starts_with("failed:\n    store::leases\n13 passed; 1 failed; 2 ignored; ")
        );
    }
}
