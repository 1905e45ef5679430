use super::*;

#[test]
fn no_value_is_removed_wherever_it_stands() {
    for (text, expected) in [
        ("<no value>", ""),
        ("a<no value>b<no value>", "ab"),
        ("<no <no value>value>", "<no value>"),
        ("<no valu", "<no valu"),
        ("<<no value>", "<"),
        ("", ""),
    ] {
        assert_eq!(without_no_value(text.as_bytes()), expected.as_bytes(), "{text}");
    }
}

struct Nothing;

impl RandomSource for Nothing {
    fn fill(&mut self, buffer: &mut [u8]) {
        buffer.fill(0);
    }
}

fn options() -> RenderOptions {
    RenderOptions::new(Instant::default(), Box::new(Nothing))
}

fn outcome(files: &[(&str, &str)]) -> Result<String, String> {
    let chart = [("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n")];
    let chart = Chart::from_files(chart.iter().chain(files).copied()).map_err(|e| e.to_string())?;
    let release = Release::install("r", "ns");
    let rendered = render(
        &chart,
        &goyaml::Value::Null,
        &release,
        &Capabilities::default(),
        options(),
    );
    let rendered = rendered.map_err(|e| e.to_string())?;
    Ok(rendered
        .manifests
        .into_iter()
        .map(|manifest| manifest.text)
        .collect())
}

#[test]
fn faults_have_helms_texts() {
    let helper = (
        "templates/_h.tpl",
        "{{ define \"d\" }}\n{{ .Values.x.y }}{{ end }}",
    );
    for (template, text) in [
        (
            "a: {{ include \"d\" . }}\n",
            "c/templates/a.yaml:1:6\n  executing \"c/templates/a.yaml\" at <include \"d\" .>:\n    error calling \
             include:\nc/templates/_h.tpl:2:10\n  executing \"d\" at <.Values.x.y>:\n    nil pointer evaluating \
             interface {}.y",
        ),
        (
            "a: {{ required \"need: it\" .Values.x }}\n",
            "execution error at (c/templates/a.yaml:1:6): need: it",
        ),
        (
            "a: 1\nb: {{ nope }}\n",
            "parse error at (c/templates/a.yaml:2): function \"nope\" not defined",
        ),
        (
            "a: {{ template \"nope\" . }}\n",
            "c/templates/a.yaml:1:15\n  executing \"c/templates/a.yaml\" at <{{template \"nope\" .}}>:\n    \
             template \"nope\" not defined",
        ),
    ] {
        assert_eq!(
            outcome(&[helper, ("templates/a.yaml", template)]).unwrap_err(),
            text,
            "{template}"
        );
    }
}

#[test]
fn what_tpl_defines_stays_inside() {
    let text = "{{ define \"in\" }}outer{{ end }}a: {{ tpl \"{{ define \\\"in\\\" }}inner{{ end }}{{ include \\\"in\\\" . }}\" . }} \
                {{ include \"in\" . }}\n";
    assert_eq!(
        outcome(&[("templates/a.yaml", text)]).as_deref(),
        Ok("a: inner outer\n")
    );
}

#[test]
fn library_charts_and_missing_dependencies_are_refused() {
    let library = "apiVersion: v2\nname: c\nversion: 1.0.0\ntype: library\n";
    let chart = Chart::from_files([("Chart.yaml", library)]).unwrap();
    let release = Release::install("r", "ns");
    let error = render(
        &chart,
        &goyaml::Value::Null,
        &release,
        &Capabilities::default(),
        options(),
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "library charts are not installable");
    let error = render(
        &chart,
        &goyaml::Value::List(Vec::new()),
        &release,
        &Capabilities::default(),
        options(),
    );
    assert!(matches!(error, Err(Error::ValuesNotAMapping)));
}

#[test]
fn schemas_are_never_skipped_silently() {
    let schema = |text| {
        outcome(&[
            ("values.schema.json", text),
            ("values.yaml", "port: 70000\nname: abc\n"),
        ])
    };
    assert!(schema(r#"{"properties": {"port": {"type": "integer"}}}"#).is_ok());
    let error = schema(
        r#"{"required": ["tls"], "properties": {"port": {"maximum": 65535}, "name": {"minLength": 5}}}"#,
    );
    let error = error.unwrap_err();
    for part in [
        "c:\n",
        "- at '': missing property 'tls'",
        "- at '/port': maximum",
        "- at '/name': minLength: got 3, want 5",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // What the values are must not be told.
    assert!(!error.contains("70000") && !error.contains("abc"), "{error}");
    assert!(schema("{").unwrap_err().contains("values.schema.json"));
    assert!(schema(r#"{"$ref": "https://example.test/schema.json"}"#).is_err());
}

#[test]
fn a_name_from_a_template() {
    assert_eq!(
        name_from_template("x-{{ \"A\" | lower }}", options()).unwrap(),
        "x-a"
    );
    assert!(name_from_template("{{ nope }}", options()).is_err());
}

#[test]
fn the_version_of_kubernetes_prints_itself_only_in_place() {
    let expressions = [
        ("{{ .Capabilities.KubeVersion }}", "v1.37.0"),
        ("{{ .Capabilities.KubeVersion.String }}", "v1.37.0"),
        ("{{ $k := .Capabilities.KubeVersion }}{{ $k }}", "v1.37.0"),
        (
            r#"{{ printf "%v" .Capabilities.KubeVersion }}"#,
            "{v1.37.0 v1.37.0 1 37}",
        ),
        (
            r"{{ .Capabilities.KubeVersion | toString }}",
            "{v1.37.0 v1.37.0 1 37}",
        ),
        (
            r#"{{ printf "%#v" .Capabilities.KubeVersion }}"#,
            r#"common.KubeVersion{Version:"v1.37.0", normalizedVersion:"v1.37.0", Major:"1", Minor:"37"}"#,
        ),
    ];
    for (expression, expected) in expressions {
        let template = format!("a: |\n  {expression}");
        let printed = outcome(&[("templates/a.yaml", &template)]).unwrap();
        assert!(printed.ends_with(&format!("  {expected}")), "{printed}");
    }
}

#[test]
fn values_of_a_sub_chart_that_are_none_are_told_as_by_helm() {
    let refused = |dependencies: &str| {
        let metadata = format!("apiVersion: v2\nname: c\nversion: 1.0.0\n{dependencies}");
        let files = [
            ("Chart.yaml", metadata.as_str()),
            ("values.yaml", "sub: text\n"),
            (
                "charts/sub/Chart.yaml",
                "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
            ),
        ];
        let chart = Chart::from_files(files).unwrap();
        let release = Release::install("r", "ns");
        let capabilities = Capabilities::default();
        let rendered = render(&chart, &goyaml::Value::Null, &release, &capabilities, options());
        rendered.unwrap_err().to_string()
    };
    assert!(refused("").starts_with("type mismatch on sub: "));
    let declared = refused("dependencies: [{name: sub, version: 1.0.0}]\n");
    assert!(
        declared.starts_with("chart dependencies processing failed: type mismatch on sub: "),
        "{declared}"
    );
}
