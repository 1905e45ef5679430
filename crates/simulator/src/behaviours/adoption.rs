//! Pods without an owner that a workload takes for its own, as after it was deleted alone and made again.

use serde_json::Value;

use super::{CONTROLLER, controller_reference, is_deleting, key_of};
use crate::json::{at, items, set, text};
use crate::state::State;
use crate::status::ApiError;

impl State {
    /// Makes `owner` the controller of the pods that it selects, that nobody controls, and that `is_its` accepts by name.
    pub(super) fn adopt_pods(
        &mut self,
        owner: &Value,
        kind: &str,
        is_its: impl Fn(&str) -> bool,
    ) -> Result<(), ApiError> {
        let Some(endpoint) = self.endpoint("", "pods") else {
            return Ok(());
        };
        let namespace = text(owner, &["metadata", "namespace"]);
        let orphans: Vec<Value> = self
            .store
            .list(endpoint.resource.id, namespace)
            .filter(|object| !object.owned && is_its(&object.key.name))
            .map(|object| endpoint.read(object))
            .filter(|pod| !is_deleting(pod) && selects(owner, pod))
            .collect();
        for pod in orphans {
            self.change(&endpoint, &key_of(&pod), "", CONTROLLER, |value| {
                let mut owners = items(value, &["metadata", "ownerReferences"]).to_vec();
                owners.push(controller_reference("apps/v1", kind, owner));
                set(value, &["metadata", "ownerReferences"], owners);
            })?;
        }
        Ok(())
    }
}

/// Whether the labels that the selector names are the pod's. Expressions are not read, so such a workload adopts none.
fn selects(owner: &Value, pod: &Value) -> bool {
    let wanted = at(owner, &["spec", "selector", "matchLabels"]).and_then(Value::as_object);
    let plain = items(owner, &["spec", "selector", "matchExpressions"]).is_empty();
    plain
        && wanted.is_some_and(|wanted| {
            wanted
                .iter()
                .all(|(key, value)| at(pod, &["metadata", "labels", key]) == Some(value))
        })
}
