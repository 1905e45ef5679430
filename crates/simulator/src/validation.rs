//! What the API server refuses: names, labels, the rules of the kinds that an engine meets, and fields that may not
//! change.
//!
//! Not every rule of every kind is here. Each one that is has the server's own text.

use serde_json::Value;

use crate::json::{at, items, number, text};
use crate::registry::Resource;
use crate::status::Cause;

mod metadata;
mod workload;

/// Checks an object that is to be created.
pub(crate) fn create(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = metadata::check(resource, object);
    kind_rules(resource, object, &mut causes);
    causes
}

/// Checks an object that is to replace `old`.
pub(crate) fn update(resource: &Resource, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = metadata::check(resource, new);
    metadata::check_change(old, new, &mut causes);
    kind_rules(resource, new, &mut causes);
    immutable_fields(resource, old, new, &mut causes);
    causes
}

fn kind_rules(resource: &Resource, object: &Value, causes: &mut Vec<Cause>) {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => {
            workload::check(object, causes)
        }
        ("batch", "Job") => workload::check_job(object, &["spec"], "spec", causes),
        ("batch", "CronJob") => {
            if text(object, &["spec", "schedule"]).is_empty() {
                causes.push(Cause::required("spec.schedule", ""));
            }
            workload::check_job(
                object,
                &["spec", "jobTemplate", "spec"],
                "spec.jobTemplate.spec",
                causes,
            );
        }
        ("", "Pod") => workload::check_pod_spec(object, &["spec"], "spec", causes),
        ("", "Service") => service(object, causes),
        ("", "PersistentVolumeClaim") => {
            if items(object, &["spec", "accessModes"]).is_empty() {
                causes.push(Cause::required(
                    "spec.accessModes",
                    "at least 1 access mode is required",
                ));
            }
            if at(object, &["spec", "resources", "requests", "storage"]).is_none() {
                causes.push(Cause::required("spec.resources[storage]", ""));
            }
        }
        ("", "ConfigMap") => data_keys(object, &["data", "binaryData"], causes),
        ("", "Secret") => data_keys(object, &["data"], causes),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding")
            if text(object, &["roleRef", "name"]).is_empty() =>
        {
            causes.push(Cause::required("roleRef.name", ""));
        }
        ("autoscaling", "HorizontalPodAutoscaler")
            if number(object, &["spec", "maxReplicas"]).unwrap_or(0) < 1 =>
        {
            let value = at(object, &["spec", "maxReplicas"]).map_or_else(|| "0".into(), Value::to_string);
            causes.push(Cause::invalid(
                "spec.maxReplicas",
                &value,
                "must be greater than 0",
            ));
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crate::crd::validate(object, causes),
        _ => {}
    }
}

fn data_keys(object: &Value, maps: &[&str], causes: &mut Vec<Cause>) {
    for map in maps {
        for name in object
            .get(*map)
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|map| map.keys())
        {
            let good = !name.is_empty()
                && name.len() <= 253
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
                && name != "."
                && name != "..";
            if !good {
                causes.push(Cause::invalid(
                    &format!("{map}[{name}]"),
                    &Value::from(name.as_str()).to_string(),
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
                     'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
                ));
            }
        }
    }
}

fn service(object: &Value, causes: &mut Vec<Cause>) {
    let kind = text(object, &["spec", "type"]);
    const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !TYPES.contains(&kind) {
        causes.push(Cause::not_supported(
            "spec.type",
            &Value::from(kind).to_string(),
            &TYPES,
        ));
    }
    let ports = items(object, &["spec", "ports"]);
    let headless = text(object, &["spec", "clusterIP"]) == "None";
    if ports.is_empty() && !headless && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    if kind == "ExternalName" && text(object, &["spec", "externalName"]).is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    }
    let mut seen: Vec<(i64, &str)> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for (position, port) in ports.iter().enumerate() {
        let field = format!("spec.ports[{position}]");
        let number = number(port, &["port"]).unwrap_or(0);
        if !(1..=65_535).contains(&number) {
            let cause = Cause::invalid(
                &format!("{field}.port"),
                &number.to_string(),
                "must be between 1 and 65535, inclusive",
            );
            causes.push(cause);
        }
        let target = crate::json::number(port, &["targetPort"]);
        if let Some(target) = target.filter(|target| !(1..=65_535).contains(target)) {
            let field = format!("{field}.targetPort");
            causes.push(Cause::invalid(
                &field,
                &target.to_string(),
                "must be between 1 and 65535, inclusive",
            ));
        }
        let name = text(port, &["name"]);
        if ports.len() > 1 && name.is_empty() {
            causes.push(Cause::required(&format!("{field}.name"), ""));
        }
        if !name.is_empty() && names.contains(&name) {
            causes.push(duplicate(
                &format!("{field}.name"),
                &Value::from(name).to_string(),
            ));
        }
        names.push(name);
        let key = (number, text(port, &["protocol"]));
        if seen.contains(&key) {
            let value = format!(
                "{{\"protocol\":\"{}\",\"port\":{},\"targetPort\":0}}",
                key.1, key.0
            );
            causes.push(duplicate(&field, &value));
        }
        seen.push(key);
    }
}

fn duplicate(field: &str, value: &str) -> Cause {
    Cause {
        reason: "FieldValueDuplicate",
        message: format!("Duplicate value: {value}"),
        field: field.to_owned(),
    }
}

/// Fields of `spec` that differ between two objects.
fn changed<'v>(old: &'v Value, new: &'v Value, path: &[&str]) -> bool {
    at(old, path) != at(new, path)
}

fn shown(object: &Value, path: &[&str]) -> String {
    at(object, path).map_or_else(|| "null".into(), Value::to_string)
}

fn immutable_fields(resource: &Resource, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    const IMMUTABLE: &str = "field is immutable";
    let mut fixed = |path: &[&str], field: &str| {
        if changed(old, new, path) {
            causes.push(Cause::invalid(field, &shown(new, path), IMMUTABLE));
        }
    };
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => fixed(&["spec", "selector"], "spec.selector"),
        ("apps", "StatefulSet") => workload::stateful_set_change(old, new, causes),
        ("batch", "Job") => workload::job_change(old, new, causes),
        ("", "Pod") => workload::pod_change(old, new, causes),
        ("", "ConfigMap" | "Secret") => {
            if resource.kind == "Secret" {
                fixed(&["type"], "type");
            }
            if old.get("immutable").and_then(Value::as_bool) != Some(true) {
                return;
            }
            if new.get("immutable").and_then(Value::as_bool) != Some(true) {
                causes.push(Cause::forbidden(
                    "immutable",
                    "field is immutable when `immutable` is set",
                ));
            }
            for part in ["data", "binaryData"] {
                if changed(old, new, &[part]) {
                    causes.push(Cause::forbidden(
                        part,
                        "field is immutable when `immutable` is set",
                    ));
                }
            }
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding")
            if changed(old, new, &["roleRef"]) =>
        {
            let name = |field| Value::from(text(new, &["roleRef", field])).to_string();
            let value = format!(
                "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
                name("apiGroup"),
                name("kind"),
                name("name")
            );
            causes.push(Cause::invalid("roleRef", &value, IMMUTABLE));
        }
        ("", "Service") => {
            // A type change to or from ExternalName gives up or takes the address.
            let external = |object: &Value| text(object, &["spec", "type"]) == "ExternalName";
            let had = text(old, &["spec", "clusterIP"]);
            if !external(old)
                && !external(new)
                && !had.is_empty()
                && changed(old, new, &["spec", "clusterIP"])
            {
                let address = Value::from(vec![text(new, &["spec", "clusterIP"])]).to_string();
                causes.push(Cause::invalid(
                    "spec.clusterIPs[0]",
                    &address,
                    "may not change once set",
                ));
            }
        }
        ("", "PersistentVolumeClaim") => claim_change(old, new, causes),
        ("storage.k8s.io", "StorageClass") => {
            for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
                if changed(old, new, &[field]) {
                    causes.push(Cause::invalid(field, "null", IMMUTABLE));
                }
            }
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            if changed(old, new, &["value"]) {
                causes.push(Cause::forbidden("value", "may not be changed in an update."));
            }
            if changed(old, new, &["preemptionPolicy"]) {
                let value = shown(new, &["preemptionPolicy"]);
                causes.push(Cause::invalid("preemptionPolicy", &value, IMMUTABLE));
            }
        }
        ("networking.k8s.io", "IngressClass") => fixed(&["spec", "controller"], "spec.controller"),
        ("node.k8s.io", "RuntimeClass") if changed(old, new, &["handler"]) => {
            causes.push(Cause::invalid("handler", "null", IMMUTABLE));
        }
        ("discovery.k8s.io", "EndpointSlice") if changed(old, new, &["addressType"]) => {
            causes.push(Cause::invalid("addressType", "null", IMMUTABLE));
        }
        ("", "PersistentVolume") if volume_source(old) != volume_source(new) => {
            causes.push(Cause::forbidden(
                "spec.persistentvolumesource",
                "spec.persistentvolumesource is immutable after creation",
            ));
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            for (path, field) in [
                (&["spec", "group"][..], "spec.group"),
                (&["spec", "scope"], "spec.scope"),
                (&["spec", "names", "plural"], "spec.names.plural"),
                (&["spec", "names", "kind"], "spec.names.kind"),
            ] {
                if changed(old, new, path) {
                    causes.push(Cause::invalid(field, &shown(new, path), IMMUTABLE));
                }
            }
            stored_versions(old, new, causes);
        }
        _ => {}
    }
}

/// Versions in which objects may be stored must stay.
fn stored_versions(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let served = items(new, &["spec", "versions"]);
    for (index, stored) in items(old, &["status", "storedVersions"]).iter().enumerate() {
        if served.iter().all(|version| version.get("name") != Some(stored)) {
            let name = stored.as_str().unwrap_or_default();
            causes.push(Cause::invalid(
                &format!("status.storedVersions[{index}]"),
                &stored.to_string(),
                &format!(
                    "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                     until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                     status.storedVersions"
                ),
            ));
        }
    }
}

/// What of a volume is not about its use.
fn volume_source(volume: &Value) -> Value {
    const USE: [&str; 9] = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    let mut spec = volume.get("spec").cloned().unwrap_or_default();
    for field in USE {
        crate::json::remove(&mut spec, &[field]);
    }
    spec
}

fn claim_change(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let bound = text(old, &["status", "phase"]) == "Bound";
    let strip = |object: &Value| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        if bound {
            crate::json::remove(&mut spec, &["resources", "requests"]);
            crate::json::remove(&mut spec, &["volumeAttributesClassName"]);
        }
        // The controller that binds a claim fills these in once.
        if text(old, &["spec", "volumeName"]).is_empty() {
            crate::json::remove(&mut spec, &["volumeName"]);
        }
        if at(old, &["spec", "storageClassName"]).is_none() {
            crate::json::remove(&mut spec, &["storageClassName"]);
        }
        spec
    };
    if strip(old) != strip(new) {
        causes.push(Cause::forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        ));
    }
    let size = |object: &Value, path: &[&str]| crate::quantity::billionths(text(object, path));
    let asked = size(new, &["spec", "resources", "requests", "storage"]);
    let has = size(old, &["status", "capacity", "storage"]);
    if bound && asked.zip(has).is_some_and(|(asked, has)| asked < has) {
        causes.push(Cause::forbidden(
            "spec.resources.requests.storage",
            "field can not be less than status.capacity",
        ));
    }
}

#[cfg(test)]
mod tests;
