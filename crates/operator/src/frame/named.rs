//! Objects of another kind by the object that they name: what a watch has told of them, so that nobody has to list all of them to
//! find the few that matter.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Resource;
use kube::runtime::watcher::Event;

use super::ledger::{Key, key};

/// What is kept of them, for as long as somebody tells. All clones are one.
#[derive(Debug)]
pub(crate) struct Named<V>(Arc<Mutex<Content<V>>>);

#[derive(Debug)]
struct Content<V> {
    /// Whether all are known.
    was_listed: bool,
    by_parent: HashMap<Key, BTreeMap<Box<str>, V>>,
    parents: HashMap<Key, Box<str>>,
    /// What the listing under way has told so far.
    listing: HashSet<Key>,
}

impl<V> Named<V> {
    /// What is known of the objects that name `parent`, in the order of their names; none as long as not all are known.
    pub(crate) fn of(&self, namespace: &str, parent: &str) -> Option<Vec<V>>
    where
        V: Clone,
    {
        let content = self.content();
        let known = content.by_parent.get(&(namespace.into(), parent.into()));
        content.was_listed.then(|| {
            known
                .into_iter()
                .flat_map(|known| known.values().cloned())
                .collect()
        })
    }

    /// Where a watch tells what it hears. When it is dropped, nothing is known any more.
    pub(super) fn feed(&self) -> Feed<V> {
        Feed(self.clone())
    }

    fn content(&self) -> MutexGuard<'_, Content<V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one who tells.
pub(super) struct Feed<V>(Named<V>);

impl<V: Hash> Feed<V> {
    /// Tells an event. `of` says which object is named, and what is kept.
    pub(super) fn hear<K: Resource>(&self, event: &Event<K>, of: impl Fn(&K) -> (Option<Box<str>>, V)) {
        let mut content = self.0.content();
        match event {
            Event::Init => content.listing.clear(),
            Event::InitApply(object) => {
                let key = key(object);
                content.listing.insert(key.clone());
                content.put(key, of(object));
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut content.listing);
                let gone = content.parents.keys().filter(|key| !listed.contains(*key));
                for key in gone.cloned().collect::<Vec<Key>>() {
                    content.remove(&key);
                }
                content.was_listed = true;
            }
            Event::Apply(object) => content.put(key(object), of(object)),
            Event::Delete(object) => content.remove(&key(object)),
        }
    }
}

impl<V> Drop for Feed<V> {
    fn drop(&mut self) {
        *self.0.content() = Content::default();
    }
}

impl<V> Content<V> {
    fn put(&mut self, key: Key, (parent, value): (Option<Box<str>>, V)) {
        self.remove(&key);
        let Some(parent) = parent.filter(|parent| !parent.is_empty()) else {
            return;
        };
        let (namespace, name) = key.clone();
        let siblings = self.by_parent.entry((namespace, parent.clone())).or_default();
        siblings.insert(name, value);
        self.parents.insert(key, parent);
    }

    fn remove(&mut self, key: &Key) {
        let Some(parent) = self.parents.remove(key) else {
            return;
        };
        let parent = (key.0.clone(), parent);
        if let Some(siblings) = self.by_parent.get_mut(&parent) {
            siblings.remove(&key.1);
            if siblings.is_empty() {
                self.by_parent.remove(&parent);
            }
        }
    }
}

impl<V> Clone for Named<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V> Default for Named<V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<V> Default for Content<V> {
    fn default() -> Self {
        Self {
            was_listed: false,
            by_parent: HashMap::new(),
            parents: HashMap::new(),
            listing: HashSet::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{Cluster, ClusterSpec, ObjectName};

    fn cluster(name: &str, tenant: &str) -> Cluster {
        let mut cluster = Cluster::new(
            name,
            ClusterSpec {
                tenant_ref: Some(ObjectName {
                    name: tenant.to_owned(),
                }),
                ..ClusterSpec::default()
            },
        );
        cluster.metadata.namespace = Some("n".to_owned());
        cluster
    }

    fn hear(feed: &Feed<String>, event: Event<Cluster>) {
        feed.hear(&event, |cluster| {
            let tenant = cluster.spec.tenant_ref.as_ref();
            let name = cluster.metadata.name.clone().unwrap_or_default();
            (tenant.map(|tenant| tenant.name.as_str().into()), name)
        });
    }

    #[test]
    fn what_names_an_object_is_known_from_the_listing_on_and_no_longer_than_somebody_tells() {
        let named = Named::default();
        let feed = named.feed();
        let of = |tenant: &str| named.of("n", tenant).map(|names| names.join(" "));
        hear(&feed, Event::Init);
        for (name, tenant) in [("b", "one"), ("a", "one"), ("c", "two"), ("d", "")] {
            hear(&feed, Event::InitApply(cluster(name, tenant)));
        }
        assert_eq!(of("one"), None, "not all are known");
        hear(&feed, Event::InitDone);
        assert_eq!(of("one").as_deref(), Some("a b"));
        assert_eq!(of("three").as_deref(), Some(""));
        hear(&feed, Event::Apply(cluster("c", "one")));
        hear(&feed, Event::Delete(cluster("a", "one")));
        assert_eq!(of("one").as_deref(), Some("b c"));
        assert_eq!(of("two").as_deref(), Some(""));
        // A further listing: what is not in it is gone.
        hear(&feed, Event::Init);
        hear(&feed, Event::InitApply(cluster("e", "one")));
        assert_eq!(of("one").as_deref(), Some("b c e"));
        hear(&feed, Event::InitDone);
        assert_eq!(of("one").as_deref(), Some("e"));
        drop(feed);
        assert_eq!(of("one"), None);
    }
}
