//! An object as it is kept: small, shared where objects are alike, and quick to print.
//!
//! ```text
//! {"kind":…,"apiVersion":…,"metadata":{ name, uid, versions: own │ labels, annotations…: shared │ managedFields },  BODY }
//!                                                                                                     shared ──────┘
//! ```
//!
//! Metadata-only answers are put together without touching the body; nothing is parsed to be read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::clock::{format_seconds, parse_seconds};
use crate::interner::Interner;

pub(crate) type Labels = BTreeMap<Box<str>, Box<str>>;

/// What objects of all clusters share.
#[derive(Debug)]
pub(crate) struct Shared {
    texts: Interner<str>,
    labels: Interner<Labels>,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self {
            texts: Interner::new(),
            labels: Interner::new(),
        }
    }

    pub(crate) fn text(&self, text: &str) -> Arc<str> {
        self.texts.intern(text)
    }

    fn labels(&self, labels: Labels) -> Arc<Labels> {
        let mut labels = Some(labels);
        let key = labels.clone().unwrap_or_default();
        self.labels
            .intern_with(&key, || Arc::new(labels.take().unwrap_or_default()))
    }
}

/// Where an object is found among those of its resource. Cluster-wide objects have an empty namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// One managedFields entry, split at its time so that the rest can be shared.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ManagedEntry {
    /// `"manager":…,"operation":…,"apiVersion":…`
    head: Arc<str>,
    /// Seconds since 1970.
    time: Option<i64>,
    /// `"fieldsType":…,"fieldsV1":…` and the subresource.
    tail: Arc<str>,
}

/// An object in its storage version.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) key: Key,
    pub(crate) uid: Uuid,
    pub(crate) resource_version: u64,
    /// 0 for kinds that have none.
    pub(crate) generation: i64,
    /// Seconds since 1970.
    pub(crate) created: i64,
    /// Has a deletionTimestamp.
    pub(crate) deleting: bool,
    /// Has finalizers.
    pub(crate) finalized: bool,
    /// Has owner references.
    pub(crate) owned: bool,
    pub(crate) labels: Arc<Labels>,
    /// Members of metadata that have no field here, without braces.
    meta: Arc<str>,
    managed: Box<[ManagedEntry]>,
    /// Members beside kind, apiVersion and metadata, without braces.
    body: Arc<str>,
}

/// Members of metadata that have fields of their own in [`Object`].
const OWN_METADATA: [&str; 7] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
];

fn members(object: &Map<String, Value>, leave_out: &[&str]) -> String {
    let mut out = String::new();
    for (name, value) in object {
        if leave_out.contains(&name.as_str()) {
            continue;
        }
        if !out.is_empty() {
            out.push(',');
        }
        let _ = write!(out, "{}:{value}", Value::from(name.as_str()));
    }
    out
}

impl Object {
    /// Takes an object apart. What the server owns (uid, versions) is read from the value too.
    pub(crate) fn from_value(value: &Value, shared: &Shared) -> Self {
        let none = Map::new();
        let object = value.as_object().unwrap_or(&none);
        let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&none);
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
        let labels = metadata
            .get("labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str().into(), value.as_str()?.into())))
            .collect();
        let has = |name: &str| {
            metadata
                .get(name)
                .and_then(Value::as_array)
                .is_some_and(|list| !list.is_empty())
        };
        let managed = metadata.get("managedFields").and_then(Value::as_array);
        let managed = managed
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
            .map(|entry| {
                let pick = |names: &[&str]| {
                    let picked: Map<String, Value> = names
                        .iter()
                        .filter_map(|name| Some(((*name).to_owned(), entry.get(*name)?.clone())))
                        .collect();
                    shared.text(&members(&picked, &[]))
                };
                ManagedEntry {
                    head: pick(&["manager", "operation", "apiVersion"]),
                    time: entry.get("time").and_then(Value::as_str).and_then(parse_seconds),
                    tail: pick(&["fieldsType", "fieldsV1", "subresource"]),
                }
            });
        Self {
            key: Key {
                namespace: shared.text(text("namespace")),
                name: shared.text(text("name")),
            },
            uid: Uuid::parse_str(text("uid")).unwrap_or_default(),
            resource_version: text("resourceVersion").parse().unwrap_or_default(),
            generation: metadata
                .get("generation")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            created: parse_seconds(text("creationTimestamp")).unwrap_or_default(),
            deleting: metadata.get("deletionTimestamp").is_some_and(Value::is_string),
            finalized: has("finalizers"),
            owned: has("ownerReferences"),
            labels: shared.labels(labels),
            meta: shared.text(&members(metadata, &OWN_METADATA)),
            managed: managed.collect(),
            body: shared.text(&members(object, &["apiVersion", "kind", "metadata"])),
        }
    }

    /// Writes the metadata object.
    pub(crate) fn write_metadata(&self, out: &mut String) {
        let _ = write!(out, "{{\"name\":{}", Value::from(self.key.name.as_ref()));
        if !self.key.namespace.is_empty() {
            let _ = write!(out, ",\"namespace\":{}", Value::from(self.key.namespace.as_ref()));
        }
        let _ = write!(out, ",\"uid\":\"{}\"", self.uid);
        if self.resource_version != 0 {
            let _ = write!(out, ",\"resourceVersion\":\"{}\"", self.resource_version);
        }
        if self.generation != 0 {
            let _ = write!(out, ",\"generation\":{}", self.generation);
        }
        let _ = write!(out, ",\"creationTimestamp\":\"{}\"", format_seconds(self.created));
        if !self.meta.is_empty() {
            out.push(',');
            out.push_str(&self.meta);
        }
        if !self.managed.is_empty() {
            out.push_str(",\"managedFields\":[");
            for (position, entry) in self.managed.iter().enumerate() {
                out.push_str(if position > 0 { ",{" } else { "{" });
                out.push_str(&entry.head);
                if let Some(time) = entry.time {
                    let _ = write!(out, ",\"time\":\"{}\"", format_seconds(time));
                }
                out.push(',');
                out.push_str(&entry.tail);
                out.push('}');
            }
            out.push(']');
        }
        out.push('}');
    }

    /// Writes the whole object.
    pub(crate) fn write_json(&self, api_version: &str, kind: &str, out: &mut String) {
        let _ = write!(
            out,
            "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":"
        );
        self.write_metadata(out);
        if !self.body.is_empty() {
            out.push(',');
            out.push_str(&self.body);
        }
        out.push('}');
    }

    /// Writes the whole object without its kind and version.
    pub(crate) fn write_untyped(&self, out: &mut String) {
        out.push_str("{\"metadata\":");
        self.write_metadata(out);
        if !self.body.is_empty() {
            out.push(',');
            out.push_str(&self.body);
        }
        out.push('}');
    }

    /// Writes its metadata as a `PartialObjectMetadata`.
    pub(crate) fn write_partial(&self, out: &mut String) {
        out.push_str("{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":");
        self.write_metadata(out);
        out.push('}');
    }

    /// The object as a value that can be changed.
    pub(crate) fn to_value(&self, api_version: &str, kind: &str) -> Value {
        let mut text = String::with_capacity(self.meta.len() + self.body.len() + 512);
        self.write_json(api_version, kind, &mut text);
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// The same object at another resource version.
    pub(crate) fn at_version(&self, resource_version: u64) -> Self {
        Self {
            resource_version,
            ..self.clone()
        }
    }

    /// The same object with another identity.
    pub(crate) fn with_uid(&self, uid: Uuid) -> Self {
        Self { uid, ..self.clone() }
    }

    /// Whether two states of an object differ in more than the version and the times in managedFields.
    pub(crate) fn same_content(&self, other: &Self) -> bool {
        self.key == other.key
            && self.uid == other.uid
            && self.generation == other.generation
            && self.created == other.created
            && self.meta == other.meta
            && self.body == other.body
            && self.managed.len() == other.managed.len()
            && self
                .managed
                .iter()
                .zip(&other.managed)
                .all(|(a, b)| a.head == b.head && a.tail == b.tail)
    }

    /// Whether metadata contains a text, such as the uid of an owner.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        self.meta.contains(text)
    }

    /// Whether what is beside the metadata contains a text.
    pub(crate) fn has_text(&self, text: &str) -> bool {
        self.body.contains(text)
    }

    /// Reads one member of metadata that is not kept apart, such as `annotations`.
    pub(crate) fn meta_member(&self, name: &str) -> Option<Value> {
        if self.meta.is_empty() {
            return None;
        }
        let all: Map<String, Value> = serde_json::from_str(&format!("{{{}}}", self.meta)).ok()?;
        all.get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn example() -> Value {
        json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {
                "name": "a\"b", "namespace": "default", "uid": "89062b0e-904d-4c0c-8417-39794718cf47",
                "resourceVersion": "321", "creationTimestamp": "2026-12-01T14:49:32Z",
                "labels": {"app": "x"}, "annotations": {"note": "line\n\"two\""},
                "managedFields": [
                    {"manager": "curl", "operation": "Update", "apiVersion": "v1", "time": "2026-12-01T14:49:32Z",
                     "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {".": {}, "f:x": {}}}},
                    {"manager": "b", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                     "fieldsV1": {}, "subresource": "status"},
                ],
            },
            "data": {"x": "1"}, "immutable": true,
        })
    }

    #[test]
    fn objects_come_back_as_they_were() {
        let shared = Shared::new();
        let object = Object::from_value(&example(), &shared);
        assert_eq!(object.to_value("v1", "ConfigMap"), example());
        assert_eq!(
            object.meta_member("annotations"),
            Some(json!({"note": "line\n\"two\""}))
        );
    }

    #[test]
    fn equal_objects_of_two_clusters_share_their_content() {
        let shared = Shared::new();
        let mut second = example();
        second["metadata"]["uid"] = json!("00000000-904d-4c0c-8417-39794718cf47");
        second["metadata"]["managedFields"][0]["time"] = json!("2026-12-02T14:49:32Z");
        let (a, b) = (
            Object::from_value(&example(), &shared),
            Object::from_value(&second, &shared),
        );
        assert!(
            Arc::ptr_eq(&a.body, &b.body)
                && Arc::ptr_eq(&a.meta, &b.meta)
                && Arc::ptr_eq(&a.labels, &b.labels)
        );
        assert!(Arc::ptr_eq(&a.managed[0].tail, &b.managed[0].tail));
    }

    #[test]
    fn times_of_managers_do_not_make_a_difference() {
        let shared = Shared::new();
        let mut later = example();
        later["metadata"]["managedFields"][0]["time"] = json!("2026-12-02T14:49:32Z");
        let (a, b) = (
            Object::from_value(&example(), &shared),
            Object::from_value(&later, &shared),
        );
        assert!(a.same_content(&b));
        later["data"]["x"] = json!("2");
        assert!(!a.same_content(&Object::from_value(&later, &shared)));
    }
}
