//! Cells of the built-in kinds.

use serde_json::Value;

use super::{containers, count, or_none, selector};
use crate::clock::{age, parse_seconds};
use crate::json::{at, items, number, text};
use crate::object::Object;

/// The cell of a kind's object under a column.
pub(super) fn cell(kind: &str, column: &str, value: &Value, object: &Object, now: i64) -> Value {
    match (kind, column) {
        (_, "Containers") => containers(value, "name").into(),
        (_, "Images") => containers(value, "image").into(),
        ("Service", "Selector") => selector(value, &["spec", "selector"]).into(),
        (_, "Selector") => selector(value, &["spec", "selector", "matchLabels"]).into(),
        ("Pod", column) => pod(column, value, object),
        ("Service", column) => service(column, value),
        ("Deployment", "Ready") => {
            let wanted = count(value, &["spec", "replicas"]);
            format!("{}/{wanted}", count(value, &["status", "readyReplicas"])).into()
        }
        ("Deployment", "Up-to-date") => count(value, &["status", "updatedReplicas"]).into(),
        ("Deployment", "Available") => count(value, &["status", "availableReplicas"]).into(),
        ("StatefulSet", "Ready") => {
            let wanted = count(value, &["spec", "replicas"]);
            format!("{}/{wanted}", count(value, &["status", "readyReplicas"])).into()
        }
        ("ReplicaSet", "Desired") => count(value, &["spec", "replicas"]).into(),
        ("ReplicaSet", "Current") => count(value, &["status", "replicas"]).into(),
        ("ReplicaSet", "Ready") => count(value, &["status", "readyReplicas"]).into(),
        ("DaemonSet", column) => match column {
            "Desired" => count(value, &["status", "desiredNumberScheduled"]).into(),
            "Current" => count(value, &["status", "currentNumberScheduled"]).into(),
            "Ready" => count(value, &["status", "numberReady"]).into(),
            "Up-to-date" => count(value, &["status", "updatedNumberScheduled"]).into(),
            "Available" => count(value, &["status", "numberAvailable"]).into(),
            _ => selector(value, &["spec", "template", "spec", "nodeSelector"]).into(),
        },
        ("Job", column) => job(column, value, now),
        ("CronJob", column) => match column {
            "Schedule" => text(value, &["spec", "schedule"]).into(),
            "Timezone" => or_none(text(value, &["spec", "timeZone"])),
            "Suspend" => {
                let suspended = at(value, &["spec", "suspend"])
                    .and_then(Value::as_bool)
                    .unwrap_or(false);
                if suspended { "True".into() } else { "False".into() }
            }
            "Active" => items(value, &["status", "active"]).len().into(),
            _ => match parse_seconds(text(value, &["status", "lastScheduleTime"])) {
                Some(time) => age(now - time).into(),
                None => "<none>".into(),
            },
        },
        ("Node", "Status") => condition_text(value, "Ready", "NotReady"),
        ("Node", "Roles") => "<none>".into(),
        ("Node", "Version") => text(value, &["status", "nodeInfo", "kubeletVersion"]).into(),
        ("Namespace", "Status") => text(value, &["status", "phase"]).into(),
        ("ConfigMap" | "Secret", "Data") => {
            let size = |name: &str| {
                value
                    .get(name)
                    .and_then(Value::as_object)
                    .map_or(0, serde_json::Map::len)
            };
            (size("data") + size("binaryData")).into()
        }
        ("Secret", "Type") => text(value, &["type"]).into(),
        ("PersistentVolumeClaim", column) => claim(column, value),
        ("Event", column) => event(column, value, now),
        ("Ingress", column) => ingress(column, value),
        ("NetworkPolicy", _) => selector(value, &["spec", "podSelector", "matchLabels"]).into(),
        ("HorizontalPodAutoscaler", column) => match column {
            "Reference" => {
                let part = |name| text(value, &["spec", "scaleTargetRef", name]);
                format!("{}/{}", part("kind"), part("name")).into()
            }
            "Targets" => "<unknown>".into(),
            "MinPods" => count(value, &["spec", "minReplicas"]).to_string().into(),
            "MaxPods" => count(value, &["spec", "maxReplicas"]).into(),
            _ => count(value, &["status", "currentReplicas"]).into(),
        },
        ("PodDisruptionBudget", column) => {
            let shown = |field| match at(value, &["spec", field]) {
                Some(Value::String(text)) => text.as_str().into(),
                Some(number) => number.to_string().into(),
                None => "N/A".into(),
            };
            match column {
                "Min Available" => shown("minAvailable"),
                "Max Unavailable" => shown("maxUnavailable"),
                _ => count(value, &["status", "disruptionsAllowed"]).into(),
            }
        }
        ("RoleBinding" | "ClusterRoleBinding", "Role") => format!(
            "{}/{}",
            text(value, &["roleRef", "kind"]),
            text(value, &["roleRef", "name"])
        )
        .into(),
        ("CustomResourceDefinition", column) => match column {
            "Scope" => text(value, &["spec", "scope"]).into(),
            "Versions" => {
                let versions = items(value, &["spec", "versions"]).iter().map(|version| {
                    let stored = version.get("storage") == Some(&Value::Bool(true));
                    format!(
                        "{}{}",
                        text(version, &["name"]),
                        if stored { "(storage)" } else { "" }
                    )
                });
                versions.collect::<Vec<_>>().join(",").into()
            }
            "Group" => text(value, &["spec", "group"]).into(),
            "Kind" => text(value, &["spec", "names", "kind"]).into(),
            "ShortNames" => {
                let names = items(value, &["spec", "names", "shortNames"])
                    .iter()
                    .filter_map(Value::as_str);
                names.collect::<Vec<_>>().join(",").into()
            }
            _ => (condition(value, "Established") == Some("True")).into(),
        },
        ("StorageClass", column) => match column {
            "Provisioner" => text(value, &["provisioner"]).into(),
            "ReclaimPolicy" => text(value, &["reclaimPolicy"]).into(),
            "VolumeBindingMode" => text(value, &["volumeBindingMode"]).into(),
            _ => value
                .get("allowVolumeExpansion")
                .and_then(Value::as_bool)
                .unwrap_or(false)
                .to_string()
                .into(),
        },
        _ => Value::Null,
    }
}

fn condition<'v>(value: &'v Value, kind: &str) -> Option<&'v str> {
    let list = items(value, &["status", "conditions"]);
    list.iter()
        .find(|condition| text(condition, &["type"]) == kind)
        .map(|condition| text(condition, &["status"]))
}

fn condition_text(value: &Value, kind: &str, otherwise: &str) -> Value {
    if condition(value, kind) == Some("True") {
        kind.into()
    } else {
        otherwise.into()
    }
}

fn pod(column: &str, value: &Value, object: &Object) -> Value {
    let statuses = items(value, &["status", "containerStatuses"]);
    match column {
        "Ready" => {
            let ready = statuses
                .iter()
                .filter(|status| status.get("ready") == Some(&Value::Bool(true)))
                .count();
            format!("{ready}/{}", items(value, &["spec", "containers"]).len()).into()
        }
        "Status" => {
            if object.deleting {
                return "Terminating".into();
            }
            let reason = text(value, &["status", "reason"]);
            let waiting = statuses.iter().find_map(|status| {
                let reason = text(status, &["state", "waiting", "reason"]);
                let ended = text(status, &["state", "terminated", "reason"]);
                [reason, ended].into_iter().find(|reason| !reason.is_empty())
            });
            let phase = text(value, &["status", "phase"]);
            waiting
                .unwrap_or(if reason.is_empty() { phase } else { reason })
                .into()
        }
        "Restarts" => {
            let restarts: i64 = statuses
                .iter()
                .filter_map(|status| number(status, &["restartCount"]))
                .sum();
            restarts.to_string().into()
        }
        "IP" => or_none(text(value, &["status", "podIP"])),
        "Node" => or_none(text(value, &["spec", "nodeName"])),
        _ => "<none>".into(),
    }
}

fn service(column: &str, value: &Value) -> Value {
    match column {
        "Type" => text(value, &["spec", "type"]).into(),
        "Cluster-IP" => or_none(text(value, &["spec", "clusterIP"])),
        "External-IP" => {
            let ingress = items(value, &["status", "loadBalancer", "ingress"]);
            let addresses: Vec<&str> = ingress
                .iter()
                .map(|entry| [text(entry, &["ip"]), text(entry, &["hostname"])])
                .filter_map(|pair| pair.into_iter().find(|address| !address.is_empty()))
                .collect();
            match text(value, &["spec", "type"]) {
                "LoadBalancer" if addresses.is_empty() => "<pending>".into(),
                "ExternalName" => text(value, &["spec", "externalName"]).into(),
                _ => or_none(&addresses.join(",")),
            }
        }
        _ => {
            let ports = items(value, &["spec", "ports"]).iter().map(|port| {
                let node_port = number(port, &["nodePort"]).filter(|port| *port != 0);
                let node_port = node_port.map(|port| format!(":{port}")).unwrap_or_default();
                format!(
                    "{}{node_port}/{}",
                    count(port, &["port"]),
                    text(port, &["protocol"])
                )
            });
            or_none(&ports.collect::<Vec<_>>().join(","))
        }
    }
}

fn job(column: &str, value: &Value, now: i64) -> Value {
    match column {
        "Status" => {
            let suspended = at(value, &["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
            let status = [
                ("Complete", "Complete"),
                ("Failed", "Failed"),
                ("FailureTarget", "FailureTarget"),
            ]
            .into_iter()
            .find(|(kind, _)| condition(value, kind) == Some("True"))
            .map_or(if suspended { "Suspended" } else { "Running" }, |(_, shown)| {
                shown
            });
            status.into()
        }
        "Completions" => {
            let wanted = number(value, &["spec", "completions"]).unwrap_or(1);
            format!("{}/{wanted}", count(value, &["status", "succeeded"])).into()
        }
        _ => {
            let Some(start) = parse_seconds(text(value, &["status", "startTime"])) else {
                return "".into();
            };
            let end = parse_seconds(text(value, &["status", "completionTime"])).unwrap_or(now);
            age(end - start).into()
        }
    }
}

fn claim(column: &str, value: &Value) -> Value {
    match column {
        "Status" => text(value, &["status", "phase"]).into(),
        "Volume" => text(value, &["spec", "volumeName"]).into(),
        "Capacity" => text(value, &["status", "capacity", "storage"]).into(),
        "Access Modes" => {
            let bound = !text(value, &["spec", "volumeName"]).is_empty();
            let modes = items(value, &["status", "accessModes"])
                .iter()
                .filter_map(Value::as_str)
                .map(|mode| match mode {
                    "ReadWriteOnce" => "RWO",
                    "ReadOnlyMany" => "ROX",
                    "ReadWriteMany" => "RWX",
                    "ReadWriteOncePod" => "RWOP",
                    other => other,
                });
            if bound {
                modes.collect::<Vec<_>>().join(",").into()
            } else {
                "".into()
            }
        }
        "StorageClass" => text(value, &["spec", "storageClassName"]).into(),
        "VolumeAttributesClass" => "<unset>".into(),
        _ => text(value, &["spec", "volumeMode"]).into(),
    }
}

fn event(column: &str, value: &Value, now: i64) -> Value {
    match column {
        "Last Seen" => {
            let times = [
                "lastTimestamp",
                "deprecatedLastTimestamp",
                "eventTime",
                "firstTimestamp",
            ];
            let last = times
                .iter()
                .find_map(|field| parse_seconds(text(value, &[field])));
            last.map_or_else(|| "<unknown>".into(), |time| age(now - time).into())
        }
        "Type" => text(value, &["type"]).into(),
        "Reason" => text(value, &["reason"]).into(),
        "Object" => {
            let part = |name| {
                let core = text(value, &["involvedObject", name]);
                if core.is_empty() {
                    text(value, &["regarding", name])
                } else {
                    core
                }
            };
            format!("{}/{}", part("kind").to_lowercase(), part("name")).into()
        }
        _ => {
            let message = text(value, &["message"]);
            if message.is_empty() {
                text(value, &["note"]).trim().into()
            } else {
                message.trim().into()
            }
        }
    }
}

fn ingress(column: &str, value: &Value) -> Value {
    match column {
        "Class" => or_none(text(value, &["spec", "ingressClassName"])),
        "Hosts" => {
            let hosts: Vec<&str> = items(value, &["spec", "rules"])
                .iter()
                .map(|rule| text(rule, &["host"]))
                .map(|host| if host.is_empty() { "*" } else { host })
                .collect();
            if hosts.is_empty() {
                "*".into()
            } else {
                hosts.join(",").into()
            }
        }
        "Address" => {
            let entries = items(value, &["status", "loadBalancer", "ingress"]);
            entries
                .iter()
                .map(|entry| text(entry, &["ip"]))
                .collect::<Vec<_>>()
                .join(",")
                .into()
        }
        _ => if items(value, &["spec", "tls"]).is_empty() {
            "80"
        } else {
            "80, 443"
        }
        .into(),
    }
}
