//! Volumes, load balancers and disruption budgets.

use std::time::Instant;

use serde_json::{Value, json};

use super::{Behaviour, behaviour, is_deleting, is_true};
use crate::json::{at, items, number, set, text};
use crate::object::Key;
use crate::selectors::LabelSelector;
use crate::state::State;
use crate::status::ApiError;
use crate::work::Item;

impl State {
    /// A claim is bound to a volume made for it.
    pub(super) fn reconcile_claim(&mut self, key: &Key, now: Instant) -> Result<(), ApiError> {
        let Some((object, claim)) = self.read("", "persistentvolumeclaims", key) else {
            return Ok(());
        };
        let held = matches!(behaviour(&claim), Behaviour::Stuck | Behaviour::Fail);
        if is_deleting(&claim) || held || text(&claim, &["status", "phase"]) == "Bound" {
            return Ok(());
        }
        let delay = self.environment.timing.provision;
        if !self
            .work
            .waited(object.uid, "provision", delay, now, Item::Claim(key.clone()))
        {
            return Ok(());
        }
        if text(&claim, &["spec", "volumeName"]).is_empty() {
            let volume = format!("pvc-{}", object.uid);
            let storage = at(&claim, &["spec", "resources", "requests", "storage"])
                .cloned()
                .unwrap_or_default();
            let class = text(&claim, &["spec", "storageClassName"]).to_owned();
            self.seed(
                "",
                "persistentvolumes",
                "",
                json!({"metadata": {"name": volume}, "spec": {
                    "capacity": {"storage": storage}, "accessModes": claim["spec"]["accessModes"],
                    "persistentVolumeReclaimPolicy": "Delete", "storageClassName": class,
                    "volumeMode": claim["spec"]["volumeMode"],
                    "hostPath": {"path": format!("/var/simulated/{volume}")},
                    "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": *key.namespace,
                        "name": *key.name, "uid": object.uid.to_string()}}}),
            );
            self.write_status("", "persistentvolumes", &Key::new("", &volume), |value| {
                set(value, &["status", "phase"], "Bound");
            })?;
            self.write("", "persistentvolumeclaims", key, |claim| {
                set(claim, &["spec", "volumeName"], volume)
            })?;
        }
        self.write_status("", "persistentvolumeclaims", key, |claim| {
            let modes = claim["spec"]["accessModes"].clone();
            let storage = at(claim, &["spec", "resources", "requests", "storage"]).cloned();
            set(claim, &["status", "phase"], "Bound");
            set(claim, &["status", "accessModes"], modes);
            if let Some(storage) = storage {
                set(claim, &["status", "capacity", "storage"], storage);
            }
        })
    }

    /// A load balancer gets an address.
    pub(super) fn reconcile_service(&mut self, key: &Key, now: Instant) -> Result<(), ApiError> {
        let Some((object, service)) = self.read("", "services", key) else {
            return Ok(());
        };
        if text(&service, &["spec", "type"]) != "LoadBalancer" || is_deleting(&service) {
            return Ok(());
        }
        let held = matches!(behaviour(&service), Behaviour::Stuck | Behaviour::Fail);
        if held || !items(&service, &["status", "loadBalancer", "ingress"]).is_empty() {
            return Ok(());
        }
        let delay = self.environment.timing.provision;
        if !self
            .work
            .waited(object.uid, "provision", delay, now, Item::Service(key.clone()))
        {
            return Ok(());
        }
        let bytes = object.uid.as_bytes();
        let ip = format!("172.18.{}.{}", 200 + bytes[0] % 50, bytes[1]);
        self.write_status("", "services", key, |service| {
            set(
                service,
                &["status", "loadBalancer", "ingress"],
                json!([{"ip": ip, "ipMode": "VIP"}]),
            );
        })
    }

    /// Counts the pods that budgets speak of.
    pub(super) fn reconcile_disruption_budgets(&mut self, namespace: &str) -> Result<(), ApiError> {
        let (Some(budgets), Some(pods)) = (
            self.endpoint("policy", "poddisruptionbudgets"),
            self.endpoint("", "pods"),
        ) else {
            return Ok(());
        };
        let all: Vec<Value> = self
            .store
            .list(budgets.resource.id, namespace)
            .map(|object| budgets.read(object))
            .collect();
        for budget in all {
            let selector = at(&budget, &["spec", "selector"])
                .map(LabelSelector::from_object)
                .unwrap_or_default();
            let matching: Vec<Value> = self
                .store
                .list(pods.resource.id, namespace)
                .filter(|pod| selector.matches(pod))
                .map(|pod| pods.read(pod))
                .filter(|pod| !super::is_finished(pod))
                .collect();
            let expected = i64::try_from(matching.len()).unwrap_or(0);
            let ready = matching
                .iter()
                .filter(|pod| is_true(pod, "Ready") && !is_deleting(pod))
                .count();
            let healthy = i64::try_from(ready).unwrap_or(0);
            let resolve = |value: &Value| match value {
                Value::String(text) => {
                    let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
                    (expected * percent + 99) / 100
                }
                number => number.as_i64().unwrap_or(0),
            };
            let desired = match (
                at(&budget, &["spec", "minAvailable"]),
                at(&budget, &["spec", "maxUnavailable"]),
            ) {
                (Some(least), _) => resolve(least),
                (None, Some(most)) => (expected - resolve(most)).max(0),
                (None, None) => expected,
            };
            let key = super::key_of(&budget);
            let time = crate::clock::format_seconds(self.now_seconds());
            self.write_status("policy", "poddisruptionbudgets", &key, |value| {
                let allowed = if expected == 0 {
                    0
                } else {
                    (healthy - desired).max(0)
                };
                for (field, count) in [
                    ("expectedPods", expected),
                    ("currentHealthy", healthy),
                    ("desiredHealthy", desired),
                    ("disruptionsAllowed", allowed),
                ] {
                    set(value, &["status", field], count);
                }
                let generation = number(value, &["metadata", "generation"]);
                if let Some(generation) = generation {
                    set(value, &["status", "observedGeneration"], generation);
                }
                let (status, reason) = if allowed > 0 {
                    ("True", "SufficientPods")
                } else {
                    ("False", "InsufficientPods")
                };
                super::set_condition(value, &time, "DisruptionAllowed", status, reason, "");
                if let Some(generation) = generation {
                    for condition in crate::json::items_mut(value, &["status", "conditions"]) {
                        set(condition, &["observedGeneration"], generation);
                    }
                }
            })?;
        }
        Ok(())
    }
}
