//! What an operation must do, whatever kind of cluster it works on.

mod formats;
mod hooks;
mod strategies;

use evenkeel_component::{End, Outcome};
use evenkeel_core::{DataRef, PlanAction, ValuesFrom};
use serde_json::{Value, json};

use crate::bench::Bench;
pub(crate) use formats::*;
pub(crate) use hooks::*;
pub(crate) use strategies::*;

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {color: {{ .Values.color | default \"red\" | quote }}, revision: {{ .Release.Revision | quote }}}\n";
const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: example.com/web:1}]
";
const PASSWORD: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: password}\nstringData: {password: {{ randAlphaNum 24 | quote }}}\n";
const CERTIFICATE: &str = r#"
{{- $ca := genCA "ca" 365 }}
{{- $cert := genSignedCert "web" nil (list "web" "web.ns.svc") 365 $ca }}
apiVersion: v1
kind: Secret
metadata: {name: tls}
type: kubernetes.io/tls
data:
  ca.crt: {{ $ca.Cert | b64enc }}
  tls.crt: {{ $cert.Cert | b64enc }}
  tls.key: {{ $cert.Key | b64enc }}
"#;

fn succeeded(outcome: &Outcome) {
    assert_eq!(outcome.end, End::Succeeded, "{outcome:#?}");
}

fn actions(outcome: &Outcome) -> Vec<(PlanAction, String)> {
    outcome
        .changes
        .iter()
        .map(|change| (change.action, change.object.kind.clone()))
        .collect()
}

fn failed(outcome: &Outcome) -> String {
    match &outcome.end {
        End::Failed { reason } => reason.clone(),
        other => panic!("expected a failure, found {other:?}"),
    }
}

async fn data(bench: &Bench, kind: &str, name: &str) -> Value {
    bench
        .get(kind, name)
        .await
        .unwrap_or_else(|| panic!("{kind}/{name} is missing"))["data"]
        .clone()
}

pub(crate) async fn an_install_becomes_ready_and_a_second_run_changes_nothing(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    bench.write("templates/web.yaml", DEPLOYMENT);
    let installed = bench.apply("{}").await;
    succeeded(&installed);
    let kinds: Vec<_> = actions(&installed).into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, ["Namespace", "ConfigMap", "Deployment"]);
    assert!(
        installed.lines.iter().any(|line| line.step == "wait-ready"),
        "{installed:#?}"
    );

    let before = bench.cluster.requests();
    let again = bench.apply("{}").await;
    succeeded(&again);
    assert_eq!(actions(&again), []);
    assert_eq!(bench.cluster.requests().since(&before).writes(), 0);
}

pub(crate) async fn a_dry_run_shows_the_plan_and_writes_nothing(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    let before = bench.cluster.requests();
    let planned = bench.plan("{}").await;
    assert_eq!(planned.end, End::Planned);
    let plan = planned.plan.unwrap();
    // The release namespace, too, would have to be made.
    assert_eq!(plan.count(PlanAction::Create), 2, "{plan:#?}");
    assert_eq!(bench.cluster.requests().since(&before).writes(), 0);
    assert!(bench.get("ConfigMap", "config").await.is_none());
}

pub(crate) async fn changed_values_make_another_revision(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    succeeded(&bench.apply("color: green").await);
    assert_eq!(
        data(bench, "ConfigMap", "config").await,
        json!({"color": "green", "revision": "1"})
    );
    let changed = bench.apply("color: blue").await;
    succeeded(&changed);
    assert_eq!(actions(&changed), [(PlanAction::Update, "ConfigMap".to_owned())]);
    assert_eq!(
        data(bench, "ConfigMap", "config").await,
        json!({"color": "blue", "revision": "2"})
    );
}

pub(crate) async fn what_is_no_longer_rendered_is_pruned(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    bench.write(
        "templates/more.yaml",
        &CONFIG.replace("name: config", "name: more"),
    );
    let keep = CONFIG.replace(
        "name: config",
        "name: kept, annotations: {helm.sh/resource-policy: keep}",
    );
    bench.write("templates/kept.yaml", &keep);
    succeeded(&bench.apply("{}").await);
    bench.remove("templates/more.yaml");
    bench.remove("templates/kept.yaml");
    let pruned = bench.apply("{}").await;
    succeeded(&pruned);
    assert_eq!(pruned.plan.as_ref().unwrap().count(PlanAction::Delete), 1);
    assert!(bench.get("ConfigMap", "more").await.is_none());
    assert!(bench.get("ConfigMap", "kept").await.is_some());
}

/// DRF-08: a chart that draws a password draws it once.
pub(crate) async fn a_password_survives_retries_and_repairs(bench: &Bench) {
    bench.write("templates/password.yaml", PASSWORD);
    bench.write("templates/config.yaml", CONFIG);
    succeeded(&bench.apply("{}").await);
    let password = data(bench, "Secret", "password").await;
    let again = bench.apply("{}").await;
    succeeded(&again);
    assert_eq!(actions(&again), []);
    assert_eq!(data(bench, "Secret", "password").await, password);
    // Other values are another revision, and that one may have another password.
    succeeded(&bench.apply("color: blue").await);
    assert_ne!(data(bench, "Secret", "password").await, password);
}

pub(crate) async fn a_certificate_survives_retries_and_repairs(bench: &Bench) {
    bench.write("templates/tls.yaml", CERTIFICATE);
    bench.write("templates/config.yaml", CONFIG);
    succeeded(&bench.apply("{}").await);
    let tls = data(bench, "Secret", "tls").await;
    assert_eq!(tls.as_object().unwrap().len(), 3);
    let again = bench.apply("{}").await;
    succeeded(&again);
    assert_eq!(actions(&again), []);
    assert_eq!(data(bench, "Secret", "tls").await, tls);
}

pub(crate) async fn values_kept_at_the_target_are_used(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    let from = |optional| {
        let (name, key) = ("web-values".to_owned(), "values.yaml".to_owned());
        ValuesFrom::Secret(DataRef {
            namespace: None,
            name,
            key,
            optional,
        })
    };
    let missing = bench.apply_with(from(false)).await;
    assert!(failed(&missing).contains("web-values"), "{missing:?}");
    succeeded(&bench.apply_with(from(true)).await);
    assert_eq!(data(bench, "ConfigMap", "config").await["color"], "red");

    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-values"},
        "stringData": {"values.yaml": "color: purple"},
    });
    bench.create(secret).await;
    succeeded(&bench.apply_with(from(false)).await);
    assert_eq!(data(bench, "ConfigMap", "config").await["color"], "purple");
}

pub(crate) async fn a_broken_template_says_where_and_applies_nothing(bench: &Bench) {
    bench.write("templates/a.yaml", CONFIG);
    bench.write(
        "templates/b.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.missing.name }}\n",
    );
    let reason = failed(&bench.apply("{}").await);
    assert!(
        reason.contains("sample/templates/b.yaml:4:") && reason.contains("nil pointer"),
        "{reason}"
    );
    assert!(bench.get("ConfigMap", "config").await.is_none());
}

pub(crate) async fn one_broken_manifest_applies_nothing(bench: &Bench) {
    bench.write("templates/a.yaml", CONFIG);
    bench.write(
        "templates/b.yaml",
        "apiVersion: v1\nkind: ConfigMap\n metadata: {name: x}\n",
    );
    let reason = failed(&bench.apply("{}").await);
    assert!(reason.contains("sample/templates/b.yaml"), "{reason}");
    assert!(bench.get("ConfigMap", "config").await.is_none());
}

pub(crate) async fn an_object_of_somebody_else_stops_the_component(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    bench
        .create(
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bench.namespace.as_str()}}),
        )
        .await;
    bench.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"color": "theirs"}})).await;
    let reason = failed(&bench.apply("{}").await);
    assert!(reason.contains("ConfigMap/config"), "{reason}");
    assert_eq!(
        data(bench, "ConfigMap", "config").await,
        json!({"color": "theirs"})
    );
}

pub(crate) async fn uninstalling_leaves_nothing_behind(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    bench.write("templates/password.yaml", PASSWORD);
    succeeded(&bench.apply("{}").await);
    let removed = bench.uninstall().await;
    succeeded(&removed);
    let mut kinds: Vec<_> = actions(&removed)
        .into_iter()
        .map(|(action, kind)| format!("{action} {kind}"))
        .collect();
    assert_eq!(kinds.last().map(String::as_str), Some("delete Namespace"));
    // Objects of one phase go at the same time.
    kinds.sort();
    assert_eq!(kinds, ["delete ConfigMap", "delete Namespace", "delete Secret"]);
    assert!(
        bench
            .cluster
            .lookup("v1", "Namespace", "", bench.namespace.as_str())
            .await
            .unwrap()
            .is_none()
    );
    // Deleting what is gone is no error.
    succeeded(&bench.uninstall().await);
}

pub(crate) async fn orphaning_leaves_everything_running(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    succeeded(&bench.apply("{}").await);
    succeeded(&bench.orphan().await);
    let config = bench.get("ConfigMap", "config").await.unwrap();
    assert!(
        config["metadata"]["labels"]
            .get("applyset.kubernetes.io/part-of")
            .is_none(),
        "{config}"
    );
    // It is nobody's now, so the next install must not take it.
    assert!(failed(&bench.apply("{}").await).contains("ConfigMap/config"));
}
