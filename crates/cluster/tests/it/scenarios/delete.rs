//! Components and their namespaces going away: a deletion that waits leaves nothing (K10), a namespace goes only when it is
//! empty (K23).

use std::time::Duration;

use evenkeel_cluster::{DeleteOptions, Error, ErrorClass, Event, Owner};
use evenkeel_core::{ClusterName, PlanAction};
use serde_json::json;

use crate::component::Component;
use crate::documents::{config_map, definition, deployment, doc, secret, service, widget};
use crate::env::{Env, WAIT, owner, short};

pub(crate) async fn everything_goes_in_reverse(env: &Env) {
    let group = format!("{}.ex.io", short(&env.name));
    let component = Component::new(env);
    let claim = doc(
        "templates/pvc.yaml",
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
               "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    let documents = [
        deployment("web", 1),
        service("web"),
        secret("login", "k", "v"),
        definition(&group, "Namespaced", false),
        widget(&group, "w", 1),
        claim,
    ];
    component.apply(&documents).await.unwrap();
    let plan = component
        .target
        .plan_deletion(&DeleteOptions::default())
        .await
        .unwrap();
    assert_eq!(plan.count(PlanAction::Delete), 5, "{plan:?}");
    let deletion = component.delete().await.unwrap();
    let order: Vec<&str> = deletion
        .changes
        .iter()
        .map(|change| change.object.kind.as_str())
        .collect();
    assert_eq!(order, ["Widget", "Deployment", "Service", "Secret"]);
    assert!(deletion.complete);
    // Really gone when the call returns, pods included.
    for path in [
        component.path("deployments", "web"),
        component.path("services", "web"),
        component.parent_path(),
    ] {
        assert!(env.get(&path).await.is_none(), "{path}");
    }
    let pods = env.must(&component.collection("pods")).await;
    assert_eq!(pods["items"], json!([]));
    // Data and definitions stay, and so does the namespace that holds them.
    env.must(&component.path("persistentvolumeclaims", "data")).await;
    env.must(&format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"
    ))
    .await;
    let kept: Vec<&str> = deletion
        .kept
        .iter()
        .map(|kept| kept.object.kind.as_str())
        .collect();
    assert_eq!(
        kept,
        ["PersistentVolumeClaim", "CustomResourceDefinition", "Namespace"]
    );
    assert!(
        deletion.kept[2].reason.contains("PersistentVolumeClaim/data"),
        "{:?}",
        deletion.kept
    );
    assert!(
        component.delete().await.unwrap().complete,
        "a second deletion finds nothing to do"
    );

    // With everything asked for, everything goes.
    component.apply(&documents).await.unwrap();
    let all = DeleteOptions {
        all: true,
        timeout: WAIT,
        ..DeleteOptions::default()
    };
    let deletion = component.delete_with(all).await.unwrap();
    assert!(deletion.kept.is_empty(), "{:?}", deletion.kept);
    assert!(env.get(&component.namespace_path()).await.is_none());
    assert!(
        env.get(&format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"
        ))
        .await
        .is_none()
    );
}

pub(crate) async fn a_finalizer_is_named(env: &Env) {
    let component = Component::new(env);
    component
        .run(&[config_map("held", "k", "1"), deployment("web", 1)])
        .await
        .unwrap();
    env.change(
        &component.path("configmaps", "held"),
        &json!({"metadata": {"finalizers": ["ex.io/hold"]}}),
    )
    .await;
    let options = DeleteOptions {
        timeout: Duration::from_secs(8),
        ..DeleteOptions::default()
    };
    let error = component.delete_with(options).await.unwrap_err();
    let Error::Stuck(stuck) = &error else {
        panic!("{error}")
    };
    assert_eq!(stuck.len(), 1);
    assert!(
        error.to_string().contains("ConfigMap/held") && error.to_string().contains("ex.io/hold"),
        "{error}"
    );
    assert_eq!(error.class(), ErrorClass::NotReady);
    env.must(&component.parent_path()).await;
    env.change(
        &component.path("configmaps", "held"),
        &json!({"metadata": {"finalizers": null}}),
    )
    .await;
    let deletion = component.delete().await.unwrap();
    assert!(deletion.complete);
    assert!(
        env.get(&component.namespace_path()).await.is_none(),
        "made by us, and empty"
    );
    let gone = component
        .events
        .lock()
        .unwrap()
        .iter()
        .filter(|event| matches!(event, Event::Gone(_)))
        .count();
    assert!(gone >= 2, "{gone}");
}

pub(crate) async fn a_full_namespace_stays(env: &Env) {
    let component = Component::new(env);
    component.run(&[config_map("a", "k", "1")]).await.unwrap();
    env.make(
        &component.collection("secrets"),
        &secret("theirs", "k", "v").object,
    )
    .await;
    let deletion = component.delete().await.unwrap();
    assert!(deletion.complete);
    assert!(
        deletion.kept[0].reason.contains("not empty: Secret/theirs"),
        "{:?}",
        deletion.kept
    );
    env.must(&component.path("secrets", "theirs")).await;
    assert!(env.get(&component.path("configmaps", "a")).await.is_none());
}

pub(crate) async fn an_older_namespace_stays(env: &Env) {
    let component = Component::new(env);
    component.make_namespace().await;
    component.run(&[config_map("a", "k", "1")]).await.unwrap();
    let namespace = env.must(&component.namespace_path()).await;
    assert!(
        namespace["metadata"]["labels"]
            .get("applyset.kubernetes.io/part-of")
            .is_none(),
        "not ours to mark"
    );
    assert!(component.delete().await.unwrap().complete);
    env.must(&component.namespace_path()).await;
}

/// DEL-07: a namespace that two components live in stays as long as one of them does.
pub(crate) async fn a_shared_namespace_outlives_one_component(env: &Env) {
    let a = Component::named(env, "a");
    let mut b = Component::named(env, "b");
    b.namespace = a.namespace.clone();
    a.run(&[config_map("a", "k", "1")]).await.unwrap();
    b.run(&[config_map("b", "k", "1")]).await.unwrap();
    // The one that made it goes first.
    assert!(a.delete().await.unwrap().complete);
    env.must(&a.namespace_path()).await;
    env.must(&b.path("configmaps", "b")).await;
    assert!(b.delete().await.unwrap().complete);
    assert!(env.get(&a.namespace_path()).await.is_none());
}

pub(crate) async fn orphans_stay(env: &Env) {
    let component = Component::new(env);
    let documents = [deployment("web", 1), config_map("a", "k", "1")];
    component.run(&documents).await.unwrap();
    let uid = env.must(&component.path("deployments", "web")).await["metadata"]["uid"].clone();
    let outcome = component
        .target
        .orphan(&component.attempt(), &component.observer())
        .await
        .unwrap();
    assert!(outcome.complete);
    let live = env.must(&component.path("deployments", "web")).await;
    assert_eq!(live["metadata"]["uid"], uid);
    assert!(
        live["metadata"]["labels"]
            .get("applyset.kubernetes.io/part-of")
            .is_none()
    );
    assert!(env.get(&component.parent_path()).await.is_none());
    let namespace = env.must(&component.namespace_path()).await;
    assert!(
        namespace["metadata"]["labels"]
            .get("applyset.kubernetes.io/part-of")
            .is_none()
    );
    assert!(
        matches!(component.run(&documents).await, Err(Error::Foreign(_))),
        "it is nobody's now"
    );
}

/// On a cluster of its own name, so that no other scenario's component is in the way.
pub(crate) async fn the_cluster_is_left_clean(env: &Env) {
    let component = Component::new(env);
    component.run(&[config_map("a", "k", "1")]).await.unwrap();
    // Other components are there: nothing happens.
    env.cluster
        .leave(&owner(), &component.attempt(), WAIT)
        .await
        .unwrap();
    env.must("/api/v1/namespaces/evenkeel-system/secrets/evenkeel-cluster")
        .await;
    let stranger = Owner::new("stranger", ClusterName::new("c9").unwrap()).unwrap();
    assert!(matches!(
        env.cluster.leave(&stranger, &component.attempt(), WAIT).await,
        Err(Error::OtherOwner { .. })
    ));
    component.delete().await.unwrap();
}

/// K10: a deletion that does not wait returns while objects are still going, and a later one finishes the work.
pub(crate) async fn a_deletion_need_not_wait(env: &Env) {
    let component = Component::new(env);
    component
        .run(&[config_map("held", "k", "1"), config_map("free", "k", "1")])
        .await
        .unwrap();
    let held = component.path("configmaps", "held");
    env.change(&held, &json!({"metadata": {"finalizers": ["ex.io/hold"]}}))
        .await;
    let options = DeleteOptions {
        blocking: false,
        ..DeleteOptions::default()
    };
    let deletion = component.delete_with(options).await.unwrap();
    assert!(!deletion.complete);
    let live = env.must(&held).await;
    assert!(live["metadata"]["deletionTimestamp"].is_string(), "{live}");
    env.must(&component.parent_path()).await;
    env.must(&component.namespace_path()).await;
    env.change(&held, &json!({"metadata": {"finalizers": null}}))
        .await;
    env.until_gone(&held).await;
    let deletion = component.delete().await.unwrap();
    assert!(deletion.complete);
    assert!(env.get(&component.namespace_path()).await.is_none());
    assert!(env.get(&component.parent_path()).await.is_none());
}

/// Its parent was removed by hand: what carries its label is found over all kinds, and goes.
pub(crate) async fn a_component_without_its_parent_is_found(env: &Env) {
    let group = format!("{}.ex.io", short(&env.name));
    let component = Component::new(env);
    let documents = [
        deployment("web", 1),
        config_map("a", "k", "1"),
        definition(&group, "Cluster", false),
        widget(&group, "w", 1),
    ];
    component.run(&documents).await.unwrap();
    // A copy of our label is no object of ours here, either.
    let mut copy = config_map("copy", "k", "1").object;
    copy["metadata"]["labels"] = json!({"applyset.kubernetes.io/part-of": component.target.applyset_id()});
    env.make(&component.collection("configmaps"), &copy).await;
    env.remove(&component.parent_path()).await;
    let plan = component
        .target
        .plan_deletion(&DeleteOptions::default())
        .await
        .unwrap();
    // Three objects and the namespace.
    assert_eq!(plan.count(PlanAction::Delete), 4, "{plan:?}");
    let deletion = component.delete().await.unwrap();
    assert!(deletion.complete);
    let mut gone: Vec<&str> = deletion
        .changes
        .iter()
        .map(|change| change.object.kind.as_str())
        .collect();
    gone.sort_unstable();
    assert_eq!(gone, ["ConfigMap", "Deployment", "Widget"]);
    for path in [
        component.path("deployments", "web"),
        component.path("configmaps", "a"),
        format!("/apis/{group}/v1/widgets/w"),
        component.parent_path(),
    ] {
        assert!(env.get(&path).await.is_none(), "{path}");
    }
    env.must(&component.path("configmaps", "copy")).await;
    // Deleted anew, nothing is found and nothing made.
    let before = env.cluster.requests();
    assert!(component.delete().await.unwrap().complete);
    if !env.is_real() {
        assert_eq!(env.cluster.requests().since(&before).writes(), 0);
    }
    // The same when it is only let go.
    component.run(&documents[1..2]).await.unwrap();
    env.remove(&component.parent_path()).await;
    let attempt = component.attempt();
    let let_go = component
        .target
        .orphan(&attempt, &component.observer())
        .await
        .unwrap();
    assert!(let_go.complete);
    let live = env.must(&component.path("configmaps", "a")).await;
    let labels = live["metadata"].get("labels").cloned().unwrap_or_default();
    assert!(labels.get("applyset.kubernetes.io/part-of").is_none(), "{live}");
    assert!(env.get(&component.parent_path()).await.is_none());
}

/// Whoever would remove the finalizer of a custom resource may have gone with the component. Other kinds never lose one.
pub(crate) async fn finalizers_of_own_kinds_go_by_policy(env: &Env) {
    let group = format!("{}.ex.io", short(&env.name));
    let component = Component::new(env);
    let documents = [
        definition(&group, "Namespaced", false),
        widget(&group, "w", 1),
        config_map("held", "k", "1"),
    ];
    component.run(&documents).await.unwrap();
    let widget_path = format!("/apis/{group}/v1/namespaces/{}/widgets/w", component.namespace);
    let map_path = component.path("configmaps", "held");
    for path in [&widget_path, &map_path] {
        env.change(path, &json!({"metadata": {"finalizers": ["ex.io/hold"]}}))
            .await;
    }
    let options = DeleteOptions {
        timeout: Duration::from_secs(4),
        ..DeleteOptions::default()
    };
    let error = component.delete_with(options).await.unwrap_err();
    assert!(error.to_string().contains("Widget"), "{error}");
    env.must(&widget_path).await;
    let options = DeleteOptions {
        strip_finalizers: true,
        ..options
    };
    let error = component.delete_with(options).await.unwrap_err();
    let Error::Stuck(stuck) = &error else {
        panic!("{error}")
    };
    assert_eq!(stuck.len(), 1, "{error}");
    assert_eq!(stuck[0].object.kind, "ConfigMap", "{error}");
    assert!(env.get(&widget_path).await.is_none());
    let told = component.events.lock().unwrap().iter().any(
        |event| matches!(event, Event::Waiting(text) if text.contains("Widget") && text.contains("ex.io/hold")),
    );
    assert!(told, "what was taken off is told");
    env.change(&map_path, &json!({"metadata": {"finalizers": null}}))
        .await;
    env.until_gone(&map_path).await;
    assert!(component.delete().await.unwrap().complete);
}
