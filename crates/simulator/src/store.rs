//! The objects of one cluster, their common revision, and what changed lately.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use crate::object::{Key, Object};
use crate::registry::ResourceId;

type Table = BTreeMap<Key, Arc<Object>>;

/// One write. Both states are kept so that a watch with a selector can tell whether an object entered or left it.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) resource: ResourceId,
    pub(crate) before: Option<Arc<Object>>,
    /// `None` when the object was deleted.
    pub(crate) after: Option<Arc<Object>>,
}

impl Event {
    fn key(&self) -> Option<&Key> {
        self.after
            .as_ref()
            .or(self.before.as_ref())
            .map(|object| &object.key)
    }
}

/// A revision that is no longer kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compacted {
    pub(crate) oldest: u64,
}

/// Objects by resource, namespace and name. Every write raises the revision by one.
#[derive(Debug)]
pub(crate) struct Store {
    revision: u64,
    tables: BTreeMap<ResourceId, Table>,
    history: VecDeque<Event>,
    history_limit: usize,
}

impl Store {
    /// An empty store that remembers the last `history_limit` writes.
    pub(crate) fn new(history_limit: usize) -> Self {
        Self {
            revision: 1,
            tables: BTreeMap::new(),
            history: VecDeque::new(),
            history_limit: history_limit.max(1),
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, resource: ResourceId, key: &Key) -> Option<&Arc<Object>> {
        self.tables.get(&resource)?.get(key)
    }

    /// Objects of a resource in order of namespace and name; an empty namespace means all.
    pub(crate) fn list<'s>(
        &'s self,
        resource: ResourceId,
        namespace: &'s str,
    ) -> impl Iterator<Item = &'s Arc<Object>> + 's {
        let start = Key {
            namespace: namespace.into(),
            name: "".into(),
        };
        self.tables
            .get(&resource)
            .into_iter()
            .flat_map(move |table| table.range((Bound::Included(start.clone()), Bound::Unbounded)))
            .map(|(_, object)| object)
            .take_while(move |object| namespace.is_empty() || object.key.namespace.as_ref() == namespace)
    }

    /// Resources that have objects.
    pub(crate) fn resources(&self) -> impl Iterator<Item = ResourceId> + '_ {
        self.tables
            .iter()
            .filter(|(_, table)| !table.is_empty())
            .map(|(id, _)| *id)
    }

    pub(crate) fn count(&self) -> usize {
        self.tables.values().map(BTreeMap::len).sum()
    }

    /// Adds or replaces an object and gives it the next revision.
    pub(crate) fn put(&mut self, resource: ResourceId, object: Object) -> Arc<Object> {
        self.revision += 1;
        let object = Arc::new(object.at_version(self.revision));
        let before = self
            .tables
            .entry(resource)
            .or_default()
            .insert(object.key.clone(), object.clone());
        self.remember(Event {
            revision: self.revision,
            resource,
            before,
            after: Some(object.clone()),
        });
        object
    }

    /// Removes an object; gives its last state.
    pub(crate) fn remove(&mut self, resource: ResourceId, key: &Key) -> Option<Arc<Object>> {
        let table = self.tables.get_mut(&resource)?;
        let object = table.remove(key)?;
        if table.is_empty() {
            self.tables.remove(&resource);
        }
        self.revision += 1;
        self.remember(Event {
            revision: self.revision,
            resource,
            before: Some(object.clone()),
            after: None,
        });
        Some(object)
    }

    fn remember(&mut self, event: Event) {
        if self.history.len() >= self.history_limit {
            self.history.pop_front();
        }
        self.history.push_back(event);
    }

    /// The oldest revision from which all later writes are known.
    fn oldest(&self) -> u64 {
        self.history
            .front()
            .map_or(self.revision, |event| event.revision - 1)
    }

    /// Writes after `revision`, in order.
    pub(crate) fn since(&self, revision: u64) -> Result<impl Iterator<Item = &Event>, Compacted> {
        let oldest = self.oldest();
        if revision < oldest {
            return Err(Compacted { oldest });
        }
        let skip = usize::try_from(revision - oldest).unwrap_or(usize::MAX);
        Ok(self.history.iter().skip(skip))
    }

    /// Forgets all writes, as a compaction of etcd does.
    pub(crate) fn compact(&mut self) {
        self.history.clear();
    }

    /// The objects of a resource as they were at `revision`.
    pub(crate) fn snapshot(
        &self,
        resource: ResourceId,
        namespace: &str,
        revision: u64,
    ) -> Result<Vec<Arc<Object>>, Compacted> {
        if revision >= self.revision {
            return Ok(self.list(resource, namespace).cloned().collect());
        }
        let later: Vec<&Event> = self
            .since(revision)?
            .filter(|event| event.resource == resource)
            .collect();
        let mut table: BTreeMap<Key, Arc<Object>> = self
            .list(resource, "")
            .map(|object| (object.key.clone(), object.clone()))
            .collect();
        for event in later.into_iter().rev() {
            match (event.key(), &event.before) {
                (Some(key), Some(before)) => {
                    table.insert(key.clone(), before.clone());
                }
                (Some(key), None) => {
                    table.remove(key);
                }
                (None, _) => {}
            }
        }
        let wanted =
            |object: &Arc<Object>| namespace.is_empty() || object.key.namespace.as_ref() == namespace;
        Ok(table.into_values().filter(wanted).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::Shared;

    const CONFIG_MAPS: ResourceId = ResourceId(1);

    fn object(namespace: &str, name: &str, data: &str) -> Object {
        let value = json!({"metadata": {"name": name, "namespace": namespace}, "data": {"v": data}});
        Object::from_value(&value, &Shared::new())
    }

    fn names(objects: &[Arc<Object>]) -> Vec<&str> {
        objects.iter().map(|object| object.key.name.as_ref()).collect()
    }

    #[test]
    fn lists_are_ordered_and_bounded_by_namespace() {
        let mut store = Store::new(10);
        for (namespace, name) in [("b", "2"), ("a", "9"), ("b", "1"), ("ba", "x")] {
            store.put(CONFIG_MAPS, object(namespace, name, ""));
        }
        assert_eq!(
            names(&store.list(CONFIG_MAPS, "b").cloned().collect::<Vec<_>>()),
            ["1", "2"]
        );
        assert_eq!(
            names(&store.list(CONFIG_MAPS, "").cloned().collect::<Vec<_>>()),
            ["9", "1", "2", "x"]
        );
        assert_eq!(store.list(ResourceId(9), "").count(), 0);
    }

    #[test]
    fn every_write_raises_the_revision() {
        let mut store = Store::new(10);
        let first = store.put(CONFIG_MAPS, object("a", "x", "1")).resource_version;
        let second = store.put(CONFIG_MAPS, object("a", "x", "2")).resource_version;
        assert_eq!(second, first + 1);
        store.remove(CONFIG_MAPS, &Key::new("a", "x")).unwrap();
        assert_eq!(store.revision(), second + 1);
        assert!(store.remove(CONFIG_MAPS, &Key::new("a", "x")).is_none());
        assert_eq!(store.revision(), second + 1);
    }

    #[test]
    fn a_snapshot_undoes_later_writes() {
        let mut store = Store::new(10);
        store.put(CONFIG_MAPS, object("a", "kept", "1"));
        let then = store.put(CONFIG_MAPS, object("a", "gone", "1")).resource_version;
        store.put(CONFIG_MAPS, object("a", "kept", "2"));
        store.remove(CONFIG_MAPS, &Key::new("a", "gone"));
        store.put(CONFIG_MAPS, object("a", "new", "1"));
        let snapshot = store.snapshot(CONFIG_MAPS, "a", then).unwrap();
        assert_eq!(names(&snapshot), ["gone", "kept"]);
        assert!(snapshot.iter().all(|object| object.resource_version <= then));
    }

    #[test]
    fn old_revisions_are_forgotten() {
        let mut store = Store::new(2);
        let first = store.put(CONFIG_MAPS, object("a", "1", "")).resource_version;
        assert_eq!(store.since(first).unwrap().count(), 0);
        for name in ["2", "3", "4"] {
            store.put(CONFIG_MAPS, object("a", name, ""));
        }
        assert_eq!(store.since(first).err(), Some(Compacted { oldest: first + 1 }));
        assert_eq!(store.since(first + 1).unwrap().count(), 2);
        assert!(store.snapshot(CONFIG_MAPS, "a", first).is_err());
    }
}
