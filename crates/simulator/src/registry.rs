//! Which resources a cluster serves: the built-in ones, equal everywhere, and its own custom ones.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::apply::field_set::FieldSet;
use crate::apply::updater::{ResetFields, Versions};
use crate::conversion;
use crate::schema::structural::Structural;
use crate::schema::{Schema, TypeId};

pub(crate) mod builtin;

/// Tells resources apart, over all clusters of a simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ResourceId(pub(crate) u32);

/// A subresource as discovery lists it.
#[derive(Debug, Clone)]
pub(crate) struct Subresource {
    pub(crate) name: String,
    /// Group, version and kind where they differ from those of the resource.
    pub(crate) group: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<String>,
}

/// What only custom kinds have.
#[derive(Debug)]
pub(crate) struct CustomVersion {
    pub(crate) structural: Structural,
    pub(crate) columns: Vec<Column>,
    /// `.spec.replicas` and `.status.replicas`, and the selector's path, of the scale subresource.
    pub(crate) scale: Option<ScalePaths>,
    /// Fields beside name and namespace that field selectors may use.
    pub(crate) selectable: Vec<String>,
    /// The schema as it was given, for OpenAPI.
    pub(crate) open_api: Value,
}

#[derive(Debug, Clone)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) selector: Option<String>,
}

/// A column of `kubectl get`.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) json_path: String,
}

/// One version of a resource.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) verbs: Vec<String>,
    pub(crate) storage_hash: String,
    pub(crate) subresources: Vec<Subresource>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) ty: Option<TypeId>,
    pub(crate) custom: Option<CustomVersion>,
}

impl Version {
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|subresource| subresource.name == name)
    }
}

/// A resource with all of its versions.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) id: ResourceId,
    /// Empty for the legacy group.
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) namespaced: bool,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    /// The preferred version first.
    pub(crate) versions: Vec<Version>,
    /// Position of the version that objects are kept in.
    pub(crate) storage: usize,
}

impl Resource {
    /// `apps/v1`, or `v1` in the legacy group.
    pub(crate) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() {
            version.to_owned()
        } else {
            format!("{}/{version}", self.group)
        }
    }

    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions
            .iter()
            .find(|version| version.name == name && version.served)
    }

    pub(crate) fn storage_api_version(&self) -> String {
        self.versions
            .get(self.storage)
            .map(|version| self.api_version(&version.name))
            .unwrap_or_default()
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.versions.iter().any(|version| version.custom.is_some())
    }

    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    pub(crate) fn has_status(&self) -> bool {
        self.versions
            .iter()
            .any(|version| version.subresource("status").is_some())
    }

    /// Whether objects carry `metadata.generation`.
    pub(crate) fn has_generation(&self) -> bool {
        self.is_custom()
            || matches!(
                (self.group.as_str(), self.kind.as_str()),
                ("", "Pod" | "PodTemplate" | "ReplicationController")
                    | ("apps", "Deployment" | "DaemonSet" | "StatefulSet" | "ReplicaSet")
                    | ("batch", "Job" | "CronJob")
                    | ("autoscaling", "HorizontalPodAutoscaler")
                    | ("networking.k8s.io", "Ingress" | "IngressClass" | "NetworkPolicy")
                    | ("policy", "PodDisruptionBudget")
                    | ("discovery.k8s.io", "EndpointSlice")
                    | ("scheduling.k8s.io", "PriorityClass")
                    | ("flowcontrol.apiserver.k8s.io", _)
                    | (
                        "resource.k8s.io",
                        "DeviceClass" | "DeviceTaintRule" | "ResourceSlice"
                    )
                    | ("admissionregistration.k8s.io", _)
                    | ("apiextensions.k8s.io", "CustomResourceDefinition")
            )
    }

    /// What no manager may own at an endpoint.
    pub(crate) fn reset_fields(&self, subresource: &str) -> ResetFields {
        if !self.has_status() {
            return ResetFields::default();
        }
        let fields: &[&str] = match subresource {
            "" => &["status"],
            "status" if self.is_custom() => &["metadata", "spec"],
            "status" => match (self.group.as_str(), self.kind.as_str()) {
                ("apps", "Deployment") => &["spec", "metadata.labels"],
                ("", "Pod") => &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
                (
                    "networking.k8s.io"
                    | "storagemigration.k8s.io"
                    | "resource.k8s.io"
                    | "storage.k8s.io"
                    | "flowcontrol.apiserver.k8s.io"
                    | "admissionregistration.k8s.io"
                    | "apiregistration.k8s.io",
                    kind,
                ) if kind != "Ingress" => &["metadata", "spec"],
                _ => &["spec"],
            },
            "approval" => &["spec"],
            _ => return ResetFields::default(),
        };
        ResetFields(Some(FieldSet::of_fields(fields)))
    }
}

impl Versions for Resource {
    fn type_in(&self, api_version: &str) -> Option<(Arc<Schema>, TypeId)> {
        let version = self
            .versions
            .iter()
            .find(|version| self.api_version(&version.name) == api_version)?;
        Some((
            version.schema.clone(),
            version.ty.unwrap_or(crate::schema::DEDUCED),
        ))
    }

    fn convert<'v>(&self, value: &'v Value, to: &str) -> Cow<'v, Value> {
        conversion::convert(value, to)
    }
}

/// The resources of one cluster.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    builtin: Arc<builtin::Builtin>,
    /// By group and plural.
    custom: BTreeMap<(String, String), Arc<Resource>>,
}

/// A group with its versions, the preferred one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) versions: Vec<String>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self {
            builtin: builtin::Builtin::load(),
            custom: BTreeMap::new(),
        }
    }

    pub(crate) fn find(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.builtin
            .find(group, plural)
            .or_else(|| self.custom.get(&(group.to_owned(), plural.to_owned())))
    }

    pub(crate) fn find_kind(&self, group: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.all()
            .find(|resource| resource.group == group && resource.kind == kind)
    }

    pub(crate) fn by_id(&self, id: ResourceId) -> Option<&Arc<Resource>> {
        self.builtin
            .by_id(id)
            .or_else(|| self.custom.values().find(|resource| resource.id == id))
    }

    /// Built-in resources in discovery order, then custom ones.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.builtin.resources.iter().chain(self.custom.values())
    }

    /// Groups in discovery order.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let mut groups = self.builtin.groups.clone();
        for resource in self.custom.values() {
            let served: Vec<&str> = resource
                .versions
                .iter()
                .filter(|version| version.served)
                .map(|version| version.name.as_str())
                .collect();
            let group = match groups.iter_mut().find(|group| group.name == resource.group) {
                Some(group) => group,
                None => {
                    groups.push(Group {
                        name: resource.group.clone(),
                        versions: Vec::new(),
                    });
                    match groups.last_mut() {
                        Some(group) => group,
                        None => continue,
                    }
                }
            };
            for version in served {
                if !group.versions.iter().any(|known| known == version) {
                    group.versions.push(version.to_owned());
                }
            }
            group
                .versions
                .sort_by_key(|version| crate::crd::version_priority(version));
        }
        groups.retain(|group| !group.versions.is_empty());
        groups
    }

    pub(crate) fn serves_group_version(&self, group: &str, version: &str) -> bool {
        self.groups()
            .iter()
            .any(|known| known.name == group && known.versions.iter().any(|name| name == version))
    }

    pub(crate) fn add_custom(&mut self, resource: Arc<Resource>) {
        self.custom
            .insert((resource.group.clone(), resource.plural.clone()), resource);
    }

    pub(crate) fn remove_custom(&mut self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        self.custom.remove(&(group.to_owned(), plural.to_owned()))
    }
}
