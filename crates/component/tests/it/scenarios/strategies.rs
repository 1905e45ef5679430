//! K16, K35, K41: each strategy does what the table in `evenkeel_core::Strategy` says and nothing that another one does;
//! definitions of all components go first in one operation; a new proxy restarts what runs an older one (K9).

use evenkeel_cluster::RESTARTED_FOR_PROXY;
use evenkeel_component::{End, Outcome};
use evenkeel_core::{HookEvent, InjectedProxies, PlanAction, Prunes, Strategy};
use evenkeel_steps::Mode;
use serde_json::{Value, json};

use super::{CONFIG, succeeded};
use crate::bench::Bench;

/// A ConfigMap that is a hook of one moment.
fn hook(event: HookEvent) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {event}, annotations: {{helm.sh/hook: {event}}}}}\ndata: {{a: b}}\n"
    )
}

/// What an operation did, but for namespaces.
fn done(outcome: &Outcome) -> Vec<(PlanAction, &str)> {
    let changes = outcome.changes.iter();
    let changes = changes.filter(|change| change.object.kind != "Namespace");
    changes
        .map(|change| (change.action, change.object.name.as_str()))
        .collect()
}

/// Runs the operation for `strategy` and compares it with the table: which hooks ran around what.
fn check(strategy: Strategy, outcome: &Outcome, between: &[(PlanAction, &str)]) {
    succeeded(outcome);
    let steps = strategy.steps();
    let (before, after) = steps.hooks.unzip();
    let made = |event: Option<HookEvent>| event.map(|event| (PlanAction::Create, event.as_str()));
    let expected: Vec<_> = made(before)
        .into_iter()
        .chain(between.iter().copied())
        .chain(made(after))
        .collect();
    let mut done = done(outcome);
    // Objects of one phase are applied at the same time.
    let around = (
        usize::from(before.is_some()),
        done.len() - usize::from(after.is_some()),
    );
    if let Some(same_phase) = done.get_mut(around.0..around.1) {
        same_phase.sort_by_key(|(action, name)| (*action == PlanAction::Delete, *name));
    }
    assert_eq!(done, expected, "{strategy}: {outcome:#?}");
}

pub(crate) async fn each_strategy_does_what_its_table_says(bench: &Bench) {
    for strategy in Strategy::ALL {
        if let Some((before, after)) = strategy.steps().hooks {
            for event in [before, after] {
                bench.write(&format!("templates/{event}.yaml"), &hook(event));
            }
        }
    }
    bench.write("templates/config.yaml", CONFIG);
    let more = CONFIG.replace("name: config", "name: more");
    bench.write("templates/more.yaml", &more);
    let installed = bench.apply("{}").await;
    check(
        Strategy::Install,
        &installed,
        &[(PlanAction::Create, "config"), (PlanAction::Create, "more")],
    );

    bench.remove("templates/more.yaml");
    let upgraded = bench.apply("color: blue").await;
    assert_eq!(Strategy::Upgrade.steps().prunes, Prunes::NoLongerRendered);
    check(
        Strategy::Upgrade,
        &upgraded,
        &[(PlanAction::Update, "config"), (PlanAction::Delete, "more")],
    );

    bench
        .send("DELETE", "/api/v1 configmaps/config", &Value::Null)
        .await;
    let repaired = bench.apply("color: blue").await;
    check(Strategy::Repair, &repaired, &[(PlanAction::Create, "config")]);

    let deleted = bench.uninstall().await;
    assert_eq!(Strategy::Delete.steps().prunes, Prunes::Everything);
    succeeded(&deleted);
    let done = done(&deleted);
    let (before, after) = Strategy::Delete.steps().hooks.unwrap();
    let place = |name: &str, action: PlanAction| done.iter().position(|one| *one == (action, name));
    let gone = place("config", PlanAction::Delete);
    assert!(gone.is_some(), "{done:?}");
    assert!(place(before.as_str(), PlanAction::Create) < gone, "{done:?}");
    assert!(place(after.as_str(), PlanAction::Create) > gone, "{done:?}");
}

/// A definition of kind Widget in a group of the scenario's own.
fn definition(bench: &Bench) -> String {
    let group = group(bench);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
    .to_string()
}

fn group(bench: &Bench) -> String {
    format!("{}.example.com", bench.namespace)
}

fn widget(bench: &Bench) -> String {
    let api_version = format!("{}/v1", group(bench));
    json!({"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}})
        .to_string()
}

async fn defined(bench: &Bench) -> Option<Value> {
    let name = format!("widgets.{}", group(bench));
    bench
        .cluster
        .lookup("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", &name)
        .await
        .unwrap()
}

pub(crate) async fn a_deletion_takes_definitions_only_when_all_is_asked(bench: &Bench) {
    bench.write("crds/widgets.yaml", &definition(bench));
    bench.write("templates/widget.yaml", &widget(bench));
    succeeded(&bench.apply("{}").await);
    succeeded(&bench.uninstall().await);
    assert!(
        defined(bench).await.is_some(),
        "it would take the objects of everybody"
    );

    succeeded(&bench.apply("{}").await);
    succeeded(&bench.uninstall_all().await);
    assert!(defined(bench).await.is_none());
}

fn chart(files: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("Chart.yaml"),
        "apiVersion: v2\nname: other\nversion: 1.0.0\n",
    )
    .unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

pub(crate) async fn definitions_of_all_go_first_and_once(bench: &Bench) {
    let kinds = chart(&[("crds/widgets.yaml", definition(bench))]);
    let broken = chart(&[("templates/x.yaml", "a: {{ .Values.missing.name }}".to_owned())]);
    bench.write("templates/widget.yaml", &widget(bench));
    // Nobody has brought the kind yet: that is waited for, and no failure.
    let missing = bench.apply("{}").await;
    assert!(
        matches!(&missing.end, End::Missing { reason } if reason.contains("Widget")),
        "{missing:#?}"
    );
    let planned = bench.plan("{}").await;
    assert!(matches!(planned.end, End::Failed { .. }), "{planned:#?}");

    let others = [("kinds", kinds.path()), ("broken", broken.path())];
    let first = bench.define(&others).await;
    succeeded(&first);
    assert_eq!(done(&first).len(), 1, "{first:#?}");
    assert!(defined(bench).await.is_some());
    let told = first.lines.iter().map(|line| line.text.as_str());
    let told: Vec<_> = told.filter(|text| text.contains("left to itself")).collect();
    assert!(told.len() == 1 && told[0].contains("broken"), "{first:#?}");

    let before = bench.cluster.requests();
    let again = bench.define(&others).await;
    succeeded(&again);
    assert_eq!(done(&again), []);
    assert_eq!(bench.cluster.requests().since(&before).writes(), 0);

    succeeded(&bench.apply("{}").await);
}

const INJECTOR: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: istio-sidecar-injector}
data:
  values: '{"global": {"hub": "example.com", "tag": "{{ .Values.tag }}", "proxy": {"image": "proxyv2"}}}'
"#;
const MESHED: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: meshed}
spec:
  selector: {matchLabels: {app: meshed}}
  template:
    metadata: {labels: {app: meshed}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: web, image: example.com/web:1}
      - {name: istio-proxy, image: 'example.com/proxyv2:1'}
";

/// For which proxy the workload was restarted last.
async fn restarted_for(bench: &Bench) -> Value {
    let meshed = bench.find("apps/v1", "Deployment", "meshed").await.unwrap();
    meshed["spec"]["template"]["metadata"]["annotations"][RESTARTED_FOR_PROXY].clone()
}

pub(crate) async fn a_new_proxy_restarts_what_runs_the_old_one(bench: &Bench) {
    let injected = || InjectedProxies {
        container: "istio-proxy".to_owned(),
        image: None,
    };
    bench.write("templates/injector.yaml", INJECTOR);
    bench.write("templates/meshed.yaml", MESHED);
    succeeded(&bench.apply_injecting("tag: '1'", injected(), Mode::Live).await);
    assert_eq!(
        restarted_for(bench).await,
        Value::Null,
        "its proxy is the one that is injected"
    );

    let planned = bench.apply_injecting("tag: '2'", injected(), Mode::DryRun).await;
    assert_eq!(planned.end, End::Planned, "{planned:#?}");
    assert_eq!(restarted_for(bench).await, Value::Null);
    succeeded(&bench.apply("tag: '1'").await);

    let upgraded = bench.apply_injecting("tag: '2'", injected(), Mode::Live).await;
    succeeded(&upgraded);
    assert_eq!(restarted_for(bench).await, json!("example.com/proxyv2:2"));

    // A repair restarts nothing, and what was restarted is no drift.
    let before = bench.cluster.requests();
    let again = bench.apply_injecting("tag: '2'", injected(), Mode::Live).await;
    succeeded(&again);
    assert_eq!(done(&again), []);
    assert_eq!(bench.cluster.requests().since(&before).writes(), 0);

    // Nor is anything restarted twice for one proxy, whatever it runs afterwards.
    let other = bench
        .apply_injecting("tag: '2'\ncolor: blue", injected(), Mode::Live)
        .await;
    succeeded(&other);
    assert_eq!(restarted_for(bench).await, json!("example.com/proxyv2:2"));
}
