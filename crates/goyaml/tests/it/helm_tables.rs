//! Tables printed by Helm 4.3.1: every row must come out byte for byte.

use evenkeel_goyaml::{
    Error, JsonStyle, Map, Numbers, Value, from_json, from_json_list, from_json_map, from_yaml_list,
    from_yaml_map, to_json, to_yaml, to_yaml_pretty,
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
        let in_map = Value::Map(Map::from([("v".to_owned(), case.clone())]));
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

/// Helm's functions that read never fail: the error becomes an entry beside what was read, or the only item.
fn error_map(error: &Error) -> Value {
    let mut map = match error.partial() {
        Some(Value::Map(map)) => map.clone(),
        _ => Map::new(),
    };
    map.insert("Error".to_owned(), Value::String(error.to_string()));
    Value::Map(map)
}

fn error_list(error: &Error) -> Value {
    Value::List(vec![Value::String(error.to_string())])
}

fn from_yaml_as_helm(document: &[u8]) -> Value {
    from_yaml_map(document, Numbers::Float64).map_or_else(|error| error_map(&error), Value::Map)
}

fn from_json_as_helm(text: &[u8]) -> Value {
    let map = from_json_map(text, Numbers::Float64);
    map.map_or_else(
        |error| error_map(&error),
        |map| map.map_or(Value::Null, Value::Map),
    )
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
        let found = to_json(&from_yaml_as_helm(document.as_bytes()), JsonStyle::Compact);
        if text(row, "v") != found {
            failures.push(format!("{document:?}: {found}, Helm {}", text(row, "v")));
        }
    }
    report(&failures, documents.len());
}

/// Found by comparing with Helm at random, and by hand. Each row: the template function, its input, what Helm printed.
/// The functions that write get what `fromJson` reads from the input; what those that read give is shown by `toJson`.
#[test]
fn more_rows() {
    let rows = table("helm_more_v4.3.1.json");
    assert!(rows.len() > 1_200, "only {} rows", rows.len());
    let mut failures = Vec::new();
    for row in &rows {
        let (function, input) = (text(row, "fn"), text(row, "in"));
        let bytes = input.as_bytes();
        let show = |value: Value| to_json(&value, JsonStyle::Compact);
        let found = match function {
            "toYaml" => trimmed(&to_yaml(&from_json_as_helm(bytes))).to_owned(),
            "toYamlPretty" => trimmed(&to_yaml_pretty(&from_json_as_helm(bytes))).to_owned(),
            "toJson" => show(from_json_as_helm(bytes)),
            "toPrettyJson" => to_json(&from_json_as_helm(bytes), JsonStyle::Pretty),
            "toRawJson" => to_json(&from_json_as_helm(bytes), JsonStyle::Raw),
            "fromJson" => show(from_json_as_helm(bytes)),
            "fromJsonArray" => show(from_json_list(bytes, Numbers::Float64).map_or_else(
                |error| error_list(&error),
                |list| list.map_or(Value::Null, Value::List),
            )),
            "fromYaml" => show(from_yaml_as_helm(bytes)),
            "fromYaml | toYaml" => trimmed(&to_yaml(&from_yaml_as_helm(bytes))).to_owned(),
            "fromYamlArray" => show(
                from_yaml_list(bytes, Numbers::Float64).map_or_else(|error| error_list(&error), Value::List),
            ),
            other => panic!("unknown function {other}"),
        };
        if found != text(row, "out") {
            failures.push(format!(
                "{function} {input:?}: {found:?}, Helm {:?}",
                text(row, "out")
            ));
        }
    }
    report(&failures, rows.len());
}
