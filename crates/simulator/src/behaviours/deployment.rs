//! Deployments roll their replica sets.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::replica_set::observe;
use super::{Behaviour, behaviour, controller_reference, is_deleting, key_of, set_condition, template_hash};
use crate::clock::{format_seconds, parse_seconds};
use crate::json::{at, items, number, remove, set, text};
use crate::object::Key;
use crate::state::State;
use crate::status::ApiError;
use crate::work::Item;

const REVISION: &str = "deployment.kubernetes.io/revision";
const HASH_LABEL: &str = "pod-template-hash";

/// What a rollout may do, in pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    wanted: i64,
    surge: i64,
    unavailable: i64,
}

fn limits(deployment: &Value) -> Limits {
    let wanted = number(deployment, &["spec", "replicas"]).unwrap_or(1).max(0);
    let resolve = |field: &str, up: bool| match at(deployment, &["spec", "strategy", "rollingUpdate", field])
    {
        Some(Value::String(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            if up {
                (wanted * percent + 99) / 100
            } else {
                wanted * percent / 100
            }
        }
        Some(number) => number.as_i64().unwrap_or(0),
        None => 0,
    };
    let (surge, mut unavailable) = (resolve("maxSurge", true), resolve("maxUnavailable", false));
    if surge == 0 && unavailable == 0 {
        unavailable = 1;
    }
    if text(deployment, &["spec", "strategy", "type"]) == "Recreate" {
        unavailable = wanted;
    }
    Limits {
        wanted,
        surge,
        unavailable,
    }
}

fn replicas(set: &Value) -> i64 {
    number(set, &["spec", "replicas"]).unwrap_or(0)
}

fn count(set: &Value, field: &str) -> i64 {
    number(set, &["status", field]).unwrap_or(0)
}

fn revision(set: &Value) -> i64 {
    text(set, &["metadata", "annotations", REVISION])
        .parse()
        .unwrap_or(0)
}

impl State {
    pub(super) fn reconcile_deployment(&mut self, key: &Key, now: Instant) -> Result<(), ApiError> {
        let Some((_, deployment)) = self.read("apps", "deployments", key) else {
            return Ok(());
        };
        if is_deleting(&deployment) {
            return Ok(());
        }
        let uid = text(&deployment, &["metadata", "uid"]).to_owned();
        let hash = template_hash(&deployment["spec"]["template"]);
        let mut sets = self.owned("apps", "replicasets", &key.namespace, &uid);
        sets.retain(|set| !is_deleting(set));
        let paused = at(&deployment, &["spec", "paused"]).and_then(Value::as_bool) == Some(true);
        let is_new = |set: &Value| text(set, &["metadata", "labels", HASH_LABEL]) == hash;
        if !paused {
            let highest = sets.iter().map(revision).max().unwrap_or(0);
            if !sets.iter().any(is_new) {
                self.create_set(key, &deployment, &hash, highest + 1);
                sets = self.owned("apps", "replicasets", &key.namespace, &uid);
            } else if let Some(current) = sets
                .iter()
                .find(|set| is_new(set))
                .filter(|set| revision(set) < highest)
            {
                // A rollback: the old set is the newest revision again.
                let current = key_of(current);
                self.write("apps", "replicasets", &current, |set_value| {
                    set(
                        set_value,
                        &["metadata", "annotations", REVISION],
                        (highest + 1).to_string(),
                    );
                })?;
                sets = self.owned("apps", "replicasets", &key.namespace, &uid);
            }
            self.roll(&deployment, &sets, &hash)?;
            sets = self.owned("apps", "replicasets", &key.namespace, &uid);
            let newest = sets.iter().map(revision).max().unwrap_or(1).to_string();
            if text(&deployment, &["metadata", "annotations", REVISION]) != newest {
                // With the status, as the real controller does: it is no change of what was asked for.
                self.write_status("apps", "deployments", key, |deployment| {
                    set(deployment, &["metadata", "annotations", REVISION], newest);
                })?;
            }
        }
        self.write_deployment_status(key, &deployment, &sets, &hash, now)?;
        self.forget_old_sets(&deployment, sets, &hash)
    }

    fn create_set(&mut self, key: &Key, deployment: &Value, hash: &str, revision: i64) {
        let mut template = deployment["spec"]["template"].clone();
        set(&mut template, &["metadata", "labels", HASH_LABEL], hash);
        let mut selector = deployment["spec"]["selector"].clone();
        set(&mut selector, &["matchLabels", HASH_LABEL], hash);
        let mut annotations = at(deployment, &["metadata", "annotations"])
            .cloned()
            .unwrap_or_else(|| json!({}));
        remove(
            &mut annotations,
            &["kubectl.kubernetes.io/last-applied-configuration"],
        );
        set(&mut annotations, &[REVISION], revision.to_string());
        let limits = limits(deployment);
        set(
            &mut annotations,
            &["deployment.kubernetes.io/desired-replicas"],
            limits.wanted.to_string(),
        );
        let most = (limits.wanted + limits.surge).to_string();
        set(&mut annotations, &["deployment.kubernetes.io/max-replicas"], most);
        let mut spec = json!({"replicas": 0, "selector": selector, "template": template});
        if let Some(seconds) = at(deployment, &["spec", "minReadySeconds"]) {
            set(&mut spec, &["minReadySeconds"], seconds.clone());
        }
        self.seed(
            "apps",
            "replicasets",
            &key.namespace,
            json!({"metadata": {"name": format!("{}-{hash}", key.name), "labels": template["metadata"]["labels"],
                "annotations": annotations, "ownerReferences":
                    [controller_reference("apps/v1", "Deployment", deployment)]}, "spec": spec}),
        );
    }

    fn scale_set(&mut self, set_value: &Value, to: i64) -> Result<(), ApiError> {
        if replicas(set_value) == to {
            return Ok(());
        }
        self.write("apps", "replicasets", &key_of(set_value), |value| {
            set(value, &["spec", "replicas"], to)
        })
    }

    /// One step of a rollout.
    fn roll(&mut self, deployment: &Value, sets: &[Value], hash: &str) -> Result<(), ApiError> {
        let is_new = |set: &&Value| text(set, &["metadata", "labels", HASH_LABEL]) == hash;
        let Some(current) = sets.iter().find(is_new) else {
            return Ok(());
        };
        let old: Vec<&Value> = sets.iter().filter(|set| !is_new(set)).collect();
        let limits = limits(deployment);
        if text(deployment, &["spec", "strategy", "type"]) == "Recreate" {
            for set_value in &old {
                self.scale_set(set_value, 0)?;
            }
            // The old pods are gone before the first new one comes.
            if old
                .iter()
                .all(|set| count(set, "replicas") == 0 && replicas(set) == 0)
            {
                self.scale_set(current, limits.wanted)?;
            }
            return Ok(());
        }
        let total: i64 = sets.iter().map(replicas).sum();
        let room = (limits.wanted + limits.surge - total).max(0);
        let target = if old.iter().all(|set| replicas(set) == 0) {
            limits.wanted
        } else {
            limits.wanted.min(replicas(current) + room)
        };
        let target = target.min(limits.wanted);
        self.scale_set(current, target)?;
        let unavailable_new = (target - count(current, "availableReplicas")).max(0);
        let total: i64 = old.iter().map(|set| replicas(set)).sum::<i64>() + target;
        let mut removable = (total - (limits.wanted - limits.unavailable) - unavailable_new).max(0);
        for set_value in old {
            // Pods that never became available can always go.
            let dead = (replicas(set_value) - count(set_value, "availableReplicas")).max(0);
            let step = replicas(set_value).min(removable.max(dead.min(removable)));
            if step > 0 {
                self.scale_set(set_value, replicas(set_value) - step)?;
                removable -= step;
            }
        }
        Ok(())
    }

    fn write_deployment_status(
        &mut self,
        key: &Key,
        deployment: &Value,
        sets: &[Value],
        hash: &str,
        now: Instant,
    ) -> Result<(), ApiError> {
        let sum = |field: &str| sets.iter().map(|set| count(set, field)).sum::<i64>();
        let current = sets
            .iter()
            .find(|set| text(set, &["metadata", "labels", HASH_LABEL]) == hash);
        let limits = limits(deployment);
        let (total, ready, available) = (sum("replicas"), sum("readyReplicas"), sum("availableReplicas"));
        let updated = current.map_or(0, |set| count(set, "replicas"));
        let complete = updated == limits.wanted && total == limits.wanted && available >= limits.wanted;
        let seconds = self.now_seconds();
        let script = match behaviour(deployment) {
            Behaviour::Normal => behaviour(&deployment["spec"]["template"]),
            script => script,
        };
        // Pods that crash or cannot be pulled are known to fail; others have until the deadline.
        let hopeless = matches!(script, Behaviour::Fail | Behaviour::Pull) && updated > 0;
        let name = current
            .map(|set| text(set, &["metadata", "name"]).to_owned())
            .unwrap_or_default();
        let deadline = number(deployment, &["spec", "progressDeadlineSeconds"]).unwrap_or(600);
        let progressing = items(deployment, &["status", "conditions"])
            .iter()
            .find(|condition| text(condition, &["type"]) == "Progressing")
            .cloned();
        let counts_before = [
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
        ]
        .map(|field| count(deployment, field));
        let moved = counts_before != [total, updated, ready, available]
            || count(deployment, "observedGeneration")
                != number(deployment, &["metadata", "generation"]).unwrap_or(0);
        let last = progressing
            .as_ref()
            .and_then(|condition| parse_seconds(text(condition, &["lastUpdateTime"])));
        let late = !moved && last.is_some_and(|last| seconds - last >= deadline);
        if !complete && !hopeless {
            let wait = last
                .filter(|_| !moved)
                .map_or(deadline, |last| (last + deadline - seconds).max(1));
            let wait = Duration::from_secs(u64::try_from(wait).unwrap_or(1));
            self.work.push_at(now + wait, Item::Deployment(key.clone()));
        }
        let time = format_seconds(seconds);
        self.write_status("apps", "deployments", key, |value| {
            for (field, number) in [
                ("replicas", total),
                ("updatedReplicas", updated),
                ("readyReplicas", ready),
                ("availableReplicas", available),
                (
                    "unavailableReplicas",
                    (limits.wanted.max(total) - available).max(0),
                ),
            ] {
                set(value, &["status", field], number);
            }
            observe(value);
            if available >= limits.wanted - limits.unavailable {
                let message = "Deployment has minimum availability.";
                set_condition(
                    value,
                    &time,
                    "Available",
                    "True",
                    "MinimumReplicasAvailable",
                    message,
                );
            } else {
                let message = "Deployment does not have minimum availability.";
                set_condition(
                    value,
                    &time,
                    "Available",
                    "False",
                    "MinimumReplicasUnavailable",
                    message,
                );
            }
            let (status, reason, message) = if complete {
                let message = format!("ReplicaSet \"{name}\" has successfully progressed.");
                ("True", "NewReplicaSetAvailable", message)
            } else if hopeless || late {
                let message = format!("ReplicaSet \"{name}\" has timed out progressing.");
                ("False", "ProgressDeadlineExceeded", message)
            } else {
                (
                    "True",
                    "ReplicaSetUpdated",
                    format!("ReplicaSet \"{name}\" is progressing."),
                )
            };
            set_condition(value, &time, "Progressing", status, reason, &message);
            // A condition is updated when the rollout moves or the verdict changes.
            let verdict = |condition: &Value| {
                (
                    text(condition, &["reason"]).to_owned(),
                    text(condition, &["status"]).to_owned(),
                )
            };
            let same = progressing
                .as_ref()
                .is_some_and(|before| verdict(before) == (reason.into(), status.into()));
            for condition in crate::json::items_mut(value, &["status", "conditions"]) {
                let fresh = at(condition, &["lastUpdateTime"]).is_none();
                let is_progress = text(condition, &["type"]) == "Progressing";
                if fresh || (is_progress && (!same || (moved && !complete))) {
                    set(condition, &["lastUpdateTime"], time.as_str());
                }
            }
        })
    }

    fn forget_old_sets(&mut self, deployment: &Value, sets: Vec<Value>, hash: &str) -> Result<(), ApiError> {
        let limit = number(deployment, &["spec", "revisionHistoryLimit"]).unwrap_or(10);
        let mut old: Vec<Value> = sets
            .into_iter()
            .filter(|set| text(set, &["metadata", "labels", HASH_LABEL]) != hash)
            .filter(|set| replicas(set) == 0 && count(set, "replicas") == 0)
            .collect();
        old.sort_by_key(revision);
        let excess = old.len().saturating_sub(usize::try_from(limit).unwrap_or(10));
        for set_value in old.into_iter().take(excess) {
            self.remove_object("apps", "replicasets", &key_of(&set_value))?;
        }
        Ok(())
    }
}
