//! What a verdict depends on beside the object itself.

use std::collections::BTreeSet;

use evenkeel_core::{GroupKind, ObjectRef};
use serde_json::Value;

use crate::discovery::Resource;
use crate::objects::{Selection, built_in};
use crate::readiness::{Patience, Surroundings};
use crate::{Cluster, order};

impl Cluster {
    /// Reads what verdicts on objects of `resource` depend on: for claims the classes that wait for a consumer, for custom
    /// kinds whether their controllers say which generation they have seen. Nothing for other kinds.
    ///
    /// What may not be read is taken as not there: it only makes verdicts better.
    pub(crate) async fn surroundings(&self, resource: &Resource) -> Surroundings {
        let kind = resource.kind.group_kind();
        let mut surroundings = Surroundings::from(Patience::Settled);
        if kind.group.is_empty() && kind.kind == "PersistentVolumeClaim" {
            surroundings.late_binding = self.late_binding_classes().await;
        } else if resource.has_status && !order::is_built_in(&kind) {
            surroundings.reports_generation = self.reports_generation(resource, &kind).await;
        }
        surroundings
    }

    /// The StorageClasses whose claims are bound only once a pod uses them.
    async fn late_binding_classes(&self) -> BTreeSet<String> {
        let classes = built_in("storage.k8s.io", "v1", "StorageClass", "storageclasses", false);
        let listed = match self.list_full(&classes, Selection::default()).await {
            Ok(listed) => listed.items,
            Err(error) => {
                tracing::debug!(%error, "storage classes cannot be read");
                Vec::new()
            }
        };
        let late = |class: &&Value| {
            class.get("volumeBindingMode").and_then(Value::as_str) == Some("WaitForFirstConsumer")
        };
        let name = |class: &Value| Some(class.pointer("/metadata/name")?.as_str()?.to_owned());
        listed.iter().filter(late).filter_map(name).collect()
    }

    /// Whether the definition of a kind declares `status.observedGeneration`.
    async fn reports_generation(&self, resource: &Resource, kind: &GroupKind) -> bool {
        let definitions = built_in(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            false,
        );
        let definition = ObjectRef {
            group: definitions.kind.group.clone(),
            kind: definitions.kind.kind.clone(),
            namespace: None,
            name: format!("{}.{}", resource.plural, kind.group),
        };
        let found = match self.get_full(&definitions, &definition).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "a definition cannot be read");
                None
            }
        };
        let versions = found
            .as_ref()
            .and_then(|found| found.pointer("/spec/versions")?.as_array());
        versions.into_iter().flatten().any(|version| {
            version.get("name").and_then(Value::as_str) == Some(resource.kind.version.as_str())
                && version
                    .pointer("/schema/openAPIV3Schema/properties/status/properties/observedGeneration")
                    .is_some()
        })
    }
}
