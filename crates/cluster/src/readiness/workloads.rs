//! What runs pods.

use serde_json::Value;

use super::conditions::Condition;
use super::{Object, Readiness};

/// Kubernetes' own default of `spec.replicas`.
const REPLICAS_DEFAULT: i64 = 1;

/// The workload controllers always write `status.observedGeneration`; until they do, they have not looked.
fn unseen(object: &Object<'_>) -> Option<Readiness> {
    object
        .number("/status/observedGeneration")
        .is_none()
        .then(|| Readiness::InProgress("its controller has not seen it yet".to_owned()))
}

fn behind(what: &str, found: i64, wanted: i64) -> Option<Readiness> {
    (found < wanted).then(|| Readiness::InProgress(format!("{what}: {found}/{wanted}")))
}

fn surplus(found: i64, wanted: i64) -> Option<Readiness> {
    (found > wanted).then(|| Readiness::InProgress(format!("Pending termination: {}", found - wanted)))
}

fn first(verdicts: impl IntoIterator<Item = Option<Readiness>>) -> Readiness {
    verdicts.into_iter().flatten().next().unwrap_or(Readiness::Ready)
}

pub(super) fn deployment(object: &Object<'_>) -> Readiness {
    let wanted = object.number("/spec/replicas").unwrap_or(REPLICAS_DEFAULT);
    let updated = object.count("/status/updatedReplicas");
    let progressing = object.condition("Progressing");
    let reason = progressing.as_ref().and_then(Condition::reason);
    let exceeded = progressing
        .as_ref()
        .filter(|_| reason == Some("ProgressDeadlineExceeded"))
        .map(|condition| Readiness::Failed(condition.explain()));
    // The controller's own last word on a rollout; a paused one has none, and one without a deadline says nothing.
    let unfinished = progressing
        .as_ref()
        .filter(|_| !matches!(reason, Some("NewReplicaSetAvailable" | "DeploymentPaused") | None))
        .map(|condition| Readiness::InProgress(condition.explain()));
    // A quota or a webhook that refuses pods shows here long before the deadline.
    let refused = object
        .condition("ReplicaFailure")
        .filter(|condition| condition.is("True"))
        .map(|condition| Readiness::InProgress(condition.explain()));
    first([
        unseen(object),
        exceeded,
        refused,
        behind("Updated", updated, wanted),
        surplus(object.count("/status/replicas"), updated),
        behind("Available", object.count("/status/availableReplicas"), wanted),
        behind("Ready", object.count("/status/readyReplicas"), wanted),
        unfinished,
    ])
}

pub(super) fn replica_set(object: &Object<'_>) -> Readiness {
    let wanted = object.number("/spec/replicas").unwrap_or(REPLICAS_DEFAULT);
    let failing = object
        .condition("ReplicaFailure")
        .filter(|condition| condition.is("True"))
        .map(|condition| Readiness::InProgress(condition.explain()));
    first([
        unseen(object),
        failing,
        behind("Replicas", object.count("/status/replicas"), wanted),
        behind("Available", object.count("/status/availableReplicas"), wanted),
        behind("Ready", object.count("/status/readyReplicas"), wanted),
        surplus(object.count("/status/replicas"), wanted),
    ])
}

pub(super) fn stateful_set(object: &Object<'_>) -> Readiness {
    let wanted = object.number("/spec/replicas").unwrap_or(REPLICAS_DEFAULT);
    let counts = first([
        unseen(object),
        behind("Replicas", object.count("/status/replicas"), wanted),
        behind("Ready", object.count("/status/readyReplicas"), wanted),
        surplus(object.count("/status/replicas"), wanted),
    ]);
    if !counts.is_ready() || object.text("/spec/updateStrategy/type") == Some("OnDelete") {
        return counts;
    }
    let updated = object.count("/status/updatedReplicas");
    if let Some(partition) = object
        .number("/spec/updateStrategy/rollingUpdate/partition")
        .filter(|n| *n > 0)
    {
        return behind("updated", updated, (wanted - partition).max(0)).unwrap_or(Readiness::Ready);
    }
    let revisions = (
        object.text("/status/currentRevision"),
        object.text("/status/updateRevision"),
    );
    first([
        behind("current", object.count("/status/currentReplicas"), wanted),
        (revisions.0 != revisions.1).then(|| {
            Readiness::InProgress(format!(
                "Waiting for the new revision: updated {updated}/{wanted}"
            ))
        }),
    ])
}

pub(super) fn daemon_set(object: &Object<'_>) -> Readiness {
    let wanted = object.count("/status/desiredNumberScheduled");
    let on_delete = object.text("/spec/updateStrategy/type") == Some("OnDelete");
    let updated = if on_delete {
        None
    } else {
        behind("Updated", object.count("/status/updatedNumberScheduled"), wanted)
    };
    first([
        unseen(object),
        behind("Current", object.count("/status/currentNumberScheduled"), wanted),
        updated,
        behind("Available", object.count("/status/numberAvailable"), wanted),
        behind("Ready", object.count("/status/numberReady"), wanted),
    ])
}

pub(super) fn job(object: &Object<'_>) -> Readiness {
    if let Some(failed) = ["Failed", "FailureTarget"]
        .iter()
        .filter_map(|kind| object.condition(kind))
        .find(|found| found.is("True"))
    {
        return Readiness::Failed(failed.explain());
    }
    if object
        .condition("Complete")
        .is_some_and(|condition| condition.is("True"))
        || object.flag("/spec/suspend")
    {
        return Readiness::Ready;
    }
    let counts = ["succeeded", "active", "failed"].map(|key| object.count(&format!("/status/{key}")));
    let [succeeded, active, failed] = counts;
    Readiness::InProgress(format!(
        "Job in progress: {succeeded} succeeded, {active} active, {failed} failed"
    ))
}

pub(super) fn disruption_budget(object: &Object<'_>) -> Readiness {
    first([unseen(object)])
}

pub(super) fn pod(object: &Object<'_>) -> Readiness {
    match object.text("/status/phase").unwrap_or("Pending") {
        "Succeeded" => Readiness::Ready,
        "Failed" => {
            let why = object
                .text("/status/message")
                .or_else(|| object.text("/status/reason"));
            Readiness::Failed(why.unwrap_or("its containers ended with an error").to_owned())
        }
        "Running" => running_pod(object),
        phase => Readiness::InProgress(trouble(object.0).unwrap_or_else(|| format!("the pod is {phase}"))),
    }
}

fn running_pod(object: &Object<'_>) -> Readiness {
    let ready = object.condition("Ready");
    if ready.as_ref().is_some_and(|condition| condition.is("True")) {
        return Readiness::Ready;
    }
    let crashing: Vec<&str> = object
        .list("/status/containerStatuses")
        .iter()
        .filter(|status| waiting_reason(status) == Some("CrashLoopBackOff"))
        .filter_map(|status| status.get("name")?.as_str())
        .collect();
    if crashing.is_empty() {
        let why = trouble(object.0).or_else(|| ready.map(|condition| condition.explain()));
        Readiness::InProgress(why.unwrap_or_else(|| "the pod is not ready".to_owned()))
    } else {
        Readiness::Failed(format!("containers in a crash loop: {}", crashing.join(", ")))
    }
}

fn waiting_reason(status: &Value) -> Option<&str> {
    status.pointer("/state/waiting/reason")?.as_str()
}

/// What keeps a pod from being ready: unschedulable, or a container that waits or ended badly.
pub(super) fn trouble(pod: &Value) -> Option<String> {
    let object = Object(pod);
    if let Some(scheduled) = object
        .condition("PodScheduled")
        .filter(|condition| condition.is("False"))
    {
        return Some(scheduled.explain());
    }
    let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
    statuses
        .iter()
        .flat_map(|pointer| object.list(pointer))
        .find_map(|status| {
            let name = status.get("name").and_then(Value::as_str).unwrap_or_default();
            let state = |pointer: &str| {
                status
                    .pointer(pointer)
                    .and_then(Value::as_str)
                    .filter(|text| !text.is_empty())
            };
            // What every container passes through is no trouble.
            if let Some(reason) = waiting_reason(status)
                .filter(|reason| !matches!(*reason, "ContainerCreating" | "PodInitializing"))
            {
                let message = state("/state/waiting/message")
                    .map(|text| format!(": {text}"))
                    .unwrap_or_default();
                return Some(format!("container {name} waits: {reason}{message}"));
            }
            let code = status
                .pointer("/state/terminated/exitCode")
                .and_then(Value::as_i64)
                .filter(|code| *code != 0)?;
            let reason = state("/state/terminated/reason").unwrap_or("Error");
            Some(format!("container {name} ended with exit code {code} ({reason})"))
        })
}

/// What keeps a pod from being ready, for the diagnosis of what it belongs to.
pub(crate) fn pod_trouble(pod: &Value) -> Option<String> {
    let object = Object(pod);
    if object.text("/metadata/deletionTimestamp").is_some() {
        return Some("it is being deleted".to_owned());
    }
    match self::pod(&object) {
        Readiness::Ready => None,
        Readiness::InProgress(why) => Some(why),
        Readiness::Failed(why) => Some(trouble(pod).unwrap_or(why)),
    }
}
