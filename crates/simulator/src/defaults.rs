//! What the API server fills in when a client leaves it out (`SetDefaults_*` of `k8s.io/kubernetes/pkg/apis/*/v1`).
//!
//! Without them a second apply of the same configuration would look like a change, or a change like none.

use serde_json::{Value, json};

use crate::json::{at, items, items_mut, number, set, set_empty, set_missing, text};
use crate::registry::Resource;

mod pod;

pub(crate) use pod::{pod_only, pod_spec};

/// Fills in the defaults of a built-in kind. Custom kinds bring their own in their schema.
pub(crate) fn fill(resource: &Resource, version: &str, object: &mut Value) {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => {
            pod_spec(object, &["spec"]);
            pod_only(object);
        }
        ("", "PodTemplate") => pod_spec(object, &["template", "spec"]),
        ("", "Service") => service(object),
        ("", "Secret") => secret(object),
        ("", "Namespace") => namespace(object),
        ("", "PersistentVolumeClaim") => {
            set_empty(object, &["status", "phase"], "Pending");
            claim_spec(object, &["spec"]);
        }
        ("", "PersistentVolume") => {
            set_empty(object, &["status", "phase"], "Pending");
            set_empty(object, &["spec", "persistentVolumeReclaimPolicy"], "Retain");
            set_missing(object, &["spec", "volumeMode"], "Filesystem");
        }
        ("", "LimitRange") => limit_range(object),
        ("", "ReplicationController") => {
            set_missing(object, &["spec", "replicas"], 1);
            template_spec(object);
        }
        ("apps", "Deployment") => deployment(object),
        ("apps", "ReplicaSet") => {
            set_missing(object, &["spec", "replicas"], 1);
            template_spec(object);
        }
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("batch", "Job") => {
            job_spec(object, &["spec"]);
            let labels = at(object, &["spec", "template", "metadata", "labels"]).cloned();
            if let Some(labels) = labels
                && at(object, &["metadata", "labels"]).is_none()
            {
                set(object, &["metadata", "labels"], labels);
            }
        }
        ("batch", "CronJob") => {
            set_empty(object, &["spec", "concurrencyPolicy"], "Allow");
            set_missing(object, &["spec", "suspend"], false);
            set_missing(object, &["spec", "successfulJobsHistoryLimit"], 3);
            set_missing(object, &["spec", "failedJobsHistoryLimit"], 1);
            pod_spec(object, &["spec", "jobTemplate", "spec", "template", "spec"]);
        }
        ("networking.k8s.io", "NetworkPolicy") => network_policy(object),
        ("networking.k8s.io", "IngressClass") if at(object, &["spec", "parameters"]).is_some() => {
            set_missing(object, &["spec", "parameters", "scope"], "Cluster");
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            set_empty(object, &["roleRef", "apiGroup"], "rbac.authorization.k8s.io");
            for subject in items_mut(object, &["subjects"]) {
                if ["User", "Group"].contains(&text(subject, &["kind"])) {
                    set_empty(subject, &["apiGroup"], "rbac.authorization.k8s.io");
                }
            }
        }
        ("storage.k8s.io", "StorageClass") => {
            set_missing(object, &["reclaimPolicy"], "Delete");
            set_missing(object, &["volumeBindingMode"], "Immediate");
        }
        ("storage.k8s.io", "CSIDriver") => {
            for (field, default) in [
                ("attachRequired", json!(true)),
                ("podInfoOnMount", json!(false)),
                ("storageCapacity", json!(false)),
                ("fsGroupPolicy", json!("ReadWriteOnceWithFSType")),
                ("volumeLifecycleModes", json!(["Persistent"])),
                ("requiresRepublish", json!(false)),
                ("seLinuxMount", json!(false)),
            ] {
                set_missing(object, &["spec", field], default);
            }
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            set_missing(object, &["preemptionPolicy"], "PreemptLowerPriority");
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            set_missing(object, &["spec", "minReplicas"], 1);
            if version == "v2" {
                autoscaler(object);
            }
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            for port in items_mut(object, &["ports"]) {
                set_missing(port, &["name"], "");
                set_missing(port, &["protocol"], "TCP");
            }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => custom_resource_definition(object),
        ("admissionregistration.k8s.io", kind) => admission(kind, object),
        ("apiregistration.k8s.io", "APIService") if at(object, &["spec", "service"]).is_some() => {
            set_missing(object, &["spec", "service", "port"], 443);
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            set_missing(
                object,
                &["spec", "usages"],
                json!(["digital signature", "key encipherment"]),
            );
        }
        _ => {}
    }
}

fn template_spec(object: &mut Value) {
    if at(object, &["spec", "template"]).is_some() {
        pod_spec(object, &["spec", "template", "spec"]);
    }
}

fn deployment(object: &mut Value) {
    set_missing(object, &["spec", "replicas"], 1);
    set_empty(object, &["spec", "strategy", "type"], "RollingUpdate");
    if text(object, &["spec", "strategy", "type"]) == "RollingUpdate" {
        set_missing(
            object,
            &["spec", "strategy", "rollingUpdate", "maxUnavailable"],
            "25%",
        );
        set_missing(object, &["spec", "strategy", "rollingUpdate", "maxSurge"], "25%");
    }
    set_missing(object, &["spec", "revisionHistoryLimit"], 10);
    set_missing(object, &["spec", "progressDeadlineSeconds"], 600);
    template_spec(object);
}

fn daemon_set(object: &mut Value) {
    set_empty(object, &["spec", "updateStrategy", "type"], "RollingUpdate");
    if text(object, &["spec", "updateStrategy", "type"]) == "RollingUpdate" {
        set_missing(
            object,
            &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"],
            1,
        );
        set_missing(
            object,
            &["spec", "updateStrategy", "rollingUpdate", "maxSurge"],
            0,
        );
    }
    set_missing(object, &["spec", "revisionHistoryLimit"], 10);
    template_spec(object);
}

fn stateful_set(object: &mut Value) {
    set_empty(object, &["spec", "podManagementPolicy"], "OrderedReady");
    let fresh = text(object, &["spec", "updateStrategy", "type"]).is_empty();
    set_empty(object, &["spec", "updateStrategy", "type"], "RollingUpdate");
    let rolling = text(object, &["spec", "updateStrategy", "type"]) == "RollingUpdate";
    if rolling && (fresh || at(object, &["spec", "updateStrategy", "rollingUpdate"]).is_some()) {
        set_missing(
            object,
            &["spec", "updateStrategy", "rollingUpdate", "partition"],
            0,
        );
        set_missing(
            object,
            &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"],
            1,
        );
    }
    set_empty(
        object,
        &["spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"],
        "Retain",
    );
    set_empty(
        object,
        &["spec", "persistentVolumeClaimRetentionPolicy", "whenScaled"],
        "Retain",
    );
    set_missing(object, &["spec", "replicas"], 1);
    set_missing(object, &["spec", "revisionHistoryLimit"], 10);
    template_spec(object);
    for claim in items_mut(object, &["spec", "volumeClaimTemplates"]) {
        set_empty(claim, &["apiVersion"], "v1");
        set_empty(claim, &["kind"], "PersistentVolumeClaim");
        set_empty(claim, &["status", "phase"], "Pending");
        claim_spec(claim, &["spec"]);
    }
}

fn claim_spec(object: &mut Value, path: &[&str]) {
    let mut path = path.to_vec();
    path.push("volumeMode");
    set_missing(object, &path, "Filesystem");
}

/// Fills in a job's spec at `path`.
fn job_spec(object: &mut Value, path: &[&str]) {
    let below = |field: &'static str| {
        let mut path = path.to_vec();
        path.push(field);
        path
    };
    let has = |object: &Value, field: &'static str| at(object, &below(field)).is_some();
    if !has(object, "completions") && !has(object, "parallelism") {
        set(object, &below("completions"), 1);
    }
    set_missing(object, &below("parallelism"), 1);
    let limit = if has(object, "backoffLimitPerIndex") {
        i32::MAX
    } else {
        6
    };
    set_missing(object, &below("backoffLimit"), limit);
    set_missing(object, &below("completionMode"), "NonIndexed");
    set_missing(object, &below("suspend"), false);
    let policy = if has(object, "podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    set_missing(object, &below("podReplacementPolicy"), policy);
    set_missing(object, &below("manualSelector"), false);
    let mut template = below("template");
    template.push("spec");
    pod_spec(object, &template);
}

fn service(object: &mut Value) {
    set_empty(object, &["spec", "sessionAffinity"], "None");
    if text(object, &["spec", "sessionAffinity"]) == "None" {
        crate::json::remove(object, &["spec", "sessionAffinityConfig"]);
    } else {
        set_missing(
            object,
            &["spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"],
            10_800,
        );
    }
    set_empty(object, &["spec", "type"], "ClusterIP");
    for port in items_mut(object, &["spec", "ports"]) {
        set_empty(port, &["protocol"], "TCP");
        let target = port.get("targetPort");
        let unset = target.is_none_or(|target| target.as_i64() == Some(0) || target.as_str() == Some(""));
        if let (true, Some(number)) = (unset, port.get("port").cloned()) {
            set(port, &["targetPort"], number);
        }
    }
    let kind = text(object, &["spec", "type"]).to_owned();
    let external = !items(object, &["spec", "externalIPs"]).is_empty();
    if ["NodePort", "LoadBalancer"].contains(&kind.as_str()) || (kind == "ClusterIP" && external) {
        set_empty(object, &["spec", "externalTrafficPolicy"], "Cluster");
    }
    if kind != "ExternalName" {
        set_missing(object, &["spec", "internalTrafficPolicy"], "Cluster");
    }
    if kind == "LoadBalancer" {
        set_missing(object, &["spec", "allocateLoadBalancerNodePorts"], true);
        for ingress in items_mut(object, &["status", "loadBalancer", "ingress"]) {
            if !text(ingress, &["ip"]).is_empty() {
                set_missing(ingress, &["ipMode"], "VIP");
            }
        }
    }
}

/// The type, and `stringData`, which the server moves into `data`.
fn secret(object: &mut Value) {
    set_empty(object, &["type"], "Opaque");
    if let Some(Value::Object(texts)) = crate::json::remove(object, &["stringData"]) {
        use base64::Engine as _;
        for (name, value) in texts {
            let bytes = value.as_str().unwrap_or_default().as_bytes();
            let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
            set(object, &["data", &name], encoded);
        }
    }
}

fn namespace(object: &mut Value) {
    let name = text(object, &["metadata", "name"]).to_owned();
    if !name.is_empty() {
        set(
            object,
            &["metadata", "labels", "kubernetes.io/metadata.name"],
            name,
        );
    }
    set_empty(object, &["status", "phase"], "Active");
}

fn limit_range(object: &mut Value) {
    for item in items_mut(object, &["spec", "limits"]) {
        if text(item, &["type"]) != "Container" {
            continue;
        }
        for (from, to) in [
            ("max", "default"),
            ("default", "defaultRequest"),
            ("min", "defaultRequest"),
        ] {
            let source = item
                .get(from)
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default();
            for (name, value) in source {
                set_missing(item, &[to, &name], value);
            }
        }
    }
}

fn network_policy(object: &mut Value) {
    for (direction, _) in [("ingress", "from"), ("egress", "to")] {
        for rule in items_mut(object, &["spec", direction]) {
            for port in items_mut(rule, &["ports"]) {
                set_missing(port, &["protocol"], "TCP");
            }
        }
    }
    if items(object, &["spec", "policyTypes"]).is_empty() {
        let egress = !items(object, &["spec", "egress"]).is_empty();
        let types = if egress {
            json!(["Ingress", "Egress"])
        } else {
            json!(["Ingress"])
        };
        set(object, &["spec", "policyTypes"], types);
    }
}

fn autoscaler(object: &mut Value) {
    if items(object, &["spec", "metrics"]).is_empty() {
        set(
            object,
            &["spec", "metrics"],
            json!([{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 80}}}]),
        );
    }
    if at(object, &["spec", "behavior"]).is_some() {
        let rule = |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
        for (direction, window, policies) in [
            ("scaleUp", Some(0), json!([rule("Pods", 4), rule("Percent", 100)])),
            ("scaleDown", None, json!([rule("Percent", 100)])),
        ] {
            set_missing(object, &["spec", "behavior", direction, "selectPolicy"], "Max");
            if let Some(window) = window {
                set_missing(
                    object,
                    &["spec", "behavior", direction, "stabilizationWindowSeconds"],
                    window,
                );
            }
            set_missing(object, &["spec", "behavior", direction, "policies"], policies);
        }
    }
}

fn custom_resource_definition(object: &mut Value) {
    let kind = text(object, &["spec", "names", "kind"]).to_owned();
    set_empty(object, &["spec", "names", "singular"], &kind.to_lowercase());
    if !kind.is_empty() {
        set_empty(object, &["spec", "names", "listKind"], &format!("{kind}List"));
    }
    set_missing(object, &["spec", "conversion"], json!({"strategy": "None"}));
    let storage = items(object, &["spec", "versions"])
        .iter()
        .find(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
        .map(|version| version["name"].clone());
    let mut stored = items(object, &["status", "storedVersions"]).to_vec();
    if let Some(storage) = storage.filter(|storage| !stored.contains(storage)) {
        stored.push(storage);
        set(object, &["status", "storedVersions"], stored);
    }
}

fn admission(kind: &str, object: &mut Value) {
    let webhook = |hook: &mut Value| {
        set_missing(hook, &["failurePolicy"], "Fail");
        set_missing(hook, &["matchPolicy"], "Equivalent");
        set_missing(hook, &["namespaceSelector"], json!({}));
        set_missing(hook, &["objectSelector"], json!({}));
        set_missing(hook, &["timeoutSeconds"], 10);
        if at(hook, &["clientConfig", "service"]).is_some() {
            set_missing(hook, &["clientConfig", "service", "port"], 443);
        }
        for rule in items_mut(hook, &["rules"]) {
            set_missing(rule, &["scope"], "*");
        }
    };
    match kind {
        "ValidatingWebhookConfiguration" => items_mut(object, &["webhooks"]).for_each(webhook),
        "MutatingWebhookConfiguration" => {
            for hook in items_mut(object, &["webhooks"]) {
                webhook(hook);
                set_missing(hook, &["reinvocationPolicy"], "Never");
            }
        }
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => {
            set_missing(object, &["spec", "failurePolicy"], "Fail");
            match_resources(object, "matchConstraints");
        }
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            match_resources(object, "matchResources");
        }
        _ => {}
    }
}

fn match_resources(object: &mut Value, field: &str) {
    if at(object, &["spec", field]).is_none() {
        return;
    }
    set_missing(object, &["spec", field, "matchPolicy"], "Equivalent");
    set_missing(object, &["spec", field, "namespaceSelector"], json!({}));
    set_missing(object, &["spec", field, "objectSelector"], json!({}));
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in items_mut(object, &["spec", field, list]) {
            set_missing(rule, &["scope"], "*");
        }
    }
}

/// Whether a whole number at a path is absent or zero.
fn is_unset_number(object: &Value, path: &[&str]) -> bool {
    number(object, path).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests;
