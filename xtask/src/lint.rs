//! `cargo xtask lint`: what the compiler does not check.
//!
//! Cheap checks come first and are all done; the ones that compile follow only if those found nothing.

mod arrows;
mod cargo;
mod dead;
mod deny;
mod files;
mod metadata;
mod order;
mod pure;
mod source;
mod spawn;
mod sql;
mod tree;
mod words;

use std::fmt;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::lint::metadata::Metadata;
use crate::lint::source::Sources;
use crate::repository::Repository;

/// Arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these checks; all without.
    #[arg(value_enum)]
    checks: Vec<Check>,
}

/// The checks, in the order in which they are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Check {
    /// Files lie and are called as the house rules say.
    Files,
    /// No path of a machine, no host of a package index, no tool by its bare name.
    Words,
    /// No crate depends upwards in the list of the house, and there is no cycle.
    Arrows,
    /// Pure crates have no crate for input and output, and do none.
    Pure,
    /// Other programs are run by the files that may, and never kubectl or helm.
    Spawn,
    /// Only the inventory speaks SQL, as static text with bound parameters.
    Sql,
    /// Every dependency is used.
    Dead,
    /// The order in which the binary is linked names functions that there are.
    Order,
    /// rustfmt has nothing to change.
    Fmt,
    /// Licences, banned crates and sources are as deny.toml says.
    Deny,
    /// clippy has nothing to say.
    Clippy,
    /// The documentation is complete, and its links lead somewhere.
    Doc,
}

/// Something a check does not accept.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// File, with line if there is one, or crate.
    place: String,
    /// What is wrong.
    what: String,
    /// What to do about it.
    remedy: String,
}

impl Finding {
    fn new(place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.what, self.remedy)
    }
}

/// What a check found: what must be changed, and what is only worth a look.
#[derive(Debug, Default)]
struct Report {
    findings: Vec<Finding>,
    notes: Vec<String>,
}

impl From<Vec<Finding>> for Report {
    fn from(findings: Vec<Finding>) -> Self {
        Self {
            findings,
            notes: Vec::new(),
        }
    }
}

/// Runs the command.
pub(crate) fn run(repository: &Repository, arguments: &Arguments) -> Result<()> {
    let checks = if arguments.checks.is_empty() {
        Check::value_variants()
    } else {
        &arguments.checks
    };
    let house = House::read(repository)?;
    let mut failed: Vec<String> = Vec::new();
    for check in checks {
        let name = check
            .to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default();
        if check.compiles() && !failed.is_empty() {
            println!("skip {name}: first see to what was found");
            continue;
        }
        let started = Instant::now();
        let report = house.check(*check)?;
        let verdict = if report.findings.is_empty() {
            "ok  "
        } else {
            "FAIL"
        };
        println!("{verdict} {name} ({:.1} s)", started.elapsed().as_secs_f64());
        for finding in &report.findings {
            println!("       {finding}");
        }
        for note in &report.notes {
            println!("       note: {note}");
        }
        if !report.findings.is_empty() {
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!(
            "failed checks: {} (to repeat: cargo xtask lint {})",
            failed.join(", "),
            failed.join(" ")
        );
    }
    Ok(())
}

impl Check {
    fn compiles(self) -> bool {
        matches!(self, Self::Clippy | Self::Doc)
    }
}

/// What the checks look at, read once.
struct House<'a> {
    repository: &'a Repository,
    sources: Sources,
    metadata: Metadata,
}

impl<'a> House<'a> {
    fn read(repository: &'a Repository) -> Result<Self> {
        Ok(Self {
            repository,
            sources: Sources::read(repository)?,
            metadata: Metadata::read(repository)?,
        })
    }

    fn check(&self, check: Check) -> Result<Report> {
        Ok(match check {
            Check::Files => files::check(&self.sources),
            Check::Words => words::check(&self.sources).into(),
            Check::Arrows => arrows::check(&self.metadata).into(),
            Check::Pure => pure::check(self.repository, &self.metadata, &self.sources)?.into(),
            Check::Spawn => spawn::check(&self.sources).into(),
            Check::Sql => sql::check(&self.sources).into(),
            Check::Dead => dead::check(&self.metadata, &self.sources)?.into(),
            Check::Order => order::check(&self.metadata, &self.sources),
            Check::Deny => deny::check(self.repository)?.into(),
            Check::Fmt => cargo::fmt(self.repository)?.into(),
            Check::Clippy => cargo::clippy(self.repository)?.into(),
            Check::Doc => cargo::doc(self.repository)?.into(),
        })
    }
}
