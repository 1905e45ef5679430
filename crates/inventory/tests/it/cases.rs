//! The reported faults of queues, databases and encryption: every one is named by a test, here or where its subject lives.

use std::collections::BTreeSet;
use std::path::Path;

/// The cases, and the crate whose tests name each.
const ALL: [(&str, &str); 8] = [
    ("CRY-01", "inventory"),
    ("CRY-03", "inventory"),
    ("CRY-05", "inventory"),
    ("QDB-02", "inventory"),
    ("QDB-04", "inventory"),
    ("QDB-06", "inventory"),
    ("QDB-08", "inventory"),
    // Names of what is kept at a cluster.
    ("QDB-10", "cluster"),
];

/// Adds the cases that a line before a test names.
fn collect(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") || path.ends_with("tests/it/cases.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| line.trim_start().starts_with("//")) {
            let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            found.extend(words.filter(|word| word.contains('-')).map(ToOwned::to_owned));
        }
    }
}

#[test]
fn no_case_is_left_out() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (case, room) in ALL {
        let mut found = BTreeSet::new();
        collect(&crates.join(room), &mut found);
        assert!(
            found.contains(case),
            "{case} is named by no test of crates/{room}"
        );
    }
}
