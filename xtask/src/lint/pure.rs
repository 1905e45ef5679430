//! Pure crates: same input, same bytes out.

use anyhow::Result;

use super::Finding;
use super::metadata::{Metadata, Package};
use super::source::{Sources, Strings};
use super::tree::Tree;
use crate::repository::Repository;

/// The rooms that do no input or output, and take time and randomness from their caller.
const PURE: [&str; 5] = ["core", "gotemplate", "goyaml", "chart", "steps"];

/// Crates whose purpose is input and output. A pure crate must not reach one, in however many steps.
const FORBIDDEN_CRATES: [&str; 12] = [
    "async-std",
    "axum",
    "hyper",
    "hyper-util",
    "kube",
    "kube-client",
    "mio",
    "reqwest",
    "rustls",
    "smol",
    "sqlx",
    "tokio",
];

/// What code of a pure crate must not call, and what it does instead.
// Not all of `std::net`: reading an address is pure.
const FORBIDDEN_CODE: [(&str, &str); 15] = [
    ("std::fs", TAKE_BYTES),
    ("TcpStream", TAKE_BYTES),
    ("TcpListener", TAKE_BYTES),
    ("UdpSocket", TAKE_BYTES),
    ("ToSocketAddrs", TAKE_BYTES),
    ("std::env", TAKE_BYTES),
    ("std::process", TAKE_BYTES),
    ("std::os", TAKE_BYTES),
    ("SystemTime::now", TAKE_CLOCK),
    ("Instant::now", TAKE_CLOCK),
    ("Timestamp::now", TAKE_CLOCK),
    ("Zoned::now", TAKE_CLOCK),
    ("rand::rng", TAKE_RANDOM),
    ("Uuid::new_v4", TAKE_RANDOM),
    ("Uuid::now_v7", TAKE_RANDOM),
];

const TAKE_BYTES: &str = "take what it would bring as an argument";
const TAKE_CLOCK: &str = "take the time from a Clock of the caller";
const TAKE_RANDOM: &str = "take randomness from the caller";

/// The one place that reads the time: the real Clock, which the others are given.
const CLOCK: &str = "crates/core/src/clock.rs";

/// Checks what pure crates depend on and what they say.
pub(super) fn check(repository: &Repository, metadata: &Metadata, sources: &Sources) -> Result<Vec<Finding>> {
    let mut findings = code(sources);
    for package in metadata
        .members()
        .filter(|package| PURE.contains(&package.room()))
    {
        findings.extend(dependencies(
            metadata,
            package,
            &Tree::of_crate(repository, &package.name)?,
        ));
    }
    Ok(findings)
}

/// Forbidden crates among what `package` is built of.
fn dependencies(metadata: &Metadata, package: &Package, tree: &Tree) -> Vec<Finding> {
    let mut ways: Vec<Vec<&str>> = metadata.ways_from(&package.id).into_values().collect();
    ways.sort();
    let mut findings = Vec::new();
    for way in ways {
        let Some(last) = way.last().and_then(|id| metadata.package(id)) else {
            continue;
        };
        if FORBIDDEN_CRATES.contains(&last.name.as_str()) && tree.has(last) {
            findings.push(Finding::new(
                format!("crate {}", package.name),
                format!("is pure, but reaches {}: {}", last.name, metadata.name_way(&way)),
                "drop the dependency or the feature that brings it",
            ));
        }
    }
    findings
}

/// Forbidden calls.
fn code(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in sources.rust() {
        let is_pure = PURE
            .iter()
            .any(|room| file.path.starts_with(format!("crates/{room}/src")));
        if is_pure {
            for (number, line) in file.shipped_lines(Strings::Blank) {
                findings.extend(
                    objections(&line)
                        .filter(|(_, remedy)| file.path != *CLOCK || *remedy != TAKE_CLOCK)
                        .map(|(what, remedy)| {
                            Finding::new(
                                format!("{}:{number}", file.path.display()),
                                format!("{what} in a pure crate"),
                                remedy,
                            )
                        }),
                );
            }
        }
    }
    findings
}

fn objections(line: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    // `use std::{fs, io}` names the same.
    let group = line.split_once("std::{").map(|(_, rest)| rest);
    FORBIDDEN_CODE.into_iter().filter(move |(what, _)| {
        let in_group = what
            .strip_prefix("std::")
            .zip(group)
            .is_some_and(|(name, group)| super::source::has_word(group, name));
        in_group || super::source::has_word(line, what)
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;
    use crate::lint::source::SourceFile;

    #[test]
    fn a_way_to_input_and_output_is_shown_unless_only_tests_take_it() {
        let metadata: Metadata = serde_json::from_value(json!({
            "packages": [
                {"id": "1", "name": "evenkeel-steps", "version": "1.0.0"},
                {"id": "2", "name": "between", "version": "1.0.0"},
                {"id": "3", "name": "tokio", "version": "1.0.0"},
                {"id": "4", "name": "hyper", "version": "1.0.0"},
            ],
            "workspace_members": ["1"],
            "resolve": {"nodes": [
                {"id": "1", "deps": [
                    {"pkg": "2", "dep_kinds": [{"kind": null}]},
                    {"pkg": "4", "dep_kinds": [{"kind": "dev"}]},
                ]},
                {"id": "2", "deps": [{"pkg": "3", "dep_kinds": [{"kind": null}]}]},
                {"id": "3"},
                {"id": "4"},
            ]},
        }))
        .unwrap();
        let mut tree = Tree::default();
        let found = |tree: &Tree| -> Vec<String> {
            let findings = dependencies(&metadata, metadata.package("1").unwrap(), tree);
            findings.into_iter().map(|finding| finding.what).collect()
        };
        // An optional dependency that is not taken is in the metadata, but not in the tree.
        tree.extend("evenkeel-steps v1.0.0 (/r/crates/steps)\nbetween v1.0.0\n");
        assert_eq!(found(&tree), [""; 0]);
        tree.extend("tokio v1.0.0 (*)\nhyper v1.0.0\n");
        assert_eq!(
            found(&tree),
            ["is pure, but reaches tokio: evenkeel-steps → between → tokio"]
        );
    }

    #[test]
    fn code_that_reads_files_or_clocks_is_told_with_its_line() {
        let file = |path: &str, text: &str| SourceFile {
            path: PathBuf::from(path),
            text: text.to_owned(),
        };
        let sources = Sources {
            files: vec![
                file(
                    "crates/chart/src/load.rs",
                    "//! std::fs\nuse std::{fs, fmt};\nfn f() { std::env::var(\"A\"); }\n",
                ),
                file("crates/chart/src/clock.rs", "fn f() { Timestamp::now(); }\n"),
                file("crates/core/src/clock.rs", "fn f() { Timestamp::now(); }\n"),
                file("crates/source/src/load.rs", "use std::fs;\n"),
                file("crates/goyaml/src/address.rs", "use std::net::Ipv6Addr;\n"),
            ],
        };
        let places: Vec<String> = code(&sources).into_iter().map(|finding| finding.place).collect();
        assert_eq!(
            places,
            [
                "crates/chart/src/load.rs:2",
                "crates/chart/src/load.rs:3",
                "crates/chart/src/clock.rs:1"
            ]
        );
    }
}
