use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

#[derive(Deserialize)]
struct Case {
    name: String,
    verdict: String,
    object: Value,
}

fn verdict(object: &Value, patience: Patience) -> &'static str {
    match judge(object, patience) {
        Readiness::Ready => "ready",
        Readiness::InProgress(_) => "in-progress",
        Readiness::Failed(_) => "failed",
    }
}

/// States that other tools were reported to judge wrongly, with the right verdict.
#[test]
fn known_states_are_judged_rightly() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("cases.json")).expect("cases");
    assert!(cases.len() > 30);
    let wrong: Vec<String> = cases
        .iter()
        .filter(|case| verdict(&case.object, Patience::Fresh) != case.verdict)
        .map(|case| {
            format!(
                "{} {}: {:?}, expected {}",
                case.object["kind"],
                case.name,
                judge(&case.object, Patience::Fresh),
                case.verdict
            )
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nothing_that_is_being_deleted_is_ready() {
    for (api_version, kind, status) in [
        (
            "v1",
            "Pod",
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
        ),
        ("v1", "ConfigMap", json!(null)),
        (
            "ex.io/v1",
            "Widget",
            json!({"conditions": [{"type": "Ready", "status": "True"}]}),
        ),
    ] {
        let mut object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "status": status});
        assert_eq!(verdict(&object, Patience::Fresh), "ready", "{kind}");
        object["metadata"]["deletionTimestamp"] = json!("2026-12-01T00:00:00Z");
        assert_eq!(verdict(&object, Patience::Fresh), "in-progress", "{kind}");
    }
}

#[test]
fn an_annotation_takes_an_object_out() {
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "x", "annotations": {"evenkeel.dev/ignore-readiness": "true"}}, "spec": {}});
    assert_eq!(verdict(&object, Patience::Fresh), "ready");
}

#[test]
fn workloads_that_nobody_has_seen_are_not_ready() {
    for kind in ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"] {
        let object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"generation": 1}, "spec": {"replicas": 0}});
        assert_eq!(verdict(&object, Patience::Settled), "in-progress", "{kind}");
    }
}

#[test]
fn terminal_conditions_are_failures() {
    let failed = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {},
        "status": {"failed": 1, "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit"}]}});
    assert_eq!(
        judge(&failed, Patience::Fresh),
        Readiness::Failed("BackoffLimitExceeded: limit".into())
    );
    let late = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 1}, "spec": {},
        "status": {"observedGeneration": 1, "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}});
    assert_eq!(verdict(&late, Patience::Fresh), "failed");
    let stalled = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"generation": 2},
        "status": {"conditions": [{"type": "Stalled", "status": "True"}, {"type": "Ready", "status": "True"}]}});
    assert_eq!(verdict(&stalled, Patience::Fresh), "failed");
}

#[test]
fn storage_and_services() {
    let claim = |phase: &str| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {}, "status": {"phase": phase}});
    assert_eq!(verdict(&claim("Bound"), Patience::Fresh), "ready");
    assert_eq!(verdict(&claim("Pending"), Patience::Fresh), "in-progress");
    assert_eq!(verdict(&claim("Lost"), Patience::Fresh), "failed");
    let service =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {}, "spec": {"type": "ClusterIP"}});
    assert_eq!(verdict(&service, Patience::Fresh), "ready");
    let api = |status: &str| {
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {},
               "status": {"conditions": [{"type": "Available", "status": status}]}})
    };
    assert_eq!(verdict(&api("False"), Patience::Fresh), "in-progress");
    assert_eq!(verdict(&api("True"), Patience::Fresh), "ready");
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {}, "status": {"phase": "Terminating"}});
    assert_eq!(verdict(&namespace, Patience::Fresh), "in-progress");
}

#[test]
fn a_silent_custom_resource_is_given_time_and_then_taken_as_it_is() {
    let silent =
        json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"generation": 1}, "spec": {}});
    assert_eq!(verdict(&silent, Patience::Fresh), "in-progress");
    assert_eq!(verdict(&silent, Patience::Settled), "ready");
    assert!(has_rule(&GroupKind::new("ex.io", "Widget"), true));
    assert!(
        !has_rule(&GroupKind::new("ex.io", "Widget"), false),
        "without a status there is nothing to wait for"
    );
    assert!(
        !has_rule(&GroupKind::new("", "ConfigMap"), false)
            && has_rule(&GroupKind::new("apps", "Deployment"), true)
    );
}

#[test]
fn pods_tell_what_keeps_them() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "status": {"phase": "Pending", "containerStatuses": [
        {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}});
    assert_eq!(
        pod_trouble(&pod).as_deref(),
        Some("container main waits: ImagePullBackOff: no such image")
    );
    let starting = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "status": {"phase": "Pending", "containerStatuses": [
        {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]}});
    assert_eq!(pod_trouble(&starting).as_deref(), Some("the pod is Pending"));
}

#[test]
fn a_webhook_that_must_answer_needs_somebody_behind_it() {
    let webhook = |policy: serde_json::Value| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "webhooks": [{"name": "a.example.com", "failurePolicy": policy,
                "clientConfig": {"service": {"namespace": "hooks", "name": "backend"}}},
                {"name": "b.example.com", "clientConfig": {"url": "https://elsewhere.example/"}}]})
    };
    let mut surroundings = Surroundings::from(Patience::Fresh);
    let judge = |object: &serde_json::Value, surroundings: &Surroundings| {
        ReadinessRules::default().judge_in(object, surroundings)
    };
    assert!(judge(&webhook(json!("Fail")), &surroundings).is_ready());
    surroundings.unserved.insert(webhooks::Backend {
        namespace: "hooks".to_owned(),
        name: "backend".to_owned(),
    });
    for policy in [json!("Fail"), json!(null)] {
        assert_eq!(
            judge(&webhook(policy), &surroundings),
            Readiness::InProgress(
                "Service hooks/backend, which its webhooks are called at, has no ready endpoint".to_owned()
            )
        );
    }
    assert!(judge(&webhook(json!("Ignore")), &surroundings).is_ready());
}
