//! One change of an immutable field for every rule there is: an object before and after, which the server must refuse.

use serde_json::{Value, json};

use crate::documents::pod_template;

/// What the rule of a kind does with the change when no annotation says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Deleted and made again.
    Recreate,
    /// Deleted without its pods and made again.
    OrphanRecreate,
    /// Refused before anything is written.
    Refuse,
}

/// A change that the server refuses.
pub(crate) struct Pair {
    pub(crate) what: &'static str,
    pub(crate) collection: &'static str,
    pub(crate) before: Value,
    pub(crate) after: Value,
    /// The field that must be named.
    pub(crate) field: &'static str,
    pub(crate) expected: Expected,
}

fn pair(
    what: &'static str,
    collection: &'static str,
    before: Value,
    changes: &[(&str, Value)],
    field: &'static str,
    expected: Expected,
) -> Pair {
    let mut after = before.clone();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        after.pointer_mut(parent).unwrap()[key] = value.clone();
    }
    Pair {
        what,
        collection,
        before,
        after,
        field,
        expected,
    }
}

fn workload(kind: &str, name: &str, extra: &Value) -> Value {
    let mut spec =
        json!({"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": pod_template(name)});
    spec.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    if kind == "DaemonSet" {
        spec.as_object_mut().unwrap().remove("replicas");
        spec["template"]["spec"]["nodeSelector"] = json!({"nowhere": "true"});
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn relabelled(name: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("/spec/selector/matchLabels", json!({"app": format!("{name}-2")})),
        (
            "/spec/template/metadata/labels",
            json!({"app": format!("{name}-2")}),
        ),
    ]
}

fn job(name: &str) -> Value {
    let mut template = pod_template(name);
    template["spec"]["restartPolicy"] = json!("Never");
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
           "spec": {"backoffLimit": 0, "completions": 1, "template": template}})
}

fn claim(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
           "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "nobody", "resources": {"requests": {"storage": "2Gi"}}}})
}

/// Every pair. `unique` makes the names of cluster-scoped objects nobody else's.
#[allow(clippy::too_many_lines, reason = "a table")]
pub(crate) fn all(unique: &str) -> Vec<Pair> {
    use Expected::{OrphanRecreate, Recreate, Refuse};
    let rbac = "rbac.authorization.k8s.io";
    let global = |suffix: &str| format!("{unique}-{suffix}");
    let templates = json!({"serviceName": "db", "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]});
    let mut other_templates = templates["volumeClaimTemplates"].clone();
    other_templates[0]["spec"]["resources"]["requests"]["storage"] = json!("2Gi");
    let mut indexed = job("indexed");
    indexed["spec"]["completionMode"] = json!("NonIndexed");
    vec![
        pair(
            "a Job's template",
            "jobs",
            job("job"),
            &[(
                "/spec/template/spec/containers/0/image",
                json!("registry.example/main:2"),
            )],
            "spec.template",
            Recreate,
        ),
        pair(
            "a Job's completions",
            "jobs",
            job("count"),
            &[("/spec/completions", json!(2))],
            "spec.completions",
            Recreate,
        ),
        pair(
            "a Job's completion mode",
            "jobs",
            indexed,
            &[("/spec/completionMode", json!("Indexed"))],
            "spec.completionMode",
            Recreate,
        ),
        pair(
            "a StatefulSet's claim templates",
            "statefulsets",
            workload("StatefulSet", "db", &templates),
            &[("/spec/volumeClaimTemplates", other_templates)],
            "spec.volumeClaimTemplates",
            OrphanRecreate,
        ),
        pair(
            "a StatefulSet's service",
            "statefulsets",
            workload("StatefulSet", "svc", &json!({"serviceName": "a"})),
            &[("/spec/serviceName", json!("b"))],
            "spec.serviceName",
            OrphanRecreate,
        ),
        pair(
            "a StatefulSet's pod management",
            "statefulsets",
            workload("StatefulSet", "mgmt", &json!({"serviceName": "a"})),
            &[("/spec/podManagementPolicy", json!("Parallel"))],
            "spec.podManagementPolicy",
            OrphanRecreate,
        ),
        pair(
            "a StatefulSet's selector, which its pods do not match",
            "statefulsets",
            workload("StatefulSet", "sel", &json!({"serviceName": "a"})),
            &relabelled("sel"),
            "spec.selector",
            Refuse,
        ),
        pair(
            "a Deployment's selector",
            "deployments",
            workload("Deployment", "web", &json!({})),
            &relabelled("web"),
            "spec.selector",
            Refuse,
        ),
        pair(
            "a DaemonSet's selector",
            "daemonsets",
            workload("DaemonSet", "agent", &json!({})),
            &relabelled("agent"),
            "spec.selector",
            Refuse,
        ),
        pair(
            "a ReplicaSet's selector",
            "replicasets",
            workload("ReplicaSet", "rs", &json!({})),
            &relabelled("rs"),
            "spec.selector",
            Refuse,
        ),
        pair(
            "a Service's address",
            "services",
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "addr"},
                "spec": {"clusterIP": "None", "selector": {"app": "x"}, "ports": [{"port": 80}]}}),
            &[("/spec/clusterIP", json!("10.0.0.77"))],
            "spec.clusterIP",
            Refuse,
        ),
        pair(
            "a claim's class",
            "persistentvolumeclaims",
            claim("class"),
            &[("/spec/storageClassName", json!("other"))],
            "spec.storageClassName",
            Refuse,
        ),
        pair(
            "a claim's access",
            "persistentvolumeclaims",
            claim("access"),
            &[("/spec/accessModes", json!(["ReadWriteMany"]))],
            "spec.accessModes",
            Refuse,
        ),
        pair(
            "a ConfigMap that is sealed",
            "configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sealed"}, "immutable": true, "data": {"a": "1"}}),
            &[("/data/a", json!("2"))],
            "data",
            Refuse,
        ),
        pair(
            "a ConfigMap that is unsealed",
            "configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unsealed"}, "immutable": true, "data": {"a": "1"}}),
            &[("/immutable", json!(false))],
            "immutable",
            Refuse,
        ),
        pair(
            "a Secret that is sealed",
            "secrets",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sealed"}, "immutable": true, "stringData": {"a": "1"}}),
            &[("/stringData/a", json!("2"))],
            "data",
            Refuse,
        ),
        pair(
            "a Secret's type",
            "secrets",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "type"}, "type": "a.example/b", "stringData": {"a": "1"}}),
            &[("/type", json!("a.example/c"))],
            "type",
            Refuse,
        ),
        pair(
            "a RoleBinding's role",
            "rolebindings",
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": "rb"},
                   "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "view"}, "subjects": []}),
            &[("/roleRef/name", json!("edit"))],
            "roleRef",
            Recreate,
        ),
        pair(
            "a ClusterRoleBinding's role",
            "clusterrolebindings",
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": global("crb")},
                   "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "view"}, "subjects": []}),
            &[("/roleRef/name", json!("edit"))],
            "roleRef",
            Recreate,
        ),
        pair(
            "a StorageClass's parameters",
            "storageclasses",
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": global("sc")},
                   "provisioner": "a.example/b", "parameters": {"type": "slow"}}),
            &[("/parameters/type", json!("fast"))],
            "parameters",
            Refuse,
        ),
        pair(
            "a StorageClass's provisioner",
            "storageclasses",
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": global("sc2")}, "provisioner": "a.example/b"}),
            &[("/provisioner", json!("a.example/c"))],
            "provisioner",
            Refuse,
        ),
        pair(
            "a StorageClass's binding mode",
            "storageclasses",
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": global("sc3")},
                   "provisioner": "a.example/b", "volumeBindingMode": "Immediate"}),
            &[("/volumeBindingMode", json!("WaitForFirstConsumer"))],
            "volumeBindingMode",
            Refuse,
        ),
        pair(
            "a StorageClass's reclaim policy",
            "storageclasses",
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": global("sc4")},
                   "provisioner": "a.example/b", "reclaimPolicy": "Delete"}),
            &[("/reclaimPolicy", json!("Retain"))],
            "reclaimPolicy",
            Refuse,
        ),
        pair(
            "a PriorityClass's value",
            "priorityclasses",
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": global("pc")}, "value": 5}),
            &[("/value", json!(6))],
            "value",
            Refuse,
        ),
        pair(
            "a PriorityClass's preemption",
            "priorityclasses",
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": global("pc2")}, "value": 5,
                   "preemptionPolicy": "Never"}),
            &[("/preemptionPolicy", json!("PreemptLowerPriority"))],
            "preemptionPolicy",
            Refuse,
        ),
        pair(
            "an IngressClass's controller",
            "ingressclasses",
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": global("ic")},
                   "spec": {"controller": "a.example/b"}}),
            &[("/spec/controller", json!("a.example/c"))],
            "spec.controller",
            Refuse,
        ),
        pair(
            "a RuntimeClass's handler",
            "runtimeclasses",
            json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": global("rc")}, "handler": "a"}),
            &[("/handler", json!("b"))],
            "handler",
            Refuse,
        ),
        pair(
            "a PersistentVolume's source",
            "persistentvolumes",
            json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": global("pv")}, "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "nobody",
                "hostPath": {"path": "/tmp/a"}}}),
            &[("/spec/hostPath/path", json!("/tmp/b"))],
            "spec.hostPath",
            Refuse,
        ),
        pair(
            "a Pod's environment",
            "pods",
            {
                let mut pod = pod_template("bare");
                pod["apiVersion"] = json!("v1");
                pod["kind"] = json!("Pod");
                pod["metadata"]["name"] = json!("bare");
                pod
            },
            &[("/spec/hostname", json!("other"))],
            "spec.hostname",
            Refuse,
        ),
        pair(
            "an EndpointSlice's address type",
            "endpointslices",
            json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "es"}, "addressType": "IPv4", "endpoints": []}),
            &[("/addressType", json!("IPv6"))],
            "addressType",
            Refuse,
        ),
    ]
}
