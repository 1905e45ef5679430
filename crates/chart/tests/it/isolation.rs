//! Renders do not see each other, and say what they saw of the world.

use std::sync::Arc;

use evenkeel_chart::{
    Capabilities, Chart, Error, Instant, Limits, Lookup, PrintOptions, RandomSource, Release, RenderOptions,
    Rendered, Taints, render,
};
use evenkeel_goyaml::Value;

/// Counts up; good enough to see that randomness was asked for.
struct Counter(u8);

impl RandomSource for Counter {
    fn fill(&mut self, buffer: &mut [u8]) {
        for byte in buffer {
            self.0 = self.0.wrapping_add(7);
            *byte = self.0;
        }
    }
}

pub(crate) fn options() -> RenderOptions {
    RenderOptions::new(
        Instant {
            seconds: 1_700_000_000,
            nanos: 0,
        },
        Box::new(Counter(0)),
    )
}

fn chart(template: &str) -> Chart {
    Chart::from_files([
        ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        ("values.yaml", "list: [1]\nmap: {a: 1}\n"),
        ("templates/a.yaml", template),
    ])
    .unwrap()
}

fn run(chart: &Chart, options: RenderOptions) -> Result<Rendered, Error> {
    render(
        chart,
        &Value::Null,
        &Release::install("r", "ns"),
        &Capabilities::default(),
        options,
    )
}

fn text(rendered: &Rendered) -> String {
    String::from_utf8(rendered.print(&PrintOptions::default())).unwrap()
}

fn taints(random: bool, time: bool, lookup: bool) -> Taints {
    let mut taints = Taints::default();
    (taints.random, taints.time, taints.lookup) = (random, time, lookup);
    taints
}

#[test]
fn a_changed_value_does_not_reach_the_next_render() {
    let chart =
        chart("{{ $_ := set .Values.map \"a\" (print .Values.map.a \"x\") }}a: {{ .Values.map.a }}\n");
    for _ in 0..3 {
        assert_eq!(
            text(&run(&chart, options()).unwrap()),
            "---\n# Source: c/templates/a.yaml\na: 1x\n"
        );
    }
}

#[test]
fn one_chart_serves_many_threads() {
    let chart = Arc::new(chart("a: {{ .Release.Name }}-{{ .Values.map.a }}\n"));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let chart = Arc::clone(&chart);
            std::thread::spawn(move || run(&chart, options()).unwrap())
        })
        .collect();
    let rendered: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(rendered.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn taints_tell_what_a_render_saw() {
    for (template, expected) in [
        ("a: {{ .Release.Name }}\n", taints(false, false, false)),
        ("a: {{ randAlphaNum 5 }}\n", taints(true, false, false)),
        (
            "a: {{ now | len }}{{ now | quote }}\n",
            taints(false, true, false),
        ),
        (
            "a: {{ len (lookup \"v1\" \"Secret\" \"ns\" \"s\") }}\n",
            taints(false, false, true),
        ),
        (
            "{{ if false }}{{ randAlphaNum 5 }}{{ end }}a: 1\n",
            taints(false, false, false),
        ),
    ] {
        let template = template.replace("{{ now | len }}", "");
        assert_eq!(
            run(&chart(&template), options()).unwrap().taints,
            expected,
            "{template}"
        );
    }
}

struct OneSecret;

impl Lookup for OneSecret {
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<serde_json::Value>, String> {
        match (api_version, kind, namespace, name) {
            ("v1", "Secret", "ns", "s") => Ok(Some(serde_json::json!({"data": {"n": 5}}))),
            ("v1", "Secret", ..) => Ok(None),
            _ => Err("no such kind".into()),
        }
    }
}

#[test]
fn lookup_asks_the_cluster() {
    let connected = || RenderOptions {
        lookup: Some(Arc::new(OneSecret)),
        ..options()
    };
    let found = run(
        &chart("a: {{ (lookup \"v1\" \"Secret\" \"ns\" \"s\").data.n }}\n"),
        connected(),
    )
    .unwrap();
    assert!(text(&found).ends_with("a: 5\n"), "{found:?}");
    let missing = run(
        &chart("a: {{ lookup \"v1\" \"Secret\" \"ns\" \"t\" | len }}\n"),
        connected(),
    )
    .unwrap();
    assert!(text(&missing).ends_with("a: 0\n"));
    let error = run(&chart("a: {{ lookup \"v1\" \"X\" \"\" \"\" }}\n"), connected()).unwrap_err();
    assert!(error.to_string().contains("no such kind"), "{error}");
}

#[test]
fn limits_stop_a_hostile_chart() {
    let error = run(
        &chart("{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}\n"),
        RenderOptions {
            limits: Limits {
                call_depth: 100,
                ..Limits::default()
            },
            ..options()
        },
    )
    .unwrap_err();
    assert!(matches!(error, Error::Limit(_)), "{error}");
    let error = run(
        &chart("{{ range until 100000 }}{{ $.Release.Name | repeat 1000 }}{{ end }}\n"),
        RenderOptions {
            limits: Limits {
                output_bytes: 1 << 20,
                ..Limits::default()
            },
            ..options()
        },
    )
    .unwrap_err();
    assert!(matches!(error, Error::Limit(_)), "{error}");
    let error = run(
        &chart("{{ range until 1000000 }}{{ end }}\n"),
        RenderOptions {
            deadline: Some(Box::new(|| true)),
            ..options()
        },
    )
    .unwrap_err();
    assert!(matches!(error, Error::Limit(_)), "{error}");
}

#[test]
fn one_broken_document_fails_the_whole_render() {
    let chart = Chart::from_files([
        ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        ("templates/a.yaml", "kind: A\n"),
        ("templates/b.yaml", "kind: B\n---\nkind: C\n x: [\n"),
    ])
    .unwrap();
    match run(&chart, options()) {
        Err(Error::Manifest { file, line, .. }) => {
            assert_eq!((file.as_str(), line), ("c/templates/b.yaml", Some(2)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn objects_are_exact_and_lists_are_opened() {
    let chart = Chart::from_files([
        ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        (
            "templates/a.yaml",
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}, big: 9007199254740993}\n\
             - {apiVersion: v1, kind: B, metadata: {name: b}, half: 0.5}\n---\n# nothing\n",
        ),
        ("crds/x.yaml", "---\napiVersion: x/v1\nkind: CRD\nmetadata: {name: x}\n---\n\n"),
    ])
    .unwrap();
    let rendered = run(&chart, options()).unwrap();
    let objects = rendered.objects().unwrap();
    let kinds: Vec<_> = objects
        .iter()
        .map(|o| o.object["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["A", "B"]);
    assert_eq!(
        objects[0].object["big"],
        serde_json::json!(9_007_199_254_740_993_i64)
    );
    assert_eq!(objects[1].object["half"], serde_json::json!(0.5));
    assert_eq!(rendered.crd_objects().unwrap().len(), 1);
    assert_eq!(rendered.crd_objects().unwrap()[0].source, "c/crds/x.yaml");

    let nameless = Chart::from_files([
        ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        ("templates/a.yaml", "apiVersion: v1\nkind: A\n"),
    ])
    .unwrap();
    let error = run(&nameless, options())
        .unwrap()
        .objects()
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "YAML parse error on c/templates/a.yaml: the A has no metadata.name"
    );
}

#[test]
fn the_digest_follows_the_output() {
    let one = run(&chart("a: {{ .Release.Name }}\n"), options()).unwrap();
    let same = run(&chart("a: {{ .Release.Name | trim }}\n"), options()).unwrap();
    let other = run(&chart("a: {{ .Release.Name }}2\n"), options()).unwrap();
    assert_eq!(one.digest(), same.digest());
    assert_ne!(one.digest(), other.digest());
}
