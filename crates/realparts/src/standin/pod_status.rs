//! What is due for a Pod, as a function of its state.

use std::sync::atomic::{AtomicU16, Ordering};

use k8s_openapi::api::core::v1::{Container, Pod, PodCondition};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::node::NODE_ADDRESS;
use super::pods::{HOLD_TERMINATION_ANNOTATION, POD_SCRIPT_ANNOTATION};

/// What becomes of a Pod, chosen by [`POD_SCRIPT_ANNOTATION`](super::POD_SCRIPT_ANNOTATION).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodScript {
    /// `ready`: runs and becomes ready. The default for Pods that restart for ever.
    Ready,
    /// `succeed`: runs, then ends well. The default for Pods whose restart policy lets them end, as those of Jobs.
    Succeed,
    /// `fail`: runs, then ends with exit code 1.
    Fail,
    /// `pending`: comes to its node, and nothing more.
    Pending,
    /// `unready`: runs, but its readiness probe fails.
    Unready,
    /// `crash-loop`: its containers end with exit code 1 again and again.
    CrashLoop,
    /// `image-error`: its images cannot be pulled.
    ImageError,
}

impl PodScript {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::Succeed,
        Self::Fail,
        Self::Pending,
        Self::Unready,
        Self::CrashLoop,
        Self::ImageError,
    ];

    /// The annotation's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Succeed => "succeed",
            Self::Fail => "fail",
            Self::Pending => "pending",
            Self::Unready => "unready",
            Self::CrashLoop => "crash-loop",
            Self::ImageError => "image-error",
        }
    }

    /// A Pod's script; Err with a name that is none.
    fn of(pod: &Pod) -> Result<Self, &str> {
        if let Some(name) = pod.annotations().get(POD_SCRIPT_ANNOTATION) {
            return Self::ALL
                .into_iter()
                .find(|script| script.name() == name)
                .ok_or(name);
        }
        let restarts = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.restart_policy.as_deref())
            .unwrap_or("Always");
        Ok(if restarts == "Always" {
            Self::Ready
        } else {
            Self::Succeed
        })
    }
}

/// The next thing to do for a Pod.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// It is as it should be.
    Nothing,
    /// It needs a node.
    Bind,
    /// It is being deleted, and its containers have ended.
    End,
    /// Its status is to be this.
    Status {
        status: Value,
        /// Whether it leaves the pending state by it.
        starts: bool,
        /// Reason and message of an event to tell.
        warning: Option<(&'static str, String)>,
    },
}

/// How far a Pod is, as far as a status can tell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running { ready: bool },
    Ended { well: bool },
    Waiting(&'static str),
}

/// What is due for `pod` at `now`.
pub(super) fn next(pod: &Pod, now: Timestamp) -> Next {
    let is_bound = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.node_name.as_ref())
        .is_some();
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Pending");
    if pod.metadata.deletion_timestamp.is_some() {
        let is_held = pod.annotations().contains_key(HOLD_TERMINATION_ANNOTATION);
        // With finalizers it stays after the kubelet is done: asking once more would never end.
        let is_done = pod.metadata.deletion_grace_period_seconds == Some(0);
        return if is_held || is_done {
            Next::Nothing
        } else {
            Next::End
        };
    }
    if !is_bound {
        let is_gated = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.scheduling_gates.as_ref())
            .is_some_and(|g| !g.is_empty());
        return if is_gated { Next::Nothing } else { Next::Bind };
    }
    if matches!(phase, "Succeeded" | "Failed") {
        return Next::Nothing;
    }
    let (stage, warning) = match PodScript::of(pod) {
        Ok(PodScript::Pending) => return Next::Nothing,
        Ok(PodScript::Ready) => (Stage::Running { ready: true }, None),
        Ok(PodScript::Unready) => (
            Stage::Running { ready: false },
            Some((
                "Unhealthy",
                "Readiness probe failed: HTTP probe failed with statuscode: 503".to_owned(),
            )),
        ),
        Ok(PodScript::Succeed | PodScript::Fail) if phase == "Pending" => {
            (Stage::Running { ready: true }, None)
        }
        Ok(script @ (PodScript::Succeed | PodScript::Fail)) => (
            Stage::Ended {
                well: script == PodScript::Succeed,
            },
            None,
        ),
        Ok(PodScript::CrashLoop) => (
            Stage::Waiting("CrashLoopBackOff"),
            Some(("BackOff", "Back-off restarting failed container".to_owned())),
        ),
        Ok(PodScript::ImageError) => (
            Stage::Waiting("ImagePullBackOff"),
            Some(("Failed", "Failed to pull image: not found".to_owned())),
        ),
        Err(name) => {
            let names = PodScript::ALL.map(PodScript::name).join(", ");
            let warning = format!("{POD_SCRIPT_ANNOTATION} is {name:?}, which is none of {names}");
            (Stage::Waiting("CreateContainerError"), Some(("Failed", warning)))
        }
    };
    if stage_of(pod) == Some(stage) {
        return Next::Nothing;
    }
    Next::Status {
        status: status(pod, stage, now),
        starts: phase == "Pending" && matches!(stage, Stage::Running { .. }),
        warning,
    }
}

/// The stage that a Pod's present status shows. None: none of ours.
fn stage_of(pod: &Pod) -> Option<Stage> {
    let status = pod.status.as_ref()?;
    let waiting = status
        .container_statuses
        .iter()
        .flatten()
        .find_map(|container| container.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
    if let Some(reason) = waiting {
        return ["CrashLoopBackOff", "ImagePullBackOff", "CreateContainerError"]
            .into_iter()
            .find(|known| *known == reason)
            .map(Stage::Waiting);
    }
    if status.phase.as_deref() != Some("Running") {
        return None;
    }
    let is_ready = |kind: &str| condition(pod, kind).is_some_and(|condition| condition.status == "True");
    // A readiness gate that opened makes the difference between the two.
    if is_ready("ContainersReady") && is_ready("Ready") != gates_are_open(pod) {
        return None;
    }
    Some(Stage::Running {
        ready: is_ready("ContainersReady"),
    })
}

fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

fn gates_are_open(pod: &Pod) -> bool {
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_ref());
    gates
        .into_iter()
        .flatten()
        .all(|gate| condition(pod, &gate.condition_type).is_some_and(|condition| condition.status == "True"))
}

/// A whole status, to be merged into the present one.
fn status(pod: &Pod, stage: Stage, now: Timestamp) -> Value {
    let (phase, containers_ready, reason) = match stage {
        Stage::Running { ready: true } => ("Running", true, None),
        Stage::Running { ready: false } | Stage::Waiting("CrashLoopBackOff") => {
            ("Running", false, Some("ContainersNotReady"))
        }
        Stage::Waiting(_) => ("Pending", false, Some("ContainersNotReady")),
        Stage::Ended { well: true } => ("Succeeded", false, Some("PodCompleted")),
        Stage::Ended { well: false } => ("Failed", false, Some("PodFailed")),
    };
    let ready = containers_ready && gates_are_open(pod);
    let ready_reason = if containers_ready && !ready {
        Some("ReadinessGatesNotReady")
    } else {
        reason
    };
    let ours = [
        ("PodScheduled", true, None),
        ("PodReadyToStartContainers", true, None),
        (
            "Initialized",
            true,
            if phase == "Succeeded" { reason } else { None },
        ),
        ("ContainersReady", containers_ready, reason),
        ("Ready", ready, ready_reason),
    ];
    // Merging replaces the list, so conditions that others set, as for readiness gates, are carried along.
    let others = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let others = others.filter(|condition| ours.iter().all(|(kind, ..)| *kind != condition.type_));
    let mut conditions: Vec<Value> = others.map(|condition| json!(condition)).collect();
    for (kind, holds, reason) in ours {
        let text = if holds { "True" } else { "False" };
        let same = condition(pod, kind).filter(|condition| condition.status == text);
        let since = same.and_then(|condition| condition.last_transition_time.clone());
        conditions.push(json!({
            "type": kind,
            "status": text,
            "reason": reason,
            "lastTransitionTime": since.map_or_else(|| json!(seconds(now)), |time| json!(time)),
        }));
    }
    let spec = pod.spec.as_ref();
    let present = pod.status.as_ref();
    let address = present
        .and_then(|status| status.pod_ip.clone())
        .unwrap_or_else(new_address);
    let start = present.and_then(|status| status.start_time.clone());
    let containers = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let init_containers = spec
        .and_then(|spec| spec.init_containers.as_deref())
        .unwrap_or_default();
    json!({
        "phase": phase,
        "conditions": conditions,
        "hostIP": NODE_ADDRESS,
        "hostIPs": [{"ip": NODE_ADDRESS}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": start.map_or_else(|| json!(seconds(now)), |time| json!(time)),
        "initContainerStatuses": init_containers.iter().map(|container| {
            let is_sidecar = container.restart_policy.as_deref() == Some("Always");
            let stage = if is_sidecar { stage } else { Stage::Ended { well: true } };
            container_status(pod, container, stage, now)
        }).collect::<Vec<_>>(),
        "containerStatuses": containers.iter().map(|container| container_status(pod, container, stage, now))
            .collect::<Vec<_>>(),
    })
}

fn container_status(pod: &Pod, container: &Container, stage: Stage, now: Timestamp) -> Value {
    let id = format!("stand-in://{}/{}", pod.uid().unwrap_or_default(), container.name);
    let ended = |code: i32, reason: &str| {
        json!({"terminated": {
            "exitCode": code,
            "reason": reason,
            "startedAt": seconds(now),
            "finishedAt": seconds(now),
            "containerID": id,
        }})
    };
    let image = container.image.clone().unwrap_or_default();
    let (state, ready) = match stage {
        Stage::Running { ready } => (json!({"running": {"startedAt": seconds(now)}}), ready),
        Stage::Ended { well: true } => (ended(0, "Completed"), false),
        Stage::Ended { well: false } => (ended(1, "Error"), false),
        Stage::Waiting(reason) => {
            let message = match reason {
                "CrashLoopBackOff" => format!("back-off 40s restarting failed container={}", container.name),
                "ImagePullBackOff" => format!("Back-off pulling image {image:?}"),
                _ => "the stand-in does not know what to do".to_owned(),
            };
            (json!({"waiting": {"reason": reason, "message": message}}), false)
        }
    };
    let is_crashing = stage == Stage::Waiting("CrashLoopBackOff");
    json!({
        "name": container.name,
        "image": image,
        "imageID": if matches!(stage, Stage::Waiting("ImagePullBackOff")) { "" } else { "stand-in://image" },
        "containerID": id,
        "ready": ready,
        "started": matches!(stage, Stage::Running { .. }),
        "restartCount": if is_crashing { 3 } else { 0 },
        "state": state,
        "lastState": if is_crashing { ended(1, "Error") } else { json!({}) },
    })
}

/// Kubernetes keeps whole seconds.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// An address of 10.244.0.0/16 for a Pod.
fn new_address() -> String {
    static GIVEN: AtomicU16 = AtomicU16::new(256);
    let [high, low] = GIVEN.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    format!("10.244.{high}.{low}")
}

#[cfg(test)]
mod tests;
