//! What Go's text/template, fmt, Sprig and Helm's own functions print for generated templates, error texts
//! included.

use std::rc::Rc;

use evenkeel_gotemplate::{Executor, Map, TemplateSet, Value, parse};
use serde::Deserialize;
use serde_json::json;

use crate::helm;

#[derive(Deserialize)]
struct Row {
    e: String,
    out: Option<String>,
    err: Option<String>,
}

fn data() -> Value {
    let values = json!({
        "i": 1, "f": 2.5, "f0": 0, "big": 1_234_567, "bigger": 123_456_789_012u64, "e21": 1e21, "neg": -5,
        "t": true, "s": "xs", "u": "é☺", "l": [1, "a", 2.5, true],
        "m": {"k": "v", "a": 1, "B": 2, "10": "x", "9": true},
        "mixed": [{"a": 1, "b": ["x"]}, null, ""],
        "a": {"b": "c"}, "a-b": "dash", "a_b": "under",
    });
    let Value::Map(all) = helm::data(&values) else {
        panic!("data is a map")
    };
    let release = Map::any();
    release.insert("Name", "r");
    release.insert("Revision", Value::int(1));
    let data = Map::any();
    data.insert("Values", all.get("Values").unwrap());
    data.insert("Release", release);
    Value::Map(data)
}

fn render(text: &str) -> Result<String, String> {
    let functions = helm::functions();
    let parsed =
        parse("x", text.as_bytes(), |name| functions.contains(name)).map_err(|error| error.to_string())?;
    let mut set = TemplateSet::new("gotpl");
    set.add(&parsed);
    let mut executor = Executor::new(helm::env(), Rc::new(functions));
    executor
        .execute(&set, "x", &data())
        .map(|out| out.to_text())
        .map_err(|error| error.to_string())
}

fn check(rows: &str) {
    let rows: Vec<Row> = serde_json::from_str(rows).unwrap();
    assert!(rows.len() > 100);
    let mut wrong = Vec::new();
    for row in &rows {
        let expected = match (&row.out, &row.err) {
            (Some(out), None) => Ok(out.clone()),
            (None, Some(error)) => Err(error.clone()),
            _ => panic!("a row has an output or an error"),
        };
        let got = render(&row.e);
        if got != expected {
            wrong.push(format!("{}\n  expected {expected:?}\n  got      {got:?}", row.e));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} rows differ:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

#[test]
fn functions_equal_go() {
    check(include_str!("../data/functions_go.json"));
}

#[test]
fn damaged_templates_fail_as_in_go() {
    check(include_str!("../data/language_go.json"));
}

#[test]
fn printf_equals_go() {
    check(include_str!("../data/printf_go.json"));
}

#[test]
fn regular_expressions_match_and_fail_as_in_go() {
    check(include_str!("../data/regex_go.json"));
}
