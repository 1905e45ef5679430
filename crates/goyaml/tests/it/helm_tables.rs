//! Tables printed by Helm 4.3.1: every row must come out byte for byte.

use std::collections::BTreeMap;

use evenkeel_goyaml::{
    JsonStyle, Numbers, Value, from_json, from_yaml_map, to_json, to_yaml, to_yaml_pretty,
};

/// The rows of a file in `tests/data`. Numbers are floats, as in the values file where the cases stood.
fn table(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    match from_json(&text, Numbers::Float64).unwrap() {
        Value::List(rows) => rows,
        other => panic!("{path} holds no list: {other:?}"),
    }
}

fn text<'r>(row: &'r Value, column: &str) -> &'r str {
    match row {
        Value::Map(row) => match row.get(column) {
            Some(Value::String(text)) => text,
            other => panic!("column {column}: {other:?}"),
        },
        other => panic!("row: {other:?}"),
    }
}

/// Helm's template functions trim the newline at the end.
fn trimmed(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

fn report(failures: &[String], rows: usize) {
    assert!(
        failures.is_empty(),
        "{} of {rows} rows differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Columns: v = toYaml of {v: x}, t = toYaml x, p = toYamlPretty of {v: x}, j = toJson of {v: x}.
#[test]
fn to_yaml_table() {
    let cases = table("toyaml_cases.json");
    let expected = table("toyaml_v4.3.1.json");
    assert_eq!((cases.len(), expected.len()), (257, 257));
    let mut failures = Vec::new();
    for (case, row) in cases.iter().zip(&expected) {
        let in_map = Value::Map(BTreeMap::from([("v".to_owned(), case.clone())]));
        let json = to_json(&in_map, JsonStyle::Compact);
        let columns = [
            ("v", trimmed(&to_yaml(&in_map)).to_owned()),
            ("t", trimmed(&to_yaml(case)).to_owned()),
            ("p", trimmed(&to_yaml_pretty(&in_map)).to_owned()),
            ("j", json),
        ];
        for (column, found) in columns {
            if text(row, column) != found {
                failures.push(format!(
                    "{case:?} {column}: {found:?}, Helm {:?}",
                    text(row, column)
                ));
            }
        }
    }
    report(&failures, cases.len());
}

fn from_yaml_as_helm(document: &[u8]) -> String {
    let map = from_yaml_map(document, Numbers::Float64)
        .unwrap_or_else(|error| BTreeMap::from([("Error".to_owned(), Value::String(error.to_string()))]));
    to_json(&Value::Map(map), JsonStyle::Compact)
}

/// `fromYaml X | toJson`, errors included.
#[test]
fn from_yaml_table() {
    let documents = table("fromyaml_docs.json");
    let expected = table("fromyaml_v4.3.1.json");
    assert_eq!((documents.len(), expected.len()), (218, 218));
    let mut failures = Vec::new();
    for (document, row) in documents.iter().zip(&expected) {
        let Value::String(document) = document else {
            panic!("no text: {document:?}")
        };
        let found = from_yaml_as_helm(document.as_bytes());
        if text(row, "v") != found {
            failures.push(format!("{document:?}: {found}, Helm {}", text(row, "v")));
        }
    }
    report(&failures, documents.len());
}
