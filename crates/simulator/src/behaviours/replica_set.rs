//! Replica sets keep a number of pods.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{is_deleting, is_finished, key_of, pod_from_template, readiness};
use crate::json::{number, set, text};
use crate::object::Key;
use crate::state::{State, random_suffix};
use crate::status::ApiError;
use crate::work::Item;

impl State {
    pub(super) fn reconcile_replica_set(&mut self, key: &Key, now: Instant) -> Result<(), ApiError> {
        let Some((_, set_value)) = self.read("apps", "replicasets", key) else {
            return Ok(());
        };
        if is_deleting(&set_value) {
            return Ok(());
        }
        let uid = text(&set_value, &["metadata", "uid"]).to_owned();
        let wanted =
            usize::try_from(number(&set_value, &["spec", "replicas"]).unwrap_or(1).max(0)).unwrap_or(0);
        self.adopt_pods(&set_value, "ReplicaSet", |_| true)?;
        let mut pods = self.owned("", "pods", &key.namespace, &uid);
        pods.retain(|pod| !is_deleting(pod) && !is_finished(pod));
        if pods.len() < wanted {
            for _ in pods.len()..wanted {
                let mut pod = pod_from_template(&set_value, "apps/v1", "ReplicaSet", &[]);
                set(
                    &mut pod,
                    &["metadata", "name"],
                    format!("{}-{}", key.name, random_suffix()),
                );
                set(&mut pod, &["metadata", "generateName"], format!("{}-", key.name));
                self.seed("", "pods", &key.namespace, pod);
            }
            pods = self.owned("", "pods", &key.namespace, &uid);
            pods.retain(|pod| !is_deleting(pod) && !is_finished(pod));
        } else if pods.len() > wanted {
            // Pods that are not ready go first, then the youngest.
            pods.sort_by_key(|pod| !super::is_true(pod, "Ready"));
            for pod in pods.split_off(wanted) {
                self.remove_object("", "pods", &key_of(&pod))?;
            }
        }
        let min_ready = number(&set_value, &["spec", "minReadySeconds"]).unwrap_or(0);
        let state = readiness(pods.iter(), min_ready, self.now_seconds());
        if let Some(wait) = state.next {
            let wait = Duration::from_secs(u64::try_from(wait).unwrap_or(1));
            self.work.push_at(now + wait, Item::ReplicaSet(key.clone()));
        }
        let count = i64::try_from(pods.len()).unwrap_or(0);
        self.write_status("apps", "replicasets", key, |value| {
            for (field, number) in [
                ("replicas", count),
                ("fullyLabeledReplicas", count),
                ("readyReplicas", state.ready),
                ("availableReplicas", state.available),
            ] {
                set(value, &["status", field], number);
            }
            observe(value);
        })
    }
}

/// Notes in the status which generation it speaks of.
pub(super) fn observe(value: &mut Value) {
    if let Some(generation) = number(value, &["metadata", "generation"]) {
        set(value, &["status", "observedGeneration"], generation);
    }
}
