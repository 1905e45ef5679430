//! What goes when it is no longer rendered, and what stays all the same.

use evenkeel_cluster::Verdict;
use evenkeel_core::PlanAction;
use serde_json::json;

use crate::component::Component;
use crate::documents::{config_map, definition, deployment, doc, service, widget};
use crate::env::{Env, short};

pub(crate) async fn what_is_no_longer_rendered_goes(env: &Env) {
    let mut component = Component::new(env);
    let documents = [deployment("web", 1), service("web"), config_map("a", "k", "1")];
    component.run(&documents).await.unwrap();
    // Somebody's own object in the same namespace is not ours to delete.
    env.make(
        &component.collection("configmaps"),
        &config_map("theirs", "k", "1").object,
    )
    .await;
    let pass = component.run(&[config_map("a", "k", "1")]).await.unwrap();
    assert_eq!(
        pass.done(),
        ["delete Deployment/web", "delete Service/web"],
        "in reverse order"
    );
    env.until_gone(&component.path("deployments", "web")).await;
    env.until_gone(&component.path("services", "web")).await;
    env.must(&component.path("configmaps", "theirs")).await;
    let parent = env.must(&component.parent_path()).await;
    let kinds = &parent["metadata"]["annotations"]["applyset.kubernetes.io/contains-group-kinds"];
    assert_eq!(kinds, "ConfigMap", "kinds that are no longer used are taken out");
    assert!(
        component
            .run(&[config_map("a", "k", "1")])
            .await
            .unwrap()
            .changes
            .is_empty()
    );
    // Even the last one, once somebody has agreed.
    component.agreed = true;
    assert_eq!(component.run(&[]).await.unwrap().done(), ["delete ConfigMap/a"]);
}

pub(crate) async fn volumes_definitions_and_namespaces_stay(env: &Env) {
    let group = format!("{}.ex.io", short(&env.name));
    let component = Component::new(env);
    let extra = format!("{}-extra", component.namespace);
    let namespace = doc(
        "templates/ns.yaml",
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": extra}}),
    );
    let claim = doc(
        "templates/pvc.yaml",
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
               "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    let documents = [
        namespace,
        claim.clone(),
        definition(&group, "Namespaced", false),
        widget(&group, "w", 1),
        config_map("a", "k", "1"),
    ];
    component.apply(&documents).await.unwrap();
    let fewer = [config_map("a", "k", "1")];
    let pass = component.apply(&fewer).await.unwrap();
    assert_eq!(pass.done(), ["delete Widget/w"]);
    assert_eq!(pass.plan.skipped.len(), 1, "{:?}", pass.plan.skipped);
    env.must(&component.path("persistentvolumeclaims", "data")).await;
    env.must(&format!("/api/v1/namespaces/{extra}")).await;
    env.must(&format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"
    ))
    .await;
    let pass = component.apply(&fewer).await.unwrap();
    assert!(pass.changes.is_empty(), "{:?}", pass.done());
    let verdict = component.check(&fewer).await;
    assert!(
        matches!(verdict, Verdict::Unchanged),
        "what is kept is no difference: {verdict:?}"
    );
    // Rendered again, it is ours without being told to adopt.
    let pass = component
        .apply(&[config_map("a", "k", "1"), claim])
        .await
        .unwrap();
    assert_eq!(pass.planned(PlanAction::Create), Vec::<String>::new());
}

pub(crate) async fn kept_objects_stay(env: &Env) {
    let component = Component::new(env);
    let mut kept = config_map("kept", "k", "1");
    kept.object["metadata"]["annotations"] = json!({"helm.sh/resource-policy": "keep"});
    component.run(&[kept, config_map("a", "k", "1")]).await.unwrap();
    let pass = component.run(&[config_map("a", "k", "1")]).await.unwrap();
    assert!(pass.changes.is_empty());
    assert!(
        pass.plan.skipped[0].reason.contains("resource-policy"),
        "{:?}",
        pass.plan.skipped
    );
    let deletion = component.delete().await.unwrap();
    assert!(deletion.complete);
    assert_eq!(
        deletion
            .kept
            .iter()
            .filter(|kept| kept.object.name == "kept")
            .count(),
        1,
        "{:?}",
        deletion.kept
    );
    env.must(&component.path("configmaps", "kept")).await;
    env.until_gone(&component.path("configmaps", "a")).await;
}

/// Controllers copy labels onto what they make.
pub(crate) async fn copies_of_our_label_are_not_ours(env: &Env) {
    let component = Component::new(env);
    component.run(&[config_map("a", "k", "1")]).await.unwrap();
    let mut copy = config_map("copy", "k", "1").object;
    copy["metadata"]["labels"] = json!({"applyset.kubernetes.io/part-of": component.target.applyset_id()});
    env.make(&component.collection("configmaps"), &copy).await;
    let pass = component.run(&[config_map("a", "k", "1")]).await.unwrap();
    assert!(pass.plan.is_noop(), "{:?}", pass.plan);
    assert!(matches!(
        component.check(&[config_map("a", "k", "1")]).await,
        Verdict::Unchanged
    ));
    env.must(&component.path("configmaps", "copy")).await;
}

/// DEL-04: what is recorded of a kind that is no longer served is gone.
pub(crate) async fn a_kind_that_is_gone_is_no_error(env: &Env) {
    let group = format!("{}.ex.io", short(&env.name));
    let component = Component::new(env);
    let documents = [
        definition(&group, "Namespaced", false),
        widget(&group, "w", 1),
        config_map("a", "k", "1"),
    ];
    component.run(&documents).await.unwrap();
    let crd = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}");
    env.remove(&crd).await;
    env.until_gone(&crd).await;
    let verdict = component.check(&documents).await;
    assert!(
        matches!(&verdict, Verdict::Differs(found) if found.len() == 2),
        "{verdict:?}"
    );
    let fewer = [config_map("a", "k", "1")];
    component.run(&fewer).await.unwrap();
    assert!(matches!(component.check(&fewer).await, Verdict::Unchanged));
    // And it comes back whole.
    let pass = component.run(&documents).await.unwrap();
    assert_eq!(pass.changes.len(), 2, "{:?}", pass.done());
}
