//! The faults that people reported of tools like this one: each has a test here or in another crate that names it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Number and fault of every case about objects at a cluster and the way to it.
const CASES: &str = include_str!("../data/cases.txt");

/// Every source of tests: `tests` folders, and the sources, whose tests stand beside the code.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is = |extension: &str| path.extension().is_some_and(|found| found == extension);
        if path.is_dir() {
            sources(&path, found);
        } else if is("rs") || path.ends_with("readiness/cases.json") {
            found.push(path);
        }
    }
}

/// Whether a line of a source names the case: in the words above a test, or as a row of a table of cases.
fn names(line: &str, case: &str) -> bool {
    let line = line.trim_start();
    (line.starts_with("///") || line.starts_with("//!") || line.contains(&format!("\"case\": \"{case}\"")))
        && line.contains(case)
}

#[test]
fn every_reported_fault_has_a_test() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    sources(crates, &mut files);
    let texts: Vec<String> = files
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let mut missing = BTreeSet::new();
    let mut cases = 0;
    for line in CASES.lines() {
        let (case, fault) = line.split_once(' ').unwrap();
        assert!(!fault.is_empty());
        cases += 1;
        let named = texts
            .iter()
            .any(|text| text.lines().any(|line| names(line, case)));
        if !named {
            missing.insert(case);
        }
    }
    assert_eq!(cases, 36);
    assert!(missing.is_empty(), "no test names {missing:?}");
}
