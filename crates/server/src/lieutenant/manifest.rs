//! The manifest that installs a cluster's agent, Steward.

use evenkeel_core::Sensitive;
use serde_json::{Value, json};

/// Namespace of the agent.
const NAMESPACE: &str = "syn";
/// Name of the agent, and of what belongs to it.
const STEWARD: &str = "steward";

/// What the agent is told.
#[derive(Debug)]
pub(super) struct Agent<'a> {
    /// Address of this API.
    pub(super) api_url: &'a str,
    /// Its cluster.
    pub(super) cluster: &'a str,
    /// Its image.
    pub(super) image: &'a str,
    /// The token by which it speaks to this API.
    pub(super) token: &'a Sensitive<String>,
}

/// The objects, as a list that `kubectl apply` takes. Object by object, with its nulls and empty maps, what Lieutenant's API
/// gives.
pub(super) fn manifest(agent: &Agent<'_>) -> Value {
    let items = [
        object(
            "v1",
            "Namespace",
            NAMESPACE,
            false,
            json!({"spec": {}, "status": {}}),
        ),
        object(
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            "syn-admin",
            false,
            json!({"rules": [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
                {"verbs": ["*"], "nonResourceURLs": ["*"]},
            ]}),
        ),
        object(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            "syn-steward",
            false,
            json!({
                "subjects": [{"kind": "ServiceAccount", "name": STEWARD, "namespace": NAMESPACE}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "syn-admin"},
            }),
        ),
        object("v1", "ServiceAccount", STEWARD, true, json!({})),
        object("apps/v1", "Deployment", STEWARD, true, deployment(agent)),
        object(
            "v1",
            "Secret",
            STEWARD,
            true,
            json!({"stringData": {"token": agent.token.expose()}}),
        ),
    ];
    json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items})
}

fn labels() -> Value {
    json!({"app.kubernetes.io/managed-by": NAMESPACE, "app.kubernetes.io/name": STEWARD})
}

fn object(api_version: &str, kind: &str, name: &str, namespaced: bool, body: Value) -> Value {
    let mut object = json!({
        "kind": kind,
        "apiVersion": api_version,
        "metadata": {"name": name, "creationTimestamp": null, "labels": labels()},
    });
    if namespaced {
        object["metadata"]["namespace"] = NAMESPACE.into();
    }
    if let (Value::Object(object), Value::Object(body)) = (&mut object, body) {
        object.extend(body);
    }
    object
}

fn deployment(agent: &Agent<'_>) -> Value {
    let env = json!([
        {"name": "STEWARD_API", "value": agent.api_url},
        {"name": "STEWARD_CLUSTER_ID", "value": agent.cluster},
        {"name": "STEWARD_TOKEN", "valueFrom": {"secretKeyRef": {"name": STEWARD, "key": "token"}}},
        {"name": "STEWARD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
    ]);
    let container = json!({
        "name": STEWARD,
        "image": agent.image,
        "env": env,
        "resources": {
            "limits": {"cpu": "200m", "memory": "64Mi"},
            "requests": {"cpu": "100m", "memory": "32Mi"},
        },
        "imagePullPolicy": "Always",
    });
    json!({
        "spec": {
            "selector": {"matchLabels": labels()},
            "template": {
                "metadata": {"creationTimestamp": null, "labels": labels()},
                "spec": {
                    "containers": [container],
                    "serviceAccountName": STEWARD,
                    "securityContext": {"runAsNonRoot": true},
                },
            },
            "strategy": {},
        },
        "status": {},
    })
}
