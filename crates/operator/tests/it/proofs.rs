//! `docs/operator-faults.md` names for every fault the test that proves ours right: each is there, and no number is left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Numbers that have no test, and a reason instead.
const WITHOUT_TEST: [&str; 3] = ["B35", "B37", "L29"];

/// Public cases about the operator.
const CASES: [&str; 5] = ["OPR-01", "OPR-03", "OPR-05", "OPR-07", "OPR-09"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The last cell of each row, by the first.
fn rows() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(root().join("docs/operator-faults.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, number, _, tests, _] = cells[..] else {
            return None;
        };
        let is_number = number.starts_with(|c: char| c.is_ascii_uppercase());
        is_number.then(|| (number.to_owned(), tests.to_owned()))
    });
    rows.collect()
}

#[test]
fn every_number_has_a_row_with_tests_that_exist() {
    let rows = rows();
    let wanted = (1..=37)
        .map(|number| format!("B{number}"))
        .chain((1..=33).map(|number| format!("L{number}")))
        .chain((1..=14).map(|number| format!("A{number}")))
        .chain(CASES.map(str::to_owned));
    let mut count = 0;
    for number in wanted {
        let tests = rows.get(&number).unwrap_or_else(|| panic!("{number} has no row"));
        let named: Vec<(&str, &str)> = tests
            .split('`')
            .filter_map(|place| place.split_once("::"))
            .collect();
        assert_eq!(
            named.is_empty(),
            WITHOUT_TEST.contains(&number.as_str()),
            "{number}: {tests}"
        );
        for (file, name) in named {
            let text = std::fs::read_to_string(root().join("crates").join(file))
                .unwrap_or_else(|error| panic!("{number}: {file}: {error}"));
            assert!(
                text.contains(&format!("fn {name}(")),
                "{number}: there is no {name} in {file}"
            );
        }
        count += 1;
    }
    assert_eq!(rows.len(), count, "a row has a number that nobody knows");
}
