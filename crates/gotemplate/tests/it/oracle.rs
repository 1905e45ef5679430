//! What Helm 4.3.1 printed for hundreds of expressions.

use std::cell::RefCell;
use std::collections::BTreeSet;

use evenkeel_gotemplate::{FuncMap, parse};
use serde::Deserialize;
use serde_json::json;

use crate::helm;

/// Functions that do not exist yet; rows that use them are skipped. A function that comes must leave this list.
const MISSING: &[&str] = &[
    "bcrypt",
    "decryptAES",
    "derivePassword",
    "encryptAES",
    "genCA",
    "genPrivateKey",
    "htpasswd",
];

#[derive(Deserialize)]
struct Row {
    e: String,
    out: Option<String>,
    err: Option<String>,
}

/// The values of the chart behind the tables; Helm drops its `nul: null`.
fn values() -> serde_json::Value {
    json!({
        "i": 1, "f": 2.5, "big": 1_234_567, "bigger": 123_456_789_012u64, "e21": 1e21, "neg": -5, "t": true,
        "s": "xs", "u": "é☺", "l": [1, "a", 2.5, true],
        "m": {"k": "v", "a": 1, "B": 2, "10": "x", "9": true},
        "mixed": [{"a": 1, "b": ["x"]}, null, ""],
        "a": {"b": "c"}, "a-b": "dash", "a_b": "under", "bools": {"true": true},
    })
}

/// Functions a template calls that the engine does not have.
fn missing(text: &str, functions: &FuncMap) -> BTreeSet<String> {
    let missing = RefCell::new(BTreeSet::new());
    let _ = parse("x", text.as_bytes(), |name| {
        // These two are keywords unless a function has the name.
        if !functions.contains(name) && name != "break" && name != "continue" {
            missing.borrow_mut().insert(name.to_owned());
        }
        functions.contains(name) || (name != "break" && name != "continue")
    });
    missing.into_inner()
}

fn check(rows: &str, values: &serde_json::Value) -> BTreeSet<String> {
    let rows: Vec<Row> = serde_json::from_str(rows).unwrap();
    let functions = helm::functions();
    let mut absent = BTreeSet::new();
    let mut wrong = Vec::new();
    for row in &rows {
        let lacks = missing(&row.e, &functions);
        let expected = match (&row.out, &row.err) {
            (Some(out), None) => Ok(out.clone()),
            (None, Some(error)) => Err(error
                .trim_start_matches("Error: ")
                .trim_end_matches("\n\nUse --debug flag to render out invalid YAML")
                .to_owned()),
            _ => panic!("a row has an output or an error"),
        };
        let refused = expected
            .as_ref()
            .is_err_and(|error| error.contains("not defined"));
        if !lacks.is_empty() && !refused {
            absent.extend(lacks);
            continue;
        }
        let files = [
            (
                "ex/templates/_n.tpl",
                "{{- define \"ex.named\" -}}N{{ .Release.Name }}{{- end -}}",
            ),
            ("ex/templates/_b.tpl", row.e.as_str()),
            (
                "ex/templates/a.yaml",
                "o: {{ include \"ex/templates/_b.tpl\" . | b64enc }}\n",
            ),
        ];
        let got = helm::render(&files, &helm::data(values)).map(|manifest| {
            let encoded = manifest.trim_start_matches("o: ").trim_end();
            decode(encoded).replace("<no value>", "")
        });
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
    absent
}

fn decode(encoded: &str) -> String {
    let text = format!("{{{{ b64dec \"{encoded}\" }}}}");
    helm::render(&[("decode", &text)], &helm::data(&json!({}))).unwrap()
}

#[test]
fn template_language_equals_helm() {
    let absent = check(include_str!("../data/gotpl_exprs_v4.3.1.json"), &values());
    assert!(absent.is_empty(), "{absent:?}");
}

#[test]
fn functions_equal_helm() {
    let mut values = values();
    values["f0"] = json!(0);
    let absent = check(include_str!("../data/sprig_exprs_v4.3.1.json"), &values);
    let listed: BTreeSet<String> = MISSING.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(absent, listed, "the list of missing functions is out of date");
}
