//! Rules of the language and traps that charts depend on.

use std::rc::Rc;

use evenkeel_gotemplate::{
    Cause, Env, Executor, Frame, Limits, Map, MissingKey, Taints, TemplateSet, Value, parse,
};
use serde_json::json;

use crate::helm;

fn data() -> Value {
    helm::data(
        &json!({"port": 1_234_567, "name": "web", "list": ["a", "b"], "map": {"x": {"y": 1}}, "nested": {}}),
    )
}

fn render(text: &str) -> Result<String, String> {
    helm::render(&[("ex/templates/a.yaml", text)], &data())
}

#[track_caller]
fn prints(text: &str, expected: &str) {
    assert_eq!(render(text).as_deref(), Ok(expected), "{text}");
}

#[track_caller]
fn fails(text: &str, expected: &str) {
    let error = render(text).expect_err(text);
    assert!(error.contains(expected), "{text}\n{error}");
}

#[test]
fn numbers_keep_their_types() {
    prints("{{ .Values.port }}", "1.234567e+06");
    prints("{{ .Values.port | int }}", "1234567");
    prints(r#"{{ printf "%d" .Values.port }}"#, "%!d(float64=1.234567e+06)");
    prints("{{ toYaml .Values.port }}", "1234567");
    fails(
        "{{ eq .Values.port 1 }}",
        "incompatible types for comparison: float64 and int",
    );
}

#[test]
fn fields_of_nothing_differ_by_how_they_are_written() {
    fails(
        "{{ .Values.no.field }}",
        "nil pointer evaluating interface {}.field",
    );
    prints("{{ (.Values.no).field }}", "");
    prints("{{ $x := .Values.no }}{{ $x.field }}", "");
}

#[test]
fn maps_are_shared_between_all_who_hold_them() {
    prints(
        r#"{{ $_ := set .Values.nested "k" "v" }}{{ .Values.nested.k }}"#,
        "v",
    );
    prints(
        r#"{{ $m := .Values.map }}{{ $_ := unset $m "x" }}{{ .Values.map }}"#,
        "map[]",
    );
    // Merging shares nested maps of the source; a deep copy does not.
    let shared =
        r#"{{ $d := dict "a" (dict "b" 1) }}{{ $e := merge (dict) $d }}{{ $_ := set $e.a "b" 2 }}{{ $d }}"#;
    prints(shared, "map[a:map[b:2]]");
    let copied = r#"{{ $d := dict "a" (dict "b" 1) }}{{ $e := merge (dict) (deepCopy $d) }}{{ $_ := set $e.a "b" 2 }}{{ $d }}"#;
    prints(copied, "map[a:map[b:1]]");
}

#[test]
fn changes_are_seen_by_templates_executed_later() {
    let functions = helm::functions();
    let mut set = TemplateSet::new("gotpl");
    for (name, text) in [
        ("z", r#"{{ $_ := set .Values "late" "z was here" }}"#),
        ("a", "{{ .Values.late }}"),
    ] {
        set.add(&parse(name, text.as_bytes(), |name| functions.contains(name)).unwrap());
    }
    let mut executor = Executor::new(helm::env(), Rc::new(functions));
    let data = data();
    assert_eq!(executor.execute(&set, "z", &data).unwrap().to_text(), "");
    assert_eq!(
        executor.execute(&set, "a", &data).unwrap().to_text(),
        "z was here"
    );
}

#[test]
fn append_copies_and_sorting_texts_does_not() {
    prints(
        "{{ $a := list 1 }}{{ $b := append $a 2 }}{{ $c := append $a 3 }}{{ $a }}{{ $b }}{{ $c }}",
        "[1][1 2][1 3]",
    );
    prints(
        r#"{{ $l := splitList "," "b,a" }}{{ $_ := sortAlpha $l }}{{ $l }}"#,
        "[a b]",
    );
}

#[test]
fn static_types_survive() {
    prints(
        r#"{{ typeOf (splitList "," "a") }} {{ typeOf (until 1) }}"#,
        "[]string []int",
    );
    prints(
        r#"{{ typeOf (split "," "a") }} {{ typeOf (add 1 1) }}"#,
        "map[string]string int64",
    );
    prints(
        r#"{{ deepEqual (list "a") (splitList "," "a") }}{{ has "a" (splitList "," "a") }}"#,
        "falsetrue",
    );
    prints(
        "{{ typeOf (chunk 1 (list 1)) }} {{ typeOf (len .Values.list) }}",
        "[][]interface {} int",
    );
}

#[test]
fn nil_slices_are_null_in_data() {
    prints("{{ concat list list | toJson }}{{ list | toJson }}", "null[]");
    prints("{{ rest list | toJson }}{{ first list }}", "null");
}

#[test]
fn strings_are_bytes() {
    prints(r#"{{ trunc 1 "é" | len }}{{ index "é" 0 }}"#, "1195");
    prints(r#"{{ b64dec "/w==" | len }}"#, "1");
}

#[test]
fn definitions_replace_each_other_by_order_and_content() {
    let functions = helm::functions();
    let parse =
        |name: &str, text: &str| parse(name, text.as_bytes(), |name| functions.contains(name)).unwrap();
    let mut set = TemplateSet::new("gotpl");
    set.add(&parse("1", r#"{{ define "t" }}one{{ end }}"#));
    set.add(&parse("2", r#"{{ define "t" }}two{{ end }}"#));
    set.add(&parse("3", "{{ define \"t\" }} \n{{/* nothing */}}{{ end }}"));
    set.add(&parse("main", r#"{{ template "t" }}"#));
    let mut executor = Executor::new(helm::env(), Rc::new(functions.clone()));
    assert_eq!(
        executor.execute(&set, "main", &Value::Nil).unwrap().to_text(),
        "two"
    );
    fails(
        r#"{{ define "t" }}a{{ end }}{{ define "t" }}b{{ end }}"#,
        r#"multiple definition of template "t""#,
    );
}

#[test]
fn tpl_sees_outer_templates_and_keeps_its_own() {
    let files = [
        ("ex/templates/_h.tpl", r#"{{ define "outer" }}O{{ end }}"#),
        (
            "ex/templates/a.yaml",
            "{{ tpl \"{{ define `inner` }}I{{ end }}{{ include `outer` . }}{{ include `inner` . }}\" . }}{{ include \"inner\" . }}",
        ),
    ];
    let error = helm::render(&files, &data()).unwrap_err();
    assert!(
        error.contains("no template \"inner\" associated with template \"gotpl\""),
        "{error}"
    );
    let works = [
        files[0],
        (
            "ex/templates/a.yaml",
            "{{ tpl \"{{ tpl `{{ include \\\"outer\\\" . }}` . }}\" . }}",
        ),
    ];
    assert_eq!(helm::render(&works, &data()).as_deref(), Ok("O"));
}

#[test]
fn an_empty_tpl_text_is_empty_inside_tpl() {
    prints("{{ tpl \"x{{ tpl `` . }}y\" . }}", "xy");
}

#[test]
fn failures_name_the_outermost_place() {
    let files = [
        (
            "ex/templates/_h.tpl",
            r#"{{ define "deep" }}{{ required "give: a name" .Values.nope }}{{ end }}"#,
        ),
        ("ex/templates/a.yaml", "a: 1\nb: {{ include \"deep\" . }}"),
    ];
    let error = helm::render(&files, &data()).unwrap_err();
    assert_eq!(
        error,
        "execution error at (ex/templates/a.yaml:2:6): give: a name"
    );
}

#[test]
fn errors_have_a_structure() {
    let functions = helm::functions();
    let mut set = TemplateSet::new("gotpl");
    for (name, text) in [
        ("f.yaml", "é\n {{ include \"n\" . }}"),
        ("_n.tpl", "{{ define \"n\" }}{{ fail \"no\" }}{{ end }}"),
    ] {
        set.add(&parse(name, text.as_bytes(), |name| functions.contains(name)).unwrap());
    }
    let error = Executor::new(helm::env(), Rc::new(functions))
        .execute(&set, "f.yaml", &Value::Nil)
        .unwrap_err();
    assert_eq!(error.cause(), &Cause::Failure("no".into()));
    let frames: Vec<&Frame> = error.frames().collect();
    let expected = [
        ("f.yaml", "f.yaml:2:4", "include \"n\" .", "include"),
        ("n", "_n.tpl:1:19", "fail \"no\"", "fail"),
    ];
    assert_eq!(frames.len(), expected.len());
    for (frame, (template, location, node, function)) in frames.into_iter().zip(expected) {
        let expected = Frame::Action {
            template: template.into(),
            location: location.into(),
            node: node.into(),
            function: Some(function.into()),
        };
        assert_eq!(frame, &expected);
    }
    assert_eq!(
        error.texts(),
        [
            "template: f.yaml:2:4: executing \"f.yaml\" at <include \"n\" .>: error calling include: \
             template: _n.tpl:1:19: executing \"n\" at <fail \"no\">: error calling fail: no",
            "template: _n.tpl:1:19: executing \"n\" at <fail \"no\">: error calling fail: no",
            "no",
        ]
    );
}

#[test]
fn unknown_functions_are_refused_while_parsing() {
    for name in ["env", "expandenv", "genCert", "nope"] {
        fails(
            &format!("{{{{ {name} }}}}"),
            &format!("function \"{name}\" not defined"),
        );
    }
}

#[test]
fn parse_errors_name_the_line() {
    fails(
        "a\nb\n{{ if }}",
        "parse error at (ex/templates/a.yaml:3): missing value for if",
    );
    fails("{{ if true }}\n\n", "(ex/templates/a.yaml:3): unexpected EOF");
    fails("{{ \n\n .x", "unclosed action started at ex/templates/a.yaml:1");
    fails("{{ else }}", "unexpected {{else}}");
    fails(
        "\n{{ block \"b\" . }}\n\nx{{ else }}{{ end }}",
        "(ex/templates/a.yaml:2): unexpected {{else}} in block clause",
    );
    fails(
        "\n{{ define \"b\" }}\n\nx{{ else }}{{ end }}",
        "(ex/templates/a.yaml:4): unexpected {{else}} in define clause",
    );
    fails(
        "{{ range . }}{{ else if true }}{{ end }}",
        "unexpected <if> in input",
    );
    fails("{{ $x, $y := 1 }}", "too many declarations in command");
    fails("{{ (1 }}", "unclosed left paren");
    fails("{{/* x }}", "unclosed comment");
}

#[test]
fn missing_keys_follow_the_setting() {
    let strict = |missing_key: MissingKey| {
        let functions = helm::functions();
        let mut set = TemplateSet::new("gotpl");
        set.add(
            &parse("x", b"{{ .Values.nope }}".as_slice(), |name| {
                functions.contains(name)
            })
            .unwrap(),
        );
        let env = Env {
            missing_key,
            ..helm::env()
        };
        Executor::new(env, Rc::new(functions))
            .execute(&set, "x", &data())
            .map(|out| out.to_text())
    };
    assert_eq!(strict(MissingKey::Zero).unwrap(), "<no value>");
    assert_eq!(strict(MissingKey::Invalid).unwrap(), "<no value>");
    let error = strict(MissingKey::Error).unwrap_err().to_string();
    assert!(error.ends_with("map has no entry for key \"nope\""), "{error}");
}

#[test]
fn a_render_is_marked_by_what_it_used() {
    let taints = |text: &str| {
        let functions = helm::functions();
        let mut set = TemplateSet::new("gotpl");
        set.add(&parse("x", text.as_bytes(), |name| functions.contains(name)).unwrap());
        let mut executor = Executor::new(helm::env(), Rc::new(functions));
        executor.execute(&set, "x", &data()).unwrap();
        executor.taints()
    };
    assert!(taints("{{ .Values.name | upper | sha256sum }}{{ date \"2006\" 0 }}").is_clean());
    assert_eq!(
        taints("{{ randAlphaNum 5 }}"),
        Taints {
            random: true,
            ..Taints::default()
        }
    );
    assert_eq!(
        taints("{{ uuidv4 }}{{ shuffle \"ab\" }}"),
        Taints {
            random: true,
            ..Taints::default()
        }
    );
    assert_eq!(
        taints("{{ now | date \"2006\" }}"),
        Taints {
            time: true,
            ..Taints::default()
        }
    );
    assert_eq!(
        taints("{{ date \"2006\" \"x\" }}"),
        Taints {
            time: true,
            ..Taints::default()
        }
    );
    assert_eq!(
        taints("{{ lookup \"v1\" \"Pod\" \"\" \"\" }}"),
        Taints {
            lookup: true,
            ..Taints::default()
        }
    );
}

#[test]
fn the_same_randomness_gives_the_same_text() {
    let text = "{{ randAlphaNum 20 }} {{ randNumeric 4 }} {{ randAlpha 4 }} {{ randInt 3 9 }} {{ uuidv4 }} {{ randBytes 9 }}";
    let first = render(text).unwrap();
    assert_eq!(render(text).unwrap(), first);
    let parts: Vec<&str> = first.split(' ').collect();
    assert_eq!(parts[0].len(), 20);
    assert!(parts[1].bytes().all(|byte| byte.is_ascii_digit()));
    assert!(parts[2].bytes().all(|byte| byte.is_ascii_alphabetic()));
    assert!((3..9).contains(&parts[3].parse::<i32>().unwrap()));
    assert_eq!(parts[4].as_bytes()[14], b'4', "a version 4 UUID");
    assert_eq!(parts[5].len(), 12);
}

#[test]
fn times_use_the_local_zone_of_the_environment() {
    let functions = helm::functions();
    let mut set = TemplateSet::new("gotpl");
    let text = r#"{{ date "15:04 MST" 0 }} {{ dateInZone "15:04 MST" 0 "America/New_York" }} {{ now }}
{{ fromToml "a = 1979-05-27T07:32:00" | toToml }}{{ fromToml "a = 07:32:00" | toYamlPretty }}"#;
    set.add(&parse("x", text.as_bytes(), |name| functions.contains(name)).unwrap());
    let env = Env {
        zone: "Europe/Zurich".into(),
        ..helm::env()
    };
    let out = Executor::new(env, Rc::new(functions))
        .execute(&set, "x", &data())
        .unwrap();
    assert_eq!(
        out.to_text(),
        "01:00 CET 19:00 EST 2025-12-01 15:40:00 +0100 CET\n\
         a = 1979-05-27T06:32:00\na: 0000-01-01T07:32:00+01:00"
    );
}

#[test]
fn a_thousand_nested_includes_work_and_endless_ones_end() {
    let text = r#"{{ define "r" }}{{ if gt . 0 }}{{ include "r" (sub . 1 | int) }}{{ else }}end{{ end }}{{ end }}{{ include "r" 999 }}"#;
    prints(text, "end");
    let endless = r#"{{ define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}"#;
    fails(
        endless,
        "rendering template has a nested reference name: r: unable to execute template",
    );
}

#[test]
fn trees_are_shared_by_threads() {
    let functions = helm::functions();
    let mut set = TemplateSet::new("gotpl");
    set.add(
        &parse(
            "x",
            b"{{ range $i := until 100 }}{{ $i }}{{ end }}".as_slice(),
            |name| functions.contains(name),
        )
        .unwrap(),
    );
    let expected: String = (0..100).map(|n| n.to_string()).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut executor = Executor::new(helm::env(), Rc::new(helm::functions()));
                assert_eq!(
                    executor.execute(&set, "x", &Value::Nil).unwrap().to_text(),
                    expected
                );
            });
        }
    });
}

#[test]
fn limits_have_defaults_that_charts_do_not_meet() {
    let limits = Limits::default();
    assert!(limits.call_depth >= 2_000 && limits.output_bytes >= 32 << 20 && limits.iterations >= 1_000_000);
    assert_eq!(Map::any().len(), 0);
}
