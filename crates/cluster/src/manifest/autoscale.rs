//! Replicas belong to the autoscaler when the manifest has one.

use std::collections::BTreeSet;

use serde_json::Value;

use super::DesiredObject;

/// Takes `spec.replicas` out of every object that a HorizontalPodAutoscaler among `objects` scales, and marks it.
pub(super) fn hand_over(objects: &mut [DesiredObject]) {
    let targets: BTreeSet<Target> = objects
        .iter()
        .filter(|desired| {
            desired.object.kind == "HorizontalPodAutoscaler" && desired.object.group == "autoscaling"
        })
        .filter_map(|desired| Target::of(&desired.body, desired.object.namespace.as_deref()))
        .collect();
    if targets.is_empty() {
        return;
    }
    for desired in objects {
        let target = Target {
            group: desired.object.group.clone(),
            kind: desired.object.kind.clone(),
            namespace: desired.object.namespace.clone(),
            name: desired.object.name.clone(),
        };
        if targets.contains(&target) {
            desired.autoscaled = true;
            remove_replicas(&mut desired.body);
        }
    }
}

/// Takes `spec.replicas` out of an object.
pub(crate) fn remove_replicas(body: &mut Value) {
    if let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("replicas");
    }
}

/// What an autoscaler scales.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl Target {
    /// What the HorizontalPodAutoscaler `body` of `namespace` scales.
    pub(crate) fn of(body: &Value, namespace: Option<&str>) -> Option<Self> {
        let target = body.pointer("/spec/scaleTargetRef")?;
        let field = |name: &str| target.get(name).and_then(Value::as_str).map(str::to_owned);
        let api_version = field("apiVersion").unwrap_or_default();
        Some(Self {
            group: api_version
                .split_once('/')
                .map(|(group, _)| group.to_owned())
                .unwrap_or_default(),
            kind: field("kind")?,
            namespace: namespace.map(str::to_owned),
            name: field("name")?,
        })
    }
}
