//! One cluster's objects and the writes on them: what admission, strategies and storage do in a real API server.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use rand::RngExt as _;
use serde_json::{Map, Value};

use crate::environment::Environment;
use crate::json::{at, text};
use crate::object::{Key, Object};
use crate::registry::{Registry, Resource, ResourceId, Version};
use crate::schema::normalise::{Mismatch, Report, normalise};
use crate::status::ApiError;
use crate::store::Store;
use crate::work::Work;

mod bootstrap;
mod create;
pub(crate) mod delete;
pub(crate) mod patch;
mod scale;
mod services;
mod update;

/// The state of one cluster. It is made on first contact, so that clusters nobody talks to cost nothing.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) environment: Arc<Environment>,
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    /// What controllers have to look at.
    pub(crate) work: Work,
    /// Service addresses in use, as offsets into the service network.
    addresses: BTreeSet<u32>,
    node_ports: BTreeSet<u16>,
}

/// An object as a client sent it, ready to be stored.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    /// Fields that the kind does not have, for the Warning header.
    pub(crate) warnings: Vec<String>,
}

/// What a write leaves.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) object: Arc<Object>,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

/// A resource in the version that a request uses.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: usize,
}

impl Endpoint {
    pub(crate) fn version(&self) -> Option<&Version> {
        self.resource.versions.get(self.version)
    }

    pub(crate) fn version_name(&self) -> &str {
        self.version()
            .map(|version| version.name.as_str())
            .unwrap_or_default()
    }

    pub(crate) fn api_version(&self) -> String {
        self.resource.api_version(self.version_name())
    }

    pub(crate) fn not_found(&self, name: &str) -> ApiError {
        ApiError::not_found(&self.resource.group, &self.resource.plural, name)
    }

    /// Whether requests use the version that objects are kept in.
    pub(crate) fn is_storage(&self) -> bool {
        let shared_events = self.resource.is("events.k8s.io", "Event");
        self.version == self.resource.storage && !shared_events
    }

    fn storage_api_version(&self) -> String {
        if self.resource.is("events.k8s.io", "Event") {
            "v1".into()
        } else {
            self.resource.storage_api_version()
        }
    }

    /// The object in the request's version.
    pub(crate) fn read(&self, object: &Object) -> Value {
        let stored = object.to_value(&self.storage_api_version(), &self.resource.kind);
        if self.is_storage() {
            return stored;
        }
        crate::conversion::convert(&stored, &self.api_version()).into_owned()
    }

    /// Writes the object in the request's version.
    pub(crate) fn write_json(&self, object: &Object, out: &mut String) {
        if self.is_storage() || (self.resource.is_custom() && self.resource.versions.len() > 1) {
            object.write_json(&self.api_version(), &self.resource.kind, out);
        } else {
            out.push_str(&self.read(object).to_string());
        }
    }
}

/// Counts the changes of a daemon set's template, for clients of an API that is long gone.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

impl State {
    pub(crate) fn now(&self) -> Timestamp {
        self.environment.clock.now()
    }

    pub(crate) fn now_seconds(&self) -> i64 {
        self.now().as_second()
    }

    /// The endpoint of a kind in its storage version, for the simulator's own writes.
    pub(crate) fn endpoint(&self, group: &str, plural: &str) -> Option<Endpoint> {
        let resource = self.registry.find(group, plural)?.clone();
        let version = resource.storage;
        Some(Endpoint { resource, version })
    }

    pub(crate) fn id(&self, group: &str, plural: &str) -> Option<ResourceId> {
        self.registry.find(group, plural).map(|resource| resource.id)
    }

    pub(crate) fn get(
        &self,
        endpoint: &Endpoint,
        namespace: &str,
        name: &str,
    ) -> Result<&Arc<Object>, ApiError> {
        self.store
            .get(endpoint.resource.id, &Key::new(namespace, name))
            .ok_or_else(|| endpoint.not_found(name))
    }

    /// Brings an object that a client sent into its kept form: types checked, unknown fields dropped and reported,
    /// defaults filled in.
    pub(crate) fn decode(&self, endpoint: &Endpoint, mut value: Value) -> Result<Decoded, Mismatch> {
        let resource = &endpoint.resource;
        let Some(version) = endpoint.version() else {
            return Err(Mismatch("no such version".into()));
        };
        let mut report = Report::default();
        // An empty list here is a wish to forget all managers, not an empty field.
        let forget = value
            .pointer("/metadata/managedFields")
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty);
        if let Value::Object(object) = &mut value {
            object.insert("apiVersion".into(), endpoint.api_version().into());
            object.insert("kind".into(), resource.kind.as_str().into());
        }
        if let Some(custom) = &version.custom {
            let metadata_type = version.schema.metadata_type();
            let metadata = value
                .get("metadata")
                .cloned()
                .unwrap_or_else(|| Value::Object(Map::new()));
            let metadata = normalise(
                &version.schema,
                metadata_type.into(),
                &resource.kind,
                &metadata,
                &mut report,
            )?;
            let unknown = report
                .unknown
                .drain(..)
                .map(|path| format!("metadata.{path}"))
                .collect::<Vec<_>>();
            whole_numbers(&mut value);
            custom.structural.fill(&mut value);
            let mut warnings = unknown;
            warnings.extend(custom.structural.prune(&mut value));
            crate::json::set(&mut value, &["metadata"], metadata);
            if forget {
                crate::json::set(
                    &mut value,
                    &["metadata", "managedFields"],
                    Value::Array(Vec::new()),
                );
            }
            return Ok(Decoded { value, warnings });
        }
        if resource.is("", "Secret") {
            // Bytes given as text become data once, so that both ways of writing a secret are one.
            crate::defaults::fill(resource, &version.name, &mut value);
        }
        let ty = version.ty.unwrap_or(crate::schema::DEDUCED);
        let mut value = normalise(&version.schema, ty.into(), &resource.kind, &value, &mut report)?;
        crate::defaults::fill(resource, &version.name, &mut value);
        if forget {
            crate::json::set(
                &mut value,
                &["metadata", "managedFields"],
                Value::Array(Vec::new()),
            );
        }
        Ok(Decoded {
            value,
            warnings: report.unknown,
        })
    }

    /// What a kind looks like before anything is in it.
    fn blank(&self, endpoint: &Endpoint) -> Value {
        let Some(version) = endpoint.version().filter(|version| version.custom.is_none()) else {
            return Value::Object(Map::new());
        };
        let ty = version.ty.unwrap_or(crate::schema::DEDUCED);
        let nothing = Value::Object(Map::new());
        let kind = &endpoint.resource.kind;
        normalise(&version.schema, ty.into(), kind, &nothing, &mut Report::default()).unwrap_or(nothing)
    }

    /// The kept form of a value in the request's version.
    fn to_object(&self, endpoint: &Endpoint, value: &Value) -> Object {
        let stored = crate::conversion::convert(value, &endpoint.storage_api_version());
        Object::from_value(&stored, &self.environment.shared)
    }

    /// Refuses writes into namespaces that do not exist, and new content in those that are going away.
    fn check_namespace(&self, endpoint: &Endpoint, namespace: &str, name: &str) -> Result<(), ApiError> {
        if !endpoint.resource.namespaced {
            return Ok(());
        }
        let object = self
            .id("", "namespaces")
            .and_then(|id| self.store.get(id, &Key::new("", namespace)))
            .ok_or_else(|| ApiError::not_found("", "namespaces", namespace))?;
        if object.deleting {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            return Err(
                ApiError::forbidden(&endpoint.resource.group, &endpoint.resource.plural, name, &why)
                    .forbidden_cause(
                        "NamespaceTerminating",
                        format!("namespace {namespace} is being terminated"),
                        "metadata.namespace",
                    ),
            );
        }
        Ok(())
    }

    /// Stores an object and tells the controllers.
    pub(crate) fn put(&mut self, resource: &Arc<Resource>, object: Object) -> Arc<Object> {
        let stored = self.store.put(resource.id, object);
        self.written(resource, &stored, false);
        stored
    }

    /// Removes an object and tells the controllers.
    pub(crate) fn remove(&mut self, resource: &Arc<Resource>, key: &Key) -> Option<Arc<Object>> {
        let object = self.store.remove(resource.id, key)?;
        self.written(resource, &object, true);
        Some(object)
    }

    fn written(&mut self, resource: &Arc<Resource>, object: &Arc<Object>, removed: bool) {
        if removed && resource.is("", "Service") {
            self.release_service(object);
        }
        if resource.is("apiextensions.k8s.io", "CustomResourceDefinition") {
            self.definition_written(object, removed);
        }
        self.work.written(resource, object, removed);
    }
}

/// Go prints a float without a fraction as a whole number.
fn whole_numbers(value: &mut Value) {
    /// Beyond this a float has no exact whole numbers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(float) = number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && float.abs() < EXACT)
            {
                let whole = float as i64;
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(object) => object.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// `spec`, `data` and so on: all but metadata and status.
fn content(object: &Value) -> Map<String, Value> {
    let mut content = object.as_object().cloned().unwrap_or_default();
    for name in ["metadata", "status", "apiVersion", "kind"] {
        content.remove(name);
    }
    content
}

/// Five letters for a generated name, without vowels so that no words come out.
pub(crate) fn random_suffix() -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut rng = rand::rng();
    (0..5)
        .filter_map(|_| {
            LETTERS
                .get(rng.random_range(0..LETTERS.len()))
                .map(|letter| char::from(*letter))
        })
        .collect()
}

/// Copies what the server owns in metadata from the stored object, whatever the client sent.
fn keep_server_metadata(live: &Value, new: &mut Value) {
    for name in [
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "namespace",
        "name",
    ] {
        match at(live, &["metadata", name]) {
            Some(value) => crate::json::set(new, &["metadata", name], value.clone()),
            None => {
                crate::json::remove(new, &["metadata", name]);
            }
        }
    }
}

/// Raises the generation when the wanted state changed.
fn next_generation(resource: &Resource, live: &Value, new: &mut Value) {
    if !resource.has_generation() {
        return;
    }
    let changed = if resource.is_custom() {
        let strip = |object: &Value| {
            let mut object = object.as_object().cloned().unwrap_or_default();
            object.remove("metadata");
            object.remove("apiVersion");
            if resource.has_status() {
                object.remove("status");
            }
            object
        };
        strip(live) != strip(new)
    } else {
        content(live) != content(new)
            || (resource.is("apps", "Deployment")
                && at(live, &["metadata", "annotations"]) != at(new, &["metadata", "annotations"]))
    };
    if changed {
        let generation = crate::json::number(live, &["metadata", "generation"]).unwrap_or(0);
        crate::json::set(new, &["metadata", "generation"], generation + 1);
    }
}

/// Checks the identity that a client gives against the stored object.
fn check_identity(endpoint: &Endpoint, live: &Object, new: &Value) -> Result<(), ApiError> {
    let resource = &endpoint.resource;
    let uid = text(new, &["metadata", "uid"]);
    if !uid.is_empty() && uid != live.uid.to_string() {
        let key = if live.key.namespace.is_empty() {
            format!("/registry/{}/{}", resource.plural, live.key.name)
        } else {
            format!(
                "/registry/{}/{}/{}",
                resource.plural, live.key.namespace, live.key.name
            )
        };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
             failed: UID in precondition: {uid}, UID in object meta: {}",
            live.uid
        );
        return Err(ApiError::conflict(
            &resource.group,
            &resource.plural,
            &live.key.name,
            &why,
        ));
    }
    let version = text(new, &["metadata", "resourceVersion"]);
    if !version.is_empty() && version != "0" && version != live.resource_version.to_string() {
        return Err(ApiError::modified(
            &resource.group,
            &resource.plural,
            &live.key.name,
        ));
    }
    Ok(())
}
