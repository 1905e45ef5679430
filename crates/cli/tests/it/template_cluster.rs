//! `evenkeel template --dry-run=server` and the real Helm, on one real cluster: same bytes, same exit code.

use crate::local::fixture::{Env, real};
use crate::template::{Oracle, difference, no_differences};

const ASKING: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-asking}
data:
  version: {{ .Capabilities.KubeVersion.Version }}
  minor: {{ .Capabilities.KubeVersion.Minor | quote }}
  kind: {{ .Capabilities.APIVersions.Has "apps/v1/Deployment" | quote }}
  group: {{ .Capabilities.APIVersions.Has "apps/v1" | quote }}
  more: {{ .Capabilities.APIVersions.Has "example.org/v1" | quote }}
  found: {{ (lookup "v1" "Namespace" "" "default").metadata.name }}
  phase: {{ (lookup "v1" "Namespace" "" "default").status.phase }}
  missing: {{ lookup "v1" "ConfigMap" "default" "not-there" | toJson }}
  listed: {{ range (lookup "v1" "Namespace" "" "").items }}{{ if eq .metadata.name "kube-system" }}{{ .metadata.name }}{{ end }}{{ end }}
  ports: {{ range (lookup "v1" "Service" "default" "kubernetes").spec.ports }}{{ typeOf .port }} {{ .port }}{{ end }}
"#;

fn compare(env: &Env, lines: &[&[&str]]) {
    let oracle = Oracle::new();
    let folder = env.path("");
    let mut differences = Vec::new();
    for line in lines {
        let connected = ["template", "r"].iter().chain(*line);
        let args: Vec<&str> = connected
            .chain(&["--kubeconfig", "kubeconfig"])
            .copied()
            .collect();
        let (theirs, ours) = (oracle.helm(&folder, &args), Oracle::evenkeel(&folder, &args));
        differences.extend(difference(&theirs, &ours).map(|text| format!("{}: {text}", line.join(" "))));
    }
    no_differences(differences);
}

#[test]
fn a_real_cluster_is_asked() {
    let env = real();
    env.chart("asks", &[("templates/a.yaml", ASKING)]);
    let taken = "apiVersion: v1\nkind: Service\nmetadata: {name: kubernetes, namespace: default}\nspec: {ports: [{port: 1}]}\n";
    env.chart("takes", &[("templates/a.yaml", taken)]);
    let unknown = "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: x}\n";
    env.chart("unknown", &[("templates/a.yaml", unknown)]);
    compare(
        &env,
        &[
            &["asks", "--dry-run=server"],
            &["asks", "--validate"],
            // What the cluster has comes before what is said.
            &[
                "asks",
                "--dry-run=server",
                "--kube-version",
                "1.20",
                "-a",
                "example.org/v1",
            ],
            // Somebody else's object is in the way.
            &["takes", "--dry-run=server"],
            &["takes", "--dry-run=server", "--is-upgrade"],
            &["takes", "--dry-run=server", "--take-ownership"],
            &["takes", "--dry-run=client"],
            &["unknown", "--dry-run=server"],
            &[
                "asks",
                "--dry-run=server",
                "--kube-apiserver",
                "https://127.0.0.1:1",
            ],
            &["asks", "--dry-run=server", "--kube-context", "not-there"],
        ],
    );
}
