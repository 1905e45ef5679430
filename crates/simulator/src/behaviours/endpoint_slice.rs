//! Endpoint slices tell which pods stand behind a service.
//!
//! As the real controller: one slice for a service with a selector, also when nothing stands behind it, with the service's
//! labels; pods that have ended are left out, those that terminate are told as such. It splits large services over several
//! slices, and so by ports that differ between pods; here there is always one, with the ports of the first pod.

use serde_json::{Value, json};

use super::{controller_reference, is_deleting, is_finished, is_true, key_of};
use crate::json::{at, items, number, set, text};
use crate::object::Key;
use crate::selectors::LabelSelector;
use crate::state::{State, random_suffix};
use crate::status::ApiError;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const HEADLESS: &str = "service.kubernetes.io/headless";
const CONTROLLER_NAME: &str = "endpointslice-controller.k8s.io";
const GROUP: &str = "discovery.k8s.io";
const SLICES: &str = "endpointslices";

impl State {
    pub(super) fn reconcile_endpoint_slices(&mut self, namespace: &str) -> Result<(), ApiError> {
        let Some(services) = self.endpoint("", "services") else {
            return Ok(());
        };
        let selecting: Vec<Value> = self
            .store
            .list(services.resource.id, namespace)
            .map(|service| services.read(service))
            .filter(|service| selects_pods(service) && !is_deleting(service))
            .collect();
        for service in selecting {
            self.write_endpoint_slice(namespace, &service)?;
        }
        Ok(())
    }

    fn write_endpoint_slice(&mut self, namespace: &str, service: &Value) -> Result<(), ApiError> {
        let pods = self.pods_behind(namespace, service);
        let endpoints: Vec<Value> = pods.iter().map(|pod| endpoint(pod, service)).collect();
        let ports = ports(service, pods.first());
        let labels = labels(service);
        let uid = text(service, &["metadata", "uid"]);
        let known = self.owned(GROUP, SLICES, namespace, uid);
        if let Some(slice) = known.iter().find(|slice| !is_deleting(slice)) {
            return self.write(GROUP, SLICES, &key_of(slice), |slice| {
                set(slice, &["metadata", "labels"], labels);
                set(slice, &["endpoints"], endpoints);
                set(slice, &["ports"], ports);
            });
        }
        let name = text(service, &["metadata", "name"]);
        self.seed(
            GROUP,
            SLICES,
            namespace,
            json!({
                "metadata": {
                    "name": format!("{name}-{}", random_suffix()), "generateName": format!("{name}-"),
                    "namespace": namespace, "labels": labels,
                    "ownerReferences": [controller_reference("v1", "Service", service)],
                },
                "addressType": "IPv4", "endpoints": endpoints, "ports": ports,
            }),
        );
        Ok(())
    }

    /// The pods that a service selects and that have an address, by name.
    fn pods_behind(&self, namespace: &str, service: &Value) -> Vec<Value> {
        let Some(pods) = self.endpoint("", "pods") else {
            return Vec::new();
        };
        let labels = at(service, &["spec", "selector"]).cloned().unwrap_or_default();
        let selector = LabelSelector::from_object(&json!({ "matchLabels": labels }));
        let mut behind: Vec<(Key, Value)> = self
            .store
            .list(pods.resource.id, namespace)
            .filter(|pod| selector.matches(pod))
            .map(|pod| (pod.key.clone(), pods.read(pod)))
            .filter(|(_, pod)| !is_finished(pod) && !text(pod, &["status", "podIP"]).is_empty())
            .collect();
        behind.sort_by(|(a, _), (b, _)| a.cmp(b));
        behind.into_iter().map(|(_, pod)| pod).collect()
    }
}

/// Whether the controller keeps slices of a service: one without a selector has them from somebody else.
fn selects_pods(service: &Value) -> bool {
    let selector = at(service, &["spec", "selector"]).and_then(Value::as_object);
    selector.is_some_and(|selector| !selector.is_empty())
        && text(service, &["spec", "type"]) != "ExternalName"
}

fn labels(service: &Value) -> Value {
    let mut labels = at(service, &["metadata", "labels"])
        .cloned()
        .unwrap_or_else(|| json!({}));
    set(&mut labels, &[SERVICE_NAME], text(service, &["metadata", "name"]));
    set(&mut labels, &[MANAGED_BY], CONTROLLER_NAME);
    if text(service, &["spec", "clusterIP"]) == "None" {
        set(&mut labels, &[HEADLESS], "");
    }
    labels
}

fn endpoint(pod: &Value, service: &Value) -> Value {
    let serving = is_true(pod, "Ready");
    let terminating = is_deleting(pod);
    let anyway = at(service, &["spec", "publishNotReadyAddresses"]).and_then(Value::as_bool) == Some(true);
    let metadata = |field: &str| text(pod, &["metadata", field]);
    json!({
        "addresses": [text(pod, &["status", "podIP"])],
        "conditions": {"ready": anyway || serving && !terminating, "serving": serving, "terminating": terminating},
        "nodeName": text(pod, &["spec", "nodeName"]),
        "targetRef": {"kind": "Pod", "namespace": metadata("namespace"), "name": metadata("name"), "uid": metadata("uid")},
    })
}

/// The ports of the pods that those of a service lead to; none without a pod.
fn ports(service: &Value, pod: Option<&Value>) -> Vec<Value> {
    let Some(pod) = pod else { return Vec::new() };
    let ports = items(service, &["spec", "ports"]).iter();
    ports
        .filter_map(|port| {
            let number = match at(port, &["targetPort"]) {
                Some(Value::String(name)) => named_port(pod, name)?,
                Some(target) => target.as_i64()?,
                None => number(port, &["port"])?,
            };
            Some(
                json!({"name": text(port, &["name"]), "port": number, "protocol": text(port, &["protocol"])}),
            )
        })
        .collect()
}

fn named_port(pod: &Value, name: &str) -> Option<i64> {
    let containers = items(pod, &["spec", "containers"]).iter();
    let mut ports = containers.flat_map(|container| items(container, &["ports"]));
    let port = ports.find(|port| text(port, &["name"]) == name)?;
    number(port, &["containerPort"])
}
