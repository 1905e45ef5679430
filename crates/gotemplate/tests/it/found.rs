//! What random templates brought to light: each row is what Helm 4.3.1 gave for it.

use std::rc::Rc;

use evenkeel_gotemplate::{Executor, TemplateSet, Value, parse};
use serde_json::json;

use crate::helm;

fn render(text: &str) -> Result<String, String> {
    let data = helm::data(&json!({"l": [1, "a"], "m": {"k": "v"}}));
    helm::render(&[("ex/templates/a.yaml", text)], &data)
}

#[test]
fn outputs() {
    for (text, expected) in [
        // Named integers are compared as the integers they are.
        (
            r#"{{ eq (mustToDuration "5m") 300000000000 }} {{ lt 1 (mustToDuration "1s") }}"#,
            "true true",
        ),
        (r#"{{ gt (toDate "2006-01-02" "2024-02-29").Month 1 }}"#, "true"),
        // Verbs that are not for texts look inside.
        (
            r#"{{ printf "%t" (semver "1.2.3") }}"#,
            "&{%!t(uint64=1) %!t(uint64=2) %!t(uint64=3) %!t(string=) %!t(string=) %!t(string=1.2.3)}",
        ),
        // Words that are not changed keep their bytes, the others lose what is no UTF-8.
        (r#"{{ kebabcase "\xff\xfe" | printf "%q" }}"#, r#""\xff\xfe""#),
        (r#"{{ kebabcase "a\xffB" | printf "%q" }}"#, "\"a-\u{fffd}b\""),
        (
            r#"{{ snakecase "\xffA\xfe-é\xff" | printf "%q" }}"#,
            "\"\u{fffd}a\u{fffd}_é\\xff\"",
        ),
        // A number that fits no float: the kind of the whole is looked at first, and what else was read is kept.
        (
            r#"{{ fromJson "1e400" }}"#,
            "map[Error:json: cannot unmarshal number into Go value of type map[string]interface {}]",
        ),
        (
            r#"{{ fromJsonArray "1e400" }}"#,
            "[json: cannot unmarshal number into Go value of type []interface {}]",
        ),
        (
            r#"{{ fromJson "{\"a\": 1e2, \"b\": [1e400]}" | toJson }}"#,
            r#"{"Error":"json: cannot unmarshal number 1e400 into .b.0 of type float64","a":100,"b":[0]}"#,
        ),
        // A byte that is no UTF-8 matches as U+FFFD, and stays what it is.
        (r#"{{ regexMatch "[^]a]" "\xff\xfe" }}"#, "true"),
        (
            r#"{{ regexReplaceAll "(.)a" "é\xffab" "<$1>" | printf "%q" }}"#,
            r#""é<\xff>b""#,
        ),
        (r#"{{ regexSplit "\ufffd" "a\xffb\xfec" -1 }}"#, "[a b c]"),
        (r#"{{ index "abc" (mustToDuration "1ns") }}"#, "98"),
        (r#"{{ printf "%*d|" (mustToDuration "5ns") 1 }}"#, "    1|"),
        // Go has words for the numbers that are none.
        (
            r#"{{ toYamlPretty (list (float64 "NaN") (float64 "-Inf")) }}"#,
            "- .nan\n- -.inf",
        ),
        // What is no UTF-8 is binary to it, in lines of 70.
        (
            r#"{{ toYamlPretty (list (trunc 1 "é") "é") }}"#,
            "- !!binary ww==\n- é",
        ),
        (
            r#"{{ dict "k" (printf "%s%s" (trunc 1 "é") (repeat 51 "a")) | toYamlPretty }}"#,
            "k: !!binary |\n  w2FhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYQ\n  ==",
        ),
        (
            r#"{{ printf "%s%s" (trunc 1 "é") (repeat 50 "a") | toYamlPretty }} {{ trunc 1 "é" | toYaml }}"#,
            "!!binary w2FhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh \u{fffd}",
        ),
        // A moment is one to TOML and to the YAML of go-yaml v3, and a text to JSON and what goes through it.
        (
            r#"{{ dict "t" (toDate "2006-01-02" "2020-01-01") | toToml }}"#,
            "t = 2020-01-01T00:00:00Z\n",
        ),
        (
            r#"{{ list (toDate "2006-01-02" "2020-01-01") "2020-01-01T00:00:00Z" | toYamlPretty }}"#,
            "- 2020-01-01T00:00:00Z\n- \"2020-01-01T00:00:00Z\"",
        ),
        (
            r#"{{ toDate "2006-01-02" "2020-01-01" | toYaml }}"#,
            r#""2020-01-01T00:00:00Z""#,
        ),
        // Dates and times of TOML without a zone stay so.
        (
            r#"{{ fromToml "a = 1979-05-27T07:32:00.5\nb = 1979-05-27\nc = [07:32:00]" | toToml }}"#,
            "a = 1979-05-27T07:32:00.5\nb = 1979-05-27\nc = [07:32:00]\n",
        ),
        (
            r#"{{ fromToml "a = 07:32:00" | toYamlPretty }} {{ fromToml "a = 1979-05-27" }}"#,
            "a: 0000-01-01T07:32:00Z map[a:1979-05-27 00:00:00 +0000 date-local]",
        ),
        (r#"{{ list | toToml }} {{ list list | toToml }}"#, "[] [[]]"),
        (
            r#"{{ dict "a" list "b" (list list) "c" (list dict) "d" (list dict 1) "e" dict | toToml }}"#,
            "a = []\nb = [[]]\nd = [{}, 1]\n\n[[c]]\n\n[e]\n",
        ),
        // Line and cause; the rest is in the reader's own words.
        (
            r##"{{ fromToml "#\x85 " }}"##,
            "map[Error:toml: line 1: invalid UTF-8 byte: 0x85]",
        ),
    ] {
        assert_eq!(render(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn errors() {
    for (text, expected) in [
        (
            r#"{{ ne .Values.l (mustToDuration "5m") }}"#,
            "incompatible types for comparison: []interface {} and time.Duration",
        ),
        (
            r#"{{ len (semver "1.2.3") }}"#,
            "error calling len: len of type semver.Version",
        ),
        (
            r#"{{ mustRegexFind "é(\xff)" "x" }}"#,
            "error parsing regexp: invalid UTF-8: `\u{fffd})`",
        ),
        (
            "{{ toYamlPretty 1i }}",
            "error calling toYamlPretty: cannot marshal type: complex128",
        ),
        (
            "{{ osBase (toStrings .Capabilities.APIVersions) }}",
            "wrong type for value; expected string; got []string",
        ),
        (
            "{{ mustToYaml 1i }}",
            "error calling mustToYaml: error marshaling into JSON: json: unsupported type: complex128",
        ),
    ] {
        let error = render(text).expect_err(text);
        assert!(error.contains(expected), "{text}\n{error}");
    }
}

#[test]
fn fields_of_structs_keep_their_order() {
    let version = r#"{"Version":"v1.37.0","Major":"1","Minor":"37"}"#;
    let text = "{{ toRawJson .Capabilities.KubeVersion }} {{ dict \"b\" (list .Capabilities.KubeVersion) \"a\" nil | toJson }}";
    assert_eq!(
        render(text),
        Ok(format!(r#"{version} {{"a":null,"b":[{version}]}}"#))
    );
    assert_eq!(
        render("{{ dict \"v\" .Capabilities.KubeVersion \"m\" (dict \"x\" (list 1)) | toPrettyJson }}")
            .as_deref(),
        Ok(concat!(
            "{\n  \"m\": {\n    \"x\": [\n      1\n    ]\n  },\n",
            "  \"v\": {\n    \"Version\": \"v1.37.0\",\n    \"Major\": \"1\",\n    \"Minor\": \"37\"\n  }\n}",
        ))
    );
}

/// Rust's own formatting stops at a width of 65,535.
#[test]
fn numbers_are_as_wide_as_one_asks() {
    for (text, length) in [
        (r#"{{ printf "%070000d" 5 }}"#, 70_000),
        (r#"{{ printf "%.70000x" 255 }}"#, 70_000),
        (r#"{{ printf "%-70000.0b|" 0 }}"#, 70_001),
        (r#"{{ printf "%.70000f" 0.5 }}"#, 70_002),
    ] {
        assert_eq!(render(text).map(|output| output.len()), Ok(length), "{text}");
    }
}

/// In quotes a text is read rune by rune, between backquotes it stays what it is.
#[test]
fn bytes_that_are_no_text() {
    let functions = helm::functions();
    for (text, expected) in [
        (b"{{ \"a\xe6\xac\" | b64enc }}".as_slice(), "Ye+/ve+/vQ=="),
        (b"{{ \"\\t\xff\" | b64enc }}", "Ce+/vQ=="),
        (b"{{ `a\xe6\xac` | b64enc }}", "Yeas"),
    ] {
        let parsed = parse("t", text, |name| functions.contains(name)).unwrap();
        let mut set = TemplateSet::new("t");
        set.add(&parsed);
        let mut executor = Executor::new(helm::env(), Rc::new(helm::functions()));
        let output = executor.execute(&set, "t", &Value::Nil).unwrap();
        assert_eq!(output.to_text(), expected, "{}", text.escape_ascii());
    }
}
