//! What the watches of a controller have told, and whose turn it is because of it.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};

use kube::core::ObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use tracing::warn;

/// Namespace and name.
pub(crate) type Key = (Box<str>, Box<str>);

/// A digest of what passes read of an object. While it stays the same, a change of the object is no news: other controllers write
/// what nobody here looks at, and so do our own passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mark(u64);

impl Mark {
    /// Of anything.
    pub(crate) fn of(read: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        read.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// Of all that metadata tells. A kind whose specification is counted has its status written without a change of this; of all
    /// others every change is one.
    pub(crate) fn of_metadata(metadata: &ObjectMeta) -> Self {
        let version = match metadata.generation {
            Some(_) => None,
            None => metadata.resource_version.as_ref(),
        };
        let owners = metadata.owner_references.iter().flatten();
        let owners: Vec<_> = owners.map(|owner| (&owner.uid, owner.controller)).collect();
        Self::of((
            (&metadata.uid, metadata.generation, version),
            (&metadata.labels, &metadata.annotations),
            (&metadata.finalizers, owners),
            metadata.deletion_timestamp.is_some(),
        ))
    }

    /// Of this and more, in JSON.
    pub(crate) fn with(self, more: &impl Serialize) -> Self {
        Self::of((self, serde_json::to_string(more).ok()))
    }
}

/// What is kept of an object that was heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shadow {
    pub(super) key: Key,
    /// The object in the same namespace to which it belongs.
    pub(super) parent: Option<Box<str>>,
    /// What it refers to, if it is one of the controller's own objects.
    pub(super) mentions: Box<[Key]>,
    pub(super) mark: Mark,
}

/// Whom an object concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    /// Itself: it is one of the controller's own.
    Itself,
    /// The object to which it belongs.
    Parent,
    /// That one, and all that mention it.
    Mentioned,
    /// All in its namespace.
    Namespace,
}

/// Something was heard by one of the watches.
pub(super) enum Heard {
    Event(usize, Event<Shadow>),
    /// It was waited long enough.
    Impatience,
}

/// An object is not what it was.
struct News {
    before: Option<Shadow>,
    after: Option<Shadow>,
}

/// What one watch has told.
struct Source {
    concern: Concern,
    known: HashMap<Key, Shadow>,
    /// What the listing under way has told so far.
    listing: HashSet<Key>,
    was_listed: bool,
}

/// What all watches of a controller have told. The first is that of its objects.
pub(super) struct Ledger<O: Resource<DynamicType = ()> + 'static> {
    sources: Vec<Source>,
    /// Which of the controller's own objects mention something.
    mentioned: HashMap<Key, HashSet<Key>>,
    /// Who is woken when all listings are done; none once they are.
    held: Option<HashSet<ObjectRef<O>>>,
}

impl<O> Ledger<O>
where
    O: Resource<DynamicType = ()> + 'static,
{
    pub(super) fn new(concerns: Vec<Concern>) -> Self {
        let source = |concern| Source {
            concern,
            known: HashMap::new(),
            listing: HashSet::new(),
            was_listed: false,
        };
        Self {
            sources: concerns.into_iter().map(source).collect(),
            mentioned: HashMap::new(),
            held: Some(HashSet::new()),
        }
    }

    /// Whose turn it is now.
    pub(super) fn hear(&mut self, heard: Heard) -> Vec<ObjectRef<O>> {
        let Heard::Event(number, event) = heard else {
            if self.held.is_some() {
                warn!("not all that belongs to the objects can be listed: passes begin without");
            }
            return self.open();
        };
        let Some(source) = self.sources.get_mut(number) else {
            return Vec::new();
        };
        let is_done = matches!(event, Event::InitDone);
        // Every object gets its first turn, and nobody another one because of what was there before it.
        let is_first = self.held.is_some() && matches!(event, Event::InitApply(_));
        let concern = source.concern;
        let mut turns = Vec::new();
        for news in source.hear(event) {
            if concern == Concern::Itself {
                self.mention(&news);
            }
            if concern == Concern::Itself || !is_first {
                turns.extend(self.concerned(concern, &news));
            }
        }
        let Some(held) = &mut self.held else {
            return turns;
        };
        held.extend(turns);
        if is_done && self.sources.iter().all(|source| source.was_listed) {
            return self.open();
        }
        Vec::new()
    }

    fn open(&mut self) -> Vec<ObjectRef<O>> {
        self.held.take().into_iter().flatten().collect()
    }

    fn mention(&mut self, news: &News) {
        if let Some(shadow) = &news.before {
            for key in &shadow.mentions {
                if let Some(by) = self.mentioned.get_mut(key) {
                    by.remove(&shadow.key);
                    if by.is_empty() {
                        self.mentioned.remove(key);
                    }
                }
            }
        }
        if let Some(shadow) = &news.after {
            for key in &shadow.mentions {
                let by = self.mentioned.entry(key.clone()).or_default();
                by.insert(shadow.key.clone());
            }
        }
    }

    /// Whom news concern, and whom the object concerned before.
    fn concerned(&self, concern: Concern, news: &News) -> Vec<ObjectRef<O>> {
        let Some(now) = news.after.as_ref().or(news.before.as_ref()) else {
            return Vec::new();
        };
        let mut turns: Vec<ObjectRef<O>> = match concern {
            Concern::Itself => vec![object(&now.key)],
            Concern::Parent => parent(now).into_iter().collect(),
            Concern::Mentioned => {
                let by = self.mentioned.get(&now.key).into_iter().flatten();
                by.map(object).chain(parent(now)).collect()
            }
            Concern::Namespace => {
                let own = self.sources.first().into_iter().flat_map(|own| own.known.keys());
                own.filter(|key| key.0 == now.key.0).map(object).collect()
            }
        };
        if let Some(before) = news.before.as_ref().filter(|before| before.parent != now.parent) {
            turns.extend(parent(before));
        }
        turns
    }
}

impl Source {
    fn hear(&mut self, event: Event<Shadow>) -> Vec<News> {
        match event {
            Event::Init => {
                self.listing.clear();
                Vec::new()
            }
            Event::InitApply(shadow) => {
                self.listing.insert(shadow.key.clone());
                self.note(shadow)
            }
            Event::InitDone => {
                self.was_listed = true;
                let listed = std::mem::take(&mut self.listing);
                let gone = self.known.extract_if(|key, _| !listed.contains(key));
                gone.map(|(_, shadow)| News {
                    before: Some(shadow),
                    after: None,
                })
                .collect()
            }
            Event::Apply(shadow) => self.note(shadow),
            Event::Delete(shadow) => {
                let before = self.known.remove(&shadow.key);
                vec![News {
                    before: before.or(Some(shadow)),
                    after: None,
                }]
            }
        }
    }

    fn note(&mut self, shadow: Shadow) -> Vec<News> {
        let before = self.known.insert(shadow.key.clone(), shadow.clone());
        if before.as_ref() == Some(&shadow) {
            return Vec::new();
        }
        vec![News {
            before,
            after: Some(shadow),
        }]
    }
}

/// Namespace and name of an object.
pub(super) fn key(object: &impl Resource) -> Key {
    (
        object.namespace().unwrap_or_default().into(),
        object.meta().name.as_deref().unwrap_or_default().into(),
    )
}

fn object<O: Resource<DynamicType = ()>>(key: &Key) -> ObjectRef<O> {
    ObjectRef::new(&key.1).within(&key.0)
}

fn parent<O: Resource<DynamicType = ()>>(shadow: &Shadow) -> Option<ObjectRef<O>> {
    let name = shadow.parent.as_deref().filter(|name| !name.is_empty())?;
    Some(ObjectRef::new(name).within(&shadow.key.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Tenant;

    fn shadow(name: &str, mark: &str, parent: Option<&str>) -> Shadow {
        Shadow {
            key: ("n".into(), name.into()),
            parent: parent.map(Into::into),
            mentions: Box::default(),
            mark: Mark::of(mark),
        }
    }

    fn mentioning(name: &str, mentioned: &str) -> Shadow {
        Shadow {
            mentions: [("n".into(), mentioned.into())].into(),
            ..shadow(name, mentioned, None)
        }
    }

    /// A ledger of tenants and of what they own.
    fn ledger() -> Ledger<Tenant> {
        Ledger::new(vec![Concern::Itself, Concern::Parent])
    }

    fn tell(ledger: &mut Ledger<Tenant>, source: usize, event: Event<Shadow>) -> Vec<String> {
        let mut turns: Vec<String> = ledger
            .hear(Heard::Event(source, event))
            .into_iter()
            .map(|turn| turn.name)
            .collect();
        turns.sort();
        turns
    }

    fn list(ledger: &mut Ledger<Tenant>, source: usize, listed: &[Shadow]) -> Vec<String> {
        let mut turns = tell(ledger, source, Event::Init);
        for shadow in listed {
            turns.extend(tell(ledger, source, Event::InitApply(shadow.clone())));
        }
        turns.extend(tell(ledger, source, Event::InitDone));
        turns
    }

    #[test]
    fn every_object_gets_one_turn_when_all_is_listed() {
        let mut ledger = ledger();
        let (one, two) = (shadow("one", "1", None), shadow("two", "2", None));
        assert!(list(&mut ledger, 0, &[one, two]).is_empty());
        assert!(tell(&mut ledger, 0, Event::Apply(shadow("one", "3", None))).is_empty());
        let child = shadow("child", "4", Some("one"));
        assert_eq!(list(&mut ledger, 1, std::slice::from_ref(&child)), ["one", "two"]);
        assert_eq!(tell(&mut ledger, 1, Event::Delete(child)), ["one"]);
    }

    #[test]
    fn a_further_listing_tells_only_what_differs() {
        let mut ledger = ledger();
        let (one, two) = (shadow("one", "1", None), shadow("two", "2", None));
        let (a, b) = (shadow("a", "3", Some("one")), shadow("b", "4", Some("two")));
        list(&mut ledger, 0, &[one.clone(), two.clone()]);
        list(&mut ledger, 1, &[a.clone(), b.clone()]);
        assert!(list(&mut ledger, 0, &[one, two]).is_empty());
        assert!(list(&mut ledger, 1, &[a, b]).is_empty());
        assert_eq!(
            list(&mut ledger, 1, &[shadow("a", "5", Some("one"))]),
            ["one", "two"]
        );
        // Moved from one to another: both are told.
        let moved = shadow("a", "6", Some("two"));
        assert_eq!(tell(&mut ledger, 1, Event::Apply(moved)), ["one", "two"]);
        assert_eq!(list(&mut ledger, 0, &[shadow("two", "7", None)]), ["two", "one"]);
    }

    #[test]
    fn a_listing_that_never_comes_holds_nobody_for_good() {
        let mut ledger = ledger();
        list(&mut ledger, 0, &[shadow("one", "1", None)]);
        assert_eq!(ledger.hear(Heard::Impatience).len(), 1);
        // When it comes after all, it tells what nobody knew.
        assert_eq!(list(&mut ledger, 1, &[shadow("a", "3", Some("one"))]), ["one"]);
        assert!(ledger.hear(Heard::Impatience).is_empty());
    }

    #[test]
    fn what_is_mentioned_reaches_those_that_mention_it_now() {
        let mut ledger: Ledger<Tenant> = Ledger::new(vec![Concern::Itself, Concern::Mentioned]);
        list(&mut ledger, 0, &[mentioning("one", "a"), mentioning("two", "a")]);
        list(&mut ledger, 1, &[shadow("a", "1", None), shadow("b", "1", None)]);
        let changed = |name: &str, mark: &str| Event::Apply(shadow(name, mark, None));
        assert_eq!(tell(&mut ledger, 1, changed("a", "2")), ["one", "two"]);
        assert!(
            tell(&mut ledger, 1, changed("a", "2")).is_empty(),
            "nothing that is read"
        );
        assert!(tell(&mut ledger, 1, changed("b", "2")).is_empty());
        assert_eq!(
            tell(&mut ledger, 0, Event::Apply(mentioning("two", "b"))),
            ["two"]
        );
        assert_eq!(tell(&mut ledger, 1, changed("b", "3")), ["two"]);
        assert_eq!(tell(&mut ledger, 1, changed("a", "3")), ["one"]);
        assert_eq!(
            tell(&mut ledger, 0, Event::Delete(mentioning("one", "a"))),
            ["one"]
        );
        assert!(tell(&mut ledger, 1, changed("a", "4")).is_empty());
    }

    #[test]
    fn what_is_of_a_namespace_reaches_all_in_it() {
        let mut ledger: Ledger<Tenant> = Ledger::new(vec![Concern::Itself, Concern::Namespace]);
        let elsewhere = Shadow {
            key: ("m".into(), "three".into()),
            ..shadow("three", "1", None)
        };
        list(
            &mut ledger,
            0,
            &[shadow("one", "1", None), shadow("two", "1", None), elsewhere],
        );
        list(&mut ledger, 1, &[]);
        let template = Event::Apply(shadow("default", "1", None));
        assert_eq!(tell(&mut ledger, 1, template), ["one", "two"]);
    }

    #[test]
    fn the_status_of_a_counted_kind_is_no_part_of_its_mark() {
        let metadata = |generation, version: &str| ObjectMeta {
            generation,
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        };
        let mark = |generation, version| Mark::of_metadata(&metadata(generation, version));
        assert_eq!(mark(Some(1), "1"), mark(Some(1), "2"));
        assert_ne!(mark(Some(1), "1"), mark(Some(2), "1"));
        assert_ne!(mark(None, "1"), mark(None, "2"));
        let labelled = ObjectMeta {
            labels: Some([("a".to_owned(), "b".to_owned())].into()),
            ..metadata(Some(1), "1")
        };
        assert_ne!(Mark::of_metadata(&labelled), mark(Some(1), "1"));
    }
}
