//! What controllers have to look at, and when.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;

use crate::object::{Key, Object};
use crate::registry::{Resource, ResourceId};

/// One thing for a controller to look at. Looking twice does no harm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    /// A definition's conditions, or the end of its objects.
    Definition(Arc<str>),
    /// A new namespace's furniture, or a leaving one's content.
    Namespace(Arc<str>),
    Deployment(Key),
    ReplicaSet(Key),
    StatefulSet(Key),
    DaemonSet(Key),
    /// All daemon sets, when nodes change.
    Nodes,
    Job(Key),
    Pod(Key),
    Claim(Key),
    Service(Key),
    DisruptionBudgets(Arc<str>),
    /// Objects owned by one that is gone or going.
    Dependents(Uuid),
    /// Whether the owners of an object exist.
    Owners(ResourceId, Key),
}

/// Items that are due now or later.
#[derive(Debug, Default)]
pub(crate) struct Work {
    ready: BTreeSet<Item>,
    later: BTreeSet<(Instant, Item)>,
    /// Objects whose timer has been set.
    marks: BTreeSet<Uuid>,
}

impl Work {
    pub(crate) fn push(&mut self, item: Item) {
        self.ready.insert(item);
    }

    pub(crate) fn push_at(&mut self, due: Instant, item: Item) {
        self.later.insert((due, item));
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the next item is due.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        if self.has_ready() {
            Some(now)
        } else {
            self.later.first().map(|(due, _)| *due)
        }
    }

    /// Notes that an object's timer has been set.
    pub(crate) fn set_mark(&mut self, uid: Uuid) {
        self.marks.insert(uid);
    }

    /// Whether an object's timer had been set; forgets it.
    pub(crate) fn take_mark(&mut self, uid: Uuid) -> bool {
        self.marks.remove(&uid)
    }

    /// Takes one item that is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Item> {
        if let Some(item) = self.ready.pop_first() {
            return Some(item);
        }
        if self.later.first().is_some_and(|(due, _)| *due <= now) {
            return self.later.pop_first().map(|(_, item)| item);
        }
        None
    }

    /// Notes a write.
    pub(crate) fn written(&mut self, resource: &Resource, object: &Object, removed: bool) {
        let key = object.key.clone();
        let item = match (resource.group.as_str(), resource.kind.as_str()) {
            ("apps", "Deployment") => Some(Item::Deployment(key.clone())),
            ("apps", "ReplicaSet") => Some(Item::ReplicaSet(key.clone())),
            ("apps", "StatefulSet") => Some(Item::StatefulSet(key.clone())),
            ("apps", "DaemonSet") => Some(Item::DaemonSet(key.clone())),
            ("batch", "Job") => Some(Item::Job(key.clone())),
            ("", "Pod") => {
                self.push(Item::DisruptionBudgets(key.namespace.clone()));
                Some(Item::Pod(key.clone()))
            }
            ("policy", "PodDisruptionBudget") => Some(Item::DisruptionBudgets(key.namespace.clone())),
            ("", "PersistentVolumeClaim") => Some(Item::Claim(key.clone())),
            ("", "Service") => Some(Item::Service(key.clone())),
            ("", "Namespace") => Some(Item::Namespace(key.name.clone())),
            ("", "Node") => Some(Item::Nodes),
            ("apiextensions.k8s.io", "CustomResourceDefinition") => Some(Item::Definition(key.name.clone())),
            _ => None,
        };
        if !removed || resource.is("", "Node") {
            self.ready.extend(item);
        }
        if object.owned {
            self.push_owners(object, removed);
            if !removed {
                self.push(Item::Owners(resource.id, key.clone()));
            }
        }
        if removed || object.deleting {
            self.push(Item::Dependents(object.uid));
        }
        if removed {
            if !key.namespace.is_empty() {
                self.push(Item::Namespace(key.namespace.clone()));
            }
            if resource.is_custom() {
                self.push(Item::Definition(
                    format!("{}.{}", resource.plural, resource.group).into(),
                ));
            }
        }
    }

    /// The workload that owns a pod or replica set looks at it; the garbage collector at what went.
    fn push_owners(&mut self, object: &Object, removed: bool) {
        let references = object.meta_member("ownerReferences").unwrap_or_default();
        for owner in references.as_array().into_iter().flatten() {
            let text = |name: &str| {
                owner
                    .get(name)
                    .and_then(serde_json::Value::as_str)
                    .unwrap_or_default()
            };
            // An owner that goes in the foreground may have waited for this one.
            if let Some(uid) = removed.then(|| Uuid::parse_str(text("uid")).ok()).flatten() {
                self.push(Item::Dependents(uid));
            }
            let key = Key {
                namespace: object.key.namespace.clone(),
                name: text("name").into(),
            };
            match text("kind") {
                "Deployment" => self.push(Item::Deployment(key)),
                "ReplicaSet" => self.push(Item::ReplicaSet(key)),
                "StatefulSet" => self.push(Item::StatefulSet(key)),
                "DaemonSet" => self.push(Item::DaemonSet(key)),
                "Job" => self.push(Item::Job(key)),
                _ => {}
            }
        }
    }
}
