//! What a controller hears of: its objects, and what belongs to them or concerns them.
//!
//! Passes read everything anew, so that whatever happened before a pass is known to it. That is why a first listing of what belongs
//! to the objects wakes nobody: no pass begins before all listings are done, and every object gets one then. And when a watch was
//! cut off and everything is listed again, only what differs from before wakes somebody, also what is gone.
//!
//! A change wakes somebody only when passes read what changed ([`Mark`]), and all that happens within a moment makes one turn
//! ([`MOMENT`]): a pass that writes ten things is followed by one that checks them, not by ten.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::Duration;

use evenkeel_telemetry::time;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, SelectAll, select_all};
use futures::{Stream, StreamExt as _, future, stream};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource};
use tracing::debug;

use super::access::Readable;
use super::kind::Kind;
use super::ledger::{Concern, Heard, Ledger, Mark, Shadow, key};
use super::named::Named;
use super::watch::Scope;

/// How many objects one page of a listing has: all of them are in memory at once, with all that nobody keeps.
const PAGE: u32 = 100;

/// How long passes wait for the listings of what belongs to the objects. One that cannot be had must not stop the others.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is heard within so long of the first thing that wakes somebody makes one turn of each object, however much it is.
const MOMENT: Duration = Duration::from_millis(50);

/// All watches of one controller.
pub(crate) struct Sources<O>
where
    O: Readable + 'static,
{
    scope: Scope,
    client: Client,
    store: Store<O>,
    concerns: Vec<Concern>,
    watches: Vec<BoxStream<'static, Heard>>,
}

impl<O> Sources<O>
where
    O: Readable + Send + Sync + 'static,
{
    /// The objects of a kind themselves.
    pub(crate) fn new<K: Kind<Object = O>>(scope: Scope, client: Client) -> Self {
        let (store, mut writer) = reflector::store();
        let watch = watcher(scope.api::<O>(client.clone()), config()).default_backoff();
        let sources = Self {
            scope,
            client,
            store,
            concerns: Vec::new(),
            watches: Vec::new(),
        };
        sources.source(watch, Concern::Itself, move |event| {
            let shadows = shadows(&event, |object| Shadow {
                key: key(object),
                parent: None,
                mentions: K::mentions(object).into(),
                mark: K::mark(object),
            });
            let kept = event.modify(|object| {
                object.meta_mut().managed_fields = None;
                K::trim(object);
            });
            writer.apply_watcher_event(&kept);
            shadows
        })
    }

    /// The objects, as far as they are kept.
    pub(crate) fn store(&self) -> Store<O> {
        self.store.clone()
    }

    /// Objects of another kind which the objects own, and of which only the metadata is read.
    pub(crate) fn owns<K>(self) -> Self
    where
        K: Readable + Send + Sync + 'static,
    {
        self.hears_metadata::<K>(Concern::Parent)
    }

    /// Objects of another kind which the objects own. Of them `read` is looked at, and who owns them.
    pub(crate) fn owns_and_reads<K, R>(self, read: fn(&K) -> R) -> Self
    where
        K: Readable + Send + Sync + 'static,
        R: Hash + 'static,
    {
        let watch = watcher(self.scope.api::<K>(self.client.clone()), config()).default_backoff();
        self.source(watch, Concern::Parent, move |event| {
            shadows(&event, |object| Shadow {
                key: key(object),
                parent: owner::<O>(object),
                mentions: Box::default(),
                mark: Mark::of(read(object)),
            })
        })
    }

    /// Objects of another kind which the objects mention. Those that they own concern them as well.
    pub(crate) fn mentions<K>(self) -> Self
    where
        K: Readable + Send + Sync + 'static,
    {
        self.hears_metadata::<K>(Concern::Mentioned)
    }

    /// Objects of another kind that concern all objects in their namespace.
    pub(crate) fn shares<K>(self) -> Self
    where
        K: Readable + Send + Sync + 'static,
    {
        self.hears_metadata::<K>(Concern::Namespace)
    }

    /// Objects of another kind that name one of the objects. What `view` makes of them is kept in `named`, and nothing else of them
    /// matters.
    pub(crate) fn named_by<K, V>(
        self,
        named: &Named<V>,
        names: fn(&K) -> Option<&str>,
        view: fn(&K) -> V,
    ) -> Self
    where
        K: Readable + Send + Sync + 'static,
        V: Hash + Send + 'static,
    {
        let watch = watcher(self.scope.api::<K>(self.client.clone()), config()).default_backoff();
        let feed = named.feed();
        self.source(watch, Concern::Parent, move |event| {
            // Before anybody is woken because of it.
            feed.hear(&event, |object| (names(object).map(Into::into), view(object)));
            shadows(&event, |object| Shadow {
                key: key(object),
                parent: names(object).map(Into::into),
                mentions: Box::default(),
                mark: Mark::of(view(object)),
            })
        })
    }

    fn hears_metadata<K>(self, concern: Concern) -> Self
    where
        K: Readable + Send + Sync + 'static,
    {
        let watch = watcher(self.scope.metadata::<K>(self.client.clone()), config()).default_backoff();
        self.source(watch, concern, |event: Event<PartialObjectMeta<K>>| {
            shadows(&event, |object| Shadow {
                key: key(object),
                parent: owner::<O>(object),
                mentions: Box::default(),
                mark: Mark::of_metadata(object.meta()),
            })
        })
    }

    fn source<K>(
        mut self,
        watch: impl Stream<Item = Result<Event<K>, watcher::Error>> + Send + 'static,
        concern: Concern,
        mut heard: impl FnMut(Event<K>) -> Event<Shadow> + Send + 'static,
    ) -> Self
    where
        K: Resource<DynamicType = ()> + Send + 'static,
    {
        let number = self.watches.len();
        let heard = watch.filter_map(move |event| {
            future::ready(match event {
                Ok(event) => Some(Heard::Event(number, heard(event))),
                Err(error) => {
                    debug!(kind = %K::kind(&()), %error, "a watch was interrupted");
                    None
                }
            })
        });
        self.watches.push(heard.boxed());
        self.concerns.push(concern);
        self
    }

    /// Whose turn it is, for as long as somebody listens.
    pub(crate) fn turns(mut self) -> impl Stream<Item = ObjectRef<O>> + Send + 'static {
        let patience = stream::once(async {
            time::sleep(PATIENCE).await;
            Heard::Impatience
        });
        self.watches.push(patience.boxed());
        let rounds = Rounds {
            heard: select_all(self.watches),
            ledger: Ledger::new(self.concerns),
            due: HashSet::new(),
            moment: None,
        };
        stream::unfold(rounds, async |mut rounds| {
            let due = rounds.next().await?;
            Some((stream::iter(due), rounds))
        })
        .flatten()
    }
}

/// Gathers what is heard within a moment.
struct Rounds<O: Readable + 'static> {
    heard: SelectAll<BoxStream<'static, Heard>>,
    ledger: Ledger<O>,
    due: HashSet<ObjectRef<O>>,
    /// The end of the moment; none while nobody is due.
    moment: Option<BoxFuture<'static, ()>>,
}

impl<O: Readable + 'static> Rounds<O> {
    /// Whose turn it is next; none when nothing will be heard any more.
    async fn next(&mut self) -> Option<HashSet<ObjectRef<O>>> {
        loop {
            let moment = async {
                match &mut self.moment {
                    Some(moment) => moment.await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                () = moment => {
                    self.moment = None;
                    return Some(std::mem::take(&mut self.due));
                }
                heard = self.heard.next() => {
                    let Some(heard) = heard else {
                        self.moment = None;
                        let due = std::mem::take(&mut self.due);
                        return (!due.is_empty()).then_some(due);
                    };
                    self.due.extend(self.ledger.hear(heard));
                    if !self.due.is_empty() && self.moment.is_none() {
                        self.moment = Some(time::sleep(MOMENT));
                    }
                }
            }
        }
    }
}

fn config() -> watcher::Config {
    watcher::Config::default().page_size(PAGE)
}

fn shadows<K>(event: &Event<K>, shadow: impl Fn(&K) -> Shadow) -> Event<Shadow> {
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
