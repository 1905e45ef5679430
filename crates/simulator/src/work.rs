//! What controllers have to look at, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    /// What stands behind the services of a namespace.
    EndpointSlices(Arc<str>),
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
    /// When delays that have begun are over, by object and what it waits for.
    delays: BTreeMap<(Uuid, &'static str), Instant>,
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

    /// Whether a delay of an object is over, which begins when this is first asked. Until then the item comes back when
    /// it is, however often others wake it.
    pub(crate) fn waited(
        &mut self,
        uid: Uuid,
        stage: &'static str,
        delay: Duration,
        now: Instant,
        item: Item,
    ) -> bool {
        let due = *self.delays.entry((uid, stage)).or_insert(now + delay);
        if due <= now {
            self.delays.remove(&(uid, stage));
            return true;
        }
        self.push_at(due, item);
        false
    }

    fn forget_delays(&mut self, uid: Uuid) {
        let stages: Vec<_> = self
            .delays
            .range((uid, "")..)
            .map(|(key, _)| *key)
            .take_while(|(id, _)| *id == uid)
            .collect();
        for stage in stages {
            self.delays.remove(&stage);
        }
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
                self.push(Item::EndpointSlices(key.namespace.clone()));
                Some(Item::Pod(key.clone()))
            }
            ("policy", "PodDisruptionBudget") => Some(Item::DisruptionBudgets(key.namespace.clone())),
            ("", "PersistentVolumeClaim") => Some(Item::Claim(key.clone())),
            ("", "Service") => {
                self.push(Item::EndpointSlices(key.namespace.clone()));
                Some(Item::Service(key.clone()))
            }
            // Somebody else's writes are undone.
            ("discovery.k8s.io", "EndpointSlice") => Some(Item::EndpointSlices(key.namespace.clone())),
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
            self.forget_delays(object.uid);
            if !key.namespace.is_empty() {
                self.push(Item::Namespace(key.namespace));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_begins_once_and_brings_its_item_back() {
        let (mut work, uid, now) = (Work::default(), Uuid::from_u128(1), Instant::now());
        let second = Duration::from_secs(1);
        let item = || Item::Pod(Key::new("a", "b"));
        assert!(!work.waited(uid, "start", second, now, item()));
        // Asking again does not begin it anew.
        assert!(!work.waited(uid, "start", second, now + second / 2, item()));
        assert_eq!(work.next_due(now), Some(now + second));
        assert_eq!(work.pop(now + second / 2), None);
        assert_eq!(work.pop(now + second), Some(item()));
        assert!(work.waited(uid, "start", second, now + second, item()));
        assert!(work.delays.is_empty());
    }

    #[test]
    fn ready_items_come_before_later_ones_and_only_once() {
        let (mut work, now) = (Work::default(), Instant::now());
        work.push_at(now, Item::Nodes);
        work.push(Item::Job(Key::new("a", "b")));
        work.push(Item::Job(Key::new("a", "b")));
        assert_eq!(work.pop(now), Some(Item::Job(Key::new("a", "b"))));
        assert_eq!(work.pop(now), Some(Item::Nodes));
        assert_eq!(work.pop(now), None);
    }
}
