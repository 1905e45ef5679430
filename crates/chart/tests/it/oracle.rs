//! Every row of the tables that Helm 4.3.1 printed is compared somewhere, and none silently left out.
//!
//! The expressions are in the tests of the template crate, which compare outputs and errors word for word; reading and
//! writing YAML in those of the YAML crate. Here are the columns that need both: values as they stand in a chart, printed
//! by `toString` and `quote`.

use evenkeel_chart::{Capabilities, Chart, Release, render};
use evenkeel_goyaml::{Map, Numbers, Value, from_json};

use crate::isolation::options;

/// The tables, how many rows each has, and the columns of a row.
const TABLES: [(&str, &str, usize, &[&str]); 6] = [
    (
        "gotpl_exprs",
        include_str!("../../../gotemplate/tests/data/gotpl_exprs_v4.3.1.json"),
        176,
        &["e", "out", "err"],
    ),
    (
        "sprig_exprs",
        include_str!("../../../gotemplate/tests/data/sprig_exprs_v4.3.1.json"),
        403,
        &["e", "out", "err"],
    ),
    ("toyaml", TO_YAML, 257, &["i", "v", "t", "p", "j", "r", "q"]),
    ("toyaml_cases", TO_YAML_CASES, 257, &[]),
    (
        "fromyaml",
        include_str!("../../../goyaml/tests/data/fromyaml_v4.3.1.json"),
        218,
        &["i", "v"],
    ),
    (
        "fromyaml_docs",
        include_str!("../../../goyaml/tests/data/fromyaml_docs.json"),
        218,
        &[],
    ),
];
const TO_YAML: &str = include_str!("../../../goyaml/tests/data/toyaml_v4.3.1.json");
const TO_YAML_CASES: &str = include_str!("../../../goyaml/tests/data/toyaml_cases.json");

#[test]
fn the_tables_are_whole() {
    for (name, text, count, columns) in TABLES {
        let rows: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
        assert_eq!(rows.len(), count, "{name}");
        for (index, row) in rows.iter().enumerate() {
            let Some(row) = row.as_object().filter(|_| !columns.is_empty()) else {
                continue;
            };
            // A column that nobody knows of would be compared by nobody.
            for column in row.keys() {
                assert!(columns.contains(&column.as_str()), "{name} {index}: {column}");
            }
            if columns.contains(&"err") {
                assert_eq!(row.len(), 2, "{name} {index}: an output or an error");
            }
            if let Some(number) = row.get("i") {
                assert_eq!(number, index, "{name}: in order");
            }
        }
    }
}

#[test]
fn texts_and_quotes_of_values() {
    let Value::List(cases) = from_json(TO_YAML_CASES.as_bytes(), Numbers::Float64).unwrap() else {
        panic!("the cases are a list");
    };
    let rows: Vec<serde_json::Value> = serde_json::from_str(TO_YAML).unwrap();
    let template = "{{ range .Values.cases }}{{ toString . | b64enc }} {{ quote . | b64enc }}\n{{ end }}";
    let chart = Chart::from_files([
        ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        ("templates/NOTES.txt", template),
    ])
    .unwrap();
    let values = Value::Map(Map::from([("cases".to_owned(), Value::List(cases))]));
    let release = Release::install("r", "ns");
    let rendered = render(&chart, &values, &release, &Capabilities::default(), options()).unwrap();
    let notes = rendered.notes.unwrap();
    assert_eq!(notes.lines().count(), rows.len());
    let mut wrong = Vec::new();
    for (index, (line, row)) in notes.lines().zip(&rows).enumerate() {
        let (text, quoted) = line.split_once(' ').unwrap();
        for (column, found) in [("r", text), ("q", quoted)] {
            let expected = row[column].as_str().unwrap();
            if found != encoded(expected) {
                wrong.push(format!(
                    "{index} {column}: expected {expected:?}, got {found} in base 64"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn encoded(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}
