//! Why an object is not ready: its pods' troubles, the last words of a container that crashes, the last events of all of
//! them.
//!
//! Log lines are told as the container wrote them, within bounds. Nobody but the container knows what in them is secret.

use std::sync::Arc;

use evenkeel_core::ObjectRef;
use serde_json::Value;

use crate::Cluster;
use crate::connection::{Subject, Verb};
use crate::discovery::Resource;
use crate::objects::{Selection, built_in};
use crate::readiness::{ObjectState, pod_trouble};

/// The most objects that are looked into; the rest are named only.
const EXPLAINED_MAX: usize = 5;
/// The most pods of one workload that are named.
const PODS_MAX: usize = 3;
/// The most events of one object that are told.
const EVENTS_MAX: usize = 3;
/// The most replica sets of one Deployment whose events are told; the newest come first.
const REPLICA_SETS_MAX: usize = 2;
/// The longest text of one event, in characters.
const EVENT_LENGTH_MAX: usize = 300;
/// The last log lines of a container that are told.
const LOG_LINES_MAX: usize = 10;
/// The most of a container's log that is asked for, in bytes.
const LOG_BYTES_MAX: usize = 8 * 1024;
/// The longest log line that is told, in characters.
const LOG_LINE_LENGTH_MAX: usize = 300;

/// Adds to each state what helps to find the cause. What cannot be read is left out: the verdict itself stands.
pub(crate) async fn explain(
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
    let namespace = object.namespace.as_deref();
    let pods = pods(cluster, resource, object, &whole).await;
    // Those in trouble first.
    let (troubled, rest): (Vec<_>, Vec<_>) = pods
        .iter()
        .map(|pod| (pod, pod_trouble(pod)))
        .partition(|(_, trouble)| trouble.is_some());
    for (pod, trouble) in troubled.into_iter().chain(rest).take(PODS_MAX) {
        let name = text(pod, "/metadata/name").unwrap_or_default();
        let Some(trouble) = trouble else {
            continue;
        };
        details.push(format!("pod {name}: {trouble}"));
        if let Some(container) = crashed(pod) {
            details.extend(last_words(cluster, namespace, name, &container).await);
        }
        if let Some(event) = events(cluster, namespace, pod).await.pop() {
            details.push(format!("pod {name}: {event}"));
        }
    }
    if object.kind == "Deployment" && object.group == "apps" {
        for set in replica_sets(cluster, namespace, &whole).await {
            let name = text(&set, "/metadata/name").unwrap_or_default();
            if let Some(event) = events(cluster, namespace, &set).await.pop() {
                details.push(format!("replica set {name}: {event}"));
            }
        }
    }
    if resource.kind.kind != "Pod" {
        details.extend(events(cluster, namespace, &whole).await);
    }
    details
}

/// A container that ended badly.
struct Crashed<'a> {
    name: &'a str,
    /// Whether it has been started again since, so that its last words are in the log before this one.
    restarted: bool,
}

fn crashed(pod: &Value) -> Option<Crashed<'_>> {
    ["/status/initContainerStatuses", "/status/containerStatuses"]
        .iter()
        .filter_map(|pointer| pod.pointer(pointer)?.as_array())
        .flatten()
        .find_map(|status| {
            let failed = |pointer: &str| {
                let code = status.pointer(pointer)?.as_i64()?;
                (code != 0).then_some(())
            };
            let restarted = match (
                failed("/state/terminated/exitCode"),
                failed("/lastState/terminated/exitCode"),
            ) {
                (Some(()), _) => false,
                (None, Some(())) => true,
                (None, None) => return None,
            };
            Some(Crashed {
                name: status.get("name")?.as_str()?,
                restarted,
            })
        })
}

/// The last lines that a container wrote before it ended; when those are lost, the last it wrote since.
async fn last_words(
    cluster: &Cluster,
    namespace: Option<&str>,
    pod: &str,
    container: &Crashed<'_>,
) -> Vec<String> {
    let pod_path = built_in("", "v1", "Pod", "pods", true).object(namespace, pod);
    for previous in [container.restarted, !container.restarted] {
        let subject = Subject::new(format!("read the log of pod {pod}"));
        let path = format!(
            "{pod_path}/log?container={}&tailLines={LOG_LINES_MAX}&limitBytes={LOG_BYTES_MAX}&previous={previous}",
            container.name
        );
        let Ok(log) = cluster.read(Verb::Get, &path, "*/*", &subject).await else {
            continue;
        };
        let lines = last_lines(&String::from_utf8_lossy(&log));
        if !lines.is_empty() {
            let when = if previous { "before it ended" } else { "at last" };
            let told = lines.into_iter().map(|line| format!("| {line}"));
            return std::iter::once(format!("pod {pod}: container {} wrote {when}:", container.name))
                .chain(told)
                .collect();
        }
    }
    Vec::new()
}

/// The last lines of a log, cut, and without what a terminal would act on.
fn last_lines(log: &str) -> Vec<String> {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let skipped = lines.len().saturating_sub(LOG_LINES_MAX);
    lines
        .into_iter()
        .skip(skipped)
        .map(|line| {
            let printable = |c: &char| !c.is_control() || *c == '\t';
            line.chars().filter(printable).take(LOG_LINE_LENGTH_MAX).collect()
        })
        .collect()
}

/// The newest replica sets of a Deployment.
async fn replica_sets(cluster: &Cluster, namespace: Option<&str>, deployment: &Value) -> Vec<Value> {
    let (Some(selector), Some(uid)) = (selector(deployment), text(deployment, "/metadata/uid")) else {
        return Vec::new();
    };
    let selection = Selection {
        namespace,
        labels: &selector,
        at_most: Some(20),
        ..Selection::default()
    };
    let resource = built_in("apps", "v1", "ReplicaSet", "replicasets", true);
    let Ok(mut listed) = cluster.list_full(&resource, selection).await else {
        return Vec::new();
    };
    listed
        .items
        .retain(|set| text(set, "/metadata/ownerReferences/0/uid") == Some(uid));
    listed
        .items
        .sort_by_key(|set| std::cmp::Reverse(text(set, "/metadata/creationTimestamp").map(str::to_owned)));
    listed.items.truncate(REPLICA_SETS_MAX);
    listed.items
}

/// The selector of a workload's pods, as a LIST takes it.
fn selector(workload: &Value) -> Option<String> {
    let labels = workload.pointer("/spec/selector/matchLabels")?.as_object()?;
    let terms: Vec<String> = labels
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    (!terms.is_empty()).then(|| terms.join(","))
}

/// The pods that a workload selects; a pod itself.
async fn pods(cluster: &Cluster, resource: &Resource, object: &ObjectRef, whole: &Value) -> Vec<Value> {
    if resource.kind.kind == "Pod" && resource.kind.group.is_empty() {
        return vec![whole.clone()];
    }
    let Some(selector) = selector(whole) else {
        return Vec::new();
    };
    let selection = Selection {
        namespace: object.namespace.as_deref(),
        labels: &selector,
        at_most: Some(20),
        ..Selection::default()
    };
    let resource = built_in("", "v1", "Pod", "pods", true);
    match cluster.list_full(&resource, selection).await {
        Ok(listed) => listed.items,
        Err(_) => Vec::new(),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn logs_are_cut_and_made_printable() {
        let long = format!(
            "{}\n\u{1b}[31mred\u{7}\n\n{}\n",
            "first\n".repeat(20),
            "x".repeat(1000)
        );
        let lines = last_lines(&long);
        assert_eq!(lines.len(), LOG_LINES_MAX);
        assert_eq!(lines.last().map(String::len), Some(LOG_LINE_LENGTH_MAX));
        assert!(lines.contains(&"[31mred".to_owned()), "{lines:?}");
        assert!(last_lines("\n \n").is_empty());
    }

    #[test]
    fn the_container_that_crashed_is_found() {
        let pod = |state: Value, last: Value| {
            json!({"status": {"containerStatuses": [
            {"name": "fine", "state": {"running": {}}}, {"name": "main", "state": state, "lastState": last}]}})
        };
        let ended = |code: i64| json!({"terminated": {"exitCode": code}});
        let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let found = |state: Value, last: Value| {
            let pod = pod(state, last);
            crashed(&pod).map(|crashed| (crashed.name.to_owned(), crashed.restarted))
        };
        assert_eq!(found(ended(1), json!({})), Some(("main".to_owned(), false)));
        assert_eq!(found(waits.clone(), ended(1)), Some(("main".to_owned(), true)));
        assert_eq!(found(waits, json!({})), None);
        assert_eq!(found(ended(0), json!({})), None);
    }
}
