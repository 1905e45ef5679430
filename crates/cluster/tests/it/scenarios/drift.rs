//! What others do to our objects, seen and healed.

use evenkeel_cluster::{Difference, Event, ManifestObject, Verdict};
use evenkeel_core::PlanAction;
use serde_json::json;

use super::apply::scale;
use crate::component::Component;
use crate::documents::{config_map, deployment, job};
use crate::env::Env;

fn reason(pass: &crate::component::Pass, name: &str) -> String {
    pass.plan
        .changes
        .iter()
        .find(|change| change.object.name == name)
        .unwrap()
        .reason
        .clone()
}

pub(crate) async fn a_changed_field_is_healed(env: &Env) {
    let component = Component::new(env);
    let documents = [deployment("web", 1), config_map("a", "password", "hunter2")];
    component.run(&documents).await.unwrap();
    let image =
        json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "evil:1"}]);
    let (status, answer) = env
        .send(
            "PATCH",
            &component.path("deployments", "web"),
            "application/json-patch+json",
            Some(&image),
        )
        .await;
    assert_eq!(status, 200, "{answer}");
    env.change(
        &component.path("configmaps", "a"),
        &json!({"data": {"password": "changed"}}),
    )
    .await;
    assert!(
        matches!(component.check(&documents).await, Verdict::Differs(differences) if differences.len() == 2)
    );
    let pass = component.run(&documents).await.unwrap();
    assert_eq!(pass.done(), ["update ConfigMap/a", "update Deployment/web"]);
    assert!(
        reason(&pass, "web").contains("spec.template.spec.containers[main].image"),
        "{}",
        reason(&pass, "web")
    );
    assert_eq!(reason(&pass, "a"), "changed by somebody else: data.password");
    let live = env.must(&component.path("deployments", "web")).await;
    assert_eq!(
        live["spec"]["template"]["spec"]["containers"][0]["image"],
        "registry.example/main:1"
    );
    // Who lost the field is told.
    let forced = component.events.lock().unwrap().iter().any(|event| {
        matches!(event, Event::Forced { object, conflicts } if object.name == "a" && conflicts[0].manager == "somebody" && conflicts[0].field == ".data.password")
    });
    assert!(forced, "{:?}", component.events.lock().unwrap());
    assert!(component.run(&documents).await.unwrap().changes.is_empty());
}

pub(crate) async fn a_removed_label_is_healed(env: &Env) {
    let component = Component::new(env);
    let documents = [deployment("web", 1)];
    component.run(&documents).await.unwrap();
    let path = component.path("deployments", "web");
    let generation = env.must(&path).await["metadata"]["generation"].clone();
    env.change(&path, &json!({"metadata": {"labels": {"app": null}}}))
        .await;
    assert_eq!(
        env.must(&path).await["metadata"]["generation"],
        generation,
        "generation alone would not show it"
    );
    assert!(matches!(component.check(&documents).await, Verdict::Differs(_)));
    let pass = component.run(&documents).await.unwrap();
    assert_eq!(pass.done(), ["update Deployment/web"]);
    assert!(reason(&pass, "web").contains("metadata.labels.app"));
    assert_eq!(env.must(&path).await["metadata"]["labels"]["app"], "web");
}

pub(crate) async fn our_label_is_put_back(env: &Env) {
    let component = Component::new(env);
    let documents = [config_map("a", "k", "1")];
    component.run(&documents).await.unwrap();
    let path = component.path("configmaps", "a");
    env.change(
        &path,
        &json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}}),
    )
    .await;
    assert!(matches!(component.check(&documents).await, Verdict::Differs(_)));
    assert_eq!(
        component.run(&documents).await.unwrap().done(),
        ["update ConfigMap/a"]
    );
    let label = &env.must(&path).await["metadata"]["labels"]["applyset.kubernetes.io/part-of"];
    assert_eq!(label, component.target.applyset_id());
}

/// DRF-04: what somebody deleted is made again, though nothing else changed.
pub(crate) async fn a_deleted_object_is_made_again(env: &Env) {
    let component = Component::new(env);
    let documents = [deployment("web", 1), config_map("a", "k", "1")];
    component.run(&documents).await.unwrap();
    env.remove(&component.path("deployments", "web")).await;
    env.until_gone(&component.path("deployments", "web")).await;
    let Verdict::Differs(differences) = component.check(&documents).await else {
        panic!("not seen")
    };
    assert!(
        matches!(&differences[..], [Difference::Missing(object)] if object.name == "web"),
        "{differences:?}"
    );
    let pass = component.run(&documents).await.unwrap();
    assert_eq!(pass.done(), ["create Deployment/web"]);
    assert_eq!(reason(&pass, "web"), "it was deleted by somebody else");

    // Made anew by somebody else under the same name: not ours.
    env.remove(&component.path("configmaps", "a")).await;
    env.make(
        &component.collection("configmaps"),
        &config_map("a", "k", "theirs").object,
    )
    .await;
    assert!(
        component
            .run(&documents)
            .await
            .unwrap_err()
            .to_string()
            .contains("ConfigMap/a")
    );
}

pub(crate) async fn what_others_add_is_left_alone(env: &Env) {
    let component = Component::new(env);
    let documents = [deployment("web", 1), config_map("a", "k", "1")];
    component.run(&documents).await.unwrap();
    env.change(
        &component.path("deployments", "web"),
        &json!({"metadata": {"annotations": {"theirs": "x"}}, "spec": {"revisionHistoryLimit": 3}}),
    )
    .await;
    env.change(
        &component.path("configmaps", "a"),
        &json!({"data": {"theirs": "x"}}),
    )
    .await;
    let verdict = component.check(&documents).await;
    assert!(
        matches!(verdict, Verdict::Unchanged | Verdict::NotReady(_)),
        "{verdict:?}"
    );
    let pass = component.run(&documents).await.unwrap();
    assert!(pass.plan.is_noop() && pass.changes.is_empty(), "{:?}", pass.plan);
    assert_eq!(
        env.must(&component.path("configmaps", "a")).await["data"]["theirs"],
        "x"
    );
}

pub(crate) async fn a_hand_scaled_deployment_is_healed(env: &Env) {
    let component = Component::new(env);
    let documents = [deployment("web", 1)];
    component.run(&documents).await.unwrap();
    scale(env, &component, 3).await;
    assert!(matches!(component.check(&documents).await, Verdict::Differs(_)));
    let pass = component.run(&documents).await.unwrap();
    assert_eq!(pass.done(), ["update Deployment/web"]);
    assert_eq!(reason(&pass, "web"), "changed by somebody else: spec.replicas");
    assert_eq!(
        env.must(&component.path("deployments", "web")).await["spec"]["replicas"],
        1
    );
}

pub(crate) async fn a_finished_job_is_not_run_again(env: &Env) {
    let component = Component::new(env);
    let mut once = job("once");
    once.object["spec"]["ttlSecondsAfterFinished"] = json!(600);
    let documents = [once, config_map("a", "k", "1")];
    component.run(&documents).await.unwrap();
    // As its time to live does, which a test does not wait for.
    env.remove(&format!(
        "{}?propagationPolicy=Background",
        component.path("jobs", "once")
    ))
    .await;
    env.until_gone(&component.path("jobs", "once")).await;
    assert!(matches!(component.check(&documents).await, Verdict::Unchanged));
    let pass = component.run(&documents).await.unwrap();
    assert!(pass.plan.is_noop(), "{:?}", pass.plan);

    let forever: Vec<ManifestObject> = vec![job("forever")];
    let component = Component::named(env, "forever");
    component.run(&forever).await.unwrap();
    env.remove(&format!(
        "{}?propagationPolicy=Background",
        component.path("jobs", "forever")
    ))
    .await;
    env.until_gone(&component.path("jobs", "forever")).await;
    assert_eq!(
        component.run(&forever).await.unwrap().done(),
        ["create Job/forever"]
    );
}

/// Several components in one look, each with its own verdict.
pub(crate) async fn a_check_sees_all_of_it(env: &Env) {
    let (a, b, c) = (
        Component::named(env, "a"),
        Component::named(env, "b"),
        Component::named(env, "c"),
    );
    let documents = [config_map("x", "k", "1"), config_map("y", "k", "1")];
    a.run(&documents).await.unwrap();
    b.run(&documents).await.unwrap();
    env.change(&b.path("configmaps", "x"), &json!({"data": {"k": "2"}}))
        .await;
    let expected = [&a, &b, &c].map(|component| evenkeel_cluster::Expected {
        component: component.target.name().clone(),
        inputs: Some(component.inputs(&documents).digest),
        readiness: Default::default(),
    });
    let before = env.cluster.requests();
    let check = env.cluster.check(&crate::env::owner(), &expected).await.unwrap();
    assert_eq!(
        env.cluster.requests().since(&before).total(),
        2,
        "one LIST of parents, one of ConfigMaps"
    );
    assert!(matches!(check.components[a.target.name()], Verdict::Unchanged));
    assert!(
        matches!(&check.components[b.target.name()], Verdict::Differs(found) if matches!(&found[..], [Difference::Changed(object)] if object.name == "x"))
    );
    assert!(
        matches!(&check.components[c.target.name()], Verdict::Differs(found) if found[..] == [Difference::NotInstalled])
    );
    assert!(!check.unexpected.contains(a.target.name()));
    let changed = [config_map("x", "k", "3")];
    assert!(matches!(a.check(&changed).await, Verdict::Differs(found) if found == [Difference::Inputs]));
    let none = env.cluster.check(&crate::env::owner(), &[]).await.unwrap();
    assert!(none.unexpected.contains(a.target.name()));
    assert_eq!(a.run(&documents).await.unwrap().plan.count(PlanAction::None), 2);
}
