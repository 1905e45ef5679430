//! What is read of objects that exist: their metadata, and what of them is ours.

use std::collections::BTreeMap;

use evenkeel_core::{GroupKind, ObjectRef};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Error;
use crate::applyset::labels::FIELD_MANAGER;
use crate::fingerprint::Fingerprint;

/// Asks for one object's metadata only.
pub(crate) const ACCEPT_METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// Asks for a list of metadata only.
pub(crate) const ACCEPT_METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The metadata of an existing object.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LiveObject {
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    #[serde(default)]
    pub(crate) uid: String,
    #[serde(default)]
    pub(crate) resource_version: String,
    /// Grows with every change of the specification; some kinds have none.
    pub(crate) generation: Option<i64>,
    pub(crate) deletion_timestamp: Option<String>,
    #[serde(default)]
    pub(crate) finalizers: Vec<String>,
    #[serde(default)]
    pub(crate) labels: Labels,
    #[serde(default)]
    pub(crate) annotations: Annotations,
    #[serde(default)]
    pub(crate) owner_references: Vec<OwnerReference>,
    managed_fields: Option<Box<RawValue>>,
}

/// The labels that matter here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Labels {
    #[serde(rename = "applyset.kubernetes.io/part-of")]
    pub(crate) part_of: Option<String>,
    #[serde(rename = "app.kubernetes.io/managed-by")]
    managed_by: Option<String>,
    #[serde(rename = "evenkeel.dev/hook-of")]
    pub(crate) hook_of: Option<String>,
    #[serde(rename = "evenkeel.dev/render-of")]
    pub(crate) render_of: Option<String>,
    #[serde(rename = "evenkeel.dev/record-of")]
    record_of: Option<String>,
    /// Which controller made the Endpoints (KEP-4974).
    #[serde(rename = "endpoints.kubernetes.io/managed-by")]
    pub(crate) endpoints_made_by: Option<String>,
}

/// The annotations that matter here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Annotations {
    #[serde(rename = "helm.sh/resource-policy")]
    resource_policy: Option<String>,
    #[serde(rename = "meta.helm.sh/release-name")]
    release: Option<String>,
    #[serde(rename = "evenkeel.dev/ignore-readiness")]
    ignore_readiness: Option<String>,
    #[serde(rename = "evenkeel.dev/protect")]
    protect: Option<String>,
    #[serde(rename = "evenkeel.dev/hook-run")]
    pub(crate) hook_run: Option<String>,
    #[serde(rename = "kubernetes.io/service-account.name")]
    pub(crate) service_account: Option<String>,
}

/// An owner as its dependants name it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OwnerReference {
    #[serde(default)]
    pub(crate) controller: bool,
}

#[derive(Deserialize)]
struct WithMetadata {
    metadata: LiveObject,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page {
    pub(crate) metadata: PageMetadata,
    // A server may send null for none.
    items: Option<Vec<WithMetadata>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PageMetadata {
    pub(crate) r#continue: Option<String>,
    pub(crate) resource_version: Option<String>,
}

impl Page {
    pub(crate) fn into_parts(self) -> (PageMetadata, impl Iterator<Item = LiveObject>) {
        (
            self.metadata,
            self.items
                .unwrap_or_default()
                .into_iter()
                .map(|item| item.metadata),
        )
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManagedFields {
    #[serde(default)]
    manager: String,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    subresource: String,
    /// RFC 3339 in UTC, to the second.
    time: Option<String>,
    fields_v1: Option<Value>,
}

impl LiveObject {
    /// Reads the metadata of an object or of its partial form.
    pub(crate) fn read(body: &[u8], doing: &str) -> Result<Self, Error> {
        serde_json::from_slice::<WithMetadata>(body)
            .map(|object| object.metadata)
            .map_err(|error| Error::decode(doing, &error))
    }

    pub(crate) fn reference(&self, kind: &GroupKind) -> ObjectRef {
        ObjectRef {
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            namespace: self.namespace.clone().filter(|namespace| !namespace.is_empty()),
            name: self.name.clone(),
        }
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    pub(crate) fn is_part_of(&self, set: &str) -> bool {
        self.labels.part_of.as_deref() == Some(set)
    }

    /// Whether Helm's policy keeps it from being deleted.
    pub(crate) fn is_kept(&self) -> bool {
        self.annotations
            .resource_policy
            .as_deref()
            .is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
    }

    /// Whether its annotation keeps it from being deleted. What cannot be read protects.
    pub(crate) fn is_protected(&self) -> bool {
        self.annotations
            .protect
            .as_deref()
            .is_some_and(|protect| protect.trim() != "false")
    }

    /// What keeps it from being deleted, if anything does.
    pub(crate) fn stays(&self) -> Option<&'static str> {
        if self.is_protected() {
            Some("evenkeel.dev/protect")
        } else if self.is_kept() {
            Some("helm.sh/resource-policy: keep")
        } else {
            None
        }
    }

    pub(crate) fn ignores_readiness(&self) -> bool {
        self.annotations.ignore_readiness.as_deref() == Some("true")
    }

    /// Whether it is a Secret that belongs to a parent, and not a parent itself.
    pub(crate) fn is_beside_a_parent(&self) -> bool {
        self.labels.render_of.is_some() || self.labels.record_of.is_some()
    }

    /// Whether it looks like something that an attempt for `set` made: no copy of our label that a controller took over.
    pub(crate) fn is_left_over(&self, set: &str) -> bool {
        self.is_part_of(set) && !self.is_deleting() && !self.has_controller() && self.owned().is_some()
    }

    /// The field managers that are not ours, for people.
    pub(crate) fn other_managers(&self) -> Vec<String> {
        let others = self.managers().into_iter().filter(|entry| {
            !entry.manager.is_empty() && entry.manager != FIELD_MANAGER && entry.subresource.is_empty()
        });
        others.map(|entry| entry.manager).collect()
    }

    /// Whoever wrote last of those who are not us, status and scale included, for people.
    pub(crate) fn last_other_writer(&self) -> Option<String> {
        let others = self
            .managers()
            .into_iter()
            .filter(|entry| !entry.manager.is_empty() && entry.manager != FIELD_MANAGER);
        others
            .max_by(|a, b| a.time.cmp(&b.time))
            .map(|entry| entry.manager)
    }

    fn managers(&self) -> Vec<ManagedFields> {
        // What cannot be read is treated as owned by nobody, which costs a look at the whole object.
        self.managed_fields
            .as_ref()
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
    }

    /// The field managers as the server gives them.
    pub(crate) fn managed_fields(&self) -> Value {
        let raw = self.managed_fields.as_ref();
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
    }

    /// A fingerprint of the fields that we own; none when we own none.
    ///
    /// The server takes a field from its owners when anybody else changes or removes it, so an equal fingerprint proves
    /// that every field we set, labels and annotations included, is as we left it.
    pub(crate) fn owned(&self) -> Option<Fingerprint> {
        let ours = self.managers().into_iter().find(|entry| {
            entry.manager == FIELD_MANAGER && entry.operation == "Apply" && entry.subresource.is_empty()
        })?;
        ours.fields_v1.as_ref().map(Fingerprint::of)
    }

    /// Whether some field manager other than ours has set anything but status.
    pub(crate) fn has_other_managers(&self) -> bool {
        self.managers()
            .iter()
            .any(|entry| entry.manager != FIELD_MANAGER && entry.subresource.is_empty())
    }

    /// Whether we own `spec.replicas`.
    pub(crate) fn owns_replicas(&self) -> bool {
        self.managers().iter().any(|entry| {
            entry.manager == FIELD_MANAGER && entry.operation == "Apply" && entry.sets_replicas()
        })
    }

    /// Whether somebody scaled it through its scale subresource, as autoscalers and `kubectl scale` do.
    pub(crate) fn was_scaled(&self) -> bool {
        self.managers()
            .iter()
            .any(|entry| entry.subresource == "scale" && entry.sets_replicas())
    }

    /// Who seems to own it, for people.
    pub(crate) fn apparent_owner(&self) -> Option<String> {
        if let Some(set) = &self.labels.part_of {
            return Some(format!("another ApplySet, {set}"));
        }
        if let Some(release) = &self.annotations.release {
            return Some(format!("Helm release {release}"));
        }
        if let Some(parent) = &self.labels.hook_of {
            return Some(format!("a hook of {parent}"));
        }
        self.labels.managed_by.clone()
    }

    pub(crate) fn is_managed_by_us(&self) -> bool {
        self.labels.managed_by.as_deref() == Some(FIELD_MANAGER)
    }

    /// Whether a controller made it for an object that it owns.
    pub(crate) fn has_controller(&self) -> bool {
        self.owner_references.iter().any(|owner| owner.controller)
    }
}

impl ManagedFields {
    fn sets_replicas(&self) -> bool {
        self.fields_v1
            .as_ref()
            .is_some_and(|fields| fields.pointer("/f:spec/f:replicas").is_some())
    }
}

/// Existing objects by reference.
pub(crate) type LiveObjects = BTreeMap<ObjectRef, LiveObject>;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_false_does_not_protect() {
        let annotated = |protect: &Value| {
            let body = json!({"metadata": {"name": "web", "annotations": {"evenkeel.dev/protect": protect}}});
            LiveObject::read(body.to_string().as_bytes(), "test").expect("read")
        };
        for protects in ["true", "", "yes", "delete"] {
            assert_eq!(
                annotated(&json!(protects)).stays(),
                Some("evenkeel.dev/protect"),
                "{protects:?}"
            );
        }
        assert_eq!(annotated(&json!("false")).stays(), None);
        assert_eq!(annotated(&Value::Null).stays(), None);
    }

    fn live(managed_fields: &Value) -> LiveObject {
        let body = json!({"metadata": {
            "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7",
            "labels": {"applyset.kubernetes.io/part-of": "set", "other": "x"},
            "annotations": {"helm.sh/resource-policy": "keep"},
            "managedFields": managed_fields,
        }});
        LiveObject::read(body.to_string().as_bytes(), "test").expect("read")
    }

    #[test]
    fn only_our_applied_fields_count() {
        let ours = json!({"manager": "evenkeel", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}, "f:paused": {}}}});
        let turned = json!({"manager": "evenkeel", "operation": "Apply", "fieldsV1": {"f:spec": {"f:paused": {}, "f:replicas": {}}}});
        let fewer =
            json!({"manager": "evenkeel", "operation": "Apply", "fieldsV1": {"f:spec": {"f:paused": {}}}});
        let status =
            json!({"manager": "evenkeel", "operation": "Apply", "subresource": "status", "fieldsV1": {}});
        let other = json!({"manager": "kubectl", "operation": "Update", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}});
        let object = live(&json!([ours, status]));
        assert!(
            object.is_part_of("set") && object.is_kept() && object.owns_replicas() && !object.was_scaled()
        );
        assert!(object.owned().is_some());
        assert_eq!(object.owned(), live(&json!([other, turned])).owned());
        assert_ne!(object.owned(), live(&json!([fewer])).owned());
        assert_eq!(live(&json!([other, status])).owned(), None);
        assert!(live(&json!([other])).was_scaled());
        assert!(
            !live(&json!([ours, other])).has_other_managers(),
            "a scale subresource is no manager of the object"
        );
    }
}
