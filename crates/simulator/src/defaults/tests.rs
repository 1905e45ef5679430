use serde_json::{Value, json};

use super::fill;
use crate::registry::Registry;
use crate::schema::Schema;
use crate::schema::normalise::{Report, normalise};

/// Normalised and filled in, as a create does it.
fn filled(group: &str, version: &str, plural: &str, value: Value) -> Value {
    let registry = Registry::new();
    let resource = registry.find(group, plural).unwrap();
    let schema = Schema::builtin();
    let ty = schema.kind(group, version, &resource.kind).unwrap();
    let mut value = normalise(&schema, ty.into(), &resource.kind, &value, &mut Report::default()).unwrap();
    fill(resource, version, &mut value);
    value
}

#[test]
fn a_deployment_gets_what_a_real_server_gives_it() {
    // Recorded from kube-apiserver v1.37.2.
    let given = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": {"metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}});
    let expected = json!({"replicas": 1, "selector": {"matchLabels": {"app": "d"}},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "nginx",
            "resources": {}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always"}], "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst", "securityContext": {}, "schedulerName": "default-scheduler"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600});
    assert_eq!(filled("apps", "v1", "deployments", given)["spec"], expected);
}

#[test]
fn a_service_gets_its_type_ports_and_policies() {
    let service = filled(
        "",
        "v1",
        "services",
        json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
    );
    assert_eq!(
        service["spec"],
        json!({"ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}], "type": "ClusterIP",
            "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"})
    );
}

#[test]
fn a_job_gets_its_counts_and_modes() {
    let job = filled(
        "batch",
        "v1",
        "jobs",
        json!({"metadata": {"name": "j"}, "spec": {"template": {"spec":
        {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x:1"}]}}}}),
    );
    for (field, expected) in [
        ("parallelism", json!(1)),
        ("completions", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("manualSelector", json!(false)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
    ] {
        assert_eq!(job["spec"][field], expected, "{field}");
    }
}

#[test]
fn texts_of_secrets_become_data() {
    let secret = filled(
        "",
        "v1",
        "secrets",
        json!({"metadata": {"name": "s"}, "stringData": {"a": "x"},
        "data": {"b": "eA=="}}),
    );
    assert_eq!(secret["data"], json!({"a": "eA==", "b": "eA=="}));
    assert_eq!(
        (secret.get("stringData"), &secret["type"]),
        (None, &json!("Opaque"))
    );
}

#[test]
fn filling_in_twice_changes_nothing() {
    for (group, version, plural, value) in [
        (
            "apps",
            "v1",
            "statefulsets",
            json!({"metadata": {"name": "a"}, "spec": {"serviceName": "x",
            "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]}}),
        ),
        (
            "apps",
            "v1",
            "daemonsets",
            json!({"metadata": {"name": "a"}, "spec": {}}),
        ),
        (
            "batch",
            "v1",
            "cronjobs",
            json!({"metadata": {"name": "a"}, "spec": {"schedule": "* * * * *"}}),
        ),
        (
            "networking.k8s.io",
            "v1",
            "networkpolicies",
            json!({"metadata": {"name": "a"},
            "spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]}}),
        ),
        (
            "autoscaling",
            "v2",
            "horizontalpodautoscalers",
            json!({"metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "behavior": {}}}),
        ),
        (
            "admissionregistration.k8s.io",
            "v1",
            "validatingwebhookconfigurations",
            json!({"metadata": {"name": "a"},
            "webhooks": [{"name": "x", "rules": [{"operations": ["*"]}], "clientConfig": {"service": {"name": "s"}}}]}),
        ),
    ] {
        let once = filled(group, version, plural, value);
        assert_eq!(filled(group, version, plural, once.clone()), once, "{plural}");
    }
}
