//! Bad input ends in an error that names the file, the place and the cause, in Helm's words where Helm fails too: never in
//! a panic, a stack that is too small, or a machine that is.
//!
//! Faults that must be told well are K24 (a chart that cannot be rendered says where), and K31 (nothing half done).

mod archives;
mod limits;

use evenkeel_chart::{
    Capabilities, Chart, Error, IgnoreRules, Release, RenderOptions, ValueSources, ValuesFile, render,
};
use evenkeel_goyaml::Value;

use crate::isolation::options;

const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\n";
const SUB: &str = "apiVersion: v2\nname: x\nversion: 1.0.0\n";

type Files = Vec<(&'static str, Vec<u8>)>;

/// A chart that is right but for these files.
fn with(files: &[(&'static str, &[u8])]) -> Files {
    let mut all: Files = vec![
        ("Chart.yaml", CHART.into()),
        ("templates/a.yaml", b"a: 1\n".to_vec()),
    ];
    for (path, text) in files {
        all.retain(|(known, _)| known != path);
        all.push((path, text.to_vec()));
    }
    all
}

/// Loads and renders on a thread with the stack that threads have by default.
fn fault(
    files: Files,
    values: Value,
    options: impl FnOnce() -> RenderOptions + Send + 'static,
) -> Option<Error> {
    std::thread::spawn(move || {
        let chart = Chart::from_files(files)?;
        let release = Release::install("r", "default");
        render(&chart, &values, &release, &Capabilities::default(), options()).map(drop)
    })
    .join()
    .expect("no panic")
    .err()
}

/// Expects each chart to fail with a text that begins so.
#[track_caller]
fn fail(table: &[(&str, Files, &str)]) {
    for (name, files, expected) in table {
        let error = fault(files.clone(), Value::Null, options).unwrap_or_else(|| panic!("{name}: no error"));
        let text = error.to_string();
        assert!(
            text.starts_with(expected),
            "{name}\n  expected {expected}\n  got      {text}"
        );
    }
}

#[test]
fn descriptions() {
    let chart = |text: &str| vec![("Chart.yaml", text.as_bytes().to_vec())];
    let more = |text: &str| chart(&format!("{CHART}{text}"));
    let json = "cannot load Chart.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal";
    let yaml = "cannot load Chart.yaml: error converting YAML to JSON: yaml:";
    fail(&[
        (
            "none",
            vec![("values.yaml", b"a: 1".to_vec())],
            "Chart.yaml file is missing",
        ),
        ("no file at all", Vec::new(), "Chart.yaml file is missing"),
        ("empty", chart(""), "validation: chart.metadata.name is required"),
        (
            "broken",
            chart("apiVersion: v2\nname: [c\n"),
            &format!("{yaml} line 2: did not find expected ',' or ']'"),
        ),
        (
            "tab",
            chart("apiVersion: v2\n\tname: c\n"),
            &format!("{yaml} line 2: found a tab character"),
        ),
        (
            "binary",
            vec![("Chart.yaml", vec![0xff, 0xfe, 0])],
            &format!("{yaml} incomplete UTF-16 character"),
        ),
        (
            "a text",
            chart("x"),
            &format!("{json} string into Go value of type"),
        ),
        (
            "name is a list",
            chart("apiVersion: v2\nname: [c]\nversion: 1.0.0\n"),
            &format!("{json} array into Go struct field .name of type string"),
        ),
        (
            "version is a mapping",
            chart("apiVersion: v2\nname: c\nversion: {a: 1}\n"),
            &format!("{json} object into Go struct field .version of type string"),
        ),
        (
            "version",
            chart("apiVersion: v2\nname: c\nversion: x.y\n"),
            "validation: chart.metadata.version \"x.y\" is invalid",
        ),
        (
            "no version",
            chart("apiVersion: v2\nname: c\n"),
            "validation: chart.metadata.version is required",
        ),
        (
            "no name",
            chart("apiVersion: v2\nversion: 1.0.0\n"),
            "validation: chart.metadata.name is required",
        ),
        (
            "a path as name",
            chart("apiVersion: v2\nname: ../c\nversion: 1.0.0\n"),
            "validation: chart.metadata.name \"../c\" is invalid",
        ),
        (
            "other API",
            chart("apiVersion: v3\nname: c\nversion: 1.0.0\n"),
            "unsupported chart version \"v3\"",
        ),
        (
            "type",
            more("type: nonsense\n"),
            "validation: chart.metadata.type must be application or library",
        ),
        (
            "type is a list",
            more("type: [a]\n"),
            &format!("{json} array into Go struct field .type of type string"),
        ),
        (
            "library",
            more("type: library\n"),
            "library charts are not installable",
        ),
        (
            "dependencies are a text",
            more("dependencies: x\n"),
            &format!("{json} string into Go struct field .dependencies of type []*v2.Dependency"),
        ),
        (
            "dependencies are texts",
            more("dependencies: [x]\n"),
            &format!("{json} string into"),
        ),
        (
            "deprecated is a text",
            more("deprecated: \"yes\"\n"),
            &format!("{json} string into Go struct field .deprecated of type bool"),
        ),
        (
            "maintainers are a text",
            more("maintainers: x\n"),
            &format!("{json} string into Go struct field .maintainers of type []*v2.Maintainer"),
        ),
        (
            "annotations nest",
            more("annotations: {a: {b: c}}\n"),
            &format!("{json} object into Go struct field .annotations.a of type string"),
        ),
        (
            "Kubernetes version",
            more("kubeVersion: a b c\n"),
            "chart requires kubeVersion: a b c which is incompatible with Kubernetes v1.37.0",
        ),
        (
            "lock",
            with(&[("Chart.lock", b"a: [")]),
            "cannot load Chart.lock: error converting YAML to JSON: yaml: line 1: did not find expected node content",
        ),
    ]);
}

#[test]
fn sub_charts() {
    let with_dependency = |dependency: &str, files: &[(&'static str, &[u8])]| {
        let chart = format!("{CHART}dependencies: [{dependency}]\n");
        let mut all = with(files);
        all.retain(|(path, _)| *path != "Chart.yaml");
        all.push(("Chart.yaml", chart.into_bytes()));
        all
    };
    let there: &[(&'static str, &[u8])] = &[("charts/x/Chart.yaml", SUB.as_bytes())];
    fail(&[
        (
            "missing",
            with_dependency("{name: x, version: 1.x, repository: \"\"}", &[]),
            "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to \
             fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: x",
        ),
        (
            "broken",
            with(&[("charts/x/Chart.yaml", b"a: [")]),
            "error unpacking subchart x in c: cannot load Chart.yaml: error converting YAML to JSON: yaml: line 1: did not",
        ),
        (
            "no archive",
            with(&[("charts/x.tgz", b"nothing")]),
            "error unpacking subchart x.tgz in c: ",
        ),
        (
            "not described",
            with(&[("charts/x/values.yaml", b"a: 1")]),
            "error unpacking subchart x in c: Chart.yaml file is missing",
        ),
        (
            "imported values",
            with_dependency("{name: x, version: 1.0.0, import-values: 5}", there),
            "cannot load Chart.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal number into Go",
        ),
        (
            "alias",
            with_dependency("{name: x, version: 1.0.0, alias: \"a b\"}", there),
            "validation: dependency \"x\" has disallowed characters in the alias",
        ),
        (
            "twice",
            with_dependency("{name: x, version: 1.0.0}, {name: x, version: 1.0.0}", there),
            "validation: more than one dependency with name or alias \"x\"",
        ),
    ]);
    // Charts in charts in charts, without end.
    let path = |depth: usize| format!("{}Chart.yaml", "charts/x/".repeat(depth));
    let files = (0..200).map(|depth| (path(depth), SUB.as_bytes().to_vec()));
    let error = Chart::from_files(files).expect_err("too deep").to_string();
    assert!(error.contains("nested deeper than"), "{error}");
}

#[test]
fn values() {
    let file = "cannot load values.yaml: cannot unmarshal yaml document: error";
    let values = |text: &[u8]| with(&[("values.yaml", text)]);
    let nested = |depth: usize| format!("a: {}{}", "[".repeat(depth), "]".repeat(depth)).into_bytes();
    let mut laughs = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (previous, name) in ('a'..='h').zip('b'..='i') {
        laughs.push_str(&format!(
            "{name}: &{name} [{}]\n",
            vec![format!("*{previous}"); 9].join(", ")
        ));
    }
    fail(&[
        (
            "a list",
            values(b"- a\n"),
            &format!(
                "{file} unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map"
            ),
        ),
        (
            "a text",
            values(b"a\n"),
            &format!(
                "{file} unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type map"
            ),
        ),
        (
            "broken",
            values(b"a: 1\n b: 2\n"),
            &format!(
                "{file} converting YAML to JSON: yaml: line 2: mapping values are not allowed in this context"
            ),
        ),
        (
            "not UTF-8",
            values(b"a: \xff\n"),
            &format!("{file} converting YAML to JSON: yaml: invalid leading UTF-8 octet"),
        ),
        (
            "a control character",
            values(b"a: \x00\n"),
            &format!("{file} converting YAML to JSON: yaml: control characters are not allowed"),
        ),
        (
            "deep",
            values(&nested(1_000)),
            &format!("{file} unmarshaling JSON: while decoding JSON: exceeded max depth"),
        ),
        (
            "deeper",
            values(&nested(20_000)),
            &format!("{file} converting YAML to JSON: yaml: exceeded max depth of 10000"),
        ),
        (
            "a billion laughs",
            values(laughs.as_bytes()),
            &format!("{file} converting YAML to JSON: yaml: document contains excessive aliasing"),
        ),
        (
            "an alias of itself",
            values(b"a: &x {b: *x}\n"),
            &format!("{file} converting YAML to JSON: yaml: anchor 'x' value contains itself"),
        ),
    ]);
    let schema = |text: &[u8]| with(&[("values.schema.json", text)]);
    let told = "values don't meet the specifications of the schema(s) in the following chart(s):\nc:\n";
    fail(&[
        ("cut off", schema(b"{"), told),
        ("no schema", schema(b"{\"type\": 5}"), told),
        ("nowhere", schema(b"{\"$ref\": \"#/x\"}"), told),
        // Neither the network nor a file is ever read.
        (
            "in the network",
            schema(b"{\"$ref\": \"http://127.0.0.1:1/x\"}"),
            told,
        ),
        ("a file", schema(b"{\"$ref\": \"file:///etc/passwd\"}"), told),
    ]);
}

#[test]
fn templates() {
    let template = |text: &str| with(&[("templates/a.yaml", text.as_bytes())]);
    let wrapped = |open: &str, count: usize, inner: &str, close: &str| {
        template(&format!(
            "a: {{{{ {}{inner}{} }}}}\n",
            open.repeat(count),
            close.repeat(count)
        ))
    };
    fail(&[
        (
            "not UTF-8",
            with(&[("templates/a.yaml", b"a: \xff\n")]),
            "YAML parse error on c/templates/a.yaml: error converting YAML to JSON: yaml: invalid leading UTF-8 octet",
        ),
        (
            "an action that is not UTF-8",
            with(&[("templates/a.yaml", b"a: {{ \xff }}\n")]),
            "parse error at (c/templates/a.yaml:1): U+FFFD",
        ),
        (
            "no end",
            template("a: 1\nb: {{ if true }}\n"),
            "parse error at (c/templates/a.yaml:3): unexpected EOF",
        ),
        (
            "no closing braces",
            template("a: 1\nb: {{ .x\n"),
            "parse error at (c/templates/a.yaml:3): unclosed action started at c/templates/a.yaml:2",
        ),
        (
            "function",
            template("a: 1\n{{ nofn 1 }}\n"),
            "parse error at (c/templates/a.yaml:2): function \"nofn\" not defined",
        ),
        (
            "variable",
            template("a: {{ $x }}\n"),
            "parse error at (c/templates/a.yaml:1): undefined variable \"$x\"",
        ),
        (
            "no such template",
            template("a: {{ template \"x\" . }}\n"),
            "c/templates/a.yaml:1:15\n  executing \"c/templates/a.yaml\" at <{{template \"x\" .}}>:\n    template \"x\" not defined",
        ),
        (
            "no such include",
            template("a: {{ include \"x\" . }}\n"),
            "c/templates/a.yaml:1:6\n  executing \"c/templates/a.yaml\" at <include \"x\" .>:\n    error calling include:\n\
             template: no template \"x\" associated with template \"gotpl\"",
        ),
        (
            "no such value",
            template("a: 1\nb: {{ .Values.x.y }}\n"),
            "c/templates/a.yaml:2:13\n  executing \"c/templates/a.yaml\" at <.Values.x.y>:\n    \
             nil pointer evaluating interface {}.y",
        ),
        (
            "parentheses",
            wrapped("(", 20_000, "1", ")"),
            "parse error at (c/templates/a.yaml:1): max expression depth exceeded",
        ),
        (
            "include without end",
            template("{{ define \"x\" }}{{ include \"x\" . }}{{ end }}{{ include \"x\" . }}\n"),
            "template: c/templates/a.yaml:1:47: executing \"c/templates/a.yaml\" at <include \"x\" .>: error calling include",
        ),
        (
            "two that include each other",
            template(
                "{{ define \"x\" }}{{ include \"y\" . }}{{ end }}{{ define \"y\" }}{{ include \"x\" . }}{{ end }}\
                 {{ include \"x\" . }}\n",
            ),
            "template: c/templates/a.yaml:1:91: executing",
        ),
        (
            "template without end",
            template("{{ define \"x\" }}{{ template \"x\" . }}{{ end }}{{ template \"x\" . }}\n"),
            "render stopped: exceeded maximum template depth (10000) (at c/templates/a.yaml:1:28)",
        ),
        (
            "a text for tpl that does not parse, quoted as Go quotes",
            template(r#"a: {{ tpl "{{ \u0008\x00 \"" . }}"#),
            "template: c/templates/a.yaml:1:6: executing \"c/templates/a.yaml\" at <tpl \"{{ \\u0008\\x00 \\\"\" .>: \
             error calling tpl: cannot parse template \"{{ \\b\\x00 \\\"\": template: gotpl:1: \
             unrecognized character in action: U+0008",
        ),
        (
            "tpl without end",
            with(&[
                ("values.yaml", b"t: \"{{ tpl .Values.t . }}\"\n"),
                ("templates/a.yaml", b"{{ tpl .Values.t . }}\n"),
            ]),
            "render stopped: exceeded maximum template depth (10000) (at c/templates/a.yaml:1:3)",
        ),
        (
            "a mapping that holds itself",
            template("{{ $d := dict }}{{ $_ := set $d \"a\" $d }}a: {{ $d }}"),
            "render stopped: a value nests deeper than 1000 levels or holds itself (at c/templates/a.yaml:1:47)",
        ),
        (
            "a hundred megabytes",
            template("{{ range until 100000 }}# {{ repeat 1000 \"x\" }}\n{{ end }}a: 1\n"),
            "render stopped: the output is larger than the limit of 67108864 bytes (at c/templates/a.yaml:1:29)",
        ),
        (
            "a loop in a loop in a loop",
            template(
                "{{ $l := until 1000 }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}a: 1\n",
            ),
            "render stopped: more than 10000000 passes through range (at c/templates/a.yaml:1:",
        ),
    ]);
}

#[test]
fn documents() {
    let template = |text: String| with(&[("templates/a.yaml", text.as_bytes())]);
    let error = "YAML parse error on c/templates/a.yaml: error";
    let json = format!("{error} unmarshaling JSON: while decoding JSON: json: cannot unmarshal");
    fail(&[
        (
            "a list",
            template("- a\n".to_owned()),
            &format!("{json} array into Go value of type util.SimpleHead"),
        ),
        (
            "a text",
            template("hello\n".to_owned()),
            &format!("{json} string into Go value of type util.SimpleHead"),
        ),
        (
            "kind",
            template("kind: [a]\n".to_owned()),
            &format!("{json} array into Go struct field .kind of type string"),
        ),
        (
            "metadata",
            template("kind: a\nmetadata: x\n".to_owned()),
            &format!("{json} string into Go struct field .metadata"),
        ),
        (
            "deep",
            template(format!("a: {}{}", "[".repeat(20_000), "]".repeat(20_000))),
            &format!("{error} converting YAML to JSON: yaml: exceeded max depth of 10000"),
        ),
        (
            "deep by lines",
            template(
                (0..3_000)
                    .map(|depth| format!("{}a:\n", " ".repeat(depth)))
                    .collect(),
            ),
            &format!("{error} unmarshaling JSON: while decoding JSON: exceeded max depth"),
        ),
    ]);
}

#[test]
fn arguments_and_values_files() {
    let typed = |argument: String| ValueSources {
        typed: vec![argument],
        ..ValueSources::default()
    };
    let json = |argument: String| ValueSources {
        json: vec![argument],
        ..ValueSources::default()
    };
    let file = |text: &[u8]| ValueSources {
        files: vec![ValuesFile {
            name: "my.yaml".to_owned(),
            text: text.to_vec(),
        }],
        ..ValueSources::default()
    };
    let set = "failed parsing --set data:";
    for (sources, expected) in [
        (
            typed(format!("{}=1", vec!["a"; 60_000].join("."))),
            format!("{set} value name nested level is greater than maximum supported nested level of 30"),
        ),
        (
            typed("a[65537]=1".to_owned()),
            format!("{set} index of 65537 is greater than maximum supported index of 65536"),
        ),
        (
            typed("a[-1]=1".to_owned()),
            format!("{set} negative -1 index not allowed"),
        ),
        (
            typed("a={1".to_owned()),
            format!("{set} list must terminate with '}}'"),
        ),
        (typed("a".to_owned()), format!("{set} key \"a\" has no value")),
        (
            typed(format!("a{}=1", "[0]".repeat(5_000))),
            format!("{set} lists are nested deeper than"),
        ),
        (
            json(format!("a={}{}", "[".repeat(20_000), "]".repeat(20_000))),
            "failed parsing --set-json data".to_owned(),
        ),
        (
            json("a={".to_owned()),
            "failed parsing --set-json data".to_owned(),
        ),
        (
            file(b"a: 1\n b: 2\n"),
            "failed to parse my.yaml: cannot unmarshal yaml document: error converting".to_owned(),
        ),
        (file(b"- a\n"), "failed to parse my.yaml: ".to_owned()),
        (file(b"a: \xff\n"), "failed to parse my.yaml: ".to_owned()),
    ] {
        let merge = move || sources.merge(|_| Err("no files here".to_owned()));
        let error = std::thread::spawn(merge)
            .join()
            .expect("no panic")
            .expect_err(&expected);
        let text = error.to_string();
        assert!(text.starts_with(&expected), "expected {expected}\n  got {text}");
    }
}

#[test]
fn ignore_rules() {
    for (rule, expected) in [
        ("[\n", "line 1: syntax error in pattern"),
        ("a\n**/b\n", "line 2: double-star (**) syntax is not supported"),
    ] {
        let error = IgnoreRules::parse(rule.as_bytes()).expect_err(rule).to_string();
        assert!(error.contains(expected), "{rule}: {error}");
    }
}
