//! Lists and maps: shared by all who hold them, mutable, with their Go type.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use super::types::{LIST_ANY, LIST_STR, ListClass, MAP_ANY, MapClass};
use super::{Str, Value};

/// Entries of a map in byte order of their keys, the order of `range`, `%v` and JSON.
pub type Entries = BTreeMap<Str, Value>;

/// A Go slice. Clones share the elements; a nil slice has none and prints as `[]`, but is `null` in JSON and YAML.
#[derive(Clone)]
pub struct List {
    class: &'static ListClass,
    items: Option<Rc<Items>>,
}

struct Items(RefCell<Vec<Value>>);

impl List {
    /// A slice of the given type.
    pub fn new(class: &'static ListClass, items: Vec<Value>) -> Self {
        Self {
            class,
            items: Some(Rc::new(Items(RefCell::new(items)))),
        }
    }

    /// `[]interface {}`
    pub fn any(items: Vec<Value>) -> Self {
        Self::new(&LIST_ANY, items)
    }

    /// `[]string`
    pub fn strings(items: impl IntoIterator<Item = Str>) -> Self {
        Self::new(&LIST_STR, items.into_iter().map(Value::Str).collect())
    }

    /// A nil slice of the given type.
    pub const fn nil(class: &'static ListClass) -> Self {
        Self { class, items: None }
    }

    /// The Go type.
    pub const fn class(&self) -> &'static ListClass {
        self.class
    }

    /// The same elements seen as another type of the same shape.
    pub fn with_class(&self, class: &'static ListClass) -> Self {
        Self {
            class,
            items: self.items.clone(),
        }
    }

    /// Whether this is a nil slice.
    pub const fn is_nil(&self) -> bool {
        self.items.is_none()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.items.as_ref().map_or(0, |items| items.0.borrow().len())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at an index.
    pub fn get(&self, index: usize) -> Option<Value> {
        self.items.as_ref()?.0.borrow().get(index).cloned()
    }

    /// A copy of the elements.
    pub fn to_vec(&self) -> Vec<Value> {
        self.items
            .as_ref()
            .map_or_else(Vec::new, |items| items.0.borrow().clone())
    }

    /// Calls `f` with the elements.
    pub fn with<R>(&self, f: impl FnOnce(&[Value]) -> R) -> R {
        match &self.items {
            Some(items) => f(&items.0.borrow()),
            None => f(&[]),
        }
    }

    /// Changes the elements in place, visible to all who share the slice. Does nothing to a nil slice.
    pub fn update(&self, f: impl FnOnce(&mut [Value])) {
        if let Some(items) = &self.items {
            f(&mut items.0.borrow_mut());
        }
    }

    /// Whether both are the same slice in memory.
    pub fn same(&self, other: &Self) -> bool {
        match (&self.items, &other.items) {
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }
}

impl FromIterator<Value> for List {
    fn from_iter<T: IntoIterator<Item = Value>>(iter: T) -> Self {
        Self::any(iter.into_iter().collect())
    }
}

/// A Go map with string keys. Clones share the entries: `set` through one is seen through all.
#[derive(Clone)]
pub struct Map {
    class: &'static MapClass,
    entries: Option<Rc<Fields>>,
}

struct Fields(RefCell<Entries>);

impl Map {
    /// A map of the given type.
    pub fn new(class: &'static MapClass, entries: Entries) -> Self {
        Self {
            class,
            entries: Some(Rc::new(Fields(RefCell::new(entries)))),
        }
    }

    /// An empty `map[string]interface {}`.
    pub fn any() -> Self {
        Self::new(&MAP_ANY, Entries::new())
    }

    /// A nil map of the given type: reads as empty, cannot be written.
    pub const fn nil(class: &'static MapClass) -> Self {
        Self { class, entries: None }
    }

    /// The Go type.
    pub const fn class(&self) -> &'static MapClass {
        self.class
    }

    /// The same entries seen as another type of the same shape, as a Go conversion does: both share the entries.
    pub fn with_class(&self, class: &'static MapClass) -> Self {
        Self {
            class,
            entries: self.entries.clone(),
        }
    }

    /// Whether this is a nil map.
    pub const fn is_nil(&self) -> bool {
        self.entries.is_none()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries
            .as_ref()
            .map_or(0, |entries| entries.0.borrow().len())
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<Value> {
        self.entries.as_ref()?.0.borrow().get(key.as_ref()).cloned()
    }

    /// Whether the key is there, whatever its value.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.entries
            .as_ref()
            .is_some_and(|entries| entries.0.borrow().contains_key(key.as_ref()))
    }

    /// Sets a key. Returns false and does nothing on a nil map.
    pub fn insert(&self, key: impl Into<Str>, value: impl Into<Value>) -> bool {
        match &self.entries {
            Some(entries) => {
                let old = entries.0.borrow_mut().insert(key.into(), value.into());
                drop(old);
                true
            }
            None => false,
        }
    }

    /// Removes a key.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Option<Value> {
        self.entries.as_ref()?.0.borrow_mut().remove(key.as_ref())
    }

    /// A copy of the entries in byte order of the keys.
    pub fn to_vec(&self) -> Vec<(Str, Value)> {
        match self.borrow() {
            Some(entries) => entries
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            None => Vec::new(),
        }
    }

    /// The entries for reading; none for a nil map. Do not hold it across a call that may change the map.
    pub fn borrow(&self) -> Option<Ref<'_, Entries>> {
        self.entries.as_ref().map(|entries| entries.0.borrow())
    }

    /// The entries for writing; none for a nil map. Do not hold it across a call that may read the map.
    pub fn borrow_mut(&self) -> Option<RefMut<'_, Entries>> {
        self.entries.as_ref().map(|entries| entries.0.borrow_mut())
    }

    /// Whether both are the same map in memory.
    pub fn same(&self, other: &Self) -> bool {
        match (&self.entries, &other.entries) {
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }
}

impl FromIterator<(Str, Value)> for Map {
    fn from_iter<T: IntoIterator<Item = (Str, Value)>>(iter: T) -> Self {
        Self::new(&MAP_ANY, iter.into_iter().collect())
    }
}

/// Frees nested containers without recursion: a template may build a list a million levels deep, and the stack
/// of the thread that drops it must not decide whether the process survives.
fn free(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::List(List {
                items: Some(items), ..
            }) => {
                if let Ok(items) = Rc::try_unwrap(items) {
                    pending.append(&mut items.0.borrow_mut());
                }
            }
            Value::Map(Map {
                entries: Some(entries),
                ..
            }) => {
                if let Ok(entries) = Rc::try_unwrap(entries) {
                    pending.extend(std::mem::take(&mut *entries.0.borrow_mut()).into_values());
                }
            }
            _ => {}
        }
    }
}

fn holds_container(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Map(_))
}

impl Drop for Items {
    fn drop(&mut self) {
        let items = self.0.get_mut();
        if items.iter().any(holds_container) {
            free(std::mem::take(items));
        }
    }
}

impl Drop for Fields {
    fn drop(&mut self) {
        let entries = self.0.get_mut();
        if entries.values().any(holds_container) {
            free(std::mem::take(entries).into_values().collect());
        }
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(len {})", self.class.name, self.len())
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(len {})", self.class.name, self.len())
    }
}
