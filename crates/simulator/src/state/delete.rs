//! Deleting objects.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Endpoint, State};
use crate::clock::format_seconds;
use crate::json::{items, set};
use crate::object::Object;
use crate::status::ApiError;

/// What becomes of the objects that a deleted one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// Options of a delete, from body and query.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    /// Reads a `DeleteOptions` object.
    pub(crate) fn from_value(value: &Value) -> Result<Self, ApiError> {
        let text = |path: &[&str]| {
            crate::json::at(value, path)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let orphan = value.get("orphanDependents").and_then(Value::as_bool);
        let propagation = match (text(&["propagationPolicy"]).as_deref(), orphan) {
            (None, None) => None,
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some(other), _) => {
                let shown = Value::from(other).to_string();
                let message = format!(
                    "Unsupported value: {shown}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
                );
                let field = "propagationPolicy".to_owned();
                let cause = crate::status::Cause {
                    reason: "FieldValueNotSupported",
                    message,
                    field,
                };
                return Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", vec![cause]));
            }
        };
        Ok(Self {
            uid: text(&["preconditions", "uid"]),
            resource_version: text(&["preconditions", "resourceVersion"]),
            propagation,
            grace_seconds: crate::json::number(value, &["gracePeriodSeconds"]),
            dry_run: items(value, &["dryRun"]).iter().any(|item| item == "All"),
        })
    }
}

/// What a delete did.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is gone.
    Gone(Arc<Object>),
    /// The object waits for its finalizers, its content or its kubelet.
    Waiting(Arc<Object>),
}

/// Namespaces that a cluster cannot be without.
const PROTECTED_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

impl State {
    pub(crate) fn delete(
        &mut self,
        endpoint: &Endpoint,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let resource = endpoint.resource.clone();
        if resource.is("", "Namespace") && PROTECTED_NAMESPACES.contains(&name) {
            return Err(ApiError::forbidden(
                "",
                "namespaces",
                name,
                "this namespace may not be deleted",
            ));
        }
        let live = self.get(endpoint, namespace, name)?.clone();
        let conflict = |why: String| ApiError::conflict(&resource.group, &resource.kind, name, &why);
        if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != live.uid.to_string()) {
            return Err(conflict(format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
                 deleted and then recreated",
                live.uid
            )));
        }
        if let Some(version) = options
            .resource_version
            .as_ref()
            .filter(|v| **v != live.resource_version.to_string())
        {
            return Err(conflict(format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). \
                 The object might have been modified",
                live.resource_version
            )));
        }
        let mut value = endpoint.read(&live);
        let mut finalizers = items(&value, &["metadata", "finalizers"]).to_vec();
        let wanted = match options.propagation {
            Some(Propagation::Foreground) => Some("foregroundDeletion"),
            Some(Propagation::Orphan) => Some("orphan"),
            Some(Propagation::Background) => None,
            // No new wish: one that was made before stays.
            None => finalizers
                .iter()
                .filter_map(Value::as_str)
                .find(|name| ["foregroundDeletion", "orphan"].contains(name))
                .map(|name| {
                    if name == "orphan" {
                        "orphan"
                    } else {
                        "foregroundDeletion"
                    }
                }),
        };
        finalizers.retain(|finalizer| finalizer != "foregroundDeletion" && finalizer != "orphan");
        finalizers.extend(wanted.map(|name| json!(name)));
        let grace = self.grace_seconds(endpoint, &value, options);
        let holds_content = resource.is("", "Namespace") || self.has_custom_objects(endpoint, name);
        if finalizers.is_empty() && grace == 0 && !holds_content {
            if options.dry_run {
                return Ok(Deleted::Gone(live));
            }
            let gone = self.remove(&resource, &live.key).unwrap_or(live);
            return Ok(Deleted::Gone(gone));
        }
        if holds_content && !resource.is("", "Namespace") {
            let cleanup = json!("customresourcecleanup.apiextensions.k8s.io");
            if !finalizers.contains(&cleanup) {
                finalizers.push(cleanup);
            }
        }
        if !live.deleting {
            set(
                &mut value,
                &["metadata", "deletionTimestamp"],
                format_seconds(self.now_seconds() + grace),
            );
            if live.generation > 0 {
                set(&mut value, &["metadata", "generation"], live.generation + 1);
            }
        }
        if !resource.is("", "Namespace") {
            set(&mut value, &["metadata", "deletionGracePeriodSeconds"], grace);
        } else {
            set(&mut value, &["status", "phase"], "Terminating");
        }
        if finalizers.is_empty() {
            crate::json::remove(&mut value, &["metadata", "finalizers"]);
        } else {
            set(&mut value, &["metadata", "finalizers"], finalizers);
        }
        let object = self.to_object(endpoint, &value);
        if options.dry_run || object.same_content(&live) {
            return Ok(Deleted::Waiting(if options.dry_run {
                Arc::new(object)
            } else {
                live
            }));
        }
        Ok(Deleted::Waiting(self.put(&resource, object)))
    }

    /// Pods that run on a node are stopped by its kubelet; all else goes at once.
    fn grace_seconds(&self, endpoint: &Endpoint, value: &Value, options: &DeleteOptions) -> i64 {
        if !endpoint.resource.is("", "Pod") {
            return 0;
        }
        let scheduled = !crate::json::text(value, &["spec", "nodeName"]).is_empty();
        let finished = ["Succeeded", "Failed"].contains(&crate::json::text(value, &["status", "phase"]));
        if !scheduled || finished {
            return 0;
        }
        let own = crate::json::number(value, &["spec", "terminationGracePeriodSeconds"]).unwrap_or(30);
        options.grace_seconds.unwrap_or(own).max(0)
    }

    /// Whether a definition still has objects of its kind, which go first.
    fn has_custom_objects(&self, endpoint: &Endpoint, name: &str) -> bool {
        if !endpoint
            .resource
            .is("apiextensions.k8s.io", "CustomResourceDefinition")
        {
            return false;
        }
        let Some((plural, group)) = name.split_once('.') else {
            return false;
        };
        self.registry
            .find(group, plural)
            .is_some_and(|resource| self.store.list(resource.id, "").next().is_some())
    }
}
