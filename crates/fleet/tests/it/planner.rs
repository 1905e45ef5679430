//! K41, K44: the definitions of all components go first, then prerequisites, then the graph; what reconcilers declare counts
//! like `dependsOn`; what cannot be put in order is refused, with the path. K7: a dependency that is missing at the cluster is
//! waited for, and costs no attempt.

use evenkeel_api::ClusterStatus;
use evenkeel_component::Declarations;
use evenkeel_core::{ClusterState, DeleteMode, OperationStateKind, ReconciliationState};
use evenkeel_fleet::Settings;
use serde_json::{Value, json};

use crate::world::{World, component, operations, reason, settings, state, with};

/// A kind without conditions: its objects are ready as soon as they are there.
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

const WIDGET: &str = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: {{ .Release.Name }}}\n";

fn defined(world: &World) -> bool {
    let cluster = world.cluster("blue");
    let found = cluster.get(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        "widgets.example.org",
    );
    found.unwrap().is_some()
}

/// Charts `kinds`, which defines the kind, `user`, which has one of it and depends on nobody, and `map`.
fn charts(world: &World) {
    world.map_chart("map");
    world.map_chart("kinds");
    world.write("kinds", "crds/widgets.yaml", &definition().to_string());
    world.write("user", "templates/widget.yaml", WIDGET);
}

#[tokio::test]
async fn definitions_go_first_then_istio_then_the_graph() {
    let world = World::new().await;
    charts(&world);
    let components = json!([
        component("app", "user"),
        component("kinds", "kinds"),
        component("istio", "map"),
        with(component("web", "map"), json!({"dependsOn": ["app"]})),
    ]);
    world.put("blue", components).await;
    let status = world.ready("blue").await;
    let shown: Vec<_> = status.components.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        shown.len(),
        4,
        "the definitions are nobody's component: {shown:?}"
    );
    let run = world.newest_run("blue").await;
    assert_eq!(
        operations(&run),
        [
            "install evenkeel-crds succeeded",
            "install istio succeeded",
            "install app succeeded",
            "install kinds succeeded",
            "install web succeeded",
        ]
    );
    let [crds, istio, app, kinds, web] = &run.operations[..] else {
        panic!("five operations")
    };
    assert!(crds.finished <= istio.started, "{run:?}");
    assert!(
        istio.finished <= app.started && istio.finished <= kinds.started,
        "{run:?}"
    );
    assert!(app.finished <= web.started, "{run:?}");
    assert_eq!(app.attempts, 1, "its kind was there from the start: {run:?}");

    // What was defined is expected, so nothing is to be done, and a change of one component needs no definitions.
    world
        .fleet()
        .reconcile(&crate::world::name("blue"))
        .await
        .unwrap();
    world.ready("blue").await;
    assert_eq!(world.runs("blue").await, 1);

    world.delete("blue", DeleteMode::Uninstall).await;
    world.gone("blue").await;
    assert!(
        defined(&world),
        "a deletion leaves what would take others' objects along"
    );
}

#[tokio::test]
async fn a_deletion_of_everything_takes_the_definitions_last() {
    let world = World::new().await;
    charts(&world);
    let components = json!([component("app", "user"), component("kinds", "kinds")]);
    world.put("blue", components).await;
    world.ready("blue").await;
    assert!(defined(&world));
    world.delete("blue", DeleteMode::UninstallAll).await;
    world.gone("blue").await;
    assert!(!defined(&world));
    let left = world.cluster("blue").get("v1", "Namespace", "", "apps").unwrap();
    assert!(left.is_none(), "{left:?}");
}

#[tokio::test]
async fn a_missing_dependency_is_waited_for_and_costs_no_attempt() {
    let world = World::new().await;
    charts(&world);
    world.put("blue", json!([component("app", "user")])).await;
    let waits = |status: &ClusterStatus| state(status, "app") == Some(OperationStateKind::Waiting);
    let status = world.until("blue", "waiting", waits).await;
    let told = reason(&status, "app");
    assert!(
        told.contains("a dependency that is missing") && told.contains("Widget"),
        "{told}"
    );
    let told = |status: &ClusterStatus| {
        status.state == ClusterState::Reconciling
            && status.reason.as_deref().is_some_and(|reason| {
                reason.contains("component app: waits for a dependency that is missing")
            })
    };
    world.until("blue", "what it waits for", told).await;

    // It comes from elsewhere.
    world.cluster("blue").create("test", definition()).unwrap();
    world.ready("blue").await;
    let run = world.newest_run("blue").await;
    assert_eq!(run.summary.state, ReconciliationState::Succeeded);
    assert_eq!(operations(&run), ["install app succeeded"]);
    assert_eq!(run.operations[0].attempts, 1, "{run:?}");
    assert_eq!(world.runs("blue").await, 1);
}

fn declaring() -> Settings {
    let declared = json!([{"component": "kiali", "versions": ">=1.0.0", "dependsOn": ["mesh"]}]);
    let declared: Vec<_> = serde_json::from_value(declared).unwrap();
    Settings {
        declarations: Declarations::new(declared).unwrap(),
        ..settings()
    }
}

#[tokio::test]
async fn what_is_declared_counts_like_depends_on() {
    let world = World::with(declaring()).await;
    world.map_chart("map");
    world
        .put(
            "blue",
            json!([component("kiali", "map"), component("mesh", "map")]),
        )
        .await;
    world.ready("blue").await;
    let run = world.newest_run("blue").await;
    assert_eq!(
        operations(&run),
        ["install mesh succeeded", "install kiali succeeded"]
    );
    let [mesh, kiali] = &run.operations[..] else {
        panic!("two operations")
    };
    assert!(mesh.finished <= kiali.started, "{run:?}");
}

#[tokio::test]
async fn what_cannot_be_put_in_order_is_refused_with_the_path() {
    let world = World::with(declaring()).await;
    world.map_chart("map");
    let kubeconfig = world.cluster("blue").kubeconfig().to_owned();
    let put = async |components: Value| {
        let refused = world.put_with("blue", components, &kubeconfig).await;
        refused.expect_err("it is refused").to_string()
    };
    let text = put(json!([component("kiali", "map")])).await;
    assert!(
        text.contains("components[0]: component \"mesh\" is not listed")
            && text.contains("the reconciler of kiali, for versions >=1.0.0, depends on it"),
        "{text}"
    );
    let mesh = with(component("mesh", "map"), json!({"dependsOn": ["kiali"]}));
    let text = put(json!([component("kiali", "map"), mesh])).await;
    assert!(text.contains("cycle kiali → mesh → kiali"), "{text}");
    let text = put(json!([component("evenkeel-crds", "map")])).await;
    assert!(
        text.contains("components[0].name: \"evenkeel-crds\" is reserved"),
        "{text}"
    );
}
