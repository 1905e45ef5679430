//! `values.schema.json` in all its drafts beside the real Helm: which values each of the two refuses, and that faults of
//! the schema itself are faults in both. Each schema is that of one sub-chart, so that one run of each tells all.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::template::{Oracle, repository};

/// Schemas that only one of the two refuses, with the reason.
const OTHERWISE: [(&str, &str); 6] = [
    (
        r##""$ref":"http://json-schema.org/draft-07/schema#"}}}"##,
        "the schemas of schemas cannot be referred to here",
    ),
    (
        r##"{"$defs":{"b":{"$id":"https://e.x/a"}}"##,
        "an address given twice is not noticed here",
    ),
    (
        r##"{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}"##,
        "an anchor given twice is not noticed here",
    ),
    (
        r##"{"$ref":"#/$defs/s~2"}"##,
        "an escape that is none is taken as it stands here",
    ),
    (
        r##"{"$id":"x","$schema":"nope"}"##,
        "a draft within a schema is not looked up here",
    ),
    (r##""format":"period""##, "Helm's own format"),
];

/// What was said of each sub-chart.
fn refusals(text: &str) -> BTreeMap<String, String> {
    let faults = text
        .split_once("following chart(s):\n")
        .map_or("", |(_, faults)| faults);
    let mut refusals: BTreeMap<String, String> = BTreeMap::new();
    let mut rest = faults;
    // Behind what keeps a schema from being used, Helm does not begin a new line.
    while let Some(colon) = rest.find(":\n") {
        let name = rest.get(colon.saturating_sub(4)..colon).unwrap_or_default();
        rest = rest.get(colon + 2..).unwrap_or_default();
        let is_name = name.starts_with('s') && name.bytes().skip(1).all(|byte| byte.is_ascii_digit());
        if is_name {
            let line = rest.lines().next().unwrap_or_default();
            refusals.insert(name.to_owned(), line.to_owned());
        }
    }
    refusals
}

#[test]
fn schemas_of_every_draft_refuse_the_same_values() {
    let cases = fs::read(repository().join("crates/cli/tests/data/schemas.json")).unwrap();
    let cases: Vec<(Value, Value)> = serde_json::from_slice(&cases).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
    let mut values = serde_json::Map::new();
    for (index, (schema, value)) in cases.iter().enumerate() {
        let name = format!("s{index:03}");
        let chart = format!("c/charts/{name}");
        let description = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
        write(&format!("{chart}/Chart.yaml"), &description);
        write(&format!("{chart}/values.schema.json"), &schema.to_string());
        values.insert(name, value.clone());
    }
    write("values.json", &Value::Object(values).to_string());
    let arguments = ["template", "x", "c", "-f", "values.json"];
    let theirs = Oracle::new().helm(folder.path(), &arguments);
    let ours = Oracle::evenkeel(folder.path(), &arguments);
    assert_eq!(theirs.status.code(), ours.status.code());
    let said = |output: &std::process::Output| refusals(&String::from_utf8_lossy(&output.stderr));
    let (theirs, ours) = (said(&theirs), said(&ours));
    assert!(theirs.len() > 80, "{}", theirs.len());
    let (mut differences, mut same_words) = (Vec::new(), 0);
    for (index, (schema, value)) in cases.iter().enumerate() {
        let name = format!("s{index:03}");
        let text = schema.to_string();
        let is_otherwise = OTHERWISE.iter().any(|(part, _)| text.contains(part));
        let (theirs, ours) = (theirs.get(&name), ours.get(&name));
        if theirs.is_some() != ours.is_some() && !is_otherwise {
            differences.push(format!("{text} {value}\n  Helm {theirs:?}\n  Evenkeel {ours:?}"));
        }
        same_words += usize::from(theirs.is_some() && theirs == ours);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    // Where a value would be quoted, or Go's own words, ours differ.
    assert!(
        same_words * 10 > theirs.len() * 6,
        "{same_words} of {}",
        theirs.len()
    );
}
