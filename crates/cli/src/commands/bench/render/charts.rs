//! The charts that are rendered: of many shapes and sizes, all our own.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use include_dir::{Dir, include_dir};

use crate::commands::demo;

/// A chart of several parts whose names, labels and images come from a library of helpers.
static PLATFORM: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src/commands/bench/render/platform");

/// The chart that `helm create` writes; Helm writes it itself.
pub(super) const CREATED: &str = "demo";

/// One chart and the arguments that it is rendered with.
#[derive(Clone, Copy, Debug)]
pub(super) struct BenchChart {
    /// Its folder.
    pub(super) name: &'static str,
    /// Arguments behind the release's name and the folder.
    pub(super) args: &'static [&'static str],
}

const fn plain(name: &'static str) -> BenchChart {
    BenchChart { name, args: &[] }
}

/// All charts.
pub(super) const ALL: [BenchChart; 13] = [
    plain(CREATED),
    plain("web"),
    plain("shop"),
    plain("operator"),
    BenchChart {
        name: "database",
        args: &["--set", "auth.password=given"],
    },
    plain("platform"),
    plain("objects"),
    plain("umbrella"),
    BenchChart {
        name: "definitions",
        args: &["--include-crds"],
    },
    plain("dashboards"),
    plain("settings"),
    plain("files"),
    plain("tiny"),
];

/// Writes all charts but [`CREATED`] below `folder`.
pub(super) fn write(folder: &Path) -> anyhow::Result<()> {
    demo::charts::write(folder)?;
    let platform = folder.join("platform");
    fs::create_dir_all(&platform)
        .and_then(|()| PLATFORM.extract(&platform))
        .with_context(|| format!("a chart cannot be written to {}", platform.display()))?;
    for files in [
        objects(),
        umbrella(),
        definitions(),
        dashboards(),
        settings(),
        many_files(),
        tiny(),
    ] {
        for (path, text) in files {
            let path = folder.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
            }
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

type Files = Vec<(String, String)>;

fn chart_yaml(name: &str, more: &str) -> (String, String) {
    let short = name.rsplit('/').next().unwrap_or(name);
    let text = format!("apiVersion: v2\nname: {short}\nversion: 1.0.0\nappVersion: 2.3.4\n{more}");
    (format!("{name}/Chart.yaml"), text)
}

/// Labels, as most charts have them.
fn helpers(name: &str) -> String {
    format!(
        "{{{{- define \"{name}.labels\" -}}}}\n\
         app.kubernetes.io/name: {{{{ .Chart.Name }}}}\n\
         app.kubernetes.io/instance: {{{{ .Release.Name }}}}\n\
         app.kubernetes.io/version: {{{{ .Chart.AppVersion | quote }}}}\n\
         {{{{- with .Values.labels }}}}\n{{{{ toYaml . }}}}\n{{{{- end }}}}\n\
         {{{{- end }}}}\n\
         {{{{- define \"{name}.name\" -}}}}\n\
         {{{{- printf \"%s-%s\" .Release.Name .Chart.Name | trunc 63 | trimSuffix \"-\" -}}}}\n\
         {{{{- end }}}}\n"
    )
}

/// 200 objects from a list of 50.
fn objects() -> Files {
    let mut values = String::from("labels: {team: bench}\nservices:\n");
    for number in 0..50 {
        let port = 8_000 + number;
        // Writing to a String cannot fail.
        let _ = writeln!(
            values,
            "- {{name: service-{number}, port: {port}, replicas: {}, image: \"example.org/service-{number}:1.{number}\", \
             env: {{LEVEL: info, LIMIT: {}, TEXT: \"of {number}\"}}}}",
            number % 4 + 1,
            number * 1_000
        );
    }
    let template = r#"{{- range $service := .Values.services }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $service.name }}
  labels: {{- include "objects.labels" $ | nindent 4 }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $service.name }}
  labels: {{- include "objects.labels" $ | nindent 4 }}
data: {{- range $key, $value := $service.env }}
  {{ $key | lower }}: {{ $value | quote }}
{{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $service.name }}
  labels: {{- include "objects.labels" $ | nindent 4 }}
spec:
  selector: {app: {{ $service.name | quote }}}
  ports:
  - port: {{ $service.port }}
    targetPort: http
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $service.name }}
  labels: {{- include "objects.labels" $ | nindent 4 }}
spec:
  replicas: {{ $service.replicas }}
  selector:
    matchLabels: {app: {{ $service.name | quote }}}
  template:
    metadata:
      labels: {{- merge (dict "app" $service.name) (include "objects.labels" $ | fromYaml) | toYaml | nindent 8 }}
      annotations:
        checksum: {{ toJson $service | sha256sum }}
    spec:
      serviceAccountName: {{ $service.name }}
      containers:
      - name: main
        image: {{ $service.image }}
        ports:
        - {name: http, containerPort: {{ $service.port }}}
        env:
        {{- range $key, $value := $service.env }}
        - name: {{ $key }}
          value: {{ $value | quote }}
        {{- end }}
---
{{- end }}
"#;
    vec![
        chart_yaml("objects", ""),
        ("objects/values.yaml".to_owned(), values),
        ("objects/templates/_helpers.tpl".to_owned(), helpers("objects")),
        ("objects/templates/all.yaml".to_owned(), template.to_owned()),
    ]
}

/// Twenty sub-charts, a quarter of them switched off, with values from three places.
fn umbrella() -> Files {
    let mut dependencies = String::from("dependencies:\n");
    let mut values = String::from("global: {domain: example.org, level: debug}\n");
    let mut files = Vec::new();
    for number in 0..20 {
        let name = format!("part-{number}");
        let _ = write!(
            dependencies,
            "- name: {name}\n  version: 1.x\n  condition: {name}.enabled\n"
        );
        let _ = writeln!(
            values,
            "{name}: {{enabled: {}, replicas: {}, labels: {{part: p{number}}}}}",
            number % 4 != 3,
            number % 3 + 1
        );
        let folder = format!("umbrella/charts/{name}");
        let own = "replicas: 1\nport: 80\nimage: {repository: example.org/part, tag: \"1.0\"}\nlabels: {}\n\
                   resources: {requests: {cpu: 100m, memory: 64Mi}}\n";
        let deployment = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{{{ include \"{name}.name\" . }}}}\n  \
             labels: {{{{- include \"{name}.labels\" . | nindent 4 }}}}\nspec:\n  replicas: {{{{ .Values.replicas }}}}\n  \
             selector:\n    matchLabels: {{{{- include \"{name}.labels\" . | nindent 6 }}}}\n  template:\n    \
             metadata:\n      labels: {{{{- include \"{name}.labels\" . | nindent 8 }}}}\n    spec:\n      \
             containers:\n      - name: main\n        image: {{{{ .Values.image.repository }}}}:{{{{ .Values.image.tag }}}}\n        \
             args: [--level={{{{ .Values.global.level }}}}]\n        \
             resources: {{{{- toYaml .Values.resources | nindent 10 }}}}\n"
        );
        let service = format!(
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{{{ include \"{name}.name\" . }}}}\n  \
             labels: {{{{- include \"{name}.labels\" . | nindent 4 }}}}\nspec:\n  ports:\n  - port: {{{{ .Values.port }}}}\n"
        );
        let ingress = format!(
            "{{{{- if .Values.global.domain }}}}\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  \
             name: {{{{ include \"{name}.name\" . }}}}\nspec:\n  rules:\n  - host: {name}.{{{{ .Values.global.domain }}}}\n\
             {{{{- end }}}}\n"
        );
        files.extend([
            chart_yaml(&folder, ""),
            (format!("{folder}/values.yaml"), own.to_owned()),
            (format!("{folder}/templates/_helpers.tpl"), helpers(&name)),
            (format!("{folder}/templates/deployment.yaml"), deployment),
            (format!("{folder}/templates/service.yaml"), service),
            (format!("{folder}/templates/ingress.yaml"), ingress),
        ]);
    }
    files.push(chart_yaml("umbrella", &dependencies));
    files.push(("umbrella/values.yaml".to_owned(), values));
    files
}

/// Large custom resource definitions, beside the few objects of an operator.
fn definitions() -> Files {
    let mut files = vec![
        chart_yaml("definitions", ""),
        ("definitions/values.yaml".to_owned(), "labels: {}\nreplicas: 1\n".to_owned()),
        ("definitions/templates/_helpers.tpl".to_owned(), helpers("definitions")),
        (
            "definitions/templates/operator.yaml".to_owned(),
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ include \"definitions.name\" . }}\n  \
             labels: {{- include \"definitions.labels\" . | nindent 4 }}\nspec: {replicas: {{ .Values.replicas }}}\n"
                .to_owned(),
        ),
    ];
    for number in 0..10 {
        let mut text = format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  \
             name: things{number}.example.org\nspec:\n  group: example.org\n  scope: Namespaced\n  \
             names: {{kind: Thing{number}, plural: things{number}}}\n  versions:\n  - name: v1\n    served: true\n    \
             storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n"
        );
        for field in 0..400 {
            let _ = write!(
                text,
                "          field{field}:\n            description: What field {field} of thing {number} is for, told at \
                 some length.\n            type: string\n            maxLength: {field}\n"
            );
        }
        files.push((format!("definitions/crds/thing{number}.yaml"), text));
    }
    files
}

/// Files that are carried into ConfigMaps.
fn dashboards() -> Files {
    let mut files = vec![
        chart_yaml("dashboards", ""),
        ("dashboards/values.yaml".to_owned(), "labels: {}\ndatasource: main\n".to_owned()),
        ("dashboards/templates/_helpers.tpl".to_owned(), helpers("dashboards")),
        (
            "dashboards/templates/dashboards.yaml".to_owned(),
            "{{- range $path, $_ := .Files.Glob \"boards/*.json\" }}\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  \
             name: {{ base $path | trimSuffix \".json\" }}\n  \
             labels: {{- include \"dashboards.labels\" $ | nindent 4 }}\ndata:\n  {{ base $path }}: |-\n\
             {{ $.Files.Get $path | replace \"${DS}\" $.Values.datasource | indent 4 }}\n---\n{{- end }}\n"
                .to_owned(),
        ),
        (
            "dashboards/templates/rules.yaml".to_owned(),
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: rules\ndata: \
             {{- (.Files.Glob \"rules/*\").AsConfig | nindent 2 }}\n"
                .to_owned(),
        ),
    ];
    for number in 0..25 {
        let mut board = format!("{{\n  \"title\": \"Board {number}\",\n  \"panels\": [\n");
        for panel in 0..60 {
            let _ = writeln!(
                board,
                "    {{\"id\": {panel}, \"datasource\": \"${{DS}}\", \"title\": \"Panel {panel}\", \
                 \"targets\": [{{\"expr\": \"sum by (pod) (rate(http_requests_total{{code=~\\\"5..\\\"}}[5m]))\"}}]}}{}",
                if panel < 59 { "," } else { "" }
            );
        }
        board.push_str("  ]\n}\n");
        files.push((format!("dashboards/boards/board-{number}.json"), board));
        let rule = format!(
            "groups:\n- name: group-{number}\n  rules:\n  - alert: Down{number}\n    expr: up == 0\n"
        );
        files.push((format!("dashboards/rules/rule-{number}.yaml"), rule));
    }
    files
}

/// A long file of values, checked by a schema, merged and printed again.
fn settings() -> Files {
    let mut values = String::from("labels: {}\noverrides: {section1: {enabled: false}}\n");
    for section in 0..120 {
        let _ = write!(
            values,
            "# Section {section}: what it is about, in a comment as long as such comments are.\nsection{section}:\n  \
             enabled: true\n  replicas: {section}\n  ratio: 0.{section}\n  name: \"section {section}\"\n  \
             list: [a, b, {section}, true]\n  nested:\n    limits: {{cpu: {section}m, memory: {section}Mi}}\n    text: |\n      \
             several lines\n      of section {section}\n"
        );
    }
    let schema = r#"{"type": "object", "patternProperties": {"^section[0-9]+$": {"type": "object",
        "required": ["enabled", "name"], "properties": {"enabled": {"type": "boolean"},
        "replicas": {"type": "integer", "minimum": 0}, "name": {"type": "string", "minLength": 3}}}}}"#;
    let template = r#"{{- $all := mergeOverwrite (deepCopy (omit .Values "overrides" "labels" "global")) .Values.overrides }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "settings.name" . }}
  labels: {{- include "settings.labels" . | nindent 4 }}
  annotations:
    checksum: {{ $all | toJson | sha256sum }}
data:
  all.yaml: |
    {{- $all | toYaml | nindent 4 }}
  {{- range $name, $section := $all }}
  {{- if $section.enabled }}
  {{ $name }}.json: {{ $section | toJson | quote }}
  {{- end }}
  {{- end }}
"#;
    vec![
        chart_yaml("settings", ""),
        ("settings/values.yaml".to_owned(), values),
        ("settings/values.schema.json".to_owned(), schema.to_owned()),
        ("settings/templates/_helpers.tpl".to_owned(), helpers("settings")),
        ("settings/templates/all.yaml".to_owned(), template.to_owned()),
    ]
}

/// Many templates of one small object each.
fn many_files() -> Files {
    let mut files = vec![
        chart_yaml("files", ""),
        (
            "files/values.yaml".to_owned(),
            "labels: {team: bench}\n".to_owned(),
        ),
        ("files/templates/_helpers.tpl".to_owned(), helpers("files")),
    ];
    for number in 0..150 {
        let text = format!(
            "{{{{- if ne .Release.Name \"without-{number}\" }}}}\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  \
             name: {{{{ include \"files.name\" . }}}}-{number}\n  labels: {{{{- include \"files.labels\" . | nindent 4 }}}}\n\
             data:\n  number: {{{{ add {number} 1 | quote }}}}\n  words: {{{{ list \"a\" \"b\" .Chart.Name | join \",\" }}}}\n\
             {{{{- end }}}}\n"
        );
        files.push((format!("files/templates/config-{number}.yaml"), text));
    }
    files
}

/// One object.
fn tiny() -> Files {
    vec![
        chart_yaml("tiny", ""),
        (
            "tiny/templates/a.yaml".to_owned(),
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n".to_owned(),
        ),
    ]
}
