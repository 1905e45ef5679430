//! Conversion between versions of one kind.
//!
//! Custom kinds keep their content (strategy `None`); of the built-in ones only autoscalers and events have versions
//! that differ.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// The object in version `to` (`GROUP/VERSION`).
pub(crate) fn convert<'v>(value: &'v Value, to: &str) -> Cow<'v, Value> {
    let from = value.get("apiVersion").and_then(Value::as_str).unwrap_or(to);
    if from == to {
        return Cow::Borrowed(value);
    }
    let mut out = value.clone();
    match (from, to) {
        ("autoscaling/v1", "autoscaling/v2") => autoscaler_to_v2(&mut out),
        ("autoscaling/v2", "autoscaling/v1") => autoscaler_to_v1(&mut out),
        ("v1", "events.k8s.io/v1") => rename(&mut out, false),
        ("events.k8s.io/v1", "v1") => rename(&mut out, true),
        _ => {}
    }
    if let Some(object) = out.as_object_mut() {
        object.insert("apiVersion".into(), to.into());
    }
    Cow::Owned(out)
}

const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn rename(event: &mut Value, to_core: bool) {
    let Some(object) = event.as_object_mut() else {
        return;
    };
    for (core, new) in EVENT_FIELDS {
        let (from, to) = if to_core { (new, core) } else { (core, new) };
        if let Some(value) = object.remove(from) {
            object.insert(to.into(), value);
        }
    }
}

fn cpu_metric(kind: &str, field: &str, percent: Value) -> Value {
    match kind {
        "spec" => json!({"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", field: percent}}}),
        _ => {
            json!({"type": "Resource", "resource": {"name": "cpu", "current": {field: percent, "averageValue": "0"}}})
        }
    }
}

fn autoscaler_to_v2(value: &mut Value) {
    for (part, old, list) in [
        ("spec", "targetCPUUtilizationPercentage", "metrics"),
        ("status", "currentCPUUtilizationPercentage", "currentMetrics"),
    ] {
        if let Some(object) = value.get_mut(part).and_then(Value::as_object_mut)
            && let Some(percent) = object.remove(old)
        {
            object.insert(
                list.into(),
                json!([cpu_metric(part, "averageUtilization", percent)]),
            );
        }
    }
}

fn autoscaler_to_v1(value: &mut Value) {
    if value.get("status").is_some() {
        // Version 1 always prints these.
        for count in ["currentReplicas", "desiredReplicas"] {
            crate::json::set_missing(value, &["status", count], 0);
        }
    }
    for (part, old, list, inner) in [
        ("spec", "targetCPUUtilizationPercentage", "metrics", "target"),
        (
            "status",
            "currentCPUUtilizationPercentage",
            "currentMetrics",
            "current",
        ),
    ] {
        let Some(object) = value.get_mut(part).and_then(Value::as_object_mut) else {
            continue;
        };
        let Some(Value::Array(metrics)) = object.remove(list) else {
            continue;
        };
        let is_cpu = |metric: &Value| metric.pointer("/resource/name").and_then(Value::as_str) == Some("cpu");
        let path = format!("/resource/{inner}/averageUtilization");
        if let Some(percent) = metrics
            .iter()
            .find(|m| is_cpu(m))
            .and_then(|metric| metric.pointer(&path))
        {
            object.insert(old.into(), percent.clone());
        }
        // What version 1 has no field for is kept in annotations, as a real server does.
        let rest: Vec<&Value> = metrics
            .iter()
            .filter(|metric| !is_cpu(metric) || metric.pointer(&path).is_none())
            .collect();
        if !rest.is_empty() && part == "spec" {
            let text = serde_json::to_string(&rest).unwrap_or_default();
            if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                let annotations = metadata
                    .entry("annotations")
                    .or_insert_with(|| Value::Object(Map::new()));
                if let Some(annotations) = annotations.as_object_mut() {
                    annotations.insert("autoscaling.alpha.kubernetes.io/metrics".into(), text.into());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autoscalers_convert_both_ways() {
        let one = json!({"apiVersion": "autoscaling/v1", "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 70}});
        let two = convert(&one, "autoscaling/v2").into_owned();
        assert_eq!(
            two["spec"]["metrics"],
            json!([{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 70}}}])
        );
        assert_eq!(convert(&two, "autoscaling/v1").into_owned(), one);
    }

    #[test]
    fn events_convert_both_ways() {
        let core =
            json!({"apiVersion": "v1", "kind": "Event", "message": "m", "involvedObject": {"name": "x"}});
        let new = convert(&core, "events.k8s.io/v1").into_owned();
        assert_eq!(
            (new["note"].as_str(), new["regarding"]["name"].as_str()),
            (Some("m"), Some("x"))
        );
        assert_eq!(convert(&new, "v1").into_owned(), core);
    }

    #[test]
    fn custom_kinds_keep_their_content() {
        let old = json!({"apiVersion": "example.dev/v1beta1", "spec": {"a": 1}});
        let new = convert(&old, "example.dev/v1");
        assert_eq!(new["spec"], old["spec"]);
        assert_eq!(new["apiVersion"], "example.dev/v1");
    }
}
