//! Limits: what is deep or long and right renders, and what passes a limit says which, and where.

use evenkeel_chart::{Error, Limits, RenderOptions};
use evenkeel_goyaml::Value;

use super::{fault, with};
use crate::isolation::options;

/// Long and deep templates that Helm renders are rendered here as well, on a small stack.
#[test]
fn deep_and_long_templates_render() {
    for (name, text) in [
        (
            "if in if",
            format!(
                "{}a: 1{}",
                "{{ if true }}".repeat(5_000),
                "{{ end }}".repeat(5_000)
            ),
        ),
        (
            "parentheses",
            format!("a: {{{{ {}1{} }}}}", "(".repeat(5_000), ")".repeat(5_000)),
        ),
        ("pipe", format!("a: {{{{ 1{} }}}}", " | print".repeat(20_000))),
        (
            "else if",
            format!(
                "{{{{ if false }}}}{}{{{{ else }}}}a: 1{{{{ end }}}}",
                "{{ else if false }}".repeat(5_000)
            ),
        ),
    ] {
        let files = with(&[("templates/a.yaml", text.as_bytes())]);
        let error = fault(files, Value::Null, options);
        assert!(error.is_none(), "{name}: {error:?}");
    }
}

/// Every limit can be set, and passing it says which, and where.
#[test]
fn limits_are_settings() {
    let nested = "{{ define \"x\" }}{{ if lt . 40 }}{{ include \"x\" (add1 .) }}{{ end }}{{ end }}a: {{ include \"x\" 1 }}\n";
    let roomy = Limits::default();
    for (name, text, tight, expected) in [
        (
            "depth",
            nested,
            Limits {
                call_depth: 20,
                ..roomy
            },
            "exceeded maximum template depth (20)",
        ),
        (
            "iterations",
            "{{ range until 90 }}{{ end }}a: 1\n",
            Limits {
                iterations: 50,
                ..roomy
            },
            "more than 50 passes through range",
        ),
        (
            "output",
            "a: {{ repeat 90 \"x\" }}\n",
            Limits {
                output_bytes: 50,
                ..roomy
            },
            "the output is larger than the limit of 50 bytes",
        ),
        (
            "work",
            "a: {{ repeat 90 \"x\" | len }}\n",
            Limits {
                work_bytes: 50,
                ..roomy
            },
            "the functions made more than the limit of 50 bytes of intermediate text",
        ),
        (
            "nesting",
            "{{ $l := list }}{{ range until 90 }}{{ $l = list $l }}{{ end }}a: {{ toJson $l | quote }}\n",
            Limits {
                value_depth: 50,
                ..roomy
            },
            "a value nests deeper than 50 levels",
        ),
    ] {
        let files = || with(&[("templates/a.yaml", text.as_bytes())]);
        assert!(fault(files(), Value::Null, options).is_none(), "{name}");
        let tight = move || RenderOptions {
            limits: tight,
            ..options()
        };
        match fault(files(), Value::Null, tight) {
            Some(Error::Limit(text)) => {
                assert!(
                    text.starts_with(expected) && text.contains("(at c/templates/a.yaml:1:"),
                    "{name}: {text}"
                );
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    // Time is the caller's: the engine asks, and reads no clock.
    let late = || RenderOptions {
        deadline: Some(Box::new(|| true)),
        ..options()
    };
    let endless = "{{ range until 1000000 }}{{ end }}a: 1\n";
    let error = fault(
        with(&[("templates/a.yaml", endless.as_bytes())]),
        Value::Null,
        late,
    );
    let text = error.expect("the time is over").to_string();
    assert!(
        text.starts_with("render stopped: the time limit of the render has passed (at c/templates/a.yaml:1:"),
        "{text}"
    );
}
