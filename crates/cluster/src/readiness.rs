//! Whether an object does what it is there for: kstatus semantics, stricter where kstatus is known to be wrong.
//!
//! | Kind | Ready when |
//! |---|---|
//! | Deployment, ReplicaSet | every wanted pod is of the newest template and available, no surplus pod is left, and the controller calls the rollout done |
//! | StatefulSet | every wanted pod is ready and updated, down to the partition |
//! | DaemonSet | every scheduled pod is updated and available; none scheduled is fine |
//! | Pod | ready, or succeeded; never while it terminates |
//! | Job | complete; suspended is fine |
//! | Service | of type LoadBalancer: it has an address or external IPs; others at once |
//! | PodDisruptionBudget | its controller has seen it |
//! | PersistentVolumeClaim | bound, or waiting for its first consumer |
//! | Namespace | active |
//! | CustomResourceDefinition | established |
//! | APIService | available |
//! | ValidatingWebhookConfiguration, MutatingWebhookConfiguration | every Service that a webhook with `failurePolicy: Fail` is called at has a ready endpoint |
//! | custom resources | `Ready` is true at this generation, not `Reconciling`, not `Stalled`; without conditions at once, after a moment for the controller to begin; where its definition declares `status.observedGeneration`, never before that is written |
//! | HorizontalPodAutoscaler and all others | at once: metrics of a new workload come late |
//!
//! [`ReadinessRules`] of a component come before these (K38).
//!
//! `status.observedGeneration` older than the object, and a deletion timestamp, mean not ready for every kind.

mod conditions;
mod custom;
mod expression;
mod rules;
mod storage;
pub(crate) mod webhooks;
mod workloads;

pub use rules::{ReadinessRules, RuleProblem};
pub(crate) use workloads::pod_trouble;

use std::collections::BTreeSet;
use std::fmt;

use evenkeel_core::{GroupKind, ObjectRef};
use serde_json::Value;

use crate::applyset::labels::IGNORE_READINESS;
use crate::order;

/// The verdict on one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It is as it should be.
    Ready,
    /// It is on its way; why not yet.
    InProgress(String),
    /// It will not become ready by waiting; why.
    Failed(String),
}

impl Readiness {
    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }

    /// Whether waiting is useless.
    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::InProgress(why) => f.write_str(why),
            Self::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

/// One object, its verdict, and what else helps to find the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectState {
    /// The object.
    pub object: ObjectRef,
    /// The verdict.
    pub readiness: Readiness,
    /// Its pods' troubles and last events; filled when it failed or time is up.
    pub details: Vec<String>,
}

impl fmt::Display for ObjectState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.readiness)?;
        for detail in &self.details {
            write!(f, "; {detail}")?;
        }
        Ok(())
    }
}

/// What a verdict on an object that says nothing of itself depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Its controller has had no time yet: a custom resource without any status is in progress.
    Fresh,
    /// Time enough has passed: what says nothing is taken as it is.
    Settled,
}

/// What a verdict depends on beside the object itself.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) patience: Patience,
    /// Whether controllers of its kind say which generation they have seen.
    pub(crate) reports_generation: bool,
    /// StorageClasses whose claims are bound only once a pod uses them.
    pub(crate) late_binding: BTreeSet<String>,
    /// Services of webhooks that have no ready endpoint.
    pub(crate) unserved: BTreeSet<webhooks::Backend>,
}

impl From<Patience> for Surroundings {
    fn from(patience: Patience) -> Self {
        Self {
            patience,
            reports_generation: false,
            late_binding: BTreeSet::new(),
            unserved: BTreeSet::new(),
        }
    }
}

impl Surroundings {
    pub(crate) fn with(&self, patience: Patience) -> Self {
        Self {
            patience,
            ..self.clone()
        }
    }
}

type Rule = fn(&Object<'_>) -> Readiness;

/// The kinds with a rule of their own.
const RULES: [(&str, &str, Rule); 15] = [
    ("apps", "Deployment", workloads::deployment),
    ("apps", "StatefulSet", workloads::stateful_set),
    ("apps", "DaemonSet", workloads::daemon_set),
    ("apps", "ReplicaSet", workloads::replica_set),
    ("", "ReplicationController", workloads::replica_set),
    ("", "Pod", workloads::pod),
    ("batch", "Job", workloads::job),
    ("policy", "PodDisruptionBudget", workloads::disruption_budget),
    ("", "Service", storage::service),
    ("", "PersistentVolumeClaim", storage::claim),
    ("", "Namespace", storage::namespace),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        storage::definition,
    ),
    ("apiregistration.k8s.io", "APIService", storage::api_service),
    (
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        webhooks::configuration,
    ),
    (
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
        webhooks::configuration,
    ),
];

fn rule(kind: &GroupKind) -> Option<Rule> {
    RULES
        .iter()
        .find(|(group, name, _)| *name == kind.kind && *group == kind.group)
        .map(|(_, _, rule)| *rule)
}

/// Whether objects of the kind can be anything but ready: `has_status` says whether the cluster serves a status for it.
pub fn has_rule(kind: &GroupKind, has_status: bool) -> bool {
    rule(kind).is_some() || has_status && !order::is_built_in(kind)
}

/// Whether the verdict on objects of the kind depends on their generation alone, once their controller has seen it.
pub(crate) fn by_generation(kind: &GroupKind) -> bool {
    kind.group == "policy" && kind.kind == "PodDisruptionBudget"
}

/// The verdict on `object`, a whole object as the server gave it, by the rule of its kind.
pub fn judge(object: &Value, patience: Patience) -> Readiness {
    let object = Object(object);
    forestalled(&object).unwrap_or_else(|| built_in(&object, &patience.into()))
}

/// The verdict that comes before every rule.
fn forestalled(object: &Object<'_>) -> Option<Readiness> {
    if object.annotation(IGNORE_READINESS) == Some("true") {
        return Some(Readiness::Ready);
    }
    if object.text("/metadata/deletionTimestamp").is_some() {
        return Some(Readiness::InProgress("it is being deleted".to_owned()));
    }
    if let (Some(generation), Some(observed)) = (
        object.number("/metadata/generation"),
        object.number("/status/observedGeneration"),
    ) && observed < generation
    {
        return Some(Readiness::InProgress(format!(
            "generation is {generation}, its controller has seen {observed}"
        )));
    }
    None
}

/// The verdict by the rule of the kind.
fn built_in(object: &Object<'_>, surroundings: &Surroundings) -> Readiness {
    let kind = object.group_kind();
    if let Some(verdict) = webhooks::waits_for_backend(object, &kind, surroundings) {
        return verdict;
    }
    match rule(&kind) {
        Some(_) if storage::waits_for_consumer(object, &kind, surroundings) => Readiness::Ready,
        Some(rule) => rule(object),
        None if order::is_built_in(&kind) => Readiness::Ready,
        None => custom::resource(object, surroundings),
    }
}

/// A look into an object that never fails: what is not there, or of another type, is absent.
struct Object<'a>(&'a Value);

impl<'a> Object<'a> {
    fn text(&self, pointer: &str) -> Option<&'a str> {
        self.0.pointer(pointer)?.as_str()
    }

    fn number(&self, pointer: &str) -> Option<i64> {
        self.0.pointer(pointer)?.as_i64()
    }

    fn flag(&self, pointer: &str) -> bool {
        self.0.pointer(pointer).and_then(Value::as_bool) == Some(true)
    }

    /// A count of the status, where absent means none.
    fn count(&self, pointer: &str) -> i64 {
        self.number(pointer).unwrap_or(0)
    }

    fn list(&self, pointer: &str) -> &'a [Value] {
        self.0
            .pointer(pointer)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    fn annotation(&self, key: &str) -> Option<&'a str> {
        self.0.get("metadata")?.get("annotations")?.get(key)?.as_str()
    }

    fn group_kind(&self) -> GroupKind {
        let group = self
            .text("/apiVersion")
            .and_then(|version| version.split_once('/'))
            .map_or("", |(group, _)| group);
        GroupKind::new(group, self.text("/kind").unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
