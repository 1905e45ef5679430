//! What `cargo metadata` tells, as far as checks need it.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::process::{cargo, output};
use crate::repository::Repository;

/// Packages and how they depend on each other.
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    pub(super) packages: Vec<Package>,
    /// Package ids of the crates of this repository.
    pub(super) workspace_members: Vec<String>,
    pub(super) resolve: Resolve,
    #[serde(default)]
    pub(super) workspace_root: PathBuf,
}

/// One package, ours or another's.
#[derive(Debug, Deserialize)]
pub(super) struct Package {
    pub(super) id: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: String,
    #[serde(default)]
    pub(super) manifest_path: PathBuf,
    #[serde(default)]
    pub(super) dependencies: Vec<Dependency>,
    #[serde(default)]
    pub(super) targets: Vec<Target>,
}

/// One line of a package's manifest.
#[derive(Debug, Deserialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    #[serde(default)]
    pub(super) rename: Option<String>,
    #[serde(default)]
    pub(super) kind: Kind,
}

/// The section of the manifest that a dependency stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Normal,
    Dev,
    Build,
}

// Cargo writes null for the normal kind.
impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Option::<String>::deserialize(deserializer)?.as_deref() {
            None | Some("normal") => Ok(Self::Normal),
            Some("dev") => Ok(Self::Dev),
            Some("build") => Ok(Self::Build),
            Some(other) => Err(serde::de::Error::custom(format!(
                "unknown kind of dependency: {other}"
            ))),
        }
    }
}

/// A library, binary, test, …
#[derive(Debug, Deserialize)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) kind: Vec<String>,
}

/// The packages as chosen.
#[derive(Debug, Deserialize)]
pub(super) struct Resolve {
    pub(super) nodes: Vec<Node>,
}

/// One package and those that it uses.
#[derive(Debug, Deserialize)]
pub(super) struct Node {
    pub(super) id: String,
    #[serde(default)]
    pub(super) deps: Vec<Edge>,
}

/// One use.
#[derive(Debug, Deserialize)]
pub(super) struct Edge {
    pub(super) pkg: String,
    #[serde(default)]
    pub(super) dep_kinds: Vec<EdgeKind>,
}

/// Why it is used.
#[derive(Debug, Deserialize)]
pub(super) struct EdgeKind {
    #[serde(default)]
    pub(super) kind: Kind,
}

impl Metadata {
    /// Asks cargo, for all platforms.
    pub(super) fn read(repository: &Repository) -> Result<Self> {
        let text = output(cargo(repository).args(["metadata", "--format-version", "1"]))?;
        serde_json::from_str(&text).context("cannot read what cargo metadata printed")
    }

    /// The crates of this repository.
    pub(super) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
    }

    pub(super) fn package(&self, id: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.id == id)
    }

    /// Shortest ways, of packages, from one package to all that it needs to be built and run: what only its tests use
    /// is left out. Keys are package ids; a way starts with the package itself.
    pub(super) fn ways_from(&self, id: &str) -> HashMap<&str, Vec<&str>> {
        let nodes: HashMap<&str, &Node> = self
            .resolve
            .nodes
            .iter()
            .map(|node| (node.id.as_str(), node))
            .collect();
        let mut ways: HashMap<&str, Vec<&str>> = HashMap::new();
        let Some(start) = nodes.get(id) else { return ways };
        ways.insert(&start.id, vec![&start.id]);
        let mut queue = std::collections::VecDeque::from([*start]);
        while let Some(node) = queue.pop_front() {
            for edge in &node.deps {
                let is_needed = edge.dep_kinds.iter().any(|kind| kind.kind != Kind::Dev);
                if !is_needed || ways.contains_key(edge.pkg.as_str()) {
                    continue;
                }
                let mut way = ways.get(node.id.as_str()).cloned().unwrap_or_default();
                way.push(&edge.pkg);
                ways.insert(&edge.pkg, way);
                queue.extend(nodes.get(edge.pkg.as_str()));
            }
        }
        ways
    }

    /// The names along a way, for people: `chart → a → b`.
    pub(super) fn name_way(&self, way: &[&str]) -> String {
        let names = way
            .iter()
            .filter_map(|id| self.package(id))
            .map(|package| package.name.as_str());
        names.collect::<Vec<_>>().join(" → ")
    }
}

impl Package {
    /// Name of its folder in the house: `core` for `evenkeel-core`; the binary's crate is `evenkeel` or
    /// `evenkeel-cli`.
    pub(super) fn room(&self) -> &str {
        room(&self.name)
    }

    /// Name by which Rust code calls the library.
    pub(super) fn library(&self) -> String {
        let libraries = ["lib", "rlib", "dylib", "cdylib", "staticlib", "proc-macro"];
        let target = self
            .targets
            .iter()
            .find(|target| target.kind.iter().any(|kind| libraries.contains(&kind.as_str())));
        target.map_or_else(
            || self.name.replace('-', "_"),
            |target| target.name.replace('-', "_"),
        )
    }
}

/// See [`Package::room`].
pub(super) fn room(package: &str) -> &str {
    if package == "evenkeel" {
        "cli"
    } else {
        package.strip_prefix("evenkeel-").unwrap_or(package)
    }
}
