//! `cargo xtask statements`: writes down what is asked of databases, by what the tests of the inventory ask. At a release the
//! files lie in its tag, and the schema of the next one is tried with them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use evenkeel_realparts::Cache;

use crate::process::{cargo, run as run_program};
use crate::repository::Repository;
use crate::setup;

/// Where they lie, from the root of the repository.
pub(crate) const FOLDER: &str = "crates/inventory/statements";
/// A file for each database, one statement a line.
pub(crate) const FILES: [&str; 2] = ["postgres.sql", "sqlite.sql"];
/// The variable that names the folder that tests write them to.
const RECORD: &str = "EVENKEEL_RECORD_STATEMENTS";

/// What tests asked of databases, while it is being collected.
pub(crate) struct Recording {
    folder: tempfile::TempDir,
}

impl Recording {
    /// Nothing yet.
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        Ok(Self { folder })
    }

    /// The variable for the tests.
    pub(crate) fn variable(&self) -> (&'static str, &Path) {
        (RECORD, self.folder.path())
    }

    /// What was asked of one database.
    fn statements(&self, file: &str) -> Result<BTreeSet<String>> {
        read(&self.folder.path().join(file))
    }

    /// Fails when something was asked that is not written down. What is written down and was not asked may depend on who was
    /// faster, and is left alone.
    pub(crate) fn check(&self, repository: &Repository) -> Result<()> {
        for file in FILES {
            let known = read(&path(repository, file))?;
            let new: Vec<String> = self.statements(file)?.difference(&known).cloned().collect();
            if !new.is_empty() {
                bail!(
                    "{FOLDER}/{file} lacks statements; `cargo xtask statements` writes it anew, with what the inventory's own tests \
                     ask:\n    {}",
                    new.join("\n    ")
                );
            }
        }
        Ok(())
    }
}

/// Runs the command.
pub(crate) fn run(repository: &Repository) -> Result<()> {
    let cache = setup::run()?;
    let recording = Recording::new()?;
    record(repository, &cache, &recording)?;
    for file in FILES {
        let statements: Vec<String> = recording.statements(file)?.into_iter().collect();
        let path = path(repository, file);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        std::fs::write(&path, statements.join("\n") + "\n")
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}: {} statements", path.display(), statements.len());
    }
    Ok(())
}

/// Runs the tests of the inventory but those of the files themselves.
fn record(repository: &Repository, cache: &Cache, recording: &Recording) -> Result<()> {
    let mut command = cargo(repository);
    command.args([
        "test",
        "--package",
        "evenkeel-inventory",
        "--",
        "--skip",
        "statements::",
    ]);
    command.env("EVENKEEL_CACHE", cache.root());
    let (name, folder) = recording.variable();
    command.env(name, folder);
    run_program(&mut command)
}

fn path(repository: &Repository, file: &str) -> PathBuf {
    repository.root().join(FOLDER).join(file)
}

/// The lines of a file; none when there is no file.
fn read(path: &Path) -> Result<BTreeSet<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_down_is_told() {
        let repository = Repository::find().unwrap();
        let recording = Recording::new().unwrap();
        recording.check(&repository).unwrap();
        let file = recording.folder.path().join("sqlite.sql");
        std::fs::write(&file, "SELECT 1 FROM nowhere\n").unwrap();
        let error = recording.check(&repository).unwrap_err().to_string();
        assert!(error.ends_with("SELECT 1 FROM nowhere"), "{error}");
    }
}
