//! Why an object is not ready: its pods' troubles and its last events.

use std::sync::Arc;

use evenkeel_core::ObjectRef;
use serde_json::Value;

use crate::Cluster;
use crate::discovery::Resource;
use crate::objects::{Selection, built_in};
use crate::readiness::{ObjectState, pod_trouble};

/// The most objects that are looked into; the rest are named only.
const EXPLAINED_MAX: usize = 5;
/// The most pods of one workload that are named.
const PODS_MAX: usize = 3;
/// The most events of one object that are told.
const EVENTS_MAX: usize = 3;
/// The longest text of one event, in characters.
const EVENT_LENGTH_MAX: usize = 300;

/// Adds to each state what helps to find the cause. What cannot be read is left out: the verdict itself stands.
pub(super) async fn explain(
    cluster: &Cluster,
    states: Vec<(Arc<Resource>, ObjectState)>,
) -> Vec<ObjectState> {
    let mut explained = Vec::with_capacity(states.len());
    for (index, (resource, mut state)) in states.into_iter().enumerate() {
        if index < EXPLAINED_MAX {
            state.details = details(cluster, &resource, &state.object).await;
        }
        explained.push(state);
    }
    explained
}

async fn details(cluster: &Cluster, resource: &Resource, object: &ObjectRef) -> Vec<String> {
    let Ok(Some(whole)) = cluster.get_full(resource, object).await else {
        return Vec::new();
    };
    let mut details = Vec::new();
    for pod in pods(cluster, object, &whole).await.into_iter().take(PODS_MAX) {
        let name = text(&pod, "/metadata/name").unwrap_or_default();
        if let Some(trouble) = pod_trouble(&pod) {
            details.push(format!("pod {name}: {trouble}"));
            if let Some(event) = events(cluster, object.namespace.as_deref(), &pod).await.pop() {
                details.push(format!("pod {name}: {event}"));
            }
        }
    }
    details.extend(events(cluster, object.namespace.as_deref(), &whole).await);
    details
}

/// The pods that a workload selects.
async fn pods(cluster: &Cluster, object: &ObjectRef, whole: &Value) -> Vec<Value> {
    let Some(labels) = whole
        .pointer("/spec/selector/matchLabels")
        .and_then(Value::as_object)
    else {
        return Vec::new();
    };
    let selector: Vec<String> = labels
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    let selector = selector.join(",");
    let selection = Selection {
        namespace: object.namespace.as_deref(),
        labels: &selector,
        at_most: Some(20),
        ..Selection::default()
    };
    let resource = built_in("", "v1", "Pod", "pods", true);
    match cluster.list_full(&resource, selection).await {
        Ok(listed) if !selector.is_empty() => listed.items,
        _ => Vec::new(),
    }
}

/// The last warnings about an object.
async fn events(cluster: &Cluster, namespace: Option<&str>, whole: &Value) -> Vec<String> {
    let Some(uid) = text(whole, "/metadata/uid") else {
        return Vec::new();
    };
    let fields = format!("involvedObject.uid={uid},type=Warning");
    let selection = Selection {
        namespace: Some(namespace.unwrap_or("default")),
        fields: &fields,
        at_most: Some(50),
        ..Selection::default()
    };
    let resource = built_in("", "v1", "Event", "events", true);
    let Ok(mut listed) = cluster.list_full(&resource, selection).await else {
        return Vec::new();
    };
    let time = |event: &Value| {
        ["/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"]
            .iter()
            .find_map(|at| text(event, at).map(str::to_owned))
    };
    listed.items.sort_by_key(time);
    let newest = listed.items.iter().rev().take(EVENTS_MAX).rev();
    newest
        .filter_map(|event| {
            let message: String = text(event, "/message")?.chars().take(EVENT_LENGTH_MAX).collect();
            Some(format!(
                "event {}: {message}",
                text(event, "/reason").unwrap_or("Warning")
            ))
        })
        .collect()
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
}
