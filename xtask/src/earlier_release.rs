//! The release before this one: the newest tag `v…` below the present commit.
//!
//! During an upgrade both run on one database. `cargo xtask test` prepares the earlier one's statements on today's schema;
//! `cargo xtask earlier-release` builds it and lets it work on a database that today's has brought up to date.

mod mothership;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use evenkeel_realparts::Postgres;

use crate::process::{cargo, output, run as run_program, target_directory};
use crate::repository::Repository;
use crate::{setup, statements};

use mothership::Mothership;

/// The variable that names the folder with the earlier release's statements.
const STATEMENTS: &str = "EVENKEEL_EARLIER_STATEMENTS";

/// Which release.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The earlier release, or any commit; without it, the newest tag `v…` below the present commit.
    #[arg(long)]
    revision: Option<String>,
}

/// The statements of the earlier release, in a folder.
pub(crate) struct Statements {
    folder: tempfile::TempDir,
    pub(crate) release: String,
}

impl Statements {
    /// Those of the newest release below the present commit; none before the first.
    pub(crate) fn newest(repository: &Repository) -> Result<Option<Self>> {
        newest(repository)?
            .map(|release| Self::of(repository, release))
            .transpose()
    }

    fn of(repository: &Repository, release: String) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        for file in statements::FILES {
            let object = format!("{release}:{}/{file}", statements::FOLDER);
            let text = output(git(repository).args(["show", &object]))?;
            let path = folder.path().join(file);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Self { folder, release })
    }

    /// The variable for the tests of the inventory.
    pub(crate) fn variable(&self) -> (&'static str, &Path) {
        (STATEMENTS, self.folder.path())
    }
}

fn git(repository: &Repository) -> Command {
    let mut command = Command::new("git");
    command.current_dir(repository.root());
    command
}

/// The newest tag of a release below the present commit.
fn newest(repository: &Repository) -> Result<Option<String>> {
    let tags = output(git(repository).args([
        "tag",
        "--list",
        "v[0-9]*",
        "--merged",
        "HEAD",
        "--no-contains",
        "HEAD",
        "--sort=-version:refname",
    ]))?;
    Ok(tags.lines().next().map(str::to_owned))
}

/// Runs the command.
pub(crate) fn run(repository: &Repository, arguments: &Arguments) -> Result<()> {
    let release = match &arguments.revision {
        Some(revision) => Some(revision.clone()),
        None => newest(repository)?,
    };
    let Some(release) = release else {
        println!("There is no release before this one; --revision names a commit to take for one.");
        return Ok(());
    };
    setup::run()?;
    let earlier = build_earlier(repository, &release)?;
    let today = build(repository, repository.root())?;

    println!("\n{release} on a SQLite file of today's");
    let place = tempfile::tempdir().context("cannot make a temporary folder")?;
    work_together(
        &today,
        &earlier,
        place.path(),
        &place.path().join("db").display().to_string(),
    )?;
    println!("{release} on a PostgreSQL database of today's");
    let place = tempfile::tempdir().context("cannot make a temporary folder")?;
    let server = Postgres::start()?;
    work_together(&today, &earlier, place.path(), &server.url())?;
    println!("\n{release} works on today's schema, and today's on what it left");
    Ok(())
}

/// Builds the earlier release in a checkout of its own.
fn build_earlier(repository: &Repository, release: &str) -> Result<PathBuf> {
    let folder = target_directory()?.join("earlier-release");
    let source = folder.join("source");
    if source.exists() {
        run_program(
            git(repository)
                .args(["worktree", "remove", "--force"])
                .arg(&source),
        )?;
    }
    run_program(
        git(repository)
            .args(["worktree", "add", "--detach"])
            .arg(&source)
            .arg(release),
    )?;
    let built = build(repository, &source)?;
    // Beside today's, which goes to the same place: what both depend on is built once.
    let kept = folder.join("evenkeel");
    std::fs::copy(&built, &kept)
        .with_context(|| format!("cannot copy {} to {}", built.display(), kept.display()))?;
    Ok(kept)
}

/// Builds the binary of a checkout.
fn build(repository: &Repository, source: &Path) -> Result<PathBuf> {
    let target = target_directory()?;
    let mut command = cargo(repository);
    command.current_dir(source);
    command.args(["build", "--package", "evenkeel-cli"]);
    command.env("CARGO_TARGET_DIR", &target);
    run_program(&mut command)?;
    Ok(target.join("debug/evenkeel"))
}

/// Today's makes the database, the earlier one works on it, and today's goes on.
fn work_together(today: &Path, earlier: &Path, place: &Path, database: &str) -> Result<()> {
    let mothership = Mothership::start(today, place, database)?;
    mothership.register("amber")?;
    mothership.stop()?;

    let mothership = Mothership::start(earlier, place, database)?;
    knows(&mothership, &["amber"])?;
    mothership.register("amber")?;
    mothership.register("birch")?;
    mothership.delete("amber")?;
    mothership.stop()?;

    let mothership = Mothership::start(today, place, database)?;
    knows(&mothership, &["birch"])?;
    mothership.stop()
}

fn knows(mothership: &Mothership, names: &[&str]) -> Result<()> {
    let listed = mothership.clusters()?;
    ensure!(
        listed == names,
        "{} lists {listed:?}, not {names:?}",
        mothership.program().display()
    );
    Ok(())
}
