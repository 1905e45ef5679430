//! From rendered documents to desired objects: checked, placed, labelled and fingerprinted.

pub(crate) mod autoscale;
mod checks;
mod definitions;
mod repeats;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use evenkeel_core::{GroupKind, GroupVersionKind, Namespace, ObjectRef, OnConflict, SkippedObject};
use serde_json::{Map, Value};

use crate::apply::conflicts;
use crate::applyset::labels::{CLUSTER_PARENT, PART_OF, applyset_id, parent_name};
use crate::discovery::Resource;
use crate::error::ManifestProblem;
use crate::fingerprint::Fingerprint;
use crate::target::ComponentTarget;
use crate::{Error, immutable, order, readiness};

pub(crate) use checks::check as checked;

/// One rendered document and where it came from. `Debug` shows no content.
#[derive(Clone)]
pub struct ManifestObject {
    /// The object; a `List` is taken apart.
    pub object: Value,
    /// The file it was rendered from, for messages.
    pub source: String,
}

impl fmt::Debug for ManifestObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManifestObject")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// Where objects go.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The release namespace: made first when missing, and the namespace of objects that name none.
    pub namespace: Namespace,
    /// Whether it overrides even an object's explicit namespace.
    pub force_namespace: bool,
}

/// One object that a component should have.
#[derive(Clone)]
pub struct DesiredObject {
    /// The object.
    pub object: ObjectRef,
    /// The file it was rendered from.
    pub source: String,
    pub(crate) resource: Arc<Resource>,
    /// The definition in the same manifest that makes its kind, when the cluster does not serve it yet.
    pub(crate) pending: Option<ObjectRef>,
    pub(crate) body: Value,
    pub(crate) content: Fingerprint,
    /// What its component does about fields of others; its own annotation wins.
    policy: OnConflict,
    /// Whether an autoscaler of the same manifest sets its replicas.
    pub(crate) autoscaled: bool,
    /// Whether it can be anything but ready.
    pub(crate) judged: bool,
}

impl DesiredObject {
    /// Its kind.
    pub fn group_kind(&self) -> GroupKind {
        self.resource.kind.group_kind()
    }

    pub(crate) fn is_shared(&self) -> bool {
        order::is_shared(&self.group_kind())
    }

    /// What is done about fields of it that others own with other values.
    pub(crate) fn on_conflict(&self) -> OnConflict {
        conflicts::asked(&self.body).unwrap_or(self.policy)
    }

    /// From now on its component does that about fields of others.
    pub(crate) fn set_policy(&mut self, policy: OnConflict) {
        if self.policy != policy {
            self.policy = policy;
            self.content = self.fingerprint();
        }
    }

    /// Tells its content from every other. The component's policy is a part of it, as the annotation is: what was left to
    /// others is taken once it says so.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let content = Fingerprint::of(&self.body);
        if self.policy.is_default() || conflicts::asked(&self.body).is_some() {
            return content;
        }
        content.with(self.policy.as_str())
    }
}

impl fmt::Debug for DesiredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DesiredObject")
            .field("object", &self.object)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// All that a component should have in one cluster, in the order of application.
#[derive(Clone, Debug)]
pub struct Desired {
    pub(crate) objects: Vec<DesiredObject>,
    pub(crate) namespace: Namespace,
    /// Rendered objects that are left alone, like hooks; passed through to the plan.
    pub skipped: Vec<SkippedObject>,
}

impl Desired {
    /// The objects, in the order of application.
    pub fn objects(&self) -> &[DesiredObject] {
        &self.objects
    }

    /// The release namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }
}

impl ComponentTarget {
    /// Checks `documents` and turns them into what this cluster should have.
    ///
    /// Costs no request while the cluster serves every kind of the manifest and discovery is cached.
    ///
    /// # Errors
    /// [`Error::Manifest`] with every wrong object: no kind or name, `generateName`, rendered twice, a Secret whose data
    /// is no base64 text. [`Error::UnknownKinds`] for kinds that are neither served nor defined by a
    /// CustomResourceDefinition of the same manifest. [`Error::ApiUnavailable`] for a kind whose own server is down.
    pub async fn desired(
        &self,
        documents: Vec<ManifestObject>,
        placement: &Placement,
        skipped: Vec<SkippedObject>,
    ) -> Result<Desired, Error> {
        let mut problems = Vec::new();
        let documents = flatten(documents);
        let mut parsed: Vec<Parsed> = Vec::with_capacity(documents.len());
        for document in documents {
            match checks::check(document) {
                Ok(object) => parsed.push(object),
                Err(found) => problems.extend(found),
            }
        }
        if !problems.is_empty() {
            return Err(Error::Manifest(problems));
        }
        let defined = definitions::of(&parsed);
        let (served, unknown) = self.resolve(&parsed, &defined).await?;
        if !unknown.is_empty() {
            return Err(Error::UnknownKinds(unknown));
        }
        let mut sources: BTreeMap<ObjectRef, String> = BTreeMap::new();
        let mut objects = Vec::with_capacity(parsed.len());
        let ids = SetIds {
            component: applyset_id(&parent_name(self.name())),
            shared: applyset_id(CLUSTER_PARENT),
        };
        for object in parsed {
            let Some((resource, pending)) = served.get(&object.kind).cloned() else {
                return Err(Error::Bug(format!("{} was not resolved", object.kind)));
            };
            let desired = place(object, resource, pending, placement, &ids);
            for message in [
                immutable::check_annotation(&desired.group_kind(), &desired.body),
                conflicts::check_annotation(&desired.body),
            ]
            .into_iter()
            .filter_map(Result::err)
            {
                problems.push(ManifestProblem {
                    source: desired.source.clone(),
                    object: desired.object.to_string(),
                    message,
                });
            }
            if let Some(first) = sources.insert(desired.object.clone(), desired.source.clone()) {
                problems.push(ManifestProblem {
                    source: first,
                    object: desired.object.to_string(),
                    message: format!(
                        "rendered a second time by {}; expected each object once",
                        desired.source
                    ),
                });
            }
            objects.push(desired);
        }
        if !problems.is_empty() {
            return Err(Error::Manifest(problems));
        }
        autoscale::hand_over(&mut objects);
        for desired in &mut objects {
            desired.content = desired.fingerprint();
        }
        objects.sort_by_cached_key(|desired| order::sort_key(&desired.object));
        Ok(Desired {
            objects,
            namespace: placement.namespace.clone(),
            skipped,
        })
    }

    /// The resource of every kind, with whether it is yet to be defined; and the objects whose kind nobody knows.
    async fn resolve(
        &self,
        parsed: &[Parsed],
        defined: &BTreeMap<GroupVersionKind, definitions::Defined>,
    ) -> Result<(Resolved, Vec<ManifestProblem>), Error> {
        let kinds: BTreeSet<&GroupVersionKind> = parsed.iter().map(|object| &object.kind).collect();
        let mut served = BTreeMap::new();
        let mut missing = BTreeSet::new();
        let discovery = self.cluster().discovery().await?;
        for kind in kinds {
            match (discovery.exact(kind), defined.get(kind)) {
                (Some(resource), _) => drop(served.insert(kind.clone(), (resource.clone(), None))),
                (None, Some(defined)) => {
                    let pending = Some(defined.definition.clone());
                    served.insert(kind.clone(), (defined.resource.clone(), pending));
                }
                (None, None) => drop(missing.insert(kind)),
            }
        }
        if missing.is_empty() {
            return Ok((served, Vec::new()));
        }
        let discovery = self.cluster().discovery_after_miss(&discovery).await?;
        let mut unknown = BTreeSet::new();
        for kind in missing {
            match (discovery.exact(kind), discovery.unavailable(&kind.group)) {
                (Some(resource), _) => drop(served.insert(kind.clone(), (resource.clone(), None))),
                (None, Some(group)) => {
                    return Err(Error::ApiUnavailable {
                        group: group.to_owned(),
                    });
                }
                (None, None) => drop(unknown.insert(kind)),
            }
        }
        let problems = parsed
            .iter()
            .filter(|object| unknown.contains(&object.kind))
            .map(|object| ManifestProblem {
                source: object.source.clone(),
                object: format!("{}/{}", object.kind.kind, object.name),
                message: format!("{} is not served", object.kind),
            })
            .collect();
        Ok((served, problems))
    }
}

/// A document that is an object by its own account.
pub(crate) struct Parsed {
    pub(crate) kind: GroupVersionKind,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) body: Map<String, Value>,
    pub(crate) source: String,
}

/// The resource of every kind of a manifest, and the definition that is yet to make it.
type Resolved = BTreeMap<GroupVersionKind, (Arc<Resource>, Option<ObjectRef>)>;

struct SetIds {
    component: String,
    shared: String,
}

/// Takes `List`s apart, at any depth.
fn flatten(documents: Vec<ManifestObject>) -> Vec<ManifestObject> {
    let mut flat = Vec::with_capacity(documents.len());
    for ManifestObject { object, source } in documents {
        let is_list = object
            .get("kind")
            .and_then(Value::as_str)
            .is_some_and(|kind| kind.ends_with("List"))
            && object
                .get("metadata")
                .and_then(|metadata| metadata.get("name"))
                .is_none();
        match object {
            Value::Object(mut map) if is_list && map.get("items").is_some_and(Value::is_array) => {
                if let Some(Value::Array(items)) = map.remove("items") {
                    let items = items.into_iter().map(|object| ManifestObject {
                        object,
                        source: source.clone(),
                    });
                    flat.extend(flatten(items.collect()));
                }
            }
            Value::Null => {}
            object => flat.push(ManifestObject { object, source }),
        }
    }
    flat
}

fn place(
    parsed: Parsed,
    resource: Arc<Resource>,
    pending: Option<ObjectRef>,
    placement: &Placement,
    ids: &SetIds,
) -> DesiredObject {
    let Parsed {
        kind,
        name,
        namespace,
        mut body,
        source,
    } = parsed;
    let namespace = resource.namespaced.then(|| match namespace {
        Some(explicit) if !placement.force_namespace => explicit,
        _ => placement.namespace.to_string(),
    });
    let group_kind = kind.group_kind();
    let set = if order::is_shared(&group_kind) {
        &ids.shared
    } else {
        &ids.component
    };
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        match &namespace {
            Some(namespace) => drop(metadata.insert("namespace".to_owned(), Value::from(namespace.as_str()))),
            None => drop(metadata.remove("namespace")),
        }
        let labels = metadata
            .entry("labels")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert(PART_OF.to_owned(), Value::from(set.as_str()));
        }
    }
    let judged = readiness::has_rule(&group_kind, resource.has_status);
    DesiredObject {
        object: ObjectRef {
            group: group_kind.group,
            kind: group_kind.kind,
            namespace,
            name,
        },
        source,
        resource,
        pending,
        content: Fingerprint::of(&Value::Null),
        body: Value::Object(body),
        policy: OnConflict::default(),
        autoscaled: false,
        judged,
    }
}

#[cfg(test)]
mod tests;
