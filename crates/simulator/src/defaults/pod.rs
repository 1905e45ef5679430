//! Defaults of pods and of templates for them.

use serde_json::{Value, json};

use super::is_unset_number;
use crate::json::{at, items_mut, set, set_empty, set_missing, text};
use crate::quantity;

/// Fills in the pod spec at `path`.
pub(crate) fn pod_spec(object: &mut Value, path: &[&str]) {
    let mut spec = match at(object, path) {
        Some(spec) => spec.clone(),
        None => return,
    };
    let account = text(&spec, &["serviceAccountName"]).to_owned();
    let deprecated = text(&spec, &["serviceAccount"]).to_owned();
    let account = if account.is_empty() { deprecated } else { account };
    if !account.is_empty() {
        set(&mut spec, &["serviceAccountName"], account.as_str());
        set(&mut spec, &["serviceAccount"], account.as_str());
    }
    set_empty(&mut spec, &["dnsPolicy"], "ClusterFirst");
    set_empty(&mut spec, &["restartPolicy"], "Always");
    set_missing(&mut spec, &["securityContext"], json!({}));
    set_missing(&mut spec, &["terminationGracePeriodSeconds"], 30);
    set_empty(&mut spec, &["schedulerName"], "default-scheduler");
    for volume in items_mut(&mut spec, &["volumes"]) {
        fill_volume(volume);
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items_mut(&mut spec, &[list]) {
            fill_container(container);
        }
    }
    set(object, path, spec);
}

/// What is filled in for pods alone, not for templates.
pub(crate) fn pod_only(pod: &mut Value) {
    set_missing(pod, &["spec", "enableServiceLinks"], true);
    for list in ["containers", "initContainers"] {
        for container in items_mut(pod, &["spec", list]) {
            let limits = container
                .pointer("/resources/limits")
                .and_then(Value::as_object)
                .cloned();
            for (name, value) in limits.unwrap_or_default() {
                set_missing(container, &["resources", "requests", &name], value);
            }
        }
    }
    if at(pod, &["status"]).is_some() {
        set_empty(pod, &["status", "phase"], "Pending");
        let ip = text(pod, &["status", "podIP"]).to_owned();
        if !ip.is_empty() {
            set_missing(pod, &["status", "podIPs"], json!([{ "ip": ip }]));
        }
    }
}

/// The tag of an image reference; `latest` when it has neither tag nor digest.
fn tag(image: &str) -> &str {
    let (name, digest) = image
        .split_once('@')
        .map_or((image, None), |(name, digest)| (name, Some(digest)));
    let last = name.rsplit('/').next().unwrap_or(name);
    match (last.split_once(':'), digest) {
        (Some((_, tag)), _) => tag,
        (None, Some(_)) => "",
        (None, None) => "latest",
    }
}

fn fill_container(container: &mut Value) {
    let image = text(container, &["image"]).to_owned();
    let policy = if tag(&image) == "latest" {
        "Always"
    } else {
        "IfNotPresent"
    };
    set_empty(container, &["imagePullPolicy"], policy);
    set_empty(container, &["terminationMessagePath"], "/dev/termination-log");
    set_empty(container, &["terminationMessagePolicy"], "File");
    for list in ["limits", "requests"] {
        let quantities = container
            .pointer_mut(&format!("/resources/{list}"))
            .and_then(Value::as_object_mut);
        for value in quantities.into_iter().flat_map(|all| all.values_mut()) {
            if let Some(rounded) = value.as_str().and_then(quantity::canonical_milli) {
                *value = rounded.into();
            }
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) {
            for (field, default) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                if is_unset_number(probe, &[field]) {
                    set(probe, &[field], default);
                }
            }
            fill_action(probe);
            if at(probe, &["grpc"]).is_some() {
                set_missing(probe, &["grpc", "service"], "");
            }
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(handler) = container.pointer_mut(&format!("/lifecycle/{hook}")) {
            fill_action(handler);
        }
    }
    for variable in items_mut(container, &["env"]) {
        if at(variable, &["valueFrom", "fieldRef"]).is_some() {
            set_empty(variable, &["valueFrom", "fieldRef", "apiVersion"], "v1");
        }
    }
}

fn fill_action(handler: &mut Value) {
    if at(handler, &["httpGet"]).is_some() {
        set_empty(handler, &["httpGet", "path"], "/");
        set_empty(handler, &["httpGet", "scheme"], "HTTP");
    }
}

fn fill_volume(volume: &mut Value) {
    let sources = volume
        .as_object()
        .map_or(0, |volume| volume.keys().filter(|key| *key != "name").count());
    if sources == 0 {
        set(volume, &["emptyDir"], json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if at(volume, &[source]).is_some() {
            set_missing(volume, &[source, "defaultMode"], 0o644);
        }
    }
    if at(volume, &["hostPath"]).is_some() {
        set_missing(volume, &["hostPath", "type"], "");
    }
    for item in items_mut(volume, &["downwardAPI", "items"]) {
        fill_field_reference(item);
    }
    for source in items_mut(volume, &["projected", "sources"]) {
        if at(source, &["serviceAccountToken"]).is_some() {
            set_missing(source, &["serviceAccountToken", "expirationSeconds"], 3600);
        }
        for item in items_mut(source, &["downwardAPI", "items"]) {
            fill_field_reference(item);
        }
    }
    if let Some(Value::Object(_)) = volume.pointer("/ephemeral/volumeClaimTemplate/spec") {
        set_missing(
            volume,
            &["ephemeral", "volumeClaimTemplate", "spec", "volumeMode"],
            "Filesystem",
        );
    }
}

fn fill_field_reference(item: &mut Value) {
    if at(item, &["fieldRef"]).is_some() {
        set_empty(item, &["fieldRef", "apiVersion"], "v1");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_without_a_fixed_tag_are_pulled_always() {
        for (image, expected) in [
            ("nginx", "latest"),
            ("nginx:1.29", "1.29"),
            ("registry:5000/nginx", "latest"),
            ("registry:5000/nginx:x", "x"),
            ("nginx@sha256:00", ""),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
    }

    #[test]
    fn probes_and_volumes_are_filled_in() {
        let mut pod = json!({"spec": {
            "containers": [{"name": "c", "image": "a:1", "readinessProbe": {"httpGet": {"port": 80}},
                "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}],
            "volumes": [{"name": "a"}, {"name": "b", "secret": {"secretName": "s"}}]}});
        pod_spec(&mut pod, &["spec"]);
        let container = &pod["spec"]["containers"][0];
        assert_eq!(
            container["readinessProbe"]["httpGet"],
            json!({"port": 80, "path": "/", "scheme": "HTTP"})
        );
        assert_eq!(container["readinessProbe"]["failureThreshold"], 3);
        assert_eq!(container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
        assert_eq!(container["imagePullPolicy"], "IfNotPresent");
        assert_eq!(pod["spec"]["volumes"][0], json!({"name": "a", "emptyDir": {}}));
        assert_eq!(pod["spec"]["volumes"][1]["secret"]["defaultMode"], 420);
    }
}
