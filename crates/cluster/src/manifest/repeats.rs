//! Entries that a pod template lists twice.
//!
//! Helm sends such lists as they are, and the kubelet takes the last of two equal names. Server-side apply refuses a list
//! with one key twice. Where both say the same, one of them is enough; where they differ, somebody has to decide, and the
//! server's refusal names the key.

use serde_json::{Map, Value};

/// Lists of a container that are merged by a key.
const OF_CONTAINERS: [&str; 4] = ["env", "ports", "volumeMounts", "volumeDevices"];
/// Lists of a pod that are.
const OF_PODS: [&str; 4] = ["volumes", "imagePullSecrets", "hostAliases", "tolerations"];
/// Where pod specifications are.
const PODS: [&str; 3] = ["/template/spec", "/jobTemplate/spec/template/spec", ""];

/// Leaves one of each set of equal entries.
pub(super) fn remove(body: &mut Map<String, Value>) {
    let Some(spec) = body.get_mut("spec") else {
        return;
    };
    for place in PODS {
        if let Some(pod) = spec.pointer_mut(place).and_then(Value::as_object_mut) {
            for list in OF_PODS {
                unique(pod.get_mut(list));
            }
            for containers in ["containers", "initContainers"] {
                let containers = pod.get_mut(containers).and_then(Value::as_array_mut);
                for container in containers.into_iter().flatten() {
                    for list in OF_CONTAINERS {
                        unique(container.get_mut(list));
                    }
                }
            }
        }
    }
}

fn unique(list: Option<&mut Value>) {
    if let Some(Value::Array(items)) = list {
        let mut kept: Vec<Value> = Vec::with_capacity(items.len());
        for item in items.drain(..) {
            if !kept.contains(&item) {
                kept.push(item);
            }
        }
        *items = kept;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_entries_are_sent_once_and_different_ones_as_they_are() {
        let pod = json!({"containers": [{"name": "main",
            "env": [{"name": "A", "value": "x"}, {"name": "B", "value": "1"}, {"name": "A", "value": "x"}, {"name": "B", "value": "2"}],
            "args": ["same", "same"]}], "volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]});
        let expected = json!({"containers": [{"name": "main",
            "env": [{"name": "A", "value": "x"}, {"name": "B", "value": "1"}, {"name": "B", "value": "2"}],
            "args": ["same", "same"]}], "volumes": [{"name": "v", "emptyDir": {}}]});
        for (spec, wanted) in [
            (
                json!({"template": {"spec": pod}}),
                json!({"template": {"spec": expected}}),
            ),
            (pod.clone(), expected.clone()),
            (
                json!({"jobTemplate": {"spec": {"template": {"spec": pod}}}}),
                json!({"jobTemplate": {"spec": {"template": {"spec": expected}}}}),
            ),
        ] {
            let mut body = Map::from_iter([("spec".to_owned(), spec)]);
            remove(&mut body);
            assert_eq!(body.get("spec"), Some(&wanted));
        }
    }
}
