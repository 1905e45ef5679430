//! Services, volumes, namespaces and what extends the API.

use evenkeel_core::GroupKind;

use super::{Object, Readiness, Surroundings};

pub(super) fn service(object: &Object<'_>) -> Readiness {
    if object.text("/spec/type") != Some("LoadBalancer") || !object.list("/spec/externalIPs").is_empty() {
        return Readiness::Ready;
    }
    let addressed = object.list("/status/loadBalancer/ingress").iter().any(|entry| {
        ["ip", "hostname"].iter().any(|key| {
            entry
                .get(*key)
                .and_then(|v| v.as_str())
                .is_some_and(|text| !text.is_empty())
        })
    });
    if addressed {
        Readiness::Ready
    } else {
        Readiness::InProgress("its load balancer has no address yet".to_owned())
    }
}

pub(super) fn claim(object: &Object<'_>) -> Readiness {
    match object.text("/status/phase") {
        Some("Bound") => Readiness::Ready,
        Some("Lost") => Readiness::Failed("its volume is lost".to_owned()),
        phase => Readiness::InProgress(format!("it is {}, not bound", phase.unwrap_or("Pending"))),
    }
}

/// Whether a claim is bound only once a pod uses it, and none does yet: then nothing is wrong with it.
pub(super) fn waits_for_consumer(object: &Object<'_>, kind: &GroupKind, surroundings: &Surroundings) -> bool {
    kind.group.is_empty()
        && kind.kind == "PersistentVolumeClaim"
        && matches!(object.text("/status/phase"), None | Some("Pending"))
        // The scheduler notes the node of a pod that uses it.
        && object.annotation("volume.kubernetes.io/selected-node").is_none()
        && object
            .text("/spec/storageClassName")
            .is_some_and(|class| surroundings.late_binding.contains(class))
}

pub(super) fn namespace(object: &Object<'_>) -> Readiness {
    match object.text("/status/phase") {
        Some("Terminating") => Readiness::InProgress("it is being deleted".to_owned()),
        _ => Readiness::Ready,
    }
}

pub(super) fn definition(object: &Object<'_>) -> Readiness {
    if let Some(names) = object.condition("NamesAccepted").filter(|condition| condition.is("False"))
        && names.reason().is_some()
        // Before the controller has looked, the condition can be false without anything being wrong.
        && names.reason() != Some("InstallInProgress")
    {
        return Readiness::Failed(names.explain());
    }
    match object.condition("Established") {
        Some(established) if established.is("True") => Readiness::Ready,
        _ => Readiness::InProgress("it is not established yet".to_owned()),
    }
}

pub(super) fn api_service(object: &Object<'_>) -> Readiness {
    match object.condition("Available") {
        Some(available) if available.is("True") => Readiness::Ready,
        Some(available) => Readiness::InProgress(available.explain()),
        None => Readiness::InProgress("it is not available yet".to_owned()),
    }
}
