//! Whatever the text, the engine answers; it never panics and never runs away.

use std::rc::Rc;

use evenkeel_gotemplate::{Env, Executor, Limits, TemplateSet, parse};
use proptest::prelude::*;
use serde_json::json;

use crate::helm;

/// Pieces of templates, sound and broken.
const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{{-",
    "-}}",
    "{{ end }}",
    "{{ else }}",
    "{{ if .Values.l }}",
    "{{ range $i, $e := .Values.l }}",
    "{{ with .Values.m }}",
    "{{ define \"x\" }}",
    "{{ template \"x\" . }}",
    "{{ include \"x\" . }}",
    "{{ break }}",
    "{{ .Values.l | toYaml | nindent 2 }}",
    "{{ $x := 1 }}",
    "{{ $x }}",
    "{{ tpl \"{{ . }}\" . }}",
    "(",
    ")",
    "|",
    ".",
    "$",
    "\"",
    "`",
    "'",
    ":=",
    "=",
    ",",
    " ",
    "\n",
    "nil",
    "true",
    "1",
    "-1",
    "0x",
    "1e9",
    ".Values",
    ".a.b",
    "index",
    "printf \"%v\"",
    "dict \"a\"",
    "list",
    "set .Values \"k\" .Values",
    "fail \"x\"",
    "{{/* c */}}",
    "é",
    "\u{0}",
];

fn limits() -> Limits {
    Limits {
        call_depth: 100,
        output_bytes: 100_000,
        work_bytes: 1_000_000,
        iterations: 10_000,
        value_depth: 200,
    }
}

fn run(text: &[u8]) -> Result<usize, String> {
    let functions = helm::functions();
    let parsed = parse("p", text, |name| functions.contains(name)).map_err(|error| error.to_string())?;
    let mut set = TemplateSet::new("gotpl");
    set.add(&parsed);
    let env = Env {
        limits: limits(),
        ..helm::env()
    };
    let data = helm::data(&json!({"l": [1, "a", null], "m": {"k": "v"}, "s": "text"}));
    Executor::new(env, Rc::new(functions))
        .execute(&set, "p", &data)
        .map(|out| out.len())
        .map_err(|error| error.to_string())
}

/// A call of any function with arguments of any type.
fn call() -> impl Strategy<Value = String> {
    let arguments = prop_oneof![
        Just("\"\"".to_owned()),
        Just("nil".to_owned()),
        Just("(list 1 \"a\" nil)".to_owned()),
        Just("(dict \"a\" (dict \"b\" 1))".to_owned()),
        Just(".Values".to_owned()),
        Just(".Values.nope".to_owned()),
        Just("(semver \"1.2.3\")".to_owned()),
        Just("(toDate \"2006-01-02\" \"2020-02-03\")".to_owned()),
        any::<i64>().prop_map(|int| int.to_string()),
        any::<f64>()
            .prop_filter("finite", |float| float.is_finite())
            .prop_map(|float| format!("{float:e}")),
        "[ -~é☺]{0,12}".prop_map(|text| format!("{text:?}")),
    ];
    let names = evenkeel_gotemplate::FuncMap::native_names();
    (
        prop::sample::select(names),
        prop::collection::vec(arguments, 0..5),
    )
        .prop_map(|(name, arguments)| format!("{{{{ {name} {} }}}}", arguments.join(" ")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = run(&bytes);
    }

    #[test]
    fn any_pieces(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..30)) {
        if let Ok(length) = run(pieces.concat().as_bytes()) {
            prop_assert!(length <= limits().output_bytes);
        }
    }

    #[test]
    fn any_call(text in call()) {
        if let Err(error) = run(text.as_bytes()) {
            prop_assert!(error.starts_with("template: p:1"), "{}: {}", text, error);
        }
    }

    #[test]
    fn text_without_actions_is_itself(text in "[^{]{0,200}") {
        prop_assert_eq!(run(text.as_bytes()), Ok(text.len()));
    }
}
