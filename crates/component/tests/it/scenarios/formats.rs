//! Components that are no charts.

use evenkeel_core::PlanAction;
use serde_json::json;

use super::{DEPLOYMENT, actions, data, failed, succeeded};
use crate::bench::Bench;

fn map(name: &str, color: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{color: {color}}}\n")
}

pub(crate) async fn plain_manifests_are_applied_kept_and_pruned(bench: &Bench) {
    bench.remove("Chart.yaml");
    bench.write("web/all.yaml", &format!("{DEPLOYMENT}---\n{}", map("one", "red")));
    bench.write(
        "web/more.json",
        &json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}, "data": {"color": "blue"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "three"}},
        ]})
        .to_string(),
    );
    bench.write("README.md", "# not a manifest: {{");
    bench.write(".hidden.yaml", "neither: [");
    let outcome = bench.apply_plain().await;
    succeeded(&outcome);
    assert_eq!(data(bench, "ConfigMap", "one").await, json!({"color": "red"}));
    assert_eq!(data(bench, "ConfigMap", "two").await, json!({"color": "blue"}));
    let again = bench.apply_plain().await;
    succeeded(&again);
    assert_eq!(again.changes, []);

    bench.remove("web/more.json");
    bench.write(
        "web/all.yaml",
        &format!("{DEPLOYMENT}---\n{}", map("one", "green")),
    );
    let changed = bench.apply_plain().await;
    succeeded(&changed);
    assert_eq!(data(bench, "ConfigMap", "one").await, json!({"color": "green"}));
    assert_eq!(bench.get("ConfigMap", "two").await, None);
    let deleted = actions(&changed);
    assert_eq!(
        deleted
            .iter()
            .filter(|(action, _)| *action == PlanAction::Delete)
            .count(),
        2,
        "{deleted:?}"
    );
    succeeded(&bench.uninstall().await);
    assert_eq!(bench.get("ConfigMap", "one").await, None);
}

pub(crate) async fn a_broken_manifest_says_where_and_applies_nothing(bench: &Bench) {
    bench.remove("Chart.yaml");
    bench.write("a.yaml", &map("one", "red"));
    bench.write(
        "sub/b.yaml",
        &format!("{}---\nkind: ConfigMap\n", map("two", "red")),
    );
    let reason = failed(&bench.apply_plain().await);
    assert!(
        reason
            .ends_with("YAML parse error on sub/b.yaml: document 2, line 5: the document has no apiVersion"),
        "{reason}"
    );
    assert_eq!(bench.get("ConfigMap", "one").await, None);
}

pub(crate) async fn a_kustomization_is_built_kept_and_pruned(bench: &Bench) {
    bench.remove("Chart.yaml");
    bench.write(
        "kustomization.yaml",
        "resources: [base]\n\
         namePrefix: prod-\n\
         replicas: [{name: web, count: 1}]\n\
         configMapGenerator: [{name: settings, literals: [color=red]}]\n\
         patches:\n\
         - target: {kind: Deployment}\n  \
           patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {\"team\": \"shop\"}}]'\n",
    );
    bench.write("base/kustomization.yaml", "resources: [web.yaml]\n");
    bench.write("base/web.yaml", DEPLOYMENT);
    let outcome = bench.apply_plain().await;
    succeeded(&outcome);
    let created = |outcome: &evenkeel_component::Outcome| {
        let changes = outcome.changes.iter();
        changes
            .filter(|change| change.object.kind == "ConfigMap" && change.action == PlanAction::Create)
            .map(|change| change.object.name.clone())
            .collect::<Vec<_>>()
    };
    let [first] = &created(&outcome)[..] else {
        panic!("{outcome:#?}")
    };
    assert!(first.starts_with("prod-settings-"), "{first}");
    assert_eq!(data(bench, "ConfigMap", first).await, json!({"color": "red"}));
    let again = bench.apply_plain().await;
    succeeded(&again);
    assert_eq!(again.changes, []);
    assert_eq!(again.revision, outcome.revision);

    bench.write(
        "kustomization.yaml",
        "resources: [base]\nnamePrefix: prod-\nconfigMapGenerator: [{name: settings, literals: [color=blue]}]\n",
    );
    let changed = bench.apply_plain().await;
    succeeded(&changed);
    assert!(changed.revision > outcome.revision);
    let [second] = &created(&changed)[..] else {
        panic!("{changed:#?}")
    };
    assert_eq!(data(bench, "ConfigMap", second).await, json!({"color": "blue"}));
    assert_eq!(
        bench.get("ConfigMap", first).await,
        None,
        "the old generation is pruned"
    );
}

pub(crate) async fn values_for_what_takes_none_are_refused(bench: &Bench) {
    bench.remove("Chart.yaml");
    bench.write("a.yaml", &map("one", "red"));
    let reason = failed(&bench.apply("color: blue").await);
    assert!(
        reason.contains("is made from manifests, which takes no values"),
        "{reason}"
    );
    bench.write("kustomization.yaml", "resources: [a.yaml]\n");
    let reason = failed(&bench.apply("color: blue").await);
    assert!(
        reason.contains("is made from kustomization, which takes no values"),
        "{reason}"
    );
    assert_eq!(bench.get("ConfigMap", "one").await, None);
}
