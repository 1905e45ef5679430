//! Daemon sets keep one pod on each node.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::pod::NODE_ANNOTATION;
use super::replica_set::observe;
use super::{is_deleting, is_true, key_of, pod_from_template, readiness, template_hash};
use crate::json::{number, set, text};
use crate::object::Key;
use crate::state::{State, random_suffix};
use crate::status::ApiError;
use crate::work::Item;

const REVISION_LABEL: &str = "controller-revision-hash";

impl State {
    pub(super) fn reconcile_daemon_set(&mut self, key: &Key, now: Instant) -> Result<(), ApiError> {
        let Some((_, owner)) = self.read("apps", "daemonsets", key) else {
            return Ok(());
        };
        if is_deleting(&owner) {
            return Ok(());
        }
        let uid = text(&owner, &["metadata", "uid"]).to_owned();
        let revision = template_hash(&owner["spec"]["template"]);
        let Some(nodes) = self.id("", "nodes") else {
            return Ok(());
        };
        let nodes: Vec<String> = self
            .store
            .list(nodes, "")
            .map(|node| node.key.name.to_string())
            .collect();
        let pods = self.owned("", "pods", &key.namespace, &uid);
        let on = |pod: &Value, node: &str| text(pod, &["metadata", "annotations", NODE_ANNOTATION]) == node;
        for pod in &pods {
            if !nodes.iter().any(|node| on(pod, node)) && !is_deleting(pod) {
                self.remove_object("", "pods", &key_of(pod))?;
            }
        }
        for node in &nodes {
            if pods.iter().any(|pod| on(pod, node)) {
                continue;
            }
            let labels = [(REVISION_LABEL, revision.as_str())];
            let mut pod = pod_from_template(&owner, "apps/v1", "DaemonSet", &labels);
            set(
                &mut pod,
                &["metadata", "name"],
                format!("{}-{}", key.name, random_suffix()),
            );
            set(&mut pod, &["metadata", "generateName"], format!("{}-", key.name));
            set(
                &mut pod,
                &["metadata", "annotations", NODE_ANNOTATION],
                node.as_str(),
            );
            self.seed("", "pods", &key.namespace, pod);
        }
        if text(&owner, &["spec", "updateStrategy", "type"]) == "RollingUpdate" {
            // One node after the other.
            let settled = pods.iter().all(|pod| is_true(pod, "Ready") && !is_deleting(pod))
                && pods.len() == nodes.len();
            let old = pods
                .iter()
                .find(|pod| text(pod, &["metadata", "labels", REVISION_LABEL]) != revision);
            if let (true, Some(old)) = (settled, old) {
                self.remove_object("", "pods", &key_of(old))?;
            }
        }
        let mut pods = self.owned("", "pods", &key.namespace, &uid);
        pods.retain(|pod| !is_deleting(pod));
        let min_ready = number(&owner, &["spec", "minReadySeconds"]).unwrap_or(0);
        let state = readiness(pods.iter(), min_ready, self.now_seconds());
        if let Some(wait) = state.next {
            let wait = Duration::from_secs(u64::try_from(wait).unwrap_or(1));
            self.work.push_at(now + wait, Item::DaemonSet(key.clone()));
        }
        let updated = pods
            .iter()
            .filter(|pod| text(pod, &["metadata", "labels", REVISION_LABEL]) == revision)
            .count();
        let count = |number: usize| i64::try_from(number).unwrap_or(0);
        let (wanted, current, updated) = (count(nodes.len()), count(pods.len()), count(updated));
        self.write_status("apps", "daemonsets", key, |value| {
            for (field, number) in [
                ("desiredNumberScheduled", wanted),
                ("currentNumberScheduled", current),
                ("numberMisscheduled", 0),
                ("numberReady", state.ready),
                ("numberAvailable", state.available),
                ("numberUnavailable", wanted - state.available),
                ("updatedNumberScheduled", updated),
            ] {
                set(value, &["status", field], number);
            }
            observe(value);
        })
    }
}
