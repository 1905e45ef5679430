use evenkeel_core::{HookDeletePolicy, HookEvent, Namespace};
use serde_json::json;

use super::*;

fn document(kind: &str, name: &str, weight: i64, policies: &[HookDeletePolicy]) -> HookDocument {
    let (api_version, kind) = kind.rsplit_once('/').unwrap_or(("v1", kind));
    HookDocument {
        object: json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}),
        source: format!("templates/{name}.yaml"),
        events: BTreeSet::from([HookEvent::PreInstall]),
        weight,
        delete_policies: policies.iter().copied().collect(),
    }
}

fn hooks(documents: Vec<HookDocument>) -> Hooks {
    let placement = Placement {
        namespace: Namespace::new("shop").expect("a name"),
        force_namespace: false,
    };
    Hooks::new(documents, &placement).expect("they are right")
}

/// REN-18: the order in which they run is by weight and name; kinds play no part.
#[test]
fn they_run_by_weight_then_by_name() {
    let hooks = hooks(vec![
        document("ServiceAccount", "z-sa", 0, &[]),
        document("ConfigMap", "b", 10, &[]),
        document("ConfigMap", "m", -5, &[]),
        document("ConfigMap", "bad", 0, &[]),
        document("batch/v1/Job", "a-job", 0, &[]),
    ]);
    let planned = hooks.planned(Occasion::Install, None);
    let names: Vec<&str> = planned.iter().map(|hook| hook.object.name.as_str()).collect();
    assert_eq!(names, ["m", "a-job", "bad", "z-sa", "b"]);
    assert!(planned.iter().all(|hook| hook.event == HookEvent::PreInstall));
    assert_eq!(planned[1].object.to_string(), "Job.batch/a-job in namespace shop");
    assert!(
        hooks
            .planned(Occasion::Upgrade(ComponentRevision(2)), None)
            .is_empty()
    );
}

#[test]
fn data_is_deleted_only_when_the_chart_says_so() {
    use HookDeletePolicy::{BeforeHookCreation, HookFailed, HookSucceeded};
    let deleted = |kind: &str, policies: &[HookDeletePolicy], by: HookDeletePolicy| {
        let hooks = hooks(vec![document(kind, "x", 0, policies)]);
        hooks.0[0].is_deleted_by(by)
    };
    assert!(deleted("ConfigMap", &[], BeforeHookCreation));
    assert!(!deleted("ConfigMap", &[], HookSucceeded));
    assert!(!deleted(
        "ConfigMap",
        &[HookSucceeded, HookFailed],
        BeforeHookCreation
    ));
    assert!(deleted("ConfigMap", &[HookSucceeded, HookFailed], HookFailed));
    assert!(!deleted("PersistentVolumeClaim", &[], BeforeHookCreation));
    assert!(deleted(
        "PersistentVolumeClaim",
        &[BeforeHookCreation],
        BeforeHookCreation
    ));
    let definition = "apiextensions.k8s.io/v1/CustomResourceDefinition";
    assert!(!deleted(
        definition,
        &[BeforeHookCreation, HookSucceeded],
        BeforeHookCreation
    ));
    assert!(!deleted(definition, &[HookSucceeded], HookSucceeded));
}

#[test]
fn every_wrong_hook_is_named() {
    let mut nameless = document("ConfigMap", "x", 0, &[]);
    nameless.object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    let mut kindless = document("ConfigMap", "y", 0, &[]);
    kindless.object = json!({"metadata": {"name": "y"}});
    let placement = Placement {
        namespace: Namespace::new("shop").expect("a name"),
        force_namespace: false,
    };
    let Err(Error::Manifest(problems)) = Hooks::new(vec![nameless, kindless], &placement) else {
        panic!("they are wrong");
    };
    assert_eq!(problems.len(), 3, "{problems:?}");
}
