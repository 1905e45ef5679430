//! Scheduler and kubelet: pods get a node, start, become ready, finish and stop.

use std::time::Instant;

use serde_json::{Value, json};

use super::{Behaviour, behaviour, is_deleting, is_finished, is_true, set_condition};
use crate::clock::format_seconds;
use crate::json::{at, items, set, text};
use crate::object::{Key, Object};
use crate::state::State;
use crate::status::ApiError;
use crate::work::Item;

/// A slow pod takes this many times as long as others.
const SLOW: u32 = 10;

impl State {
    pub(super) fn reconcile_pod(&mut self, key: &Key, now: Instant) -> Result<(), ApiError> {
        let Some((object, pod)) = self.read("", "pods", key) else {
            return Ok(());
        };
        let timing = self.environment.timing;
        let script = behaviour(&pod);
        if is_deleting(&pod) {
            return self.stop_pod(key, &object, &pod, now);
        }
        if is_finished(&pod) {
            return Ok(());
        }
        if text(&pod, &["spec", "nodeName"]).is_empty() {
            return self.schedule_pod(key, &pod);
        }
        let delay = match script {
            Behaviour::Slow => timing.pod_start * SLOW,
            _ => timing.pod_start,
        };
        if at(&pod, &["status", "startTime"]).is_none() {
            return self.set_pod_status(key, |pod, time| set(pod, &["status", "startTime"], time));
        }
        let runs_to_end = text(&pod, &["spec", "restartPolicy"]) != "Always";
        let running = text(&pod, &["status", "phase"]) == "Running";
        let statuses = items(&pod, &["status", "containerStatuses"]);
        let waiting = statuses
            .iter()
            .any(|status| at(status, &["state", "waiting"]).is_some());
        let ready = is_true(&pod, "Ready");
        let settled = match script {
            Behaviour::Pull => waiting,
            Behaviour::Fail => waiting && !runs_to_end,
            Behaviour::Stuck => running,
            Behaviour::Normal | Behaviour::Slow => running && !(runs_to_end && ready),
        };
        if settled {
            return Ok(());
        }
        let (stage, delay) = if running && ready {
            ("run", timing.job_run)
        } else {
            ("start", delay)
        };
        if !self
            .work
            .waited(object.uid, stage, delay, now, Item::Pod(key.clone()))
        {
            return Ok(());
        }
        match script {
            Behaviour::Pull => self.hold_pod(key, "ImagePullBackOff", "Back-off pulling image", 0),
            Behaviour::Fail if runs_to_end => self.finish_pod(key, false),
            Behaviour::Fail => self.hold_pod(
                key,
                "CrashLoopBackOff",
                "back-off 10s restarting failed container",
                3,
            ),
            Behaviour::Stuck => self.run_pod(key, false),
            Behaviour::Normal | Behaviour::Slow if running => self.finish_pod(key, true),
            Behaviour::Normal | Behaviour::Slow => self.run_pod(key, true),
        }
    }

    fn set_pod_status(&mut self, key: &Key, change: impl FnOnce(&mut Value, String)) -> Result<(), ApiError> {
        let Some(endpoint) = self.endpoint("", "pods") else {
            return Ok(());
        };
        let now = format_seconds(self.now_seconds());
        self.change(&endpoint, key, "status", "kubelet", |pod| {
            change(pod, now);
            if let Some(generation) = at(pod, &["metadata", "generation"]).cloned() {
                set(pod, &["status", "observedGeneration"], generation);
            }
        })?;
        Ok(())
    }

    fn schedule_pod(&mut self, key: &Key, pod: &Value) -> Result<(), ApiError> {
        let Some(nodes) = self.id("", "nodes") else {
            return Ok(());
        };
        let nodes: Vec<String> = self
            .store
            .list(nodes, "")
            .map(|node| node.key.name.to_string())
            .collect();
        // Pods spread over the nodes by their name.
        let sum: usize = key.name.bytes().map(usize::from).sum();
        let wanted = text(pod, &["metadata", "annotations", NODE_ANNOTATION]);
        let node = if wanted.is_empty() {
            nodes.get(sum.checked_rem(nodes.len()).unwrap_or(0)).cloned()
        } else {
            Some(wanted.to_owned())
        };
        let Some(node) = node else {
            return self.set_pod_status(key, |pod, now| {
                let message = "no nodes available to schedule pods";
                set_condition(pod, &now, "PodScheduled", "False", "Unschedulable", message);
            });
        };
        let Some(endpoint) = self.endpoint("", "pods") else {
            return Ok(());
        };
        self.change(&endpoint, key, "binding", "kube-scheduler", |pod| {
            set(pod, &["spec", "nodeName"], node)
        })?;
        self.set_pod_status(key, |pod, now| {
            set_condition(pod, &now, "PodScheduled", "True", "", "")
        })?;
        Ok(())
    }

    fn run_pod(&mut self, key: &Key, ready: bool) -> Result<(), ApiError> {
        let ip = self.pod_ip(key);
        self.set_pod_status(key, |pod, now| {
            set(pod, &["status", "phase"], "Running");
            set(pod, &["status", "podIP"], ip.as_str());
            set(pod, &["status", "podIPs"], json!([{ "ip": ip }]));
            set(pod, &["status", "hostIP"], "172.18.0.2");
            let statuses = container_statuses(pod, ready, &json!({"running": {"startedAt": now}}), 0);
            set(pod, &["status", "containerStatuses"], statuses);
            let (status, reason) = if ready {
                ("True", "")
            } else {
                ("False", "ContainersNotReady")
            };
            set_condition(pod, &now, "Initialized", "True", "", "");
            set_condition(pod, &now, "ContainersReady", status, reason, "");
            set_condition(pod, &now, "Ready", status, reason, "");
        })
    }

    fn hold_pod(&mut self, key: &Key, reason: &str, message: &str, restarts: i64) -> Result<(), ApiError> {
        self.set_pod_status(key, |pod, now| {
            let state = json!({"waiting": {"reason": reason, "message": message}});
            set(
                pod,
                &["status", "containerStatuses"],
                container_statuses(pod, false, &state, restarts),
            );
            set(
                pod,
                &["status", "phase"],
                if restarts > 0 { "Running" } else { "Pending" },
            );
            set_condition(pod, &now, "Initialized", "True", "", "");
            set_condition(pod, &now, "ContainersReady", "False", "ContainersNotReady", "");
            set_condition(pod, &now, "Ready", "False", "ContainersNotReady", "");
        })
    }

    fn finish_pod(&mut self, key: &Key, succeeded: bool) -> Result<(), ApiError> {
        self.set_pod_status(key, |pod, now| {
            let (phase, reason, code) = if succeeded { ("Succeeded", "Completed", 0) } else { ("Failed", "Error", 1) };
            let state = json!({"terminated": {"reason": reason, "exitCode": code, "startedAt": now, "finishedAt": now}});
            set(pod, &["status", "phase"], phase);
            set(pod, &["status", "containerStatuses"], container_statuses(pod, false, &state, 0));
            set_condition(pod, &now, "Initialized", "True", "", "");
            set_condition(pod, &now, "ContainersReady", "False", "PodCompleted", "");
            set_condition(pod, &now, "Ready", "False", "PodCompleted", "");
        })
    }

    /// A deleted pod stops after a while and is then removed for good, unless finalizers hold it.
    fn stop_pod(&mut self, key: &Key, object: &Object, pod: &Value, now: Instant) -> Result<(), ApiError> {
        if crate::json::number(pod, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) == 0 {
            return Ok(());
        }
        if !is_finished(pod) && is_true(pod, "Ready") {
            return self.set_pod_status(key, |pod, now| {
                set_condition(pod, &now, "Ready", "False", "PodTerminating", "");
            });
        }
        let delay = self.environment.timing.pod_stop;
        if !self
            .work
            .waited(object.uid, "stop", delay, now, Item::Pod(key.clone()))
        {
            return Ok(());
        }
        let Some(endpoint) = self.endpoint("", "pods") else {
            return Ok(());
        };
        let options = crate::state::delete::DeleteOptions {
            grace_seconds: Some(0),
            ..Default::default()
        };
        self.delete(&endpoint, &key.namespace, &key.name, &options)?;
        Ok(())
    }

    fn pod_ip(&self, key: &Key) -> String {
        let sum = key
            .namespace
            .bytes()
            .chain(key.name.bytes())
            .fold(7_u32, |sum, byte| {
                sum.wrapping_mul(31).wrapping_add(u32::from(byte))
            });
        format!("10.244.{}.{}", sum >> 8 & 0xff, sum & 0xff)
    }
}

/// Names the node that a pod must run on; daemon sets write it.
pub(super) const NODE_ANNOTATION: &str = "simulator.evenkeel.dev/node";

fn container_statuses(pod: &Value, ready: bool, state: &Value, restarts: i64) -> Value {
    let containers = items(pod, &["spec", "containers"]).iter().map(|container| {
        json!({"name": text(container, &["name"]), "image": text(container, &["image"]), "imageID": "",
            "ready": ready, "started": ready, "restartCount": restarts, "state": state,
            "lastState": if restarts > 0 { json!({"terminated": {"exitCode": 1, "reason": "Error"}}) } else { json!({}) }})
    });
    containers.collect()
}
