//! Stateful sets keep numbered pods, one after the other.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::replica_set::observe;
use super::{is_deleting, is_true, key_of, pod_from_template, readiness, template_hash};
use crate::json::{at, items, number, set, text};
use crate::object::Key;
use crate::state::State;
use crate::status::ApiError;
use crate::work::Item;

const REVISION_LABEL: &str = "controller-revision-hash";

fn ordinal(pod: &Value) -> i64 {
    let name = text(pod, &["metadata", "name"]);
    name.rsplit_once('-')
        .and_then(|(_, number)| number.parse().ok())
        .unwrap_or(-1)
}

impl State {
    pub(super) fn reconcile_stateful_set(&mut self, key: &Key, now: Instant) -> Result<(), ApiError> {
        let Some((_, owner)) = self.read("apps", "statefulsets", key) else {
            return Ok(());
        };
        if is_deleting(&owner) {
            return Ok(());
        }
        let uid = text(&owner, &["metadata", "uid"]).to_owned();
        let wanted = number(&owner, &["spec", "replicas"]).unwrap_or(1).max(0);
        let parallel = text(&owner, &["spec", "podManagementPolicy"]) == "Parallel";
        let revision = format!("{}-{}", key.name, template_hash(&owner["spec"]["template"]));
        let numbered = |name: &str| {
            let number = name
                .strip_prefix(&*key.name)
                .and_then(|rest| rest.strip_prefix('-'));
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        self.adopt_pods(&owner, "StatefulSet", numbered)?;
        let mut pods = self.owned("", "pods", &key.namespace, &uid);
        pods.sort_by_key(ordinal);
        self.steer(key, &owner, &pods, wanted, parallel, &revision)?;
        let mut pods = self.owned("", "pods", &key.namespace, &uid);
        pods.retain(|pod| !is_deleting(pod));
        let min_ready = number(&owner, &["spec", "minReadySeconds"]).unwrap_or(0);
        let state = readiness(pods.iter(), min_ready, self.now_seconds());
        if let Some(wait) = state.next {
            let wait = Duration::from_secs(u64::try_from(wait).unwrap_or(1));
            self.work.push_at(now + wait, Item::StatefulSet(key.clone()));
        }
        let updated = pods
            .iter()
            .filter(|pod| text(pod, &["metadata", "labels", REVISION_LABEL]) == revision)
            .count();
        let (total, updated) = (
            i64::try_from(pods.len()).unwrap_or(0),
            i64::try_from(updated).unwrap_or(0),
        );
        self.write_status("apps", "statefulsets", key, |value| {
            let before = text(value, &["status", "currentRevision"]).to_owned();
            let done = updated == total && total == wanted && state.ready == wanted;
            let current = if done || before.is_empty() {
                revision.clone()
            } else {
                before
            };
            let at_current = if current == revision {
                updated
            } else {
                total - updated
            };
            for (field, number) in [
                ("replicas", total),
                ("readyReplicas", state.ready),
                ("availableReplicas", state.available),
                ("currentReplicas", at_current),
                ("updatedReplicas", updated),
                ("collisionCount", 0),
            ] {
                set(value, &["status", field], number);
            }
            set(value, &["status", "currentRevision"], current);
            set(value, &["status", "updateRevision"], revision.as_str());
            observe(value);
        })
    }

    /// Makes, updates or removes at most one pod at a time, or all at once where the policy is parallel.
    fn steer(
        &mut self,
        key: &Key,
        owner: &Value,
        pods: &[Value],
        wanted: i64,
        parallel: bool,
        revision: &str,
    ) -> Result<(), ApiError> {
        for number in 0..wanted {
            let Some(pod) = pods.iter().find(|pod| ordinal(pod) == number) else {
                self.create_numbered_pod(key, owner, number, revision);
                if parallel {
                    continue;
                }
                return Ok(());
            };
            if !parallel && (is_deleting(pod) || !is_true(pod, "Ready")) {
                return Ok(());
            }
        }
        let surplus: Vec<&Value> = pods.iter().filter(|pod| ordinal(pod) >= wanted).collect();
        for pod in surplus.iter().rev() {
            if !is_deleting(pod) {
                self.remove_object("", "pods", &key_of(pod))?;
            }
            if !parallel {
                return Ok(());
            }
        }
        if text(owner, &["spec", "updateStrategy", "type"]) != "RollingUpdate" {
            return Ok(());
        }
        let partition = number(owner, &["spec", "updateStrategy", "rollingUpdate", "partition"]).unwrap_or(0);
        for pod in pods
            .iter()
            .rev()
            .filter(|pod| (partition..wanted).contains(&ordinal(pod)))
        {
            if text(pod, &["metadata", "labels", REVISION_LABEL]) != revision {
                if !is_deleting(pod) {
                    self.remove_object("", "pods", &key_of(pod))?;
                }
                return Ok(());
            }
            if is_deleting(pod) || !is_true(pod, "Ready") {
                return Ok(());
            }
        }
        Ok(())
    }

    fn create_numbered_pod(&mut self, key: &Key, owner: &Value, number: i64, revision: &str) {
        let name = format!("{}-{number}", key.name);
        let index = number.to_string();
        let labels = [
            (REVISION_LABEL, revision),
            ("statefulset.kubernetes.io/pod-name", name.as_str()),
            ("apps.kubernetes.io/pod-index", index.as_str()),
        ];
        let mut pod = pod_from_template(owner, "apps/v1", "StatefulSet", &labels);
        set(&mut pod, &["metadata", "name"], name.as_str());
        set(&mut pod, &["spec", "hostname"], name.as_str());
        set(
            &mut pod,
            &["spec", "subdomain"],
            text(owner, &["spec", "serviceName"]),
        );
        let mut volumes = items(&pod, &["spec", "volumes"]).to_vec();
        for template in items(owner, &["spec", "volumeClaimTemplates"]) {
            let volume = text(template, &["metadata", "name"]);
            let claim = format!("{volume}-{name}");
            volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
            let exists = self
                .id("", "persistentvolumeclaims")
                .is_some_and(|id| self.store.get(id, &Key::new(&key.namespace, &claim)).is_some());
            if !exists {
                let labels = at(owner, &["spec", "selector", "matchLabels"]).cloned();
                let metadata = json!({"name": claim, "labels": labels,
                    "annotations": template.pointer("/metadata/annotations")});
                let claim = json!({"metadata": metadata, "spec": template["spec"]});
                self.seed("", "persistentvolumeclaims", &key.namespace, claim);
            }
        }
        if !volumes.is_empty() {
            set(&mut pod, &["spec", "volumes"], volumes);
        }
        self.seed("", "pods", &key.namespace, pod);
    }
}
