//! Kinds that a manifest defines itself, so that its custom resources can be placed before the cluster serves them.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_core::{GroupKind, GroupVersionKind, ObjectRef};
use serde::Deserialize;
use serde_json::Value;

use super::Parsed;
use crate::discovery::Resource;
use crate::order;

/// A kind that a manifest defines.
pub(super) struct Defined {
    pub(super) resource: Arc<Resource>,
    pub(super) definition: ObjectRef,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    names: Names,
    scope: String,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Names {
    kind: String,
    plural: String,
}

#[derive(Deserialize)]
struct Version {
    name: String,
    #[serde(default)]
    served: bool,
    subresources: Option<Subresources>,
}

#[derive(Deserialize)]
struct Subresources {
    status: Option<Value>,
}

/// What the CustomResourceDefinitions among `parsed` will serve. One that cannot be read defines nothing: the server
/// will say what is wrong with it.
pub(super) fn of(parsed: &[Parsed]) -> BTreeMap<GroupVersionKind, Defined> {
    let mut defined = BTreeMap::new();
    for object in parsed
        .iter()
        .filter(|object| order::is_definition(&object.kind.group_kind()))
    {
        let Some(spec) = object
            .body
            .get("spec")
            .and_then(|spec| Spec::deserialize(spec).ok())
        else {
            continue;
        };
        for version in spec.versions.iter().filter(|version| version.served) {
            let kind = GroupVersionKind {
                group: spec.group.clone(),
                version: version.name.clone(),
                kind: spec.names.kind.clone(),
            };
            let resource = Resource {
                kind: kind.clone(),
                plural: spec.names.plural.clone(),
                namespaced: spec.scope == "Namespaced",
                listable: true,
                deletable: true,
                has_status: version
                    .subresources
                    .as_ref()
                    .is_some_and(|subresources| subresources.status.is_some()),
            };
            let GroupKind {
                group,
                kind: definition,
            } = object.kind.group_kind();
            let definition = ObjectRef {
                group,
                kind: definition,
                namespace: None,
                name: object.name.clone(),
            };
            defined.insert(
                kind,
                Defined {
                    resource: Arc::new(resource),
                    definition,
                },
            );
        }
    }
    defined
}
