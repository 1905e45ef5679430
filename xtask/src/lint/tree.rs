//! What is really built.
//!
//! `cargo metadata` counts an optional dependency as used as soon as one of its features is asked for in case it is
//! there (`ring?/alloc`); `cargo tree` decides like the build does.

use std::collections::BTreeSet;

use anyhow::Result;

use super::metadata::Package;
use crate::process::{cargo, output};
use crate::repository::Repository;

/// Names and versions of packages.
#[derive(Debug, Default)]
pub(super) struct Tree {
    packages: BTreeSet<(String, String)>,
}

impl Tree {
    /// Everything that one crate, without its tests, is made of here.
    pub(super) fn of_crate(repository: &Repository, name: &str) -> Result<Self> {
        let mut command = cargo(repository);
        command.args([
            "tree",
            "--quiet",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--edges",
            "normal,build",
        ]);
        let mut tree = Self::default();
        tree.extend(&output(command.args(["--package", name]))?);
        Ok(tree)
    }

    /// Whether the package is part of it.
    pub(super) fn has(&self, package: &Package) -> bool {
        // Sets of pairs of strings are looked into by pairs of strings only.
        self.packages
            .contains(&(package.name.clone(), package.version.clone()))
    }

    /// Reads lines like `syn v2.0.1 (proc-macro) (*)`.
    pub(super) fn extend(&mut self, text: &str) {
        self.packages.extend(text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next()?.to_owned();
            let version = words.next()?.strip_prefix('v')?.to_owned();
            Some((name, version))
        }));
    }
}
