//! `cargo xtask test`: prepare, then run all tests, and simulated schedules.

use std::io::{BufRead as _, BufReader};
use std::process::{ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use evenkeel_realparts::Cache;

use crate::process::{cargo, describe};
use crate::repository::Repository;
use crate::{earlier_release, setup, simulate, statements};

/// How many failed tests are run again, alone, before the run is failed. A test that then passes is unsteady: a fault
/// to be mended, named in the closing lines, but none that says anything of the change at hand. More than these are no
/// accident.
const UNSTEADY_MAX: usize = 3;

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

    let recording = statements::Recording::new()?;
    let started = Instant::now();
    let (status, tally) = tests(
        repository,
        &cache,
        &recording,
        &arguments.package,
        &arguments.runner,
    )?;
    println!("\n{} in {} s", tally.summary(), started.elapsed().as_secs());
    if tally.passed == 0 {
        bail!("no test ran: does the filter match any?");
    }
    if !status.success() {
        if !tally.may_be_unsteady() {
            bail!("tests failed ({status})");
        }
        try_again(repository, &cache, &recording, &arguments.package, &tally)?;
    }
    recording.check(repository)?;
    simulate(repository, arguments)
}

/// Runs the few tests that failed once more, nothing beside them, and fails unless all of them pass.
fn try_again(
    repository: &Repository,
    cache: &Cache,
    recording: &statements::Recording,
    packages: &[String],
    tally: &Tally,
) -> Result<()> {
    println!("\nonce more, nothing beside them: {}", tally.failures.join(", "));
    let alone: Vec<String> = ["--exact", "--test-threads=1"]
        .into_iter()
        .map(str::to_owned)
        .chain(tally.failures.iter().cloned())
        .collect();
    let (status, again) = tests(repository, cache, recording, packages, &alone)?;
    if !status.success() || again.passed < tally.failures.len() {
        bail!(
            "tests failed twice ({status}):\n    {}",
            again.failures.join("\n    ")
        );
    }
    println!("\n{}", tally.after_second_try());
    Ok(())
}

/// Runs simulated schedules, where all tests were asked for.
fn simulate(repository: &Repository, arguments: &Arguments) -> Result<()> {
    if arguments.package.is_empty() && arguments.runner.is_empty() {
        let started = Instant::now();
        println!();
        simulate::run_in_tests(repository)?;
        println!(
            "simulated in {} s, building included",
            started.elapsed().as_secs()
        );
    }
    Ok(())
}

/// Runs the tests of the given packages, or of all, with arguments for the test runner; writes down what they ask of databases.
fn tests(
    repository: &Repository,
    cache: &Cache,
    recording: &statements::Recording,
    packages: &[String],
    runner: &[String],
) -> Result<(ExitStatus, Tally)> {
    let mut command = cargo(repository);
    // Every failure is wanted, not only those of the first binary that has one.
    command.args(["test", "--no-fail-fast"]);
    if packages.is_empty() {
        command.arg("--workspace");
    }
    for package in packages {
        command.args(["--package", package]);
    }
    if !runner.is_empty() {
        command.arg("--").args(runner);
    }
    // A relative path would mean another folder to each test: they run in the folders of their crates.
    command.env("EVENKEEL_CACHE", cache.root());
    let (name, folder) = recording.variable();
    command.env(name, folder);
    let earlier = earlier_release::Statements::newest(repository)?;
    if let Some(earlier) = &earlier {
        println!(
            "\nthe statements of {} are tried on today's schema",
            earlier.release
        );
        let (name, folder) = earlier.variable();
        command.env(name, folder);
    }
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
    Ok((status, tally))
}

/// Sums the closing lines of all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    /// Test binaries that began; one that ends before its closing line was killed or gave up.
    begun: usize,
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
        if line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test")) {
            self.begun += 1;
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

    /// Whether the failures are few, and all known by name.
    fn may_be_unsteady(&self) -> bool {
        self.begun == self.binaries
            && self.failures.len() == self.failed
            && (1..=UNSTEADY_MAX).contains(&self.failed)
    }

    /// What is said when all failures passed alone: the first try's counts, the unsteady tests by name.
    fn after_second_try(&self) -> String {
        format!(
            "unsteady, failed beside others and passed alone; mend them:\n    {}\n{} passed, of which {} at the second try",
            self.failures.join("\n    "),
            self.passed + self.failed,
            self.failed
        )
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

    #[test]
    fn few_known_failures_are_tried_again() {
        let one = [
            "running 2 tests",
            "test store::claims ... ok",
            "test store::leases ... FAILED",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s",
        ];
        let read = |lines: &[&str]| {
            let mut tally = Tally::default();
            lines.iter().for_each(|line| tally.read(line));
            tally
        };
        assert!(read(&one).may_be_unsteady());
        assert!(!read(&[]).may_be_unsteady(), "there is nothing to try");
        assert!(!read(&one.repeat(UNSTEADY_MAX + 1)).may_be_unsteady(), "too many");
        let killed = [&one[..], &["running 1 test"]].concat();
        assert!(
            !read(&killed).may_be_unsteady(),
            "a binary that ended early has no names"
        );
        let unnamed = one.map(|line| line.replace("test store::leases", "noise test store::leases"));
        let unnamed: Vec<&str> = unnamed.iter().map(String::as_str).collect();
        assert!(!read(&unnamed).may_be_unsteady(), "a failure without a name");
    }
}
