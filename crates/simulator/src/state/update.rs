//! Replacing objects.

use std::sync::Arc;

use serde_json::Value;

use super::{Decoded, Endpoint, State, Written, check_identity, keep_server_metadata, next_generation};
use crate::apply::managed::{FieldManager, Managed};
use crate::json::{at, remove, set, text};
use crate::object::Object;
use crate::request::WriteOptions;
use crate::status::ApiError;

impl State {
    /// A PUT.
    pub(crate) fn update(
        &mut self,
        endpoint: &Endpoint,
        namespace: &str,
        name: &str,
        subresource: &str,
        decoded: Decoded,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let given = text(&decoded.value, &["metadata", "name"]);
        if !given.is_empty() && given != name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        let given = text(&decoded.value, &["metadata", "namespace"]);
        if endpoint.resource.namespaced && !given.is_empty() && given != namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let live = self.get(endpoint, namespace, name)?.clone();
        self.replace(endpoint, &live, subresource, decoded, None, options)
    }

    /// Replaces `live` after the checks that every kind of write has in common. `managed` holds the entries that a
    /// server-side apply has made.
    pub(crate) fn replace(
        &mut self,
        endpoint: &Endpoint,
        live: &Arc<Object>,
        subresource: &str,
        decoded: Decoded,
        managed: Option<Managed>,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let warnings = decoded.warnings.clone();
        let replaced = self.replace_decoded(endpoint, live, subresource, decoded, managed, options);
        replaced.map_err(|error| error.with_warnings(warnings))
    }

    fn replace_decoded(
        &mut self,
        endpoint: &Endpoint,
        live: &Arc<Object>,
        subresource: &str,
        decoded: Decoded,
        managed: Option<Managed>,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let resource = endpoint.resource.clone();
        let Decoded {
            value: mut new,
            warnings,
        } = decoded;
        check_identity(endpoint, live, &new)?;
        let live_value = endpoint.read(live);
        keep_server_metadata(&live_value, &mut new);
        let managed = match managed {
            Some(managed) => managed,
            // A custom kind's scale is not tracked.
            None if subresource == "scale" && resource.is_custom() => {
                Managed::for_update(Some(&live_value), &new, true)
            }
            None => {
                let manager = FieldManager {
                    versions: resource.as_ref(),
                    api_version: &endpoint.api_version(),
                    subresource,
                    reset: &resource.reset_fields(subresource),
                    now: self.now_seconds(),
                    blank: &self.blank(endpoint),
                };
                let before = Managed::for_update(Some(&live_value), &new, !subresource.is_empty());
                let mut plain_live = live_value.clone();
                remove(&mut plain_live, &["metadata", "managedFields"]);
                remove(&mut new, &["metadata", "managedFields"]);
                // An explicit reset forgets everybody, and the request's own changes are not tracked either.
                manager.update(Some(&plain_live), &new, before, &options.manager)
            }
        };
        restrict_to_endpoint(endpoint, subresource, &live_value, &mut new);
        if resource.is("", "Service") {
            self.allocate_service(Some(&live_value), &mut new, options.dry_run)?;
        }
        if resource.is("apps", "DaemonSet") {
            count_template(&live_value, &mut new);
        }
        if subresource != "status" {
            next_generation(&resource, &live_value, &mut new);
        }
        let mut causes = match subresource {
            // The scheduler sets what nobody else may change.
            "binding" => Vec::new(),
            _ => crate::validation::update(&resource, &live_value, &new),
        };
        if let Some(custom) = endpoint.version().and_then(|version| version.custom.as_ref()) {
            causes.extend(custom.structural.validate(&new));
        }
        if !causes.is_empty() {
            return Err(ApiError::invalid(
                &resource.group,
                &resource.kind,
                &live.key.name,
                causes,
            ));
        }
        set(
            &mut new,
            &["metadata", "managedFields"],
            Value::Array(managed.encode()),
        );
        set(
            &mut new,
            &["metadata", "resourceVersion"],
            live.resource_version.to_string(),
        );
        let object = self.to_object(endpoint, &new);
        if object.same_content(live) {
            return Ok(Written {
                object: live.clone(),
                created: false,
                warnings,
            });
        }
        if options.dry_run {
            return Ok(Written {
                object: Arc::new(object),
                created: false,
                warnings,
            });
        }
        let finished = object.deleting && !object.finalized && !self.has_other_finalizers(endpoint, &new);
        if finished {
            // The last finalizer is gone: the object is removed, not written once more.
            self.remove(&resource, &object.key);
            return Ok(Written {
                object: Arc::new(object),
                created: false,
                warnings,
            });
        }
        let object = self.put(&resource, object);
        Ok(Written {
            object,
            created: false,
            warnings,
        })
    }

    /// Namespaces have finalizers of their own in their spec; pods wait for their kubelet.
    fn has_other_finalizers(&self, endpoint: &Endpoint, value: &Value) -> bool {
        let resource = &endpoint.resource;
        if resource.is("", "Namespace") {
            return !crate::json::items(value, &["spec", "finalizers"]).is_empty();
        }
        resource.is("", "Pod")
            && crate::json::number(value, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) > 0
    }
}

/// Undoes what an endpoint may not change: the status at the main resource, all else at the status subresource.
fn restrict_to_endpoint(endpoint: &Endpoint, subresource: &str, live: &Value, new: &mut Value) {
    let resource = &endpoint.resource;
    match subresource {
        "" => {
            if resource.has_status() {
                copy(live, new, &["status"]);
            }
            if resource.is("", "Namespace") {
                copy(live, new, &["spec", "finalizers"]);
            }
        }
        "finalize" => {
            let finalizers = at(new, &["spec", "finalizers"]).cloned();
            let mut kept = live.clone();
            set(
                &mut kept,
                &["spec", "finalizers"],
                finalizers.unwrap_or_else(|| Value::Array(Vec::new())),
            );
            *new = kept;
        }
        "status" | "approval" => {
            let status = at(new, &["status"]).cloned();
            let mut kept = live.clone();
            if !resource.is_custom() {
                // Annotations and finalizers may be written with the status of most built-in kinds.
                for name in ["annotations", "finalizers"] {
                    copy(new, &mut kept, &["metadata", name]);
                }
            }
            match status {
                Some(status) => set(&mut kept, &["status"], status),
                None => {
                    remove(&mut kept, &["status"]);
                }
            }
            remove(&mut kept, &["metadata", "managedFields"]);
            *new = kept;
        }
        _ => {}
    }
}

/// Raises the count of template changes.
fn count_template(live: &Value, new: &mut Value) {
    let before: i64 = text(live, &["metadata", "annotations", super::TEMPLATE_GENERATION])
        .parse()
        .unwrap_or(1);
    let changed = at(live, &["spec", "template"]) != at(new, &["spec", "template"]);
    let count = if changed { before + 1 } else { before };
    set(
        new,
        &["metadata", "annotations", super::TEMPLATE_GENERATION],
        count.to_string(),
    );
}

fn copy(from: &Value, to: &mut Value, path: &[&str]) {
    match at(from, path) {
        Some(value) => set(to, path, value.clone()),
        None => {
            remove(to, path);
        }
    }
}
