//! The 38 places where an engine most easily prints other bytes than Helm, one test for each, each confirmed with
//! Helm 4.3.1.
//!
//! They are what K24 (objects exactly as the chart's author sees them), K31 (values that mean the same everywhere), K39
//! (several charts, one result) and K46 (a render that can be repeated) come down to in a chart engine.

mod documents;

use evenkeel_chart::{
    Capabilities, Chart, PrintOptions, Release, Rendered, ValueSources, ValuesFile, render,
};

use crate::isolation::options;

const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\n";

/// Renders a chart of these files with these values and `--set` arguments.
fn chart(files: &[(&str, &str)], values: &str, set: &[&str]) -> Result<Rendered, String> {
    let mut all = vec![("Chart.yaml", CHART)];
    for file in files {
        all.retain(|(path, _)| *path != file.0);
        all.push(*file);
    }
    let chart = Chart::from_files(all).map_err(|error| error.to_string())?;
    let sources = ValueSources {
        files: vec![ValuesFile {
            name: "values".to_owned(),
            text: values.into(),
        }],
        typed: set.iter().map(|argument| (*argument).to_owned()).collect(),
        ..ValueSources::default()
    };
    let values = sources
        .merge(|_| Err("no files here".to_owned()))
        .map_err(|error| error.to_string())?;
    let release = Release::install("r", "ns");
    render(&chart, &values, &release, &Capabilities::default(), options()).map_err(|error| error.to_string())
}

/// What one template prints; notes are not read as YAML.
fn eval(template: &str, values: &str) -> Result<String, String> {
    let rendered = chart(&[("templates/NOTES.txt", template)], values, &[])?;
    Ok(rendered.notes.unwrap_or_default())
}

#[track_caller]
fn prints(values: &str, table: &[(&str, &str)]) {
    for (template, expected) in table {
        assert_eq!(eval(template, values).as_deref(), Ok(*expected), "{template}");
    }
}

#[track_caller]
fn fails(values: &str, table: &[(&str, &str)]) {
    for (template, expected) in table {
        let error = eval(template, values).expect_err(template);
        assert!(error.contains(expected), "{template}: {error}");
    }
}

fn printed(rendered: &Rendered) -> String {
    String::from_utf8(rendered.print(&PrintOptions::default())).unwrap()
}

#[test]
fn trap_01_numbers_of_values_are_floats() {
    let values = "port: 1234567\nsmall: 100000\nlarge: 1e20\neighty: 80\n";
    prints(
        values,
        &[
            ("{{ .Values.port }}", "1.234567e+06"),
            ("{{ .Values.small }}", "100000"),
            ("{{ .Values.large }}", "1e+20"),
            ("{{ printf \"%d\" .Values.eighty }}", "%!d(float64=80)"),
            ("{{ eq .Values.eighty 80.0 }}", "true"),
            (
                "{{ (fromYaml \"a: 5\").a | typeOf }} {{ 5 | typeOf }}",
                "float64 int",
            ),
        ],
    );
    fails(
        values,
        &[(
            "{{ eq .Values.eighty 80 }}",
            "incompatible types for comparison: float64 and int",
        )],
    );
    let file = [("templates/NOTES.txt", "{{ .Values.n | typeOf }} {{ .Values.n }}")];
    for (argument, expected) in [
        ("n=5", "int64 5"),
        ("n=1.5", "string 1.5"),
        ("n=007", "string 007"),
        ("n=1e3", "string 1e3"),
    ] {
        assert_eq!(
            chart(&file, "", &[argument]).unwrap().notes.unwrap(),
            expected,
            "{argument}"
        );
    }
}

#[test]
fn trap_02_three_ways_to_print_a_float() {
    prints(
        "a: 1e6\nb: 1e20\nc: 12345678901234567890\nd: 1e-5\ne: 1e-7\n",
        &[
            (
                "{{ toYaml .Values.a }} {{ .Values.a }} {{ toJson .Values.a }}",
                "1000000 1e+06 1000000",
            ),
            (
                "{{ toYaml .Values.b }} {{ toJson .Values.b }}",
                "1e+20 100000000000000000000",
            ),
            ("{{ toYaml .Values.c }}", "12345678901234567000"),
            ("{{ toYaml .Values.d }}", "1e-05"),
            ("{{ toJson .Values.e }}", "1e-7"),
        ],
    );
}

#[test]
fn trap_03_keys_in_natural_order() {
    prints(
        "m: {\"10\": 1, \"2\": 1, \"1.5\": 1, \"1\": 1, a10: 1, a2: 1, a01: 1, a1: 1, B: 1, a: 1}\n",
        &[
            (
                "{{ toYaml .Values.m }}",
                "\"1\": 1\n\"1.5\": 1\n\"2\": 1\n\"10\": 1\nB: 1\na: 1\na1: 1\na01: 1\na2: 1\na10: 1",
            ),
            (
                "{{ range $k, $_ := .Values.m }}{{ $k }} {{ end }}",
                "1 1.5 10 2 B a a01 a1 a10 a2 ",
            ),
        ],
    );
}

#[test]
fn trap_04_quotes() {
    for double in [
        "y",
        "on",
        "1e3",
        "0o14",
        "014",
        "08",
        "1_000",
        "2001-01-01",
        "1:20",
        ".inf",
        "~",
        "null",
    ] {
        prints(
            "",
            &[(&format!("{{{{ toYaml {double:?} }}}}"), &format!("{double:?}"))],
        );
    }
    for single in ["a: b", "- a", "{{ x }}", " a", "#a", "*a", "%a", "@a"] {
        prints(
            "",
            &[(&format!("{{{{ toYaml {single:?} }}}}"), &format!("'{single}'"))],
        );
    }
    for plain in ["0o8", "1e", "e1", "NaN", "<<", "=", "-a", "1e1000"] {
        prints("", &[(&format!("{{{{ toYaml {plain:?} }}}}"), plain)]);
    }
    prints("", &[("{{ toYaml \"\" }}", "\"\"")]);
}

#[test]
fn trap_05_long_lines_fold() {
    let long = vec!["word"; 20].join(" ");
    let folded = format!("{}\n  {}", vec!["word"; 17].join(" "), ["word"; 3].join(" "));
    let printed = eval("{{ toYaml .Values.t }}", &format!("t: {long}\n")).unwrap();
    assert_eq!(
        printed.split_whitespace().collect::<Vec<_>>(),
        folded.split_whitespace().collect::<Vec<_>>()
    );
    assert!(
        printed.lines().count() == 2 && printed.lines().all(|line| line.len() <= 85),
        "{printed}"
    );
    let key = "k".repeat(129);
    prints(
        "",
        &[(
            &format!("{{{{ dict {key:?} 1 | toYaml }}}}"),
            &format!("? {key}\n: 1"),
        )],
    );
}

#[test]
fn trap_06_texts_of_several_lines() {
    prints(
        "",
        &[
            ("{{ toYaml \"a\\nb\\n\" }}", "|\n  a\n  b"),
            ("{{ toYaml \"a\\nb\" }}", "|-\n  a\n  b"),
            ("{{ toYaml \"a\\n\\n\" }}", "|+\n  a\n"),
            ("{{ toYaml \"a\\tb\\nc\" }}", "\"a\\tb\\nc\""),
            ("{{ toYaml \"a \\nb\" }}", "\"a \\nb\""),
            ("{{ toYaml \"\u{1f600}\" }}", "\"\\U0001F600\""),
            // It cannot be read again, so nothing is printed.
            ("[{{ toYaml \"\\x7f\" }}]", "[]"),
        ],
    );
}

#[test]
fn trap_07_lists_are_not_indented() {
    prints(
        "m: {a: [b, {c: d}]}\n",
        &[
            ("{{ toYaml .Values.m }}", "a:\n- b\n- c: d"),
            ("{{ toYamlPretty .Values.m }}", "a:\n  - b\n  - c: d"),
        ],
    );
}

#[test]
fn trap_08_yaml_1_1() {
    let read = |text: &str, expected: &str| {
        let template = format!("{{{{ fromYaml {text:?} | toJson }}}}");
        prints("", &[(&template, expected)]);
    };
    read("n: x", "{\"false\":\"x\"}");
    read("y: x", "{\"true\":\"x\"}");
    read("a: yes\nb: off", "{\"a\":true,\"b\":false}");
    read(
        "a: 0777\nb: 0o17\nc: 08\nd: 1_000\ne: 0b11",
        "{\"a\":511,\"b\":15,\"c\":8,\"d\":1000,\"e\":3}",
    );
    read(
        "a: 1:20\nb: 1e400\nc: 2001-01-01",
        "{\"a\":\"1:20\",\"b\":\"1e400\",\"c\":\"2001-01-01\"}",
    );
    read("0x1F: a\n1e3: b", "{\"1000\":\"b\",\"31\":\"a\"}");
    read("a: 1\na: 2", "{\"a\":2}");
    read(
        "a: &x {b: 1}\nc: {<<: *x, d: 2}",
        "{\"a\":{\"b\":1},\"c\":{\"b\":1,\"d\":2}}",
    );
}

#[test]
fn trap_09_chains_differ_from_fields() {
    prints(
        "",
        &[
            ("[{{ (.Values.missing).foo }}]", "[]"),
            ("{{ $x := .Values.nope }}[{{ $x.foo }}]", "[]"),
        ],
    );
    fails(
        "",
        &[(
            "{{ .Values.missing.foo }}",
            "nil pointer evaluating interface {}.foo",
        )],
    );
}

#[test]
fn trap_10_no_value() {
    prints(
        "",
        &[
            ("[{{ .Values.missing }}]", "[]"),
            ("[{{ \"<no value>\" }}]", "[]"),
            ("{{ tpl \"[{{ .Values.missing }}]\" . }}", "[]"),
            (
                "{{ define \"x\" }}{{ .Values.missing }}{{ end }}{{ include \"x\" . | len }}",
                "10",
            ),
            (
                "{{ print nil }} {{ printf \"%s\" nil }} [{{ quote nil }}]",
                "<nil> %!s(<nil>) []",
            ),
            ("{{ html .Values.missing }}", "&lt;no value&gt;"),
        ],
    );
}

#[test]
fn trap_13_empty_definitions_do_not_replace() {
    prints(
        "",
        &[(
            "{{ define \"x\" }}full{{ end }}{{ define \"x\" }} {{ end }}{{ include \"x\" . }}",
            "full",
        )],
    );
    fails(
        "",
        &[(
            "{{ define \"x\" }}a{{ end }}{{ define \"x\" }}b{{ end }}",
            "multiple definition of template \"x\"",
        )],
    );
}

#[test]
fn trap_14_required_and_fail() {
    prints(
        "a: 0\nb: false\nc: []\n",
        &[(
            "{{ required \"!\" .Values.a }} {{ required \"!\" .Values.b }} {{ required \"!\" .Values.c }}",
            "0 false []",
        )],
    );
    fails(
        "",
        &[
            (
                "{{ required \"need: it\" \"\" }}",
                "execution error at (c/templates/NOTES.txt:1:3): need: it",
            ),
            (
                "\n{{ fail \"no: way\" }}",
                "execution error at (c/templates/NOTES.txt:2:3): no: way",
            ),
            // The outermost place is told.
            (
                "{{ define \"x\" }}\n{{ fail \"deep\" }}{{ end }}{{ include \"x\" . }}",
                "execution error at (c/templates/NOTES.txt:2:29): deep",
            ),
        ],
    );
}

#[test]
fn trap_15_error_texts() {
    fails(
        "a: x\n",
        &[
            (
                "{{ .Values.a.b }}",
                "c/templates/NOTES.txt:1:10\n  executing \"c/templates/NOTES.txt\" at <.Values.a.b>:\n    \
                 can't evaluate field b in type interface {}",
            ),
            ("{{ trunc \"x\" 5 }}", "at <\"x\">"),
            ("é{{ .Values.a.b }}", "NOTES.txt:1:12"),
        ],
    );
}

#[test]
fn trap_16_empty() {
    for empty in ["false", "0", "0.0", "\"\"", "$.none", "list", "dict"] {
        prints(
            "",
            &[(
                &format!("{{{{ empty ({empty}) }}}}{{{{ default 5 ({empty}) }}}}"),
                "true5",
            )],
        );
    }
    for full in ["\" \"", "dict \"a\" nil"] {
        prints("", &[(&format!("{{{{ empty ({full}) }}}}"), "false")]);
    }
}

#[test]
fn trap_17_conversions() {
    prints(
        "",
        &[
            (
                "{{ int \"012\" }} {{ int \"0x1f\" }} {{ int \"1e3\" }} {{ int \"1.9\" }} {{ int \" 5\" }} {{ int true }}",
                "10 31 0 0 0 1",
            ),
            ("{{ int64 9.3e18 }}", "-9223372036854775808"),
            (
                "{{ add 1.7 2.6 }} {{ min 1.5 .5 }} {{ until -3 }}",
                "3 0 [0 -1 -2]",
            ),
            ("{{ addf 0.1 0.2 }}", "0.3"),
        ],
    );
    fails(
        "",
        &[
            ("{{ div 1 0 }}", "divide by zero"),
            ("{{ mod 1 0 }}", "divide by zero"),
        ],
    );
}

#[test]
fn trap_18_texts_are_bytes() {
    prints(
        "",
        &[
            ("{{ len \"é\" }} {{ index \"é\" 0 }}", "2 195"),
            (
                "{{ trunc 1 \"é\" | b64enc }} {{ substr 0 1 \"é\" | b64enc }}",
                "ww== ww==",
            ),
            ("{{ b64dec \"/w==\" | len }}", "1"),
        ],
    );
}

#[test]
fn trap_19_types_survive() {
    for (expression, expected) in [
        ("splitList \",\" \"a\"", "[]string"),
        ("keys (dict)", "[]string"),
        ("until 2", "[]int"),
        ("split \",\" \"a\"", "map[string]string"),
        ("add 1 2", "int64"),
        ("int 1", "int"),
        ("chunk 1 (list 1)", "[][]interface {}"),
        ("rest (list 1)", "[]interface {}"),
        ("semver \"1.2.3\"", "*semver.Version"),
        ("now", "time.Time"),
        (".Values", "common.Values"),
        (".Template", "common.Values"),
        (".Capabilities.APIVersions", "common.VersionSet"),
        ("sortAlpha .Capabilities.APIVersions", "[]string"),
    ] {
        prints("", &[(&format!("{{{{ typeOf ({expression}) }}}}"), expected)]);
    }
    prints(
        "",
        &[
            (
                "{{ deepEqual (list \"a\") (splitList \",\" \"a\") }} {{ has \"a\" (splitList \",\" \"a\") }}",
                "false true",
            ),
            (
                "{{ $a := list 1 }}{{ $b := append $a 2 }}{{ $c := append $a 3 }}{{ $b }} {{ $c }}",
                "[1 2] [1 3]",
            ),
        ],
    );
}

#[test]
fn trap_21_merging() {
    prints(
        "",
        &[
            ("{{ merge (dict \"a\" 0) (dict \"a\" 2) }}", "map[a:2]"),
            ("{{ mergeOverwrite (dict \"a\" 1) (dict \"a\" 0) }}", "map[a:0]"),
            (
                "{{ mergeOverwrite (dict \"a\" (list 1 2)) (dict \"a\" (list 3)) }}",
                "map[a:[3]]",
            ),
            (
                "{{ $d := dict \"a\" (dict \"b\" 1) }}{{ $e := merge (dict) $d }}{{ $_ := set $e.a \"b\" 2 }}{{ $d.a.b }}",
                "2",
            ),
            (
                "{{ $d := dict }}{{ $_ := merge $d (dict \"a\" 1) }}{{ $d }}",
                "map[a:1]",
            ),
            ("{{ dict \"a\" 1 \"b\" }}", "map[a:1 b:]"),
            ("[{{ get (dict) \"a\" }}]", "[]"),
        ],
    );
}

#[test]
fn trap_22_versions() {
    for (constraint, version, expected) in [
        (">=1.2.3", "1.3.0-alpha", "false"),
        (">=1.2.3-0", "1.3.0-alpha", "true"),
        ("*", "1.0.0-rc1", "false"),
        ("1.2 - 1.4", "v1.3", "true"),
        ("^1.2 || ~2.0", "2.0.9", "true"),
        ("!=1.2", "1.2.5", "false"),
        ("1.x", "1.9.9", "true"),
        ("=1.2.3", "1.2.3+build", "true"),
    ] {
        prints(
            "",
            &[(
                &format!("{{{{ semverCompare {constraint:?} {version:?} }}}}"),
                expected,
            )],
        );
    }
    fails(
        "",
        &[("{{ semverCompare \"\" \"1.0.0\" }}", "improper constraint")],
    );
}

#[test]
fn trap_23_regular_expressions() {
    for (expression, text, expected) in [
        ("^\\\\w+$", "é", "false"),
        ("^\\\\d$", "\u{663}", "false"),
        ("^\\\\Qa.b\\\\E$", "a.b", "true"),
        ("^\\\\101$", "A", "true"),
        ("^[a&&b]+$", "a&b", "true"),
        ("^a{,2}$", "a{,2}", "true"),
    ] {
        prints(
            "",
            &[(
                &format!("{{{{ regexMatch \"{expression}\" {text:?} }}}}"),
                expected,
            )],
        );
    }
    prints(
        "",
        &[("[{{ regexReplaceAll \"a(x*)b\" \"-axxb-\" \"$1W\" }}]", "[--]")],
    );
    fails(
        "",
        &[(
            "{{ mustRegexMatch \"a**\" \"a\" }}",
            "invalid nested repetition operator",
        )],
    );
}

#[test]
fn trap_24_text_functions() {
    prints(
        "",
        &[
            ("[{{ indent 2 \"a\\n\\nb\" }}]", "[  a\n  \n  b]"),
            (
                "{{ cat \"a\" nil 1 }} {{ join \",\" (list \"a\" nil 1) }}",
                "a 1 a,1",
            ),
            ("{{ quote \"a\\tb\" 1 nil }}", "\"a\\tb\" \"1\""),
            ("{{ uniq (list 1 \"1\" 1.0 1) }}", "[1 1 1]"),
            ("{{ snakecase \"HTTPServer2Name\" }}", "http_server2_name"),
        ],
    );
    fails("", &[("{{ indent -1 \"a\" }}", "error calling indent")]);
}

#[test]
fn trap_34_cryptography() {
    prints(
        "",
        &[
            (
                "{{ derivePassword 1 \"long\" \"password\" \"user\" \"example.com\" }}",
                "ZedaFaxcZaso9*",
            ),
            ("{{ b64dec \"!\" }}", "illegal base64 data at input byte 0"),
            ("{{ genPrivateKey \"foo\" }}", "Unknown type foo"),
            ("{{ htpasswd \"u:x\" \"p\" }}", "invalid username: u:x"),
            ("{{ randAlphaNum 12 | len }} {{ uuidv4 | len }}", "12 36"),
        ],
    );
}

#[test]
fn trap_37_syntax() {
    prints(
        "",
        &[
            ("a {{- /* c */}} b", "a b"),
            ("a {{-3}} b", "a -3 b"),
            ("a \t\r\n{{- 1 -}}\n b", "a1b"),
            (
                "{{ and false (fail \"never\") }} {{ or 1 (fail \"never\") }}",
                "false 1",
            ),
            ("{{ range 3 }}{{ . }}{{ end }}", "012"),
        ],
    );
}

#[test]
fn trap_38_printing() {
    prints(
        "m: {B: 2, \"9\": true, \"10\": x}\n",
        &[
            ("{{ .Values.m }}", "map[10:x 9:true B:2]"),
            ("{{ print 1 2 \"a\" \"b\" 3 }}", "1 2ab3"),
            (
                "{{ printf \"%s\" }} {{ printf \"a\" \"b\" }} {{ printf \"%z\" 1 }}",
                "%!s(MISSING) a%!(EXTRA string=b) %!z(int=1)",
            ),
        ],
    );
}
