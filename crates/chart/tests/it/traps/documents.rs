//! Traps between templates and what is printed: documents, sub-charts, built-in objects, arguments, files.

use evenkeel_chart::{KubeVersion, ValueSources};

use super::{chart, fails, printed, prints};

#[test]
fn trap_11_changes_are_seen_by_later_files() {
    let files = [
        (
            "templates/a.yaml",
            "a: {{ .Values.list | join \",\" }}\n{{ $_ := set .Values \"list\" (append .Values.list \"a\") }}",
        ),
        (
            "templates/z.yaml",
            "z: {{ .Values.list | join \",\" }}\n{{ $_ := set .Values \"list\" (append .Values.list \"z\") }}",
        ),
    ];
    let rendered = chart(&files, "list: [x]\n", &[]).unwrap();
    assert_eq!(
        printed(&rendered),
        "---\n# Source: c/templates/a.yaml\na: x,z\n\n---\n# Source: c/templates/z.yaml\nz: x\n"
    );
    // The values of a sub-chart are the very mapping inside of the parent's.
    let files = [
        ("charts/s/Chart.yaml", "apiVersion: v2\nname: s\nversion: 1.0.0\n"),
        (
            "charts/s/templates/s.yaml",
            "{{ $_ := set .Values \"seen\" \"yes\" }}s: 1\n",
        ),
        ("templates/p.yaml", "p: {{ .Values.s.seen }}\n"),
    ];
    assert!(printed(&chart(&files, "", &[]).unwrap()).contains("p: yes\n"));
}

#[test]
fn trap_12_include_and_tpl() {
    prints(
        "",
        &[
            (
                "{{ include \"x\" . | typeOf }}{{ define \"x\" }}1{{ end }}",
                "string",
            ),
            (
                "{{ define \"x\" }}outer{{ end }}{{ tpl \"{{ include \\\"x\\\" . }}\" . }}",
                "outer",
            ),
            (
                "{{ define \"x\" }}outer{{ end }}{{ tpl \"{{ define \\\"x\\\" }}inner{{ end }}{{ include \\\"x\\\" . }}\" . }} {{ include \"x\" . }}",
                "inner outer",
            ),
        ],
    );
    // Of two definitions of one name, that of the file that is read last wins: the first by name.
    let files = [
        ("templates/_a.tpl", "{{ define \"x\" }}from a{{ end }}"),
        ("templates/_b.tpl", "{{ define \"x\" }}from b{{ end }}"),
        ("templates/NOTES.txt", "{{ include \"x\" . }}"),
    ];
    assert_eq!(chart(&files, "", &[]).unwrap().notes.unwrap(), "from a");
}

#[test]
fn trap_26_splitting() {
    let text = "kind: A\n\n\n---kind: B\n---\n\n---\n# a comment\n---  \nkind: C\n";
    let rendered = chart(&[("templates/foo.txt", text)], "", &[]).unwrap();
    assert_eq!(
        printed(&rendered),
        "---\n# Source: c/templates/foo.txt\n# a comment\n\n---\n# Source: c/templates/foo.txt\nkind: A\n\n\n\n\
         ---\n# Source: c/templates/foo.txt\nkind: B\n\n---\n# Source: c/templates/foo.txt\nkind: C\n"
    );
}

#[test]
fn trap_27_order() {
    let hook = |name: &str, weight: &str, event: &str| {
        format!(
            "kind: Pod\nmetadata:\n  name: {name}\n  annotations: {{helm.sh/hook: {event}, helm.sh/hook-weight: \"{weight}\"}}\n"
        )
    };
    let (one, two, unknown) = (
        hook("h1", "5", "pre-install"),
        hook("h2", "-5", "pre-install"),
        hook("h3", "0", "never"),
    );
    let files = [
        ("templates/a.yaml", "kind: Zebra\n---\nkind: Deployment\n"),
        (
            "templates/b.yaml",
            "kind: Service\n---\nkind: Namespace\n---\nkind: Alpha\n",
        ),
        ("templates/h1.yaml", one.as_str()),
        ("templates/h2.yaml", two.as_str()),
        ("templates/h3.yaml", unknown.as_str()),
    ];
    let rendered = chart(&files, "", &[]).unwrap();
    let kinds: Vec<_> = rendered
        .manifests
        .iter()
        .map(|manifest| manifest.head.kind.as_str())
        .collect();
    assert_eq!(kinds, ["Namespace", "Service", "Deployment", "Alpha", "Zebra"]);
    let hooks: Vec<_> = rendered
        .hooks
        .iter()
        .map(|hook| hook.head.name.as_str())
        .collect();
    assert_eq!(hooks, ["h1", "h2"]);
}

#[test]
fn trap_28_values_of_sub_charts() {
    let files = [
        (
            "Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: s, version: 1.x, alias: t, condition: t.enabled}]\n",
        ),
        (
            "values.yaml",
            "global: {who: parent}\nt: {a: null, b: mine}\nw: {q: null}\n",
        ),
        ("charts/s/Chart.yaml", "apiVersion: v2\nname: s\nversion: 1.2.0\n"),
        (
            "charts/s/values.yaml",
            "a: 1\nb: theirs\nc: 3\nglobal: {who: child, more: child}\n",
        ),
        ("charts/s/templates/s.yaml", "s: {{ toJson .Values }}\n"),
        ("templates/p.yaml", "w: {{ toJson .Values.w }}\n"),
    ];
    let text = printed(&chart(&files, "", &[]).unwrap());
    assert!(
        text.contains(
            "s: {\"a\":1,\"b\":\"mine\",\"c\":3,\"global\":{\"more\":\"child\",\"who\":\"parent\"}}\n"
        ),
        "{text}"
    );
    assert!(text.contains("w: {}\n"), "{text}");
    assert!(!printed(&chart(&files, "t: {enabled: false}\n", &[]).unwrap()).contains("s: "));
    // A chart that is there and not declared takes part always.
    let files = [
        ("charts/u/Chart.yaml", "apiVersion: v2\nname: u\nversion: 1.0.0\n"),
        ("charts/u/templates/u.yaml", "u: 1\n"),
    ];
    assert!(printed(&chart(&files, "", &[]).unwrap()).contains("u: 1\n"));
}

#[test]
fn trap_29_built_in_objects() {
    prints(
        "",
        &[
            ("{{ kindOf .Chart }} [{{ .Chart.Missing }}]", "map []"),
            (
                "{{ toYaml .Chart | splitList \"\\n\" | first }}",
                "APIVersion: v2",
            ),
            (
                "{{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.HelmVersion.Version }}",
                "v1.37.0 37 v4.3.1",
            ),
            (
                "{{ .Capabilities.APIVersions.Has \"apps/v1\" }} {{ .Capabilities.APIVersions.Has \"apps/v1/Deployment\" }} {{ len .Capabilities.APIVersions }}",
                "true false 57",
            ),
        ],
    );
    assert_eq!(KubeVersion::parse("v1.33.4-gke.1").unwrap().minor, "33");
}

#[test]
fn trap_30_methods_hide_keys() {
    prints(
        "AsMap: hidden\na: {b: 1}\n",
        &[
            ("{{ kindOf .Values.AsMap }}", "map"),
            ("{{ typeOf .Values }}", "common.Values"),
            ("{{ (.Values.Table \"a\").b }}", "1"),
        ],
    );
}

#[test]
fn trap_31_set() {
    let values = "l: [a, b]\nm: {a: 1}\n";
    let file = [("templates/NOTES.txt", "{{ toJson .Values }}")];
    for (argument, expected) in [
        ("l[1]=z", "{\"l\":[null,\"z\"]}"),
        ("l={}", "{\"l\":[\"\"]}"),
        ("a\\.b=1", "{\"a.b\":1}"),
        ("a=1\\,2", "{\"a\":\"1,2\"}"),
        ("a=+5", "{\"a\":5}"),
    ] {
        assert_eq!(
            chart(&file, "", &[argument]).unwrap().notes.unwrap(),
            expected,
            "{argument}"
        );
    }
    let defaults = [file[0], ("values.yaml", values)];
    let replaced = "{\"l\":[null,\"z\"],\"m\":{\"a\":{\"z\":1}}}";
    let rendered = chart(&defaults, "", &["m.a.z=1,l[1]=z"]).unwrap();
    assert_eq!(rendered.notes.unwrap(), replaced);
    // Null takes a default of the chart away.
    let defaults = [file[0], ("values.yaml", "a: 1\nb: 2\n")];
    assert_eq!(
        chart(&defaults, "", &["a=null"]).unwrap().notes.unwrap(),
        "{\"b\":2}"
    );
    // Kinds of arguments come in a fixed order, however they were given.
    let sources = ValueSources {
        json: vec!["a=9".to_owned()],
        typed: vec!["a=set".to_owned()],
        text: vec!["a=str".to_owned()],
        ..ValueSources::default()
    };
    let merged = sources.merge(|_| Err(String::new())).unwrap();
    assert_eq!(format!("{merged:?}").matches("str").count(), 1);
}

#[test]
fn trap_32_schema_texts() {
    let schema = r#"{"properties": {"s": {"type": "string", "minLength": 3}, "n": {"type": "integer"}}}"#;
    let files = [("values.schema.json", schema), ("templates/a.yaml", "a: 1\n")];
    let error = chart(&files, "s: a\n\"n\": x\n", &[]).unwrap_err();
    for line in [
        "- at '/s': minLength: got 1, want 3",
        "- at '/n': got string, want integer",
    ] {
        assert!(error.contains(line), "{error}");
    }
}

#[test]
fn trap_35_files() {
    let files = [
        ("files/a.txt", "1"),
        ("files/b/a.json", "2"),
        (
            "templates/NOTES.txt",
            "{{ len (.Files.Glob \"files/*\") }} {{ len (.Files.Glob \"files/**\") }} [{{ .Files.Get \"nothing\" }}] \
             [{{ .Files.Get \"values.yaml\" }}{{ .Files.Get \"templates/NOTES.txt\" }}] \
             {{ (.Files.Glob \"files/*.txt\").AsConfig }} {{ len (.Files.Glob \"[\") }} \
             {{ toYamlPretty (.Files.GetBytes \"files/a.txt\") }} {{ .Files.GetBytes \"files/a.txt\" | toYaml }}",
        ),
    ];
    assert_eq!(
        chart(&files, "", &[]).unwrap().notes.unwrap(),
        "1 2 [] [] a.txt: \"1\" 2 - 49 MQ=="
    );
}

#[test]
fn trap_36_notes_partials_and_names() {
    let files = [
        (
            "templates/_x.yaml",
            "never: {{ fail \"run\" }}\n{{ define \"x\" }}{{ .Template.Name }}{{ end }}",
        ),
        ("templates/empty.yaml", "{{- if false }}a: 1{{ end }}\n"),
        (
            "templates/a.yaml",
            "name: {{ include \"x\" . }}\nbase: {{ .Template.BasePath }}\n",
        ),
    ];
    assert_eq!(
        printed(&chart(&files, "", &[]).unwrap()),
        "---\n# Source: c/templates/a.yaml\nname: c/templates/a.yaml\nbase: c/templates\n"
    );
    fails(
        "",
        &[("{{ fail \"notes\" }}", "c/templates/NOTES.txt:1:3): notes")],
    );
}

#[test]
fn trap_25_json() {
    prints(
        "",
        &[
            (
                "{{ toJson \"<&>\u{2028}\" }} {{ toRawJson \"<&>\" }}",
                "\"\\u003c\\u0026\\u003e\\u2028\" \"<&>\"",
            ),
            ("{{ (fromJson \"{\").Error }}", "unexpected end of JSON input"),
            ("{{ hasKey (fromYaml \"a: [\") \"Error\" }}", "true"),
        ],
    );
}

#[test]
fn trap_20_keys_are_sorted() {
    prints(
        "",
        &[(
            "{{ keys (dict \"b\" 1 \"a\" 2 \"c\" 3) }} {{ values (dict \"b\" 1 \"a\" 2) }}",
            "[a b c] [2 1]",
        )],
    );
}

#[test]
fn trap_33_dates() {
    prints(
        "",
        &[
            ("{{ now | date \"2006-01-02T15:04:05\" }}", "2023-11-14T22:13:20"),
            ("{{ toDate \"2006\" \"x\" }}", "0001-01-01 00:00:00 +0000 UTC"),
            ("{{ duration 95 }} {{ duration \"95\" }}", "0s 1m35s"),
        ],
    );
}
