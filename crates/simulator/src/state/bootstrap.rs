//! What a cluster has before anyone uses it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{Decoded, State};
use crate::environment::Environment;
use crate::json::set;
use crate::object::Key;
use crate::registry::Registry;
use crate::request::{FieldValidation, WriteOptions};
use crate::store::Store;
use crate::work::Work;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// An identity that is the same each time a cluster of this name is made.
fn stable_uid(cluster: &str, what: &str) -> Uuid {
    let digest = Sha256::new()
        .chain_update(cluster)
        .chain_update([0])
        .chain_update(what)
        .finalize();
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

impl State {
    /// A new cluster with its namespaces, their accounts, the API server's service and the nodes.
    pub(crate) fn bootstrap(name: &str, environment: Arc<Environment>) -> Self {
        let mut state = Self {
            store: Store::new(environment.history),
            environment,
            registry: Registry::new(),
            work: Work::default(),
            addresses: BTreeSet::new(),
            node_ports: BTreeSet::new(),
        };
        for namespace in NAMESPACES {
            state.seed("", "namespaces", "", json!({"metadata": {"name": namespace}}));
            state.identify("namespaces", namespace, stable_uid(name, namespace));
            state.furnish_namespace(namespace);
        }
        state.seed(
            "",
            "services",
            "default",
            json!({"metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
                "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 6443}]}}),
        );
        for node in 1..=state.environment.nodes {
            let node_name = format!("node-{node}");
            state.seed(
                "",
                "nodes",
                "",
                json!({"metadata": {"name": node_name, "labels": {"kubernetes.io/hostname": node_name,
                    "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}, "spec": {}}),
            );
            state.node_ready(&node_name, node);
        }
        state
    }

    /// The service account and the root certificates that controllers put into each namespace.
    pub(crate) fn furnish_namespace(&mut self, namespace: &str) {
        let missing = |state: &Self, plural: &str, name: &str| {
            state
                .id("", plural)
                .is_some_and(|id| state.store.get(id, &Key::new(namespace, name)).is_none())
        };
        if missing(self, "serviceaccounts", "default") {
            self.seed(
                "",
                "serviceaccounts",
                namespace,
                json!({"metadata": {"name": "default"}}),
            );
        }
        if missing(self, "configmaps", "kube-root-ca.crt") {
            let certificate = self.environment.ca_certificate.clone();
            let note = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints \
                        such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
                        distributions of Kubernetes clusters.";
            self.seed(
                "",
                "configmaps",
                namespace,
                json!({"metadata": {"name": "kube-root-ca.crt",
                    "annotations": {"kubernetes.io/description": note}}, "data": {"ca.crt": certificate}}),
            );
        }
    }

    fn node_ready(&mut self, name: &str, number: u32) {
        let now = crate::clock::format_seconds(self.now_seconds());
        let Some(endpoint) = self.endpoint("", "nodes") else {
            return;
        };
        let version = crate::discovery::GIT_VERSION;
        let status = json!({
            "capacity": {"cpu": "64", "memory": "256Gi", "pods": "1000"},
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "1000"},
            "addresses": [{"type": "InternalIP", "address": format!("172.18.0.{}", number.min(250) + 1)},
                {"type": "Hostname", "address": name}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                "message": "kubelet is posting ready status", "lastHeartbeatTime": now, "lastTransitionTime": now}],
            "nodeInfo": {"kubeletVersion": version, "kubeProxyVersion": version, "architecture": "amd64",
                "operatingSystem": "linux", "osImage": "Simulated", "kernelVersion": "6.12",
                "containerRuntimeVersion": "simulated://1.0", "machineID": "", "systemUUID": "", "bootID": ""},
        });
        // A new node has nothing that could refuse its status.
        let _ = self.change(&endpoint, &Key::new("", name), "status", "kubelet", |node| {
            set(node, &["status"], status)
        });
    }

    /// Creates one of the cluster's own objects.
    pub(crate) fn seed(&mut self, group: &str, plural: &str, namespace: &str, value: Value) -> bool {
        let Some(endpoint) = self.endpoint(group, plural) else {
            return false;
        };
        let options = WriteOptions {
            manager: "kube-controller-manager".into(),
            dry_run: false,
            validation: FieldValidation::Ignore,
            force: false,
        };
        let Ok(Decoded { value, warnings }) = self.decode(&endpoint, value) else {
            return false;
        };
        let created = self.create(&endpoint, namespace, Decoded { value, warnings }, None, &options);
        if let Err(error) = &created {
            tracing::debug!(%plural, error = %error.message, "the simulator could not create an object of its own");
        }
        created.is_ok()
    }

    fn identify(&mut self, plural: &str, name: &str, uid: Uuid) {
        let Some(endpoint) = self.endpoint("", plural) else {
            return;
        };
        let key = Key::new("", name);
        if let Some(object) = self.store.remove(endpoint.resource.id, &key) {
            self.store.put(endpoint.resource.id, object.with_uid(uid));
        }
    }
}
