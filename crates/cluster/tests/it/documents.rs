//! Manifests as charts render them.

use evenkeel_cluster::ManifestObject;
use serde_json::{Value, json};

pub(crate) fn doc(source: &str, object: Value) -> ManifestObject {
    ManifestObject {
        object,
        source: source.to_owned(),
    }
}

pub(crate) fn config_map(name: &str, key: &str, value: &str) -> ManifestObject {
    doc(
        "templates/configmap.yaml",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": name}}, "data": {key: value}}),
    )
}

pub(crate) fn secret(name: &str, key: &str, value: &str) -> ManifestObject {
    doc(
        "templates/secret.yaml",
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {key: value}}),
    )
}

pub(crate) fn service_account(name: &str) -> ManifestObject {
    doc(
        "templates/serviceaccount.yaml",
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}),
    )
}

pub(crate) fn service(name: &str) -> ManifestObject {
    doc(
        "templates/service.yaml",
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
               "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}}),
    )
}

pub(crate) fn pod_template(name: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "registry.example/main:1"}]},
    })
}

pub(crate) fn deployment(name: &str, replicas: u32) -> ManifestObject {
    doc(
        "templates/deployment.yaml",
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}},
               "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": pod_template(name)}}),
    )
}

pub(crate) fn workload(kind: &str, name: &str) -> ManifestObject {
    let mut spec = json!({"selector": {"matchLabels": {"app": name}}, "template": pod_template(name)});
    match kind {
        "StatefulSet" => spec["serviceName"] = json!(name),
        "ReplicaSet" => spec["replicas"] = json!(1),
        _ => {}
    }
    doc(
        "templates/workload.yaml",
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}),
    )
}

pub(crate) fn job(name: &str) -> ManifestObject {
    let mut template = pod_template(name);
    template["spec"]["restartPolicy"] = json!("Never");
    doc(
        "templates/job.yaml",
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": template}}),
    )
}

pub(crate) fn autoscaler(name: &str) -> ManifestObject {
    doc(
        "templates/hpa.yaml",
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, "minReplicas": 2, "maxReplicas": 10,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}],
        }}),
    )
}

/// A definition of kind Widget in a group of its own.
pub(crate) fn definition(group: &str, scope: &str, has_status: bool) -> ManifestObject {
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}},
    });
    if has_status {
        version["subresources"] = json!({"status": {}});
    }
    doc(
        "crds/widgets.yaml",
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
               "metadata": {"name": format!("widgets.{group}")},
               "spec": {"group": group, "scope": scope, "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
                        "versions": [version]}}),
    )
}

pub(crate) fn widget(group: &str, name: &str, size: u32) -> ManifestObject {
    doc(
        "templates/widget.yaml",
        json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}}),
    )
}
