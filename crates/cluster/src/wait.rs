//! Waiting until objects are ready, or gone: driven by watches, never by asking again and again.

pub(crate) mod absence;
mod backends;
pub(crate) mod completion;
pub(crate) mod diagnosis;
mod surroundings;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_core::{GroupKind, ObjectRef};
use futures::stream::{FuturesUnordered, TryStreamExt as _};
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::applyset::labels::PART_OF;
use crate::connection::{WatchEvent, WatchStream};
use crate::discovery::Resource;
use crate::objects::Selection;
use crate::progress::{Event, Observer};
use crate::readiness::{ObjectState, Patience, Readiness, ReadinessRules, Surroundings, webhooks};
use crate::session::Session;
use crate::{Cluster, Error, ErrorClass};

use backends::Backends;

/// How long a custom resource may say nothing before it is taken as it is.
const GRACE: Duration = Duration::from_secs(5);
/// Between two lists of one kind, when watches end at once each time.
pub(crate) const RELIST_INTERVAL: Duration = Duration::from_secs(1);

/// How readiness is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitOptions {
    /// How long the objects may take altogether.
    pub timeout: Duration,
}

/// One object that is waited for.
#[derive(Clone, Debug)]
struct Awaited {
    object: ObjectRef,
    uid: String,
}

/// What is known of every awaited object.
struct Board {
    states: Mutex<BTreeMap<ObjectRef, Known>>,
    /// What kept the cluster from being asked, while it does.
    outage: Mutex<Option<Error>>,
    observer: Observer,
    rules: ReadinessRules,
}

#[derive(Clone, Debug)]
struct Known {
    readiness: Readiness,
    resource_version: String,
    /// Whether it removes itself once it is done.
    transient: bool,
}

impl Session {
    /// Waits until every object of the component is ready.
    ///
    /// Objects that were ready when they were last recorded and were not written since are not asked for again.
    ///
    /// # Errors
    /// [`Error::NotReady`]: at once when an object failed for good, else when time is up; each object with its
    /// diagnosis. Whatever a request fails with.
    pub async fn wait_ready(&mut self, options: &WaitOptions) -> Result<(), Error> {
        let mut kinds: BTreeMap<GroupKind, (Arc<Resource>, Vec<Awaited>)> = BTreeMap::new();
        for step in &self.plan.steps {
            let kind = step.desired.group_kind();
            let object = &step.desired.object;
            let Some(entry) = self.entries.get(object) else {
                continue;
            };
            // What a rule of the component speaks of is always looked at: the rule may be new.
            let found_ready =
                !entry.resource_version.is_empty() && !self.plan.readiness.covers(&kind, &object.name);
            if !step.desired.judged || found_ready || entry.done {
                continue;
            }
            let awaited = Awaited {
                object: object.clone(),
                uid: entry.uid.clone(),
            };
            kinds
                .entry(kind)
                .or_insert_with(|| (step.desired.resource.clone(), Vec::new()))
                .1
                .push(awaited);
        }
        if kinds.is_empty() {
            return Ok(());
        }
        let deadline = Instant::now() + options.timeout;
        let board = Board {
            states: Mutex::default(),
            outage: Mutex::default(),
            observer: Arc::clone(&self.observer),
            rules: self.plan.readiness.clone(),
        };
        let selector = format!("{PART_OF}={}", self.plan.target.applyset_id());
        let waits: FuturesUnordered<_> = kinds
            .values()
            .map(|(resource, awaited)| wait_for_kind(self.cluster(), resource, awaited, &selector, &board))
            .collect();
        let outcome = timeout_at(deadline, waits.try_collect::<()>()).await;
        let known = board.states.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (object, state) in &known {
            let Some(entry) = self.entries.get_mut(object) else {
                continue;
            };
            if state.readiness.is_ready() {
                entry.resource_version.clone_from(&state.resource_version);
                entry.done = state.transient;
            } else {
                entry.resource_version.clear();
            }
        }
        let outage = board.outage.into_inner().unwrap_or_else(PoisonError::into_inner);
        let terminal = match outcome {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(Ended::Failed)) => true,
            Ok(Err(Ended::Broken(error))) => return Err(error),
            Err(_) => match outage {
                // Nobody knows how the objects are.
                Some(error) => return Err(error),
                None => false,
            },
        };
        let unready = kinds.values().flat_map(|(resource, awaited)| {
            awaited
                .iter()
                .map(move |awaited| (resource.clone(), awaited.object.clone()))
        });
        let mut states = Vec::new();
        for (resource, object) in unready {
            let readiness = known.get(&object).map_or_else(
                || Readiness::InProgress("nothing was learnt of it in time".to_owned()),
                |known| known.readiness.clone(),
            );
            let counts = if terminal {
                readiness.is_failed()
            } else {
                !readiness.is_ready()
            };
            if counts {
                states.push((
                    resource,
                    ObjectState {
                        object,
                        readiness,
                        details: Vec::new(),
                    },
                ));
            }
        }
        let objects = diagnosis::explain(self.cluster(), states).await;
        Err(Error::NotReady { terminal, objects })
    }
}

enum Ended {
    /// An object failed for good; the board knows which.
    Failed,
    Broken(Error),
}

impl Board {
    /// Notes a verdict and tells whoever listens, if it is news.
    fn note(&self, object: &ObjectRef, known: Known) {
        let readiness = known.readiness.clone();
        let before = self
            .states
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(object.clone(), known)
            .map(|k| k.readiness);
        if before.as_ref() != Some(&readiness) {
            tracing::debug!(%object, %readiness, "readiness");
            (self.observer)(Event::Readiness(ObjectState {
                object: object.clone(),
                readiness,
                details: Vec::new(),
            }));
        }
    }

    /// Whether all of `awaited` are ready, or one failed for good.
    fn verdict(&self, awaited: &[Awaited]) -> Option<Result<(), Ended>> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |awaited: &Awaited| states.get(&awaited.object).map(|known| &known.readiness);
        if awaited
            .iter()
            .any(|awaited| known(awaited).is_some_and(Readiness::is_failed))
        {
            return Some(Err(Ended::Failed));
        }
        awaited
            .iter()
            .all(|awaited| known(awaited).is_some_and(Readiness::is_ready))
            .then_some(Ok(()))
    }
}

/// By what the objects of one kind are judged.
struct Judge<'a> {
    board: &'a Board,
    settled_at: Instant,
    surroundings: Surroundings,
}

impl Judge<'_> {
    /// The same, knowing what is behind webhooks.
    fn with(&self, backends: &Backends) -> Self {
        Self {
            board: self.board,
            settled_at: self.settled_at,
            surroundings: Surroundings {
                unserved: backends.unserved.clone(),
                ..self.surroundings.clone()
            },
        }
    }

    fn known(&self, object: &Value) -> Known {
        let surroundings = self.surroundings.with(patience(self.settled_at));
        known(object, self.board.rules.judge_in(object, &surroundings))
    }

    /// The verdict once the controller has had time enough.
    fn settled(&self, object: &Value) -> Readiness {
        self.board
            .rules
            .judge_in(object, &self.surroundings.with(Patience::Settled))
    }
}

/// Follows one kind until all of `awaited` are ready.
async fn wait_for_kind(
    cluster: &Cluster,
    resource: &Resource,
    awaited: &[Awaited],
    selector: &str,
    board: &Board,
) -> Result<(), Ended> {
    let settled_at = Instant::now() + GRACE;
    // All objects in one namespace, as is usual: then only that one is listed and watched.
    let namespace = awaited
        .first()
        .and_then(|first| first.object.namespace.as_deref());
    let namespace = namespace.filter(|one| {
        awaited
            .iter()
            .all(|awaited| awaited.object.namespace.as_deref() == Some(one))
    });
    let selection = Selection {
        namespace,
        labels: selector,
        ..Selection::default()
    };
    let judge = Judge {
        board,
        settled_at,
        surroundings: cluster.surroundings(resource).await,
    };
    loop {
        let listed_at = Instant::now();
        let round = list_and_watch(cluster, resource, awaited, selection, &judge).await;
        let pause = match round {
            Ok(Some(verdict)) => return verdict,
            Ok(None) => RELIST_INTERVAL,
            Err(error) => {
                let pause = match error.class() {
                    ErrorClass::RateLimited(pause) => pause,
                    ErrorClass::Transient | ErrorClass::Unreachable => RELIST_INTERVAL,
                    _ => return Err(Ended::Broken(error)),
                };
                // An outage of the cluster is no verdict on its objects: they have until the deadline.
                tracing::debug!(%error, "readiness cannot be asked for at the moment");
                *board.outage.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                pause
            }
        };
        sleep_until(listed_at + pause).await;
    }
}

/// One list and the watch that follows it; none when the watch ended without a verdict.
async fn list_and_watch(
    cluster: &Cluster,
    resource: &Resource,
    awaited: &[Awaited],
    selection: Selection<'_>,
    judge: &Judge<'_>,
) -> Result<Option<Result<(), Ended>>, Error> {
    let board = judge.board;
    let listed = cluster.list_full(resource, selection).await?;
    let backends = if webhooks::is_configuration(&resource.kind.group_kind()) {
        cluster.backends(&listed.items).await?
    } else {
        Backends::default()
    };
    let judge = &judge.with(&backends);
    *board.outage.lock().unwrap_or_else(PoisonError::into_inner) = None;
    let silent = judge_all(resource, awaited, &listed.items, judge);
    if let Some(verdict) = board.verdict(awaited) {
        return Ok(Some(verdict));
    }
    let watch = cluster
        .watch_kind(resource, selection, &listed.resource_version, false)
        .await;
    match watch {
        Ok(mut watch) => tokio::select! {
            verdict = follow(&mut watch, awaited, silent, judge) => verdict,
            // Everything is looked at anew.
            changed = cluster.backends_changed(&backends) => changed.map(|()| None),
        },
        Err(Error::Expired { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Follows a watch until it decides; none when it ended first, or when silent objects are to be judged again.
async fn follow(
    watch: &mut WatchStream,
    awaited: &[Awaited],
    silent: bool,
    judge: &Judge<'_>,
) -> Result<Option<Result<(), Ended>>, Error> {
    let (board, settled_at) = (judge.board, judge.settled_at);
    loop {
        let event = tokio::select! {
            event = watch.next() => event,
            () = sleep_until(settled_at), if silent && Instant::now() < settled_at => return Ok(None),
        };
        match event {
            Ok(Some(WatchEvent::Applied(raw))) => {
                let Ok(object) = serde_json::from_str::<Value>(raw.get()) else {
                    return Ok(None);
                };
                judge_one(awaited, &object, judge);
            }
            Ok(Some(WatchEvent::Deleted(raw))) => {
                let Ok(object) = serde_json::from_str::<Value>(raw.get()) else {
                    return Ok(None);
                };
                forget_one(awaited, &object, judge);
            }
            Ok(Some(WatchEvent::Bookmark(_))) => {}
            Ok(None) | Err(Error::Expired { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        if let Some(verdict) = board.verdict(awaited) {
            return Ok(Some(verdict));
        }
    }
}

fn patience(settled_at: Instant) -> Patience {
    if Instant::now() < settled_at {
        Patience::Fresh
    } else {
        Patience::Settled
    }
}

fn uid(object: &Value) -> &str {
    object
        .pointer("/metadata/uid")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Judges a whole list; `true` when some object waits only for its controller to say anything.
fn judge_all(resource: &Resource, awaited: &[Awaited], items: &[Value], judge: &Judge<'_>) -> bool {
    let board = judge.board;
    let by_uid: BTreeMap<&str, &Value> = items.iter().map(|item| (uid(item), item)).collect();
    let mut silent = false;
    for awaited in awaited {
        match by_uid.get(awaited.uid.as_str()) {
            Some(item) => {
                // Items of a list do not say what they are.
                let mut whole = (*item).clone();
                if let Some(whole) = whole.as_object_mut() {
                    whole.insert("apiVersion".to_owned(), Value::from(resource.kind.api_version()));
                    whole.insert("kind".to_owned(), Value::from(resource.kind.kind.as_str()));
                }
                let known = judge.known(&whole);
                silent |= !known.readiness.is_ready() && judge.settled(&whole).is_ready();
                board.note(&awaited.object, known);
            }
            None => board.note(&awaited.object, gone()),
        }
    }
    silent
}

fn judge_one(awaited: &[Awaited], object: &Value, judge: &Judge<'_>) {
    if let Some(awaited) = awaited.iter().find(|awaited| awaited.uid == uid(object)) {
        judge.board.note(&awaited.object, judge.known(object));
    }
}

fn forget_one(awaited: &[Awaited], object: &Value, judge: &Judge<'_>) {
    if let Some(awaited) = awaited.iter().find(|awaited| awaited.uid == uid(object)) {
        let last = known(object, judge.settled(object));
        // A Job that was done and removed itself is done.
        let done = last.transient && last.readiness.is_ready();
        judge
            .board
            .note(&awaited.object, if done { last } else { gone() });
    }
}

fn gone() -> Known {
    let readiness = Readiness::InProgress("it was deleted by somebody else".to_owned());
    Known {
        readiness,
        resource_version: String::new(),
        transient: false,
    }
}

fn known(object: &Value, mut readiness: Readiness) -> Known {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let removes_itself = object
        .pointer("/spec/ttlSecondsAfterFinished")
        .is_some_and(Value::is_number);
    let transient = removes_itself && text("/kind") == "Job";
    if transient && !readiness.is_ready() && completed(object) {
        readiness = Readiness::Ready;
    }
    Known {
        readiness,
        resource_version: text("/metadata/resourceVersion"),
        transient,
    }
}

/// Whether a Job completed, even when it is being removed already.
fn completed(object: &Value) -> bool {
    object
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .is_some_and(|conditions| {
            conditions.iter().any(|condition| {
                condition.get("type").and_then(Value::as_str) == Some("Complete")
                    && condition.get("status").and_then(Value::as_str) == Some("True")
            })
        })
}
