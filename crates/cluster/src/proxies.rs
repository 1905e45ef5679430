//! Restarting the workloads whose pods run another proxy than the one that is injected now, or lack theirs.
//!
//! A pod gets its proxy when it is made, so a new version of the proxy reaches those that are made anew. Workloads are
//! rolled as `kubectl rollout restart` does, by an annotation of their template, which names the image: each is restarted
//! once for it, whatever comes of that, and never again by a repeated attempt.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::{ObjectRef, SkippedObject};
use serde_json::{Value, json};

use crate::guard::Attempt;
use crate::objects::{Selection, built_in, namespaces};
use crate::{Cluster, Error, Resource};

/// The annotation of a pod template that names the proxy for which it was changed.
pub const RESTARTED_FOR_PROXY: &str = "evenkeel.dev/restarted-for-proxy";
/// The field manager of that annotation: workloads of others stay theirs in everything else.
const MANAGER: &str = "evenkeel-proxies";
/// How Istio is told to inject, by namespace.
const INJECTION_LABEL: &str = "istio-injection=enabled";
/// How a pod says that it wants no proxy, as label or annotation.
const INJECT: &str = "sidecar.istio.io/inject";

/// The proxies that pods should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxies {
    /// The name of their container.
    pub container: String,
    /// The image that new pods get.
    pub image: String,
}

/// What is to be restarted, and what cannot be.
#[derive(Clone, Debug, Default)]
pub struct ProxyRestarts {
    workloads: Vec<Workload>,
    /// Pods with another proxy, or without theirs, that nobody makes anew by being asked to, and why.
    pub left: Vec<SkippedObject>,
}

#[derive(Clone, Debug)]
struct Workload {
    object: ObjectRef,
    uid: String,
}

impl ProxyRestarts {
    /// The workloads to be restarted.
    pub fn workloads(&self) -> impl ExactSizeIterator<Item = &ObjectRef> {
        self.workloads.iter().map(|workload| &workload.object)
    }
}

/// Who makes a pod anew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Maker {
    kind: String,
    name: String,
}

impl Cluster {
    /// Looks for workloads whose pods run another proxy than `proxies`, or lack theirs where a namespace wants it.
    ///
    /// # Errors
    /// Whatever a request fails with.
    pub async fn stale_proxies(&self, proxies: &Proxies) -> Result<ProxyRestarts, Error> {
        let injected = Selection {
            labels: INJECTION_LABEL,
            ..Selection::default()
        };
        let injected = self.list_live(&namespaces(), injected).await?.items;
        let injected: BTreeSet<String> = injected.into_iter().map(|namespace| namespace.name).collect();
        // Of each page only what matters is kept: there may be many pods.
        let mut stale: Vec<(ObjectRef, Option<Maker>)> = Vec::new();
        self.visit_full(&pods(), Selection::default(), |pod| {
            if is_stale(&pod, proxies, &injected) {
                stale.push((pod_ref(&pod), maker(&pod)));
            }
        })
        .await?;
        let mut restarts = ProxyRestarts::default();
        let mut seen: BTreeMap<(String, Maker), ()> = BTreeMap::new();
        for (pod, maker) in stale {
            let Some(maker) = maker else {
                restarts.left.push(skipped(pod, "nobody makes it anew"));
                continue;
            };
            let namespace = pod.namespace.clone().unwrap_or_default();
            let maker = self.above(&namespace, maker).await?;
            if seen.insert((namespace.clone(), maker.clone()), ()).is_some() {
                continue;
            }
            let Some(resource) = rolled(&maker.kind) else {
                let reason = format!("a {} is not restarted", maker.kind);
                restarts.left.push(skipped(pod, &reason));
                continue;
            };
            let object = ObjectRef {
                group: resource.kind.group.clone(),
                kind: resource.kind.kind.clone(),
                namespace: Some(namespace),
                name: maker.name,
            };
            // Gone in between: then its pods go, too.
            let Some(found) = self.get_full(&resource, &object).await? else {
                continue;
            };
            if annotation(&found) == Some(proxies.image.as_str()) {
                let reason = "it was restarted for this proxy already, and its pods have another still";
                restarts.left.push(skipped(object, reason));
                continue;
            }
            let text = |pointer: &str| {
                let text = found.pointer(pointer).and_then(Value::as_str);
                text.unwrap_or_default().to_owned()
            };
            restarts.workloads.push(Workload {
                uid: text("/metadata/uid"),
                object,
            });
        }
        restarts.workloads.sort_by(|a, b| a.object.cmp(&b.object));
        Ok(restarts)
    }

    /// Restarts the workloads of `restarts`, one after the other; `told` hears of each. One that went since it was looked at
    /// is passed over: what comes in its place has the new proxy.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the guard ended the work; whatever a request fails with.
    pub async fn restart_for_proxies(
        &self,
        proxies: &Proxies,
        restarts: &ProxyRestarts,
        attempt: &Attempt,
        mut told: impl FnMut(&ObjectRef),
    ) -> Result<usize, Error> {
        let mut restarted = 0;
        for workload in &restarts.workloads {
            let Some(resource) = rolled(&workload.object.kind) else {
                continue;
            };
            let body = restart(&resource, workload, &proxies.image)
                .to_string()
                .into_bytes();
            let applied = self
                .apply_as(MANAGER, &resource, &workload.object, body, true, &*attempt.guard)
                .await;
            match applied {
                Ok(_) => {
                    told(&workload.object);
                    restarted += 1;
                }
                Err(Error::Conflict { .. } | Error::NotFound { .. }) => {
                    tracing::debug!(object = %workload.object, "it went while its proxies were looked at");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(restarted)
    }

    /// Who makes what `maker` makes, where that is made itself: a ReplicaSet of a Deployment.
    async fn above(&self, namespace: &str, found: Maker) -> Result<Maker, Error> {
        if found.kind != "ReplicaSet" {
            return Ok(found);
        }
        let resource = built_in("apps", "v1", "ReplicaSet", "replicasets", true);
        let object = ObjectRef {
            group: "apps".to_owned(),
            kind: found.kind.clone(),
            namespace: Some(namespace.to_owned()),
            name: found.name.clone(),
        };
        let set = self.get_full(&resource, &object).await?;
        Ok(set.as_ref().and_then(maker).unwrap_or(found))
    }
}

fn pods() -> std::sync::Arc<Resource> {
    built_in("", "v1", "Pod", "pods", true)
}

/// The kinds that make their pods anew when their template changes.
fn rolled(kind: &str) -> Option<std::sync::Arc<Resource>> {
    let plural = match kind {
        "Deployment" => "deployments",
        "StatefulSet" => "statefulsets",
        "DaemonSet" => "daemonsets",
        _ => return None,
    };
    Some(built_in("apps", "v1", kind, plural, true))
}

fn restart(resource: &Resource, workload: &Workload, image: &str) -> Value {
    json!({
        "apiVersion": format!("{}/{}", resource.kind.group, resource.kind.version),
        "kind": resource.kind.kind,
        "metadata": {
            "name": workload.object.name,
            "namespace": workload.object.namespace,
            // That very one, whatever else of it changes meanwhile.
            "uid": workload.uid,
        },
        "spec": {"template": {"metadata": {"annotations": {RESTARTED_FOR_PROXY: image}}}},
    })
}

fn annotation(workload: &Value) -> Option<&str> {
    let annotations = workload.pointer("/spec/template/metadata/annotations")?;
    annotations.get(RESTARTED_FOR_PROXY)?.as_str()
}

/// Whether a pod should have another proxy than it has.
fn is_stale(pod: &Value, proxies: &Proxies, injected: &BTreeSet<String>) -> bool {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let ends = !text("/metadata/deletionTimestamp").is_empty()
        || matches!(text("/status/phase"), "Succeeded" | "Failed");
    if ends {
        return false;
    }
    // A native sidecar is an init container.
    let mut containers = ["/spec/containers", "/spec/initContainers"]
        .into_iter()
        .filter_map(|pointer| pod.pointer(pointer)?.as_array())
        .flatten();
    let proxy = containers.find(|container| container["name"] == proxies.container.as_str());
    if let Some(proxy) = proxy {
        return proxy["image"] != proxies.image.as_str();
    }
    let says = |place: &str| {
        pod.pointer(place)
            .and_then(|map| map.get(INJECT))
            .and_then(Value::as_str)
    };
    let refuses = says("/metadata/labels").or_else(|| says("/metadata/annotations")) == Some("false")
        || pod.pointer("/spec/hostNetwork") == Some(&Value::Bool(true));
    injected.contains(text("/metadata/namespace")) && !refuses
}

fn pod_ref(pod: &Value) -> ObjectRef {
    let text = |pointer: &str| {
        pod.pointer(pointer)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    ObjectRef {
        group: String::new(),
        kind: "Pod".to_owned(),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name").unwrap_or_default(),
    }
}

/// The owner that makes an object.
fn maker(object: &Value) -> Option<Maker> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    Some(Maker {
        kind: owner["kind"].as_str()?.to_owned(),
        name: owner["name"].as_str()?.to_owned(),
    })
}

fn skipped(object: ObjectRef, reason: &str) -> SkippedObject {
    SkippedObject {
        object,
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stale(pod: Value) -> bool {
        let proxies = Proxies {
            container: "istio-proxy".to_owned(),
            image: "proxyv2:2".to_owned(),
        };
        is_stale(&pod, &proxies, &BTreeSet::from(["shop".to_owned()]))
    }

    fn pod(namespace: &str, containers: Value) -> Value {
        json!({"metadata": {"name": "p", "namespace": namespace}, "spec": {"containers": containers}})
    }

    #[test]
    fn another_image_is_stale_wherever_the_proxy_stands() {
        let with =
            |image: &str| json!([{"name": "web", "image": "web:1"}, {"name": "istio-proxy", "image": image}]);
        assert!(stale(pod("elsewhere", with("proxyv2:1"))));
        assert!(!stale(pod("elsewhere", with("proxyv2:2"))));
        let mut native = pod("elsewhere", json!([{"name": "web", "image": "web:1"}]));
        native["spec"]["initContainers"] = json!([{"name": "istio-proxy", "image": "proxyv2:1"}]);
        assert!(stale(native.clone()));
        native["status"]["phase"] = json!("Succeeded");
        assert!(!stale(native), "what has ended is made anew by nobody");
    }

    #[test]
    fn a_missing_proxy_is_stale_only_where_one_is_wanted() {
        let bare = |namespace: &str| pod(namespace, json!([{"name": "web", "image": "web:1"}]));
        assert!(stale(bare("shop")));
        assert!(!stale(bare("elsewhere")));
        let mut refusing = bare("shop");
        refusing["metadata"]["labels"] = json!({INJECT: "false"});
        assert!(!stale(refusing));
        let mut on_host = bare("shop");
        on_host["spec"]["hostNetwork"] = json!(true);
        assert!(!stale(on_host));
    }
}
