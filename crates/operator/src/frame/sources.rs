//! What a controller hears of: its objects, and what belongs to them or concerns them.
//!
//! Passes read everything anew, so that whatever happened before a pass is known to it. That is why a first listing of what belongs
//! to the objects wakes nobody: no pass begins before all listings are done, and every object gets one then. And when a watch was
//! cut off and everything is listed again, only what differs from before wakes somebody, also what is gone.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{BoxStream, select_all};
use futures::{Stream, StreamExt as _, future, stream};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource, ResourceExt as _};
use tracing::{debug, warn};

use super::access::Readable;
use super::watch::Scope;

/// How many objects one page of a listing has: all of them are in memory at once, with all that nobody keeps.
const PAGE: u32 = 100;

/// How long passes wait for the listings of what belongs to the objects. One that cannot be had must not stop the others.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is kept of an object that was heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shadow {
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
    /// The object in the same namespace to which it belongs.
    pub(crate) parent: Option<Box<str>>,
    version: Box<str>,
}

/// Whom an object concerns.
type Concern<O> = Box<dyn Fn(&Shadow) -> Vec<ObjectRef<O>> + Send>;

/// Something was heard by one of the watches.
enum Heard {
    Event(usize, Event<Shadow>),
    /// It was waited long enough.
    Impatience,
}

/// All watches of one controller.
pub(crate) struct Sources<O>
where
    O: Readable + 'static,
{
    scope: Scope,
    client: Client,
    store: Store<O>,
    concerns: Vec<Concern<O>>,
    watches: Vec<BoxStream<'static, Heard>>,
}

impl<O> Sources<O>
where
    O: Readable + Send + Sync + 'static,
{
    /// The objects themselves. `trim` takes away what nobody looks up in the store.
    pub(crate) fn new(scope: Scope, client: Client, trim: fn(&mut O)) -> Self {
        let (store, writer) = reflector::store();
        let watch = watcher(scope.api::<O>(client.clone()), config()).default_backoff();
        let watch = watch.map(move |event| {
            event.map(|event| {
                event.modify(|object| {
                    object.meta_mut().managed_fields = None;
                    trim(object);
                })
            })
        });
        let watch = reflector::reflector(writer, watch);
        let sources = Self {
            scope,
            client,
            store,
            concerns: Vec::new(),
            watches: Vec::new(),
        };
        sources.source(watch, |_| None, same)
    }

    /// The objects, as far as they are kept.
    pub(crate) fn store(&self) -> Store<O> {
        self.store.clone()
    }

    /// Objects of another kind which the objects own.
    pub(crate) fn owns<K>(self) -> Self
    where
        K: Readable + Send + Sync + 'static,
    {
        self.hears_names::<K>(owner::<O>, |shadow| parent(shadow).into_iter().collect())
    }

    /// Objects of another kind of which only the metadata matters. `concern` may look at `parent`, which is the owner among the
    /// objects if there is one.
    pub(crate) fn watches<K>(self, concern: impl Fn(&Shadow) -> Vec<ObjectRef<O>> + Send + 'static) -> Self
    where
        K: Readable + Send + Sync + 'static,
    {
        self.hears_names::<K>(owner::<O>, concern)
    }

    /// Objects of another kind that name one of the objects.
    pub(crate) fn named_by<K>(self, names: fn(&K) -> Option<&str>) -> Self
    where
        K: Readable + Send + Sync + 'static,
    {
        let watch = watcher(self.scope.api::<K>(self.client.clone()), config()).default_backoff();
        self.source(
            watch,
            move |object| names(object).map(Into::into),
            |shadow| parent(shadow).into_iter().collect(),
        )
    }

    fn hears_names<K>(
        self,
        of: fn(&PartialObjectMeta<K>) -> Option<Box<str>>,
        concern: impl Fn(&Shadow) -> Vec<ObjectRef<O>> + Send + 'static,
    ) -> Self
    where
        K: Readable + Send + Sync + 'static,
    {
        let watch = watcher(self.scope.metadata::<K>(self.client.clone()), config()).default_backoff();
        self.source(watch, of, concern)
    }

    fn source<K>(
        mut self,
        watch: impl Stream<Item = Result<Event<K>, watcher::Error>> + Send + 'static,
        parent: impl Fn(&K) -> Option<Box<str>> + Send + 'static,
        concern: impl Fn(&Shadow) -> Vec<ObjectRef<O>> + Send + 'static,
    ) -> Self
    where
        K: Resource<DynamicType = ()> + Send + 'static,
    {
        let number = self.watches.len();
        let heard = watch.filter_map(move |event| {
            future::ready(match event {
                Ok(event) => Some(Heard::Event(number, shadow_of(event, &parent))),
                Err(error) => {
                    debug!(kind = %K::kind(&()), %error, "a watch was interrupted");
                    None
                }
            })
        });
        self.watches.push(heard.boxed());
        self.concerns.push(Box::new(concern));
        self
    }

    /// Whose turn it is, for as long as somebody listens.
    pub(crate) fn turns(mut self) -> impl Stream<Item = ObjectRef<O>> + Send + 'static {
        let patience = stream::once(async {
            evenkeel_telemetry::time::sleep(PATIENCE).await;
            Heard::Impatience
        });
        self.watches.push(patience.boxed());
        let mut ledger = Ledger::new(self.concerns);
        select_all(self.watches).flat_map(move |heard| stream::iter(ledger.hear(heard)))
    }
}

fn config() -> watcher::Config {
    watcher::Config::default().page_size(PAGE)
}

fn shadow_of<K>(event: Event<K>, parent: &impl Fn(&K) -> Option<Box<str>>) -> Event<Shadow>
where
    K: Resource<DynamicType = ()>,
{
    let shadow = |object: K| Shadow {
        namespace: object.namespace().unwrap_or_default().into(),
        name: object.name_any().into(),
        parent: parent(&object),
        version: object.resource_version().unwrap_or_default().into(),
    };
    match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(object) => Event::InitApply(shadow(object)),
        Event::Apply(object) => Event::Apply(shadow(object)),
        Event::Delete(object) => Event::Delete(shadow(object)),
    }
}

/// The controlling owner of something, if it is of kind `O`.
fn owner<O: Resource<DynamicType = ()>>(object: &impl Resource) -> Option<Box<str>> {
    let owners = object.meta().owner_references.as_deref().unwrap_or_default();
    let owner = owners.iter().find(|owner| {
        owner.controller == Some(true)
            && owner.kind == O::kind(&())
            && owner.api_version == O::api_version(&())
    })?;
    Some(owner.name.as_str().into())
}

fn parent<O: Resource<DynamicType = ()>>(shadow: &Shadow) -> Option<ObjectRef<O>> {
    let name = shadow.parent.as_deref().filter(|name| !name.is_empty())?;
    Some(ObjectRef::new(name).within(&shadow.namespace))
}

fn same<O: Resource<DynamicType = ()>>(shadow: &Shadow) -> Vec<ObjectRef<O>> {
    vec![ObjectRef::new(&shadow.name).within(&shadow.namespace)]
}

/// The objects in `store` that something concerns.
pub(crate) fn concerned<O>(store: &Store<O>, is: impl Fn(&O) -> bool) -> Vec<ObjectRef<O>>
where
    O: Resource<DynamicType = ()> + Clone + 'static,
{
    let concerned: Vec<Arc<O>> = store.state_filter(is);
    concerned
        .iter()
        .map(|object| ObjectRef::from_obj(&**object))
        .collect()
}

type Key = (Box<str>, Box<str>);

/// What one watch has told.
struct Source<O: Resource<DynamicType = ()> + 'static> {
    concern: Concern<O>,
    known: HashMap<Key, Shadow>,
    /// What the listing under way has told so far.
    listing: HashSet<Key>,
    was_listed: bool,
}

/// What all watches of a controller have told. The first is that of its objects.
struct Ledger<O: Resource<DynamicType = ()> + 'static> {
    sources: Vec<Source<O>>,
    /// Who is woken when all listings are done; none once they are.
    held: Option<HashSet<ObjectRef<O>>>,
}

impl<O> Ledger<O>
where
    O: Resource<DynamicType = ()> + 'static,
{
    fn new(concerns: Vec<Concern<O>>) -> Self {
        let source = |concern| Source {
            concern,
            known: HashMap::new(),
            listing: HashSet::new(),
            was_listed: false,
        };
        Self {
            sources: concerns.into_iter().map(source).collect(),
            held: Some(HashSet::new()),
        }
    }

    /// Whose turn it is now.
    fn hear(&mut self, heard: Heard) -> Vec<ObjectRef<O>> {
        let Heard::Event(number, event) = heard else {
            if self.held.is_some() {
                warn!("not all that belongs to the objects can be listed: passes begin without");
            }
            return self.open();
        };
        let is_waiting = self.held.is_some();
        let Some(source) = self.sources.get_mut(number) else {
            return Vec::new();
        };
        let is_done = matches!(event, Event::InitDone);
        // Every object gets its first turn.
        let tells_news = number == 0 || !is_waiting || !matches!(event, Event::InitApply(_));
        let turns = source.hear(event);
        match &mut self.held {
            None => turns,
            Some(held) => {
                if tells_news {
                    held.extend(turns);
                }
                if is_done && self.sources.iter().all(|source| source.was_listed) {
                    return self.open();
                }
                Vec::new()
            }
        }
    }

    fn open(&mut self) -> Vec<ObjectRef<O>> {
        self.held.take().into_iter().flatten().collect()
    }
}

impl<O> Source<O>
where
    O: Resource<DynamicType = ()> + 'static,
{
    fn hear(&mut self, event: Event<Shadow>) -> Vec<ObjectRef<O>> {
        match event {
            Event::Init => {
                self.listing.clear();
                Vec::new()
            }
            Event::InitApply(shadow) => {
                self.listing.insert(key(&shadow));
                self.note(shadow)
            }
            Event::InitDone => {
                self.was_listed = true;
                let listed = std::mem::take(&mut self.listing);
                let gone = self.known.extract_if(|key, _| !listed.contains(key));
                let gone: Vec<Shadow> = gone.map(|(_, shadow)| shadow).collect();
                gone.iter().flat_map(|shadow| (self.concern)(shadow)).collect()
            }
            Event::Apply(shadow) => self.note(shadow),
            Event::Delete(shadow) => {
                let before = self.known.remove(&key(&shadow));
                self.concerned(before.as_ref(), &shadow)
            }
        }
    }

    fn note(&mut self, shadow: Shadow) -> Vec<ObjectRef<O>> {
        let before = self.known.insert(key(&shadow), shadow.clone());
        if before.as_ref() == Some(&shadow) {
            return Vec::new();
        }
        self.concerned(before.as_ref(), &shadow)
    }

    /// Whom it concerns, and whom it concerned before.
    fn concerned(&self, before: Option<&Shadow>, shadow: &Shadow) -> Vec<ObjectRef<O>> {
        let mut concerned = (self.concern)(shadow);
        if let Some(before) = before.filter(|before| before.parent != shadow.parent) {
            concerned.extend((self.concern)(before));
        }
        concerned
    }
}

fn key(shadow: &Shadow) -> Key {
    (shadow.namespace.clone(), shadow.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Tenant;

    fn shadow(name: &str, version: &str, parent: Option<&str>) -> Shadow {
        Shadow {
            namespace: "n".into(),
            name: name.into(),
            parent: parent.map(Into::into),
            version: version.into(),
        }
    }

    /// A ledger of tenants and of what they own.
    fn ledger() -> Ledger<Tenant> {
        Ledger::new(vec![
            Box::new(same),
            Box::new(|shadow| parent(shadow).into_iter().collect()),
        ])
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
}
