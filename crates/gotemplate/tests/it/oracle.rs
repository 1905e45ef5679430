//! What Helm 4.3.1 printed for hundreds of expressions.

use evenkeel_gotemplate::Env;
use serde::Deserialize;
use serde_json::json;

use crate::helm;
use crate::keys::Recorded;

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

/// What Helm says without what the command line puts around it.
pub fn stripped(error: &str) -> String {
    error
        .trim_start_matches("Error: ")
        .trim_end_matches("\n\nUse --debug flag to render out invalid YAML")
        .to_owned()
}

/// Renders an expression in the chart behind the tables.
pub fn printed(env: Env, expression: &str, values: &serde_json::Value) -> Result<String, String> {
    let files = [
        (
            "ex/templates/_n.tpl",
            "{{- define \"ex.named\" -}}N{{ .Release.Name }}{{- end -}}",
        ),
        ("ex/templates/_b.tpl", expression),
        (
            "ex/templates/a.yaml",
            "o: {{ include \"ex/templates/_b.tpl\" . | b64enc }}\n",
        ),
    ];
    helm::render_in(env, &files, &helm::data(values)).map(|manifest| {
        let encoded = manifest.trim_start_matches("o: ").trim_end();
        decode(encoded).replace("<no value>", "")
    })
}

fn check(rows: &str, values: &serde_json::Value) {
    let rows: Vec<Row> = serde_json::from_str(rows).unwrap();
    let mut wrong = Vec::new();
    for row in &rows {
        let expected = match (&row.out, &row.err) {
            (Some(out), None) => Ok(out.clone()),
            (None, Some(error)) => Err(stripped(error)),
            _ => panic!("a row has an output or an error"),
        };
        let mut env = helm::env();
        env.keys = Some(Box::new(Recorded::any()));
        let got = printed(env, &row.e, values);
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

fn decode(encoded: &str) -> String {
    let text = format!("{{{{ b64dec \"{encoded}\" }}}}");
    helm::render(&[("decode", &text)], &helm::data(&json!({}))).unwrap()
}

#[test]
fn template_language_equals_helm() {
    check(include_str!("../data/gotpl_exprs_v4.3.1.json"), &values());
}

#[test]
fn functions_equal_helm() {
    let mut values = values();
    values["f0"] = json!(0);
    check(include_str!("../data/sprig_exprs_v4.3.1.json"), &values);
}
