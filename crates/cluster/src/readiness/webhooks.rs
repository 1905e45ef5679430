//! Configurations of admission webhooks: what they guard cannot be written until somebody answers for them.

use std::collections::BTreeSet;
use std::fmt;

use evenkeel_core::GroupKind;
use serde_json::Value;

use super::{Object, Readiness, Surroundings};

/// The Service that a webhook is called at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Backend {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Service {}/{}", self.namespace, self.name)
    }
}

/// Whether objects of the kind configure webhooks.
pub(crate) fn is_configuration(kind: &GroupKind) -> bool {
    kind.group == "admissionregistration.k8s.io"
        && matches!(
            kind.kind.as_str(),
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration"
        )
}

/// The Services that must answer before what the webhooks of `object` guard can be written. A webhook whose failure is ignored
/// holds nothing up, so it may be there long before its Service; one at a URL is somebody else's.
pub(crate) fn backends(object: &Value) -> BTreeSet<Backend> {
    let object = Object(object);
    let webhooks = object.list("/webhooks").iter();
    webhooks
        .filter(|webhook| webhook.get("failurePolicy").and_then(Value::as_str) != Some("Ignore"))
        .filter_map(|webhook| {
            let text = |pointer: &str| Some(webhook.pointer(pointer)?.as_str()?.to_owned());
            Some(Backend {
                namespace: text("/clientConfig/service/namespace")?,
                name: text("/clientConfig/service/name")?,
            })
        })
        .collect()
}

/// The verdict, where one of the Services is known not to answer.
pub(super) fn waits_for_backend(
    object: &Object<'_>,
    kind: &GroupKind,
    surroundings: &Surroundings,
) -> Option<Readiness> {
    if surroundings.unserved.is_empty() || !is_configuration(kind) {
        return None;
    }
    let backends = backends(object.0);
    let unserved = backends
        .iter()
        .find(|backend| surroundings.unserved.contains(backend))?;
    Some(Readiness::InProgress(format!(
        "{unserved}, which its webhooks are called at, has no ready endpoint"
    )))
}

/// The rule of the kind where nothing is known of the Services.
pub(super) fn configuration(_: &Object<'_>) -> Readiness {
    Readiness::Ready
}
