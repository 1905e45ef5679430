//! A hostile template ends in an error that names it, never in an outage.

use std::cell::Cell;
use std::rc::Rc;

use evenkeel_gotemplate::{Cause, Env, Error, Executor, Limit, Limits, TemplateSet, Value, parse};
use serde_json::json;

use crate::helm;

fn run(text: &str, limits: Limits) -> Result<String, Error> {
    let functions = helm::functions();
    let mut set = TemplateSet::new("gotpl");
    set.add(&parse("hostile.yaml", text.as_bytes(), |name| {
        functions.contains(name)
    })?);
    let env = Env {
        limits,
        ..helm::env()
    };
    let mut executor = Executor::new(env, Rc::new(functions));
    executor
        .execute(&set, "hostile.yaml", &helm::data(&json!({"s": "x"})))
        .map(|out| out.to_text())
}

fn small() -> Limits {
    Limits {
        call_depth: 50,
        output_bytes: 10_000,
        work_bytes: 100_000,
        iterations: 1_000,
        value_depth: 100,
    }
}

#[track_caller]
fn stopped_by(text: &str, limit: Limit) {
    let error = run(text, small()).expect_err(text);
    assert_eq!(error.cause(), &Cause::Limit(limit), "{text}\n{error}");
    assert!(error.location().unwrap().starts_with("hostile.yaml:"), "{error}");
}

#[test]
fn call_depth() {
    stopped_by(
        r#"{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}"#,
        Limit::CallDepth(50),
    );
    stopped_by(
        r#"{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}"#,
        Limit::CallDepth(50),
    );
    stopped_by(
        "{{ $t := `{{ tpl .t . }}` }}{{ tpl $t (dict `t` $t) }}",
        Limit::CallDepth(50),
    );
}

#[test]
fn output() {
    stopped_by(
        "{{ range until 900 }}0123456789abcdef{{ end }}",
        Limit::OutputBytes(10_000),
    );
    stopped_by(
        "{{ range until 900 }}{{ `0123456789abcdef` }}{{ end }}",
        Limit::OutputBytes(10_000),
    );
    stopped_by(
        "{{ $l := list `lol` }}{{ range until 20 }}{{ $l = list $l $l }}{{ end }}{{ $l }}",
        Limit::OutputBytes(10_000),
    );
    stopped_by(
        "{{ $l := list `lol` }}{{ range until 20 }}{{ $l = list $l $l }}{{ end }}{{ toYaml $l }}",
        Limit::OutputBytes(10_000),
    );
    stopped_by(
        "{{ $l := list `lol` }}{{ range until 20 }}{{ $l = list $l $l }}{{ end }}{{ deepCopy $l | len }}",
        Limit::OutputBytes(10_000),
    );
    stopped_by("{{ printf `%900000d` 1 }}", Limit::OutputBytes(10_000));
}

#[test]
fn intermediate_text() {
    stopped_by("{{ repeat 1000000000000 .Values.s }}", Limit::WorkBytes(100_000));
    stopped_by("{{ indent 1000000000 .Values.s }}", Limit::WorkBytes(100_000));
    stopped_by("{{ until 9000000000000 | len }}", Limit::WorkBytes(100_000));
    stopped_by(
        "{{ untilStep 0 9000000000000 1 | len }}",
        Limit::WorkBytes(100_000),
    );
    stopped_by("{{ seq 9000000000000 }}", Limit::WorkBytes(100_000));
    stopped_by("{{ randAlphaNum 9000000000000 }}", Limit::WorkBytes(100_000));
    stopped_by("{{ randBytes 9000000000000 }}", Limit::WorkBytes(100_000));
    stopped_by(
        "{{ $s := .Values.s }}{{ range until 40 }}{{ $s = print $s $s }}{{ end }}{{ len $s }}",
        Limit::OutputBytes(10_000),
    );
    stopped_by(
        "{{ $s := .Values.s }}{{ range until 40 }}{{ $s = replace `x` `xx` $s }}{{ end }}{{ len $s }}",
        Limit::WorkBytes(100_000),
    );
    stopped_by(
        "{{ $l := list 1 }}{{ range until 40 }}{{ $l = concat $l $l }}{{ end }}{{ len $l }}",
        Limit::WorkBytes(100_000),
    );
}

#[test]
fn iterations() {
    stopped_by("{{ range 9000000000000 }}{{ end }}", Limit::Iterations(1_000));
    stopped_by(
        "{{ range until 100 }}{{ range until 100 }}{{ end }}{{ end }}",
        Limit::Iterations(1_000),
    );
}

#[test]
fn values_that_hold_themselves() {
    let cycle = "{{ $d := dict }}{{ $_ := set $d `self` $d }}";
    for use_of_it in [
        "{{ $d }}",
        "{{ toYaml $d }}",
        "{{ toJson $d }}",
        "{{ print $d }}",
        "{{ quote $d }}",
        "{{ deepCopy $d | len }}",
    ] {
        stopped_by(&format!("{cycle}{use_of_it}"), Limit::ValueDepth(100));
    }
    let merged =
        format!("{cycle}{{{{ $e := dict }}}}{{{{ $_ := set $e `self` $e }}}}{{{{ merge $d $e | len }}}}");
    stopped_by(&merged, Limit::ValueDepth(100));
    assert_eq!(
        run(&format!("{cycle}{{{{ deepEqual $d $d }}}}"), small()).unwrap(),
        "true"
    );
}

#[test]
fn deep_values_are_freed_without_the_stack() {
    let text = "{{ $l := list }}{{ range until 200000 }}{{ $l = list $l }}{{ end }}{{ len $l }}";
    assert_eq!(run(text, Limits::default()).unwrap(), "1");
    let text = "{{ $d := dict }}{{ range until 200000 }}{{ $d = dict `d` $d }}{{ end }}{{ len $d }}";
    assert_eq!(run(text, Limits::default()).unwrap(), "1");
}

#[test]
fn deep_texts_are_parsed_and_freed_without_the_stack() {
    let deep = 9_000;
    let text = format!("{{{{ {}1{} }}}}", "(".repeat(deep), ")".repeat(deep));
    assert_eq!(run(&text, Limits::default()).unwrap(), "1");
    let text = format!("{{{{ {}1{} }}}}", "(".repeat(20_000), ")".repeat(20_000));
    assert!(
        run(&text, Limits::default())
            .unwrap_err()
            .to_string()
            .contains("max expression depth exceeded")
    );
    let text = format!(
        "{}x{}",
        "{{ if true }}".repeat(50_000),
        "{{ end }}".repeat(50_000)
    );
    assert_eq!(run(&text, Limits::default()).unwrap(), "x");
    let text = format!(
        "{{{{ if false }}}}{}{{{{ end }}}}",
        "{{ else if false }}".repeat(20_000)
    );
    assert_eq!(run(&text, Limits::default()).unwrap(), "");
}

#[test]
fn the_deadline_stops_a_render() {
    let functions = helm::functions();
    let mut set = TemplateSet::new("gotpl");
    let text = "{{ range 9000000000000 }}{{ end }}";
    set.add(&parse("slow.yaml", text.as_bytes(), |name| functions.contains(name)).unwrap());
    let looks = Rc::new(Cell::new(0));
    let seen = Rc::clone(&looks);
    let deadline = move || {
        seen.set(seen.get() + 1);
        seen.get() > 3
    };
    let limits = Limits {
        iterations: usize::MAX,
        ..Limits::default()
    };
    let env = Env {
        limits,
        deadline: Some(Box::new(deadline)),
        ..helm::env()
    };
    let error = Executor::new(env, Rc::new(functions))
        .execute(&set, "slow.yaml", &Value::Nil)
        .unwrap_err();
    assert_eq!(error.cause(), &Cause::Limit(Limit::Deadline));
    assert_eq!(looks.get(), 4);
}
