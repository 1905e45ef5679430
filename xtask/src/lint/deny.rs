//! Licences, banned crates and sources.
//!
//! `deny.toml` is a file of cargo-deny, which anyone may run; this reads the part of it that needs no network. The
//! reason not to run cargo-deny itself is time: it takes minutes to compile on a fresh machine, and this a second.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use spdx::{Expression, LicenseReq, ParseMode};

use super::metadata::{Kind, Metadata, Package};
use super::tree::Tree;
use super::{Finding, Report};
use crate::repository::Repository;

/// The index that cargo uses unless told otherwise.
const DEFAULT_INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What is read of deny.toml. Unknown sections are cargo-deny's.
#[derive(Deserialize)]
struct Deny {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
    #[serde(default)]
    clarify: Vec<Clarification>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Clarification {
    #[serde(rename = "crate")]
    name: String,
    expression: String,
}

#[derive(Deserialize)]
struct Bans {
    #[serde(default)]
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    #[serde(default)]
    reason: String,
}

/// Checks all packages that are built for the platforms of deny.toml.
pub(super) fn check(repository: &Repository, metadata: &Metadata) -> Result<Report> {
    let text =
        std::fs::read_to_string(repository.root().join("deny.toml")).context("cannot read deny.toml")?;
    let deny: Deny = toml::from_str(&text).context("cannot read deny.toml")?;
    let tree = Tree::of_workspace(repository, &deny.graph.targets)?;
    examine(&deny, metadata, &tree)
}

fn examine(deny: &Deny, metadata: &Metadata, tree: &Tree) -> Result<Report> {
    let mut report = Report::default();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata.packages.iter().filter(|package| tree.has(package)) {
        versions
            .entry(&package.name)
            .or_default()
            .insert(&package.version);
        let place = format!("crate {} {}", package.name, package.version);
        let way = || way_to(metadata, &package.id);
        if let Some(ban) = deny.bans.deny.iter().find(|ban| ban.name == package.name) {
            report.findings.push(Finding::new(
                &place,
                format!("is banned ({}), but there by {}", ban.reason, way()),
                "drop the feature or the dependency that brings it",
            ));
        }
        match package.source.as_deref() {
            None | Some(DEFAULT_INDEX) => {}
            Some(source) => report.findings.push(Finding::new(
                &place,
                format!("comes from {source}"),
                "take a published version from the default registry",
            )),
        }
        // Ours has the licence of the repository.
        if package.source.is_some()
            && let Some(what) = license_objection(deny, package)?
        {
            report.findings.push(Finding::new(
                &place,
                format!("{what}; it is there by {}", way()),
                "drop it, or allow the licence in deny.toml with its reason",
            ));
        }
    }
    let several = versions.values().filter(|versions| versions.len() > 1).count();
    if several > 0 {
        report.notes.push(format!(
            "{several} crates are there in more than one version: `cargo tree -d` shows them"
        ));
    }
    Ok(report)
}

/// What is wrong with a package's licence.
fn license_objection(deny: &Deny, package: &Package) -> Result<Option<String>> {
    let clarified = deny
        .licenses
        .clarify
        .iter()
        .find(|clarification| clarification.name == package.name);
    let Some(text) = clarified
        .map(|clarification| &clarification.expression)
        .or(package.license.as_ref())
    else {
        return Ok(Some("names no licence".to_owned()));
    };
    let expression = Expression::parse_mode(text, ParseMode::LAX)
        .with_context(|| format!("the licence {text:?} of {} is no SPDX expression", package.name))?;
    let exception = deny
        .licenses
        .exceptions
        .iter()
        .filter(|exception| exception.name == package.name);
    let allowed: Vec<&String> = deny
        .licenses
        .allow
        .iter()
        .chain(exception.flat_map(|exception| &exception.allow))
        .collect();
    let is_allowed =
        expression.evaluate(|requirement| allowed.iter().any(|name| **name == identifier(requirement)));
    Ok((!is_allowed).then(|| format!("has the licence {text:?}, which is not allowed")))
}

/// The licence as deny.toml writes it: `Apache-2.0`, `Apache-2.0 WITH LLVM-exception`.
fn identifier(requirement: &LicenseReq) -> String {
    requirement.to_string()
}

/// How one of our crates comes to a package.
fn way_to(metadata: &Metadata, id: &str) -> String {
    let ways = metadata.workspace_members.iter().filter_map(|member| {
        let ways = metadata.ways_from(member);
        ways.get(id).map(|way| metadata.name_way(way))
    });
    let in_tests = || {
        let user = metadata.resolve.nodes.iter().find(|node| {
            let is_dev =
                |kinds: &[super::metadata::EdgeKind]| kinds.iter().all(|kind| kind.kind == Kind::Dev);
            node.deps
                .iter()
                .any(|edge| edge.pkg == id && is_dev(&edge.dep_kinds))
        });
        user.map(|node| format!("the tests of {}", metadata.name_way(&[&node.id])))
    };
    ways.min_by_key(String::len)
        .or_else(in_tests)
        .unwrap_or_else(|| "a crate that only tests use".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DENY: &str = r#"
        [graph]
        targets = []
        [licenses]
        allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
        exceptions = [{ crate = "roots", allow = ["CDLA-Permissive-2.0"] }]
        [[licenses.clarify]]
        crate = "odd"
        expression = "MIT AND Apache-2.0"
        license-files = []
        [bans]
        multiple-versions = "warn"
        deny = [{ crate = "openssl", reason = "one TLS stack" }]
    "#;

    fn findings(packages: serde_json::Value) -> Vec<String> {
        let mut tree = Tree::default();
        for package in packages.as_array().unwrap() {
            tree.extend(&format!("{} v1.0.0", package["name"].as_str().unwrap()));
        }
        let metadata: Metadata = serde_json::from_value(json!({
            "packages": packages,
            "workspace_members": [],
            "resolve": {"nodes": []},
        }))
        .unwrap();
        let report = examine(&toml::from_str(DENY).unwrap(), &metadata, &tree).unwrap();
        report
            .findings
            .into_iter()
            .map(|finding| format!("{}: {}", finding.place, finding.what))
            .collect()
    }

    fn package(name: &str, license: Option<&str>) -> serde_json::Value {
        json!({"id": name, "name": name, "version": "1.0.0", "license": license, "source": DEFAULT_INDEX})
    }

    #[test]
    fn allowed_licences_pass_in_every_combination() {
        let packages = json!([
            package("a", Some("MIT OR GPL-3.0-only")),
            package("b", Some("(MIT OR BSL-1.0) AND Apache-2.0")),
            package("c", Some("Apache-2.0 WITH LLVM-exception")),
            package("d", Some("MIT/Apache-2.0")),
            package("roots", Some("CDLA-Permissive-2.0")),
            package("odd", Some("see the file")),
        ]);
        assert_eq!(findings(packages), [""; 0]);
    }

    #[test]
    fn other_licences_bans_and_sources_are_told() {
        let git = json!({"id": "g", "name": "g", "version": "1.0.0", "license": "MIT", "source": "git+https://x.example/g"});
        let packages = json!([
            package("a", Some("GPL-3.0-only")),
            package("b", Some("MIT AND MPL-2.0")),
            package("c", None),
            package("openssl", Some("Apache-2.0")),
            git,
        ]);
        let found = findings(packages);
        assert_eq!(found.len(), 5, "{found:#?}");
        assert!(
            found[0].starts_with(r#"crate a 1.0.0: has the licence "GPL-3.0-only", which is not allowed"#)
        );
        assert!(found[2].starts_with("crate c 1.0.0: names no licence"));
        assert!(found[3].starts_with("crate openssl 1.0.0: is banned (one TLS stack), but there by "));
        assert_eq!(found[4], "crate g 1.0.0: comes from git+https://x.example/g");
    }
}
