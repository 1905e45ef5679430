//! The simulated Kubernetes API with its tenants and clusters.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context;
use evenkeel_operator::resources::definitions;
use evenkeel_simulator::{Cluster, Options, Simulator};
use serde_json::{Value, json};

use super::hosts::Hosts;

/// The namespace that the operator looks after.
pub(super) const NAMESPACE: &str = "lieutenant";
/// Group and version of the custom resources.
const GROUP_VERSION: &str = "syn.tools/v1alpha1";
/// Who makes what people make.
const PEOPLE: &str = "bench";
/// Writes that watches can be behind.
const HISTORY: usize = 200_000;
/// How long a kind may take until it is served, and how often that is looked at.
const SERVED_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A key that opens nothing.
const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// All objects.
pub(super) struct Land {
    simulator: Simulator,
    cluster: Cluster,
    tenants: usize,
}

impl Land {
    /// One with everything that people make, and nothing that an operator does.
    pub(super) async fn start(hosts: &Hosts, tenants: usize, clusters: usize) -> anyhow::Result<Self> {
        let options = Options {
            history: HISTORY,
            ..Options::default()
        };
        let simulator = Simulator::start(options).await?;
        let cluster = simulator.add_cluster("bench")?;
        let land = Self {
            simulator,
            cluster,
            tenants: tenants.max(1),
        };
        land.write(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } }))?;
        for definition in definitions() {
            land.write(kind_of(
                serde_json::to_value(definition.object())?,
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
            ))?;
        }
        land.served().await?;
        land.write(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "host", "namespace": NAMESPACE },
            "stringData": { "endpoint": hosts.url(), "token": "glpat-bench", "hostKeys": "git ssh-ed25519 KEY" },
        }))?;
        hosts.make_group("syn");
        for number in 0..land.tenants {
            let name = tenant(number);
            hosts.make_group(&format!("syn/{name}"));
            let cluster_template = json!({
                "gitRepoTemplate": {
                    "apiSecretRef": { "name": "host" }, "path": format!("syn/{name}"), "repoName": "{{ .Name }}",
                    "deployKeys": { "steward": { "type": "ssh-ed25519", "key": KEY } },
                    "accessToken": { "secretRef": "{{ .Name }}-access" },
                },
            });
            let spec = json!({
                "displayName": format!("Tenant {number}"),
                "gitRepoTemplate": {
                    "apiSecretRef": { "name": "host" }, "path": "syn", "repoName": name,
                    "deployKeys": { "steward": { "type": "ssh-ed25519", "key": KEY } },
                },
                "compilePipeline": { "enabled": true },
                "clusterTemplate": cluster_template,
            });
            let made = land.object("Tenant", &name, spec)?;
            land.token(&made)?;
        }
        for number in 0..clusters {
            let made = land.create_cluster(number)?;
            land.token(&made)?;
        }
        Ok(land)
    }

    /// Waits until the kinds that were defined are served.
    async fn served(&self) -> anyhow::Result<()> {
        let serving = async {
            while self
                .cluster
                .list(GROUP_VERSION, "TenantTemplate", NAMESPACE)
                .is_err()
                || self.cluster.list(GROUP_VERSION, "Tenant", NAMESPACE).is_err()
                || self.cluster.list(GROUP_VERSION, "GitRepo", NAMESPACE).is_err()
                || self.cluster.list(GROUP_VERSION, "Cluster", NAMESPACE).is_err()
            {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let served = tokio::time::timeout(SERVED_MAX, serving).await;
        served.context("the custom resources are not served")
    }

    pub(super) fn kubeconfig(&self) -> &str {
        self.cluster.kubeconfig()
    }

    /// What was asked and written since the last reset. What people did is not among it.
    pub(super) fn requests(&self) -> (u64, u64) {
        let counts = self.cluster.counters();
        (counts.requests(), counts.writes())
    }

    pub(super) fn reset_requests(&self) {
        drop(self.cluster.reset_counters());
    }

    /// The tenant of a cluster, by number.
    pub(super) fn tenant_of(&self, number: usize) -> String {
        tenant(number % self.tenants)
    }

    /// Creates a cluster as people do.
    pub(super) fn create_cluster(&self, number: usize) -> anyhow::Result<Value> {
        let spec = json!({
            "displayName": format!("Cluster {number}"), "tenantRef": { "name": self.tenant_of(number) },
            "facts": { "cloud": "cloudscale", "region": "rma1", "distribution": "openshift4" },
            "enableCompilePipeline": true,
        });
        self.object("Cluster", &cluster(number), spec)
    }

    /// Gives a cluster another name for people.
    pub(super) fn rename(&self, number: usize, display_name: &str) -> anyhow::Result<()> {
        let patch = json!({ "spec": { "displayName": display_name, "gitRepoTemplate": { "displayName": display_name } } });
        self.cluster.patch(
            PEOPLE,
            GROUP_VERSION,
            "Cluster",
            NAMESPACE,
            &cluster(number),
            patch,
        )?;
        Ok(())
    }

    /// Puts a token into the Secret of an account that the operator made, as Kubernetes does.
    pub(super) fn issue(&self, number: usize) -> anyhow::Result<()> {
        let patch = json!({ "data": { "token": "dG9rZW4=" } });
        self.cluster.patch(
            "kube-controller-manager",
            "v1",
            "Secret",
            NAMESPACE,
            &cluster(number),
            patch,
        )?;
        Ok(())
    }

    /// How many objects are not ready for what their specification says now, with one of them.
    pub(super) fn unready(&self) -> anyhow::Result<(usize, String)> {
        let mut unready = (0, String::new());
        for kind in ["Tenant", "Cluster", "GitRepo"] {
            for object in self.cluster.list(GROUP_VERSION, kind, NAMESPACE)? {
                let conditions = object["status"]["conditions"].as_array();
                let ready = conditions
                    .into_iter()
                    .flatten()
                    .find(|condition| condition["type"] == "Ready");
                let is_ready = ready.is_some_and(|ready| {
                    ready["status"] == "True"
                        && ready["observedGeneration"] == object["metadata"]["generation"]
                });
                if !is_ready {
                    unready.0 += 1;
                    unready.1 = format!(
                        "{kind} {}: {}",
                        object["metadata"]["name"],
                        ready.map_or(&Value::Null, |ready| &ready["message"])
                    );
                }
            }
        }
        Ok(unready)
    }

    /// How many objects there are by kind.
    pub(super) fn count(&self) -> anyhow::Result<HashMap<&'static str, usize>> {
        let kinds = [
            ("tenant", "Tenant"),
            ("cluster", "Cluster"),
            ("gitrepo", "GitRepo"),
        ];
        kinds
            .into_iter()
            .map(|(pipeline, kind)| Ok((pipeline, self.cluster.list(GROUP_VERSION, kind, NAMESPACE)?.len())))
            .collect()
    }

    pub(super) async fn stop(self) {
        self.simulator.stop().await;
    }

    fn object(&self, kind: &str, name: &str, spec: Value) -> anyhow::Result<Value> {
        self.write(json!({
            "apiVersion": GROUP_VERSION, "kind": kind,
            "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec,
        }))
    }

    /// The Secret with the token of an object's account, as Kubernetes fills it in.
    fn token(&self, owner: &Value) -> anyhow::Result<()> {
        let metadata = &owner["metadata"];
        let reference = json!({
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"],
            "uid": metadata["uid"], "controller": true, "blockOwnerDeletion": true,
        });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {
                "name": metadata["name"], "namespace": NAMESPACE, "ownerReferences": [reference],
                "annotations": { "kubernetes.io/service-account.name": metadata["name"] },
            },
            "stringData": { "token": format!("token-of-{}", metadata["name"].as_str().unwrap_or_default()) },
        });
        self.write(secret)?;
        Ok(())
    }

    fn write(&self, object: Value) -> anyhow::Result<Value> {
        let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
        let made = self.cluster.create(PEOPLE, object);
        made.with_context(|| format!("{what} cannot be created"))
    }
}

fn kind_of(mut object: Value, api_version: &str, kind: &str) -> Value {
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object
}

fn tenant(number: usize) -> String {
    format!("t-{number}")
}

pub(super) fn cluster(number: usize) -> String {
    format!("c-{number}")
}
