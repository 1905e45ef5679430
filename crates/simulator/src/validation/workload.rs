//! Rules of workloads and their pods.

use serde_json::Value;

use super::{changed, shown};
use crate::json::{at, items, number, text};
use crate::object::{Object, Shared};
use crate::selectors::LabelSelector;
use crate::status::Cause;

/// Deployments, replica sets, stateful sets and daemon sets.
pub(super) fn check(object: &Value, causes: &mut Vec<Cause>) {
    if let Some(replicas) = number(object, &["spec", "replicas"]).filter(|replicas| *replicas < 0) {
        causes.push(Cause::invalid(
            "spec.replicas",
            &replicas.to_string(),
            "must be greater than or equal to 0",
        ));
    }
    let selector = at(object, &["spec", "selector"]);
    match selector {
        None => causes.push(Cause::required("spec.selector", "")),
        Some(selector) if selector.as_object().is_some_and(|selector| selector.is_empty()) => {
            causes.push(Cause::invalid(
                "spec.selector",
                "{}",
                "empty selector is invalid for deployment",
            ));
        }
        Some(_) => {}
    }
    let labels = at(object, &["spec", "template", "metadata", "labels"]);
    let matches = selector.is_some_and(|selector| {
        let carrier = serde_json::json!({"metadata": {"name": "x", "labels": labels}});
        LabelSelector::from_object(selector).matches(&Object::from_value(&carrier, &Shared::new()))
    });
    if !matches {
        let shown = labels.map_or_else(|| "null".into(), Value::to_string);
        causes.push(Cause::invalid(
            "spec.template.metadata.labels",
            &shown,
            "`selector` does not match template `labels`",
        ));
    }
    let recreate = text(object, &["spec", "strategy", "type"]) == "Recreate";
    if recreate && at(object, &["spec", "strategy", "rollingUpdate"]).is_some() {
        causes.push(Cause::forbidden(
            "spec.strategy.rollingUpdate",
            "may not be specified when strategy `type` is 'Recreate'",
        ));
    }
    let policy = text(object, &["spec", "template", "spec", "restartPolicy"]);
    if !policy.is_empty() && policy != "Always" {
        let shown = Value::from(policy).to_string();
        causes.push(Cause::not_supported(
            "spec.template.spec.restartPolicy",
            &shown,
            &["Always"],
        ));
    }
    check_pod_spec(
        object,
        &["spec", "template", "spec"],
        "spec.template.spec",
        causes,
    );
}

/// The spec of a job at `path`.
pub(super) fn check_job(object: &Value, path: &[&str], field: &str, causes: &mut Vec<Cause>) {
    let mut pod = path.to_vec();
    pod.extend(["template", "spec"]);
    let pod_field = format!("{field}.template.spec");
    check_pod_spec(object, &pod, &pod_field, causes);
    let mut policy = pod.clone();
    policy.push("restartPolicy");
    match text(object, &policy) {
        "Never" | "OnFailure" => {}
        "" | "Always" => causes.push(Cause::required(
            &format!("{pod_field}.restartPolicy"),
            "valid values: \"OnFailure\", \"Never\"",
        )),
        other => {
            let shown = Value::from(other).to_string();
            causes.push(Cause::not_supported(
                &format!("{pod_field}.restartPolicy"),
                &shown,
                &["Never", "OnFailure"],
            ));
        }
    }
}

/// The pod spec at `path`.
pub(super) fn check_pod_spec(object: &Value, path: &[&str], field: &str, causes: &mut Vec<Cause>) {
    let Some(spec) = at(object, path) else {
        causes.push(Cause::required(&format!("{field}.containers"), ""));
        return;
    };
    let containers = items(spec, &["containers"]);
    if containers.is_empty() {
        causes.push(Cause::required(&format!("{field}.containers"), ""));
    }
    let volumes: Vec<&str> = items(spec, &["volumes"])
        .iter()
        .map(|volume| text(volume, &["name"]))
        .collect();
    let mut names: Vec<&str> = Vec::new();
    for (list, containers) in [
        ("containers", containers),
        ("initContainers", items(spec, &["initContainers"])),
    ] {
        for (position, container) in containers.iter().enumerate() {
            let at_field = format!("{field}.{list}[{position}]");
            let name = text(container, &["name"]);
            if name.is_empty() {
                causes.push(Cause::required(&format!("{at_field}.name"), ""));
            } else if names.contains(&name) {
                causes.push(super::duplicate(
                    &format!("{at_field}.name"),
                    &Value::from(name).to_string(),
                ));
            }
            names.push(name);
            if text(container, &["image"]).is_empty() {
                causes.push(Cause::required(&format!("{at_field}.image"), ""));
            }
            for (position, port) in items(container, &["ports"]).iter().enumerate() {
                let port = number(port, &["containerPort"]).unwrap_or(0);
                if port == 0 {
                    causes.push(Cause::required(
                        &format!("{at_field}.ports[{position}].containerPort"),
                        "",
                    ));
                } else if !(1..=65_535).contains(&port) {
                    causes.push(Cause::invalid(
                        &format!("{at_field}.ports[{position}].containerPort"),
                        &port.to_string(),
                        "must be between 1 and 65535, inclusive",
                    ));
                }
            }
            for (position, mount) in items(container, &["volumeMounts"]).iter().enumerate() {
                let volume = text(mount, &["name"]);
                if !volumes.contains(&volume) {
                    causes.push(Cause {
                        reason: "FieldValueNotFound",
                        message: format!("Not found: {}", Value::from(volume)),
                        field: format!("{at_field}.volumeMounts[{position}].name"),
                    });
                }
            }
        }
    }
}

pub(super) fn stateful_set_change(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    for (name, field) in [
        ("selector", "spec.selector"),
        ("serviceName", "spec.serviceName"),
        ("podManagementPolicy", "spec.podManagementPolicy"),
        ("volumeClaimTemplates", "spec.volumeClaimTemplates"),
    ] {
        let path = ["spec", name];
        if changed(old, new, &path) {
            causes.push(Cause::invalid(field, &shown(new, &path), "field is immutable"));
        }
    }
}

pub(super) fn job_change(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    for (name, field) in [
        ("completions", "spec.completions"),
        ("selector", "spec.selector"),
        ("completionMode", "spec.completionMode"),
    ] {
        let path = ["spec", name];
        let elastic = name == "completions" && text(old, &["spec", "completionMode"]) == "Indexed";
        if !elastic && changed(old, new, &path) {
            causes.push(Cause::invalid(field, &shown(new, &path), "field is immutable"));
        }
    }
    // While suspended and not yet started, scheduling directives may change.
    let startable = at(old, &["spec", "suspend"]).and_then(Value::as_bool) == Some(true)
        && at(old, &["status", "startTime"]).is_none();
    if !startable && changed(old, new, &["spec", "template"]) {
        let path = ["spec", "template"];
        causes.push(Cause::invalid(
            "spec.template",
            &shown(new, &path),
            "field is immutable",
        ));
    }
}

pub(super) fn pod_change(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let strip = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        for list in ["containers", "initContainers"] {
            for container in crate::json::items_mut(&mut spec, &[list]) {
                crate::json::remove(container, &["image"]);
            }
        }
        for field in [
            "activeDeadlineSeconds",
            "tolerations",
            "terminationGracePeriodSeconds",
            "ephemeralContainers",
        ] {
            crate::json::remove(&mut spec, &[field]);
        }

        spec
    };
    if strip(old) != strip(new) {
        causes.push(Cause::forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
             `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
             `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        ));
    }
}
