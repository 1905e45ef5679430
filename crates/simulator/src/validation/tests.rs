use serde_json::{Value, json};

use super::{create, update};
use crate::registry::Registry;
use crate::status::ApiError;

fn message(group: &str, plural: &str, old: Option<&Value>, new: &Value) -> String {
    let registry = Registry::new();
    let resource = registry.find(group, plural).unwrap();
    let causes = match old {
        Some(old) => update(resource, old, new),
        None => create(resource, new),
    };
    if causes.is_empty() {
        return String::new();
    }
    let name = new
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    ApiError::invalid(group, &resource.kind, name, causes).message
}

fn deployment(selector: &str, labels: &str) -> Value {
    json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"app": selector}},
        "template": {"metadata": {"labels": {"app": labels}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

// The texts are those of kube-apiserver v1.37.2.

#[test]
fn the_selector_of_a_deployment_stays() {
    assert_eq!(
        message(
            "apps",
            "deployments",
            Some(&deployment("d", "d")),
            &deployment("x", "d")
        ),
        "Deployment.apps \"d\" is invalid: [spec.template.metadata.labels: Invalid value: {\"app\":\"d\"}: `selector` \
         does not match template `labels`, spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"x\"}}: field is \
         immutable]"
    );
    assert_eq!(message("apps", "deployments", None, &deployment("d", "d")), "");
}

#[test]
fn missing_parts_of_a_deployment_are_named() {
    let empty = json!({"metadata": {"name": "e"}, "spec": {"template": {"spec": {"containers": null}}}});
    assert_eq!(
        message("apps", "deployments", None, &empty),
        "Deployment.apps \"e\" is invalid: [spec.selector: Required value, spec.template.metadata.labels: Invalid \
         value: null: `selector` does not match template `labels`, spec.template.spec.containers: Required value]"
    );
}

#[test]
fn jobs_never_restart_always() {
    let job = json!({"metadata": {"name": "j2"}, "spec": {"template": {"spec": {"restartPolicy": "Always",
        "containers": [{"name": "c", "image": "i"}]}}}});
    assert_eq!(
        message("batch", "jobs", None, &job),
        "Job.batch \"j2\" is invalid: spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \
         \"Never\""
    );
}

#[test]
fn immutable_data_stays() {
    let old = json!({"metadata": {"name": "imm"}, "immutable": true, "data": {"a": "1"}});
    let new = json!({"metadata": {"name": "imm"}, "immutable": true, "data": {"a": "2"}});
    assert_eq!(
        message("", "configmaps", Some(&old), &new),
        "ConfigMap \"imm\" is invalid: data: Forbidden: field is immutable when `immutable` is set"
    );
}

#[test]
fn an_address_stays() {
    let service = |ip: &str| {
        json!({"metadata": {"name": "s"},
        "spec": {"type": "ClusterIP", "clusterIP": ip, "ports": [{"port": 80, "protocol": "TCP"}]}})
    };
    assert_eq!(
        message("", "services", Some(&service("10.0.0.19")), &service("10.0.0.77")),
        "Service \"s\" is invalid: spec.clusterIPs[0]: Invalid value: [\"10.0.0.77\"]: may not change once set"
    );
}

#[test]
fn role_references_and_secret_types_stay() {
    let binding = |name: &str| {
        json!({"metadata": {"name": "rb"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}})
    };
    assert_eq!(
        message(
            "rbac.authorization.k8s.io",
            "rolebindings",
            Some(&binding("r")),
            &binding("z")
        ),
        "RoleBinding.rbac.authorization.k8s.io \"rb\" is invalid: roleRef: Invalid value: \
         {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"z\"}: field is immutable"
    );
    let secret = |kind: &str| json!({"metadata": {"name": "sec"}, "type": kind});
    assert_eq!(
        message("", "secrets", Some(&secret("Opaque")), &secret("foo")),
        "Secret \"sec\" is invalid: type: Invalid value: \"foo\": field is immutable"
    );
}

#[test]
fn finalizers_are_not_added_to_what_is_being_deleted() {
    let old = json!({"metadata": {"name": "fin", "deletionTimestamp": "2026-12-01T00:00:00Z", "finalizers": ["x.y/z"]}});
    let new = json!({"metadata": {"name": "fin", "deletionTimestamp": "2026-12-01T00:00:00Z",
        "finalizers": ["a.b/c", "x.y/z", "foregroundDeletion"]}});
    assert_eq!(
        message("", "configmaps", Some(&old), &new),
        "ConfigMap \"fin\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
         being deleted, found new finalizers []string{\"a.b/c\", \"foregroundDeletion\"}"
    );
}

#[test]
fn names_and_labels_are_checked() {
    let map = json!({"metadata": {"name": "A_b", "labels": {"a": "%%"}, "annotations": {"_x": "1"}}});
    let text = message("", "configmaps", None, &map);
    for part in [
        "metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain",
        "metadata.labels: Invalid value: \"%%\": a valid label must be an empty string",
        "metadata.annotations: Invalid value: \"_x\": name part must consist of",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let service =
        json!({"metadata": {"name": "a.b"}, "spec": {"type": "ClusterIP", "ports": [{"port": 80}]}});
    assert!(message("", "services", None, &service).contains("a lowercase RFC 1123 label must consist of"));
    let role = json!({"metadata": {"name": "system:a B"}});
    assert_eq!(message("rbac.authorization.k8s.io", "roles", None, &role), "");
}
