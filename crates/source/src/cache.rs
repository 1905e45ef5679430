//! Values shared by all who need them, and bounded.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard};

/// A bounded map from a key to a shared value; the least recently used one makes room.
#[derive(Debug)]
pub struct Cache<K, V> {
    inner: Mutex<Inner<K, V>>,
    capacity: usize,
}

#[derive(Debug)]
struct Inner<K, V> {
    values: HashMap<K, (u64, Arc<V>)>,
    by_use: BTreeMap<u64, K>,
    clock: u64,
}

impl<K: Clone + Eq + Hash, V> Cache<K, V> {
    /// A map of at most `capacity` values.
    pub fn new(capacity: usize) -> Self {
        let inner = Inner {
            values: HashMap::new(),
            by_use: BTreeMap::new(),
            clock: 0,
        };
        Self {
            inner: Mutex::new(inner),
            capacity,
        }
    }

    /// The value of a key, which counts as used.
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        let mut inner = self.lock();
        let value = Arc::clone(&inner.values.get(key)?.1);
        inner.touch(key.clone(), Arc::clone(&value));
        Some(value)
    }

    /// Keeps `value`, unless another thread was first: then that one is kept and returned, so that all share it.
    pub fn insert(&self, key: K, value: Arc<V>) -> Arc<V> {
        let mut inner = self.lock();
        let value = inner.values.get(&key).map_or(value, |(_, kept)| Arc::clone(kept));
        inner.touch(key, Arc::clone(&value));
        while inner.values.len() > self.capacity {
            match inner.by_use.pop_first() {
                Some((_, oldest)) => inner.values.remove(&oldest),
                None => break,
            };
        }
        value
    }

    /// Forgets a value.
    pub fn remove(&self, key: &K) {
        let mut inner = self.lock();
        if let Some((used, _)) = inner.values.remove(key) {
            inner.by_use.remove(&used);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<K, V>> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<K: Clone + Eq + Hash, V> Inner<K, V> {
    fn touch(&mut self, key: K, value: Arc<V>) {
        self.clock += 1;
        if let Some((used, _)) = self.values.insert(key.clone(), (self.clock, value)) {
            self.by_use.remove(&used);
        }
        self.by_use.insert(self.clock, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_makes_room() {
        let cache = Cache::new(2);
        cache.insert("a", Arc::new(1));
        cache.insert("b", Arc::new(2));
        assert!(cache.get(&"a").is_some());
        cache.insert("c", Arc::new(3));
        assert!(cache.get(&"b").is_none());
        assert!(cache.get(&"a").is_some() && cache.get(&"c").is_some());
    }

    #[test]
    fn the_first_value_of_a_key_is_shared() {
        let cache = Cache::new(2);
        cache.insert("a", Arc::new(1));
        assert_eq!(*cache.insert("a", Arc::new(2)), 1);
    }
}
