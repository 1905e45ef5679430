//! Creating objects.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Decoded, Endpoint, State, Written, random_suffix};
use crate::apply::managed::{FieldManager, Managed};
use crate::clock::format_seconds;
use crate::json::{at, items, remove, set, set_missing, text};
use crate::object::Key;
use crate::request::WriteOptions;
use crate::status::ApiError;

impl State {
    /// Creates an object. `managed` holds the entries that a server-side apply has made; otherwise the options' manager
    /// becomes the owner of all fields.
    pub(crate) fn create(
        &mut self,
        endpoint: &Endpoint,
        namespace: &str,
        decoded: Decoded,
        managed: Option<Managed>,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let warnings = decoded.warnings.clone();
        let created = self.create_decoded(endpoint, namespace, decoded, managed, options);
        created.map_err(|error| error.with_warnings(warnings))
    }

    fn create_decoded(
        &mut self,
        endpoint: &Endpoint,
        namespace: &str,
        decoded: Decoded,
        managed: Option<Managed>,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let resource = endpoint.resource.clone();
        let Decoded { mut value, warnings } = decoded;
        set_missing(&mut value, &["metadata"], Value::Object(Map::new()));
        let given = text(&value, &["metadata", "namespace"]).to_owned();
        if resource.namespaced {
            if !given.is_empty() && given != namespace {
                return Err(ApiError::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            set(&mut value, &["metadata", "namespace"], namespace);
        } else {
            remove(&mut value, &["metadata", "namespace"]);
        }
        let mut name = text(&value, &["metadata", "name"]).to_owned();
        let managed = match managed {
            Some(managed) => managed,
            None => {
                let manager = FieldManager {
                    versions: resource.as_ref(),
                    api_version: &endpoint.api_version(),
                    subresource: "",
                    reset: &resource.reset_fields(""),
                    now: self.now_seconds(),
                    blank: &self.blank(endpoint),
                };
                let before = Managed::for_update(None, &value, false);
                remove(&mut value, &["metadata", "managedFields"]);
                manager.update(None, &value, before, &options.manager)
            }
        };
        if name.is_empty() {
            let prefix: String = text(&value, &["metadata", "generateName"])
                .chars()
                .take(58)
                .collect();
            if !prefix.is_empty() {
                name = format!("{prefix}{}", random_suffix());
                set(&mut value, &["metadata", "name"], name.as_str());
            }
        }
        self.check_namespace(endpoint, namespace, &name)?;
        let uid = Uuid::new_v4();
        for field in [
            "resourceVersion",
            "generation",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            remove(&mut value, &["metadata", field]);
        }
        set(&mut value, &["metadata", "uid"], uid.to_string());
        set(
            &mut value,
            &["metadata", "creationTimestamp"],
            format_seconds(self.now_seconds()),
        );
        if resource.has_generation() {
            set(&mut value, &["metadata", "generation"], 1);
        }
        self.prepare_create(endpoint, &mut value)?;
        let mut causes = crate::validation::create(&resource, &value);
        if let Some(custom) = endpoint.version().and_then(|version| version.custom.as_ref()) {
            causes.extend(custom.structural.validate(&value));
        }
        if !causes.is_empty() {
            return Err(ApiError::invalid(&resource.group, &resource.kind, &name, causes));
        }
        let namespace = if resource.namespaced { namespace } else { "" };
        let key = Key::new(namespace, &name);
        if self.store.get(resource.id, &key).is_some() {
            return Err(ApiError::already_exists(&resource.group, &resource.plural, &name));
        }
        if resource.is("", "Service") {
            self.allocate_service(None, &mut value, options.dry_run)?;
        }
        set(
            &mut value,
            &["metadata", "managedFields"],
            Value::Array(managed.encode()),
        );
        let object = self.to_object(endpoint, &value);
        let object = if options.dry_run {
            std::sync::Arc::new(object)
        } else {
            self.put(&resource, object)
        };
        Ok(Written {
            object,
            created: true,
            warnings,
        })
    }

    /// What the strategies of a real server do before they validate a new object.
    fn prepare_create(&mut self, endpoint: &Endpoint, value: &mut Value) -> Result<(), ApiError> {
        let resource = &endpoint.resource;
        if resource.has_status() && at(value, &["status"]).is_some() {
            remove(value, &["status"]);
            if !resource.is_custom() {
                // An empty status, with what its kind always prints and fills in.
                let managed = remove(value, &["metadata", "managedFields"]);
                *value = self
                    .decode(endpoint, value.take())
                    .map_err(|error| ApiError::internal(error.0))?
                    .value;
                if let Some(managed) = managed {
                    set(value, &["metadata", "managedFields"], managed);
                }
            }
        }
        match (resource.group.as_str(), resource.kind.as_str()) {
            ("", "Namespace") => {
                let mut finalizers = items(value, &["spec", "finalizers"]).to_vec();
                if !finalizers.contains(&json!("kubernetes")) {
                    finalizers.push(json!("kubernetes"));
                }
                set(value, &["spec", "finalizers"], finalizers);
            }
            ("", "Pod") => {
                set_missing(value, &["status", "phase"], "Pending");
                set(value, &["status", "qosClass"], qos_class(value));
                crate::json::set_empty(value, &["spec", "serviceAccountName"], "default");
                let account = text(value, &["spec", "serviceAccountName"]).to_owned();
                set(value, &["spec", "serviceAccount"], account);
                set_missing(value, &["spec", "priority"], 0);
                tolerate_short_outages(value);
                set_missing(value, &["spec", "preemptionPolicy"], "PreemptLowerPriority");
            }
            ("batch", "Job") => label_job(value),
            ("apps", "DaemonSet") => set(
                value,
                &["metadata", "annotations", super::TEMPLATE_GENERATION],
                "1",
            ),
            _ => {}
        }
        Ok(())
    }
}

/// A job finds its pods by labels with its uid, unless it asks to choose them itself.
fn label_job(job: &mut Value) {
    if at(job, &["spec", "manualSelector"]).and_then(Value::as_bool) == Some(true) {
        return;
    }
    let uid = text(job, &["metadata", "uid"]).to_owned();
    let name = text(job, &["metadata", "name"]).to_owned();
    let own_labels = at(job, &["metadata", "labels"]).is_none();
    for (label, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        set(
            job,
            &["spec", "template", "metadata", "labels", label],
            value.as_str(),
        );
        // Labels of the template are the job's own where it has none.
        if own_labels {
            set(job, &["metadata", "labels", label], value.as_str());
        }
    }
    set(
        job,
        &["spec", "selector"],
        json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}),
    );
}

/// Pods stay for five minutes on a node that has gone away, unless they say otherwise.
fn tolerate_short_outages(pod: &mut Value) {
    let mut tolerations = items(pod, &["spec", "tolerations"]).to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        if !tolerations.iter().any(|known| text(known, &["key"]) == key) {
            tolerations.push(
                json!({"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300}),
            );
        }
    }
    set(pod, &["spec", "tolerations"], tolerations);
}

fn qos_class(pod: &Value) -> &'static str {
    let containers = items(pod, &["spec", "containers"]);
    let any = containers.iter().any(|container| {
        at(container, &["resources", "limits"]).is_some()
            || at(container, &["resources", "requests"]).is_some()
    });
    let guaranteed = !containers.is_empty()
        && containers.iter().all(|container| {
            ["cpu", "memory"].iter().all(|name| {
                let limit = at(container, &["resources", "limits", name]);
                limit.is_some()
                    && at(container, &["resources", "requests", name])
                        .is_none_or(|value| Some(value) == limit)
            })
        });
    match (guaranteed, any) {
        (true, _) => "Guaranteed",
        (false, true) => "Burstable",
        (false, false) => "BestEffort",
    }
}
