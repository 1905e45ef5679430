//! A look at one cluster that decides, without writing, which of its components differ.

mod sighting;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenkeel_core::{ComponentName, Digest, GroupKind, ObjectRef};
use futures::stream::StreamExt as _;
use serde_json::Value;

use crate::applyset::labels::{CLUSTER_PARENT, PART_OF};
use crate::applyset::parent::{Parent, Parents};
use crate::applyset::record::{Record, RecordedObject, SharedRecord};
use crate::applyset::{Owner, applyset_id, parent_name};
use crate::concurrent::{as_they_come, in_order};
use crate::discovery::Resource;
use crate::live::LiveObject;
use crate::mark::Mark;
use crate::objects::Selection;
use crate::readiness::{self, ObjectState, Patience, Readiness, Surroundings, webhooks};
use crate::watches::Baseline;
use crate::{Cluster, Error, ReadinessRules, order};

/// The most reasons that one component's verdict lists.
const REASONS_MAX: usize = 20;

/// One component that the cluster should run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The component.
    pub component: ComponentName,
    /// A digest of all that decides its objects, as given to [`Session::record`](crate::Session::record); none when it
    /// is not to be compared.
    pub inputs: Option<Digest>,
    /// When its objects count as ready that the rules of their kinds do not know.
    pub readiness: ReadinessRules,
}

/// What a check found, component by component.
#[derive(Debug)]
pub struct ClusterCheck {
    /// One verdict for each expected component.
    pub components: BTreeMap<ComponentName, Verdict>,
    /// Components of ours at the target that were not expected.
    pub unexpected: BTreeSet<ComponentName>,
    /// Where watching may begin: what was seen of a cluster that is as it should be; none when it is not, or when nobody
    /// asked for it.
    pub baseline: Option<Baseline>,
}

impl ClusterCheck {
    /// What a check would find of a cluster for which live watches [vouch](crate::DriftWatch::vouches).
    pub fn vouched_for(expected: &[Expected]) -> Self {
        let unchanged = |expected: &Expected| (expected.component.clone(), Verdict::Unchanged);
        Self {
            components: expected.iter().map(unchanged).collect(),
            unexpected: BTreeSet::new(),
            baseline: None,
        }
    }
}

/// How one component was found.
#[derive(Debug)]
pub enum Verdict {
    /// It is as it should be, and ready.
    Unchanged,
    /// Work is to be done.
    Differs(Vec<Difference>),
    /// Its objects are as they should be, and some are no longer ready.
    NotReady(Vec<ObjectState>),
    /// It could not be looked at; the others were.
    Failed(Error),
}

/// Why work is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// It was never applied here.
    NotInstalled,
    /// Chart, values or whatever else decides its objects changed since.
    Inputs,
    /// An earlier attempt did not reach its end.
    Unfinished,
    /// An object is gone.
    Missing(ObjectRef),
    /// Somebody changed fields of an object that are ours.
    Changed(ObjectRef),
    /// An object was made anew by somebody else.
    Replaced(ObjectRef),
    /// An object carries our label and is not recorded: something an interrupted attempt left.
    LeftOver(ObjectRef),
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotInstalled => f.write_str("it is not installed"),
            Self::Inputs => f.write_str("its chart or values changed"),
            Self::Unfinished => f.write_str("an earlier attempt did not reach its end"),
            Self::Missing(object) => write!(f, "{object} is missing"),
            Self::Changed(object) => write!(f, "{object} was changed by somebody else"),
            Self::Replaced(object) => write!(f, "{object} was made anew by somebody else"),
            Self::LeftOver(object) => write!(f, "{object} is left over from an interrupted attempt"),
        }
    }
}

/// A component whose record was found and is worth comparing.
struct Looked<'a> {
    component: &'a ComponentName,
    inputs: Option<&'a Digest>,
    rules: &'a ReadinessRules,
    record: &'a Record,
    set: String,
    kinds: BTreeSet<GroupKind>,
}

type Members = BTreeMap<ObjectRef, LiveObject>;

/// One kind as it was listed.
struct Listing {
    resource: Arc<Resource>,
    members: Members,
    /// The version of the list.
    version: String,
}

type Listings = BTreeMap<GroupKind, Result<Listing, Error>>;

/// The definitions that components want.
#[derive(Default)]
struct Definitions {
    /// Those that are gone or changed, by component.
    differences: BTreeMap<ComponentName, Vec<Difference>>,
    /// What is recorded of them.
    wanted: Vec<RecordedObject>,
    listed: Option<Listing>,
}

impl Cluster {
    /// Looks at the components of this cluster at once: one LIST of parents, one metadata LIST per kind that any of them
    /// has, and one GET for each object of a kind with a readiness rule that was written since it was last found ready.
    /// Nothing is written.
    ///
    /// # Errors
    /// Whatever keeps the parents from being listed. What concerns one component alone is its verdict.
    pub async fn check(&self, owner: &Owner, expected: &[Expected]) -> Result<ClusterCheck, Error> {
        self.check_all(owner, expected, false).await
    }

    /// Like [`Cluster::check`], and gives what [`Cluster::watch_over`] begins with when everything is as it should be.
    ///
    /// # Errors
    /// As [`Cluster::check`].
    pub async fn check_to_watch(&self, owner: &Owner, expected: &[Expected]) -> Result<ClusterCheck, Error> {
        self.check_all(owner, expected, true).await
    }

    async fn check_all(
        &self,
        owner: &Owner,
        expected: &[Expected],
        to_watch: bool,
    ) -> Result<ClusterCheck, Error> {
        let Parents {
            shared,
            components: mut parents,
            ..
        } = self.parents(owner, false).await?;
        let mut verdicts = BTreeMap::new();
        let mut found: Vec<(&Expected, Parent<Record>)> = Vec::new();
        for expected in expected {
            let Expected {
                component, inputs, ..
            } = expected;
            let verdict = match parents.remove(&parent_name(component)) {
                None => Verdict::Differs(vec![Difference::NotInstalled]),
                Some(Err(error)) => Verdict::Failed(error),
                Some(Ok(parent)) => match beforehand(&parent.record, inputs.as_ref()) {
                    Some(difference) => Verdict::Differs(vec![difference]),
                    None => {
                        found.push((expected, parent));
                        continue;
                    }
                },
            };
            verdicts.insert(component.clone(), verdict);
        }
        let unexpected = parents
            .into_values()
            .flatten()
            .map(|parent| parent.record.component)
            .collect();
        let looked: Vec<Looked<'_>> = found
            .iter()
            .map(|(expected, parent)| {
                let mut kinds = parent.group_kinds.clone();
                kinds.extend(parent.record.objects.iter().map(RecordedObject::group_kind));
                Looked {
                    component: &expected.component,
                    inputs: expected.inputs.as_ref(),
                    rules: &expected.readiness,
                    record: &parent.record,
                    set: applyset_id(&parent.name),
                    kinds,
                }
            })
            .collect();
        let members = self.members(&looked).await;
        let definitions = self.definitions(shared.as_ref(), &looked).await;
        for looked in &looked {
            let verdict = self
                .compare(looked, &members, definitions.as_ref())
                .await
                .unwrap_or_else(Verdict::Failed);
            verdicts.insert(looked.component.clone(), verdict);
        }
        let is_steady = |verdict: &Verdict| matches!(verdict, Verdict::Unchanged);
        let baseline = match definitions {
            Ok(definitions) if to_watch && verdicts.values().all(is_steady) => {
                let mut parents: Vec<_> = found.iter().map(|(_, parent)| sighting::parent(parent)).collect();
                parents.extend(shared.as_ref().map(sighting::parent));
                sighting::baseline(owner.fleet(), &looked, parents, &members, &definitions)
            }
            _ => None,
        };
        Ok(ClusterCheck {
            components: verdicts,
            unexpected,
            baseline,
        })
    }

    /// One metadata LIST per kind, of all components that have it. A kind that cannot be listed fails those alone.
    async fn members(&self, looked: &[Looked<'_>]) -> Listings {
        let mut sets: BTreeMap<&GroupKind, Vec<&str>> = BTreeMap::new();
        for looked in looked {
            for kind in &looked.kinds {
                sets.entry(kind).or_default().push(&looked.set);
            }
        }
        let listed: Vec<_> = as_they_come(sets, self.limits().in_flight, |(kind, sets)| {
            Box::pin(async move { (kind.clone(), self.members_of(kind, &sets).await) })
        })
        .collect()
        .await;
        // A kind that is not served has no objects; those that are recorded are missing.
        listed
            .into_iter()
            .filter_map(|(kind, listed)| Some((kind, listed.transpose()?)))
            .collect()
    }

    async fn members_of(&self, kind: &GroupKind, sets: &[&str]) -> Result<Option<Listing>, Error> {
        let Some(resource) = self.preferred_resource(kind).await? else {
            return Ok(None);
        };
        let selector = match sets {
            [set] => format!("{PART_OF}={set}"),
            sets => format!("{PART_OF} in ({})", sets.join(",")),
        };
        match self
            .list_live(
                &resource,
                Selection {
                    labels: &selector,
                    ..Selection::default()
                },
            )
            .await
        {
            Ok(listed) => {
                let members = listed
                    .items
                    .into_iter()
                    .map(|live| (live.reference(kind), live))
                    .collect();
                Ok(Some(Listing {
                    resource,
                    members,
                    version: listed.resource_version,
                }))
            }
            Err(error) if error.is_not_found() => {
                if self.is_no_longer_served(kind).await? {
                    Ok(None)
                } else {
                    Err(error)
                }
            }
            Err(error) => Err(error),
        }
    }

    /// The definitions that components want and that are gone or changed, by component.
    async fn definitions(
        &self,
        shared: Option<&Parent<SharedRecord>>,
        looked: &[Looked<'_>],
    ) -> Result<Definitions, Error> {
        let Some(shared) = shared else {
            return Ok(Definitions::default());
        };
        let expected: BTreeSet<&ComponentName> = looked.iter().map(|looked| looked.component).collect();
        let wanted: Vec<_> = shared
            .record
            .objects
            .iter()
            .filter(|object| order::is_definition(&object.recorded.group_kind()))
            .filter(|object| object.wanted_by.keys().any(|name| expected.contains(name)))
            .collect();
        let Some(first) = wanted.first() else {
            return Ok(Definitions::default());
        };
        let kind = first.recorded.group_kind();
        let listed = self.members_of(&kind, &[&applyset_id(CLUSTER_PARENT)]).await?;
        let mut definitions = Definitions {
            wanted: wanted.iter().map(|object| object.recorded.clone()).collect(),
            listed,
            ..Definitions::default()
        };
        for object in wanted {
            let live = definitions
                .listed
                .as_ref()
                .and_then(|listed| listed.members.get(&object.recorded.object()));
            if let Some(difference) = differs(&object.recorded, live) {
                for component in object.wanted_by.keys() {
                    definitions
                        .differences
                        .entry(component.clone())
                        .or_default()
                        .push(difference.clone());
                }
            }
        }
        Ok(definitions)
    }

    async fn compare(
        &self,
        looked: &Looked<'_>,
        members: &Listings,
        definitions: Result<&Definitions, &Error>,
    ) -> Result<Verdict, Error> {
        let mut differences: Vec<Difference> = match definitions {
            Ok(definitions) => definitions
                .differences
                .get(looked.component)
                .cloned()
                .unwrap_or_default(),
            // Definitions are the cluster's; that they could not be listed shows where one is needed.
            Err(error) => {
                tracing::debug!(%error, "definitions could not be listed");
                Vec::new()
            }
        };
        let mut recorded: BTreeSet<ObjectRef> = BTreeSet::new();
        let now = self.clock().now().as_second();
        let mut contested: Vec<ObjectState> = Vec::new();
        let mut doubtful: Vec<(&Arc<Resource>, &RecordedObject, &LiveObject)> = Vec::new();
        for entry in &looked.record.objects {
            let object = entry.object();
            let kind = entry.group_kind();
            let live = match members.get(&kind) {
                Some(Ok(listing)) => {
                    let live = listing.members.get(&object);
                    live.map(|live| (&listing.resource, live))
                }
                Some(Err(error)) => return Err(repeat(error)),
                None => None,
            };
            if let Some(difference) = differs(entry, live.map(|(_, live)| live)) {
                let contest = looked
                    .record
                    .contest(&object)
                    .and_then(|contest| contest.holds(now));
                match (&difference, contest) {
                    (Difference::Changed(_), Some(why)) => contested.push(ObjectState {
                        object: object.clone(),
                        readiness: Readiness::Failed(why),
                        details: Vec::new(),
                    }),
                    _ => differences.push(difference),
                }
            } else if let Some((resource, live)) = live
                && !self.vouched_for(looked.rules, entry, live, resource.has_status)
            {
                doubtful.push((resource, entry, live));
            }
            recorded.insert(object);
        }
        differences.extend(left_over(looked, members, &recorded));
        differences.truncate(REASONS_MAX);
        if !differences.is_empty() {
            return Ok(Verdict::Differs(differences));
        }
        let mut unready = contested;
        unready.extend(self.judge(looked.rules, &doubtful).await?);
        unready.truncate(REASONS_MAX);
        Ok(if unready.is_empty() {
            Verdict::Unchanged
        } else {
            Verdict::NotReady(unready)
        })
    }

    /// Whether nothing about the object needs another look.
    fn vouched_for(
        &self,
        rules: &ReadinessRules,
        entry: &RecordedObject,
        live: &LiveObject,
        has_status: bool,
    ) -> bool {
        let kind = entry.group_kind();
        let has_rule = readiness::has_rule(&kind, has_status) || rules.covers(&kind, &entry.name);
        !has_rule
            || entry.kept
            || live.ignores_readiness()
            || live.resource_version == entry.resource_version
            || self.is_known_good(rules, &kind, live)
    }

    /// Whether the object was found ready as it is now.
    pub(crate) fn is_known_good(&self, rules: &ReadinessRules, kind: &GroupKind, live: &LiveObject) -> bool {
        let at = judged_at(rules, kind, &live.name, live.generation, &live.resource_version);
        self.memory().vouches(&live.uid, &rules.sealed(&at))
    }

    /// Reads the objects and gives those that are not ready.
    async fn judge(
        &self,
        rules: &ReadinessRules,
        doubtful: &[(&Arc<Resource>, &RecordedObject, &LiveObject)],
    ) -> Result<Vec<ObjectState>, Error> {
        let at_once = self.limits().in_flight;
        let judged: Vec<Result<Option<ObjectState>, Error>> =
            in_order(doubtful, at_once, |(resource, entry, live)| {
                Box::pin(async move {
                    let object = entry.object();
                    self.judge_object(rules, resource, &object, &live.uid).await
                })
            })
            .collect()
            .await;
        judged.into_iter().filter_map(Result::transpose).collect()
    }

    /// Reads one object and gives how it is when it is not ready. One that is ready is remembered as that.
    pub(crate) async fn judge_object(
        &self,
        rules: &ReadinessRules,
        resource: &Arc<Resource>,
        object: &ObjectRef,
        uid: &str,
    ) -> Result<Option<ObjectState>, Error> {
        let whole = self.get_full(resource, object).await?;
        let readiness = match &whole {
            Some(whole) => match rules.judge(whole, Patience::Settled) {
                // The verdicts that more than the object itself can change.
                Readiness::Ready if webhooks::is_configuration(&object.group_kind()) => {
                    let mut surroundings = Surroundings::from(Patience::Settled);
                    surroundings.unserved = self.backends(std::slice::from_ref(whole)).await?.unserved;
                    rules.judge_in(whole, &surroundings)
                }
                Readiness::Ready if says_no_generation(whole) => {
                    rules.judge_in(whole, &self.surroundings(resource).await)
                }
                Readiness::InProgress(_) if object.kind == "PersistentVolumeClaim" => {
                    rules.judge_in(whole, &self.surroundings(resource).await)
                }
                verdict => verdict,
            },
            None => Readiness::InProgress("it was just deleted".to_owned()),
        };
        if readiness.is_ready() {
            if let Some(whole) = &whole {
                let generation = whole.pointer("/metadata/generation").and_then(Value::as_i64);
                let version = whole.pointer("/metadata/resourceVersion");
                let version = version.and_then(Value::as_str).unwrap_or_default();
                let at = judged_at(rules, &object.group_kind(), &object.name, generation, version);
                self.memory().note(uid, &rules.sealed(&at));
            }
            return Ok(None);
        }
        Ok(Some(ObjectState {
            object: object.clone(),
            readiness,
            details: Vec::new(),
        }))
    }
}

/// Whether its controller, if it has one, has not said which generation it has seen.
fn says_no_generation(object: &Value) -> bool {
    object.pointer("/status/observedGeneration").is_none()
}

/// What shows without looking at any object.
fn beforehand(record: &Record, inputs: Option<&Digest>) -> Option<Difference> {
    if record.unfinished {
        return Some(Difference::Unfinished);
    }
    match inputs {
        Some(_) if record.inputs.as_ref() != inputs => Some(Difference::Inputs),
        _ => None,
    }
}

/// How an object differs from what was recorded of it, as far as metadata tells.
fn differs(entry: &RecordedObject, live: Option<&LiveObject>) -> Option<Difference> {
    let departure = Mark::of(entry).departs(live)?;
    Some(departure.of(entry.object()))
}

/// What has to be new about an object that was found good before it is looked at again: its version. The status of some
/// kinds changes all the time and means nothing once their controller has seen the generation.
fn judged_at(
    rules: &ReadinessRules,
    kind: &GroupKind,
    name: &str,
    generation: Option<i64>,
    version: &str,
) -> String {
    match generation {
        Some(generation) if readiness::by_generation(kind) && !rules.covers(kind, name) => {
            format!("generation {generation}")
        }
        _ => version.to_owned(),
    }
}

/// Objects with our label and fields of ours that no record knows.
fn left_over(looked: &Looked<'_>, members: &Listings, recorded: &BTreeSet<ObjectRef>) -> Vec<Difference> {
    let listed = looked
        .kinds
        .iter()
        .filter_map(|kind| members.get(kind)?.as_ref().ok());
    listed
        .flat_map(|listing| &listing.members)
        .filter(|(object, live)| !recorded.contains(*object) && live.is_left_over(&looked.set))
        .map(|(object, _)| Difference::LeftOver(object.clone()))
        .collect()
}

/// The same failure told to every component that it concerns: errors cannot be cloned.
fn repeat(error: &Error) -> Error {
    use crate::ErrorClass as Class;
    let doing = "check the component".to_owned();
    let message = error.to_string();
    match error.class() {
        Class::Forbidden => Error::Forbidden { doing, message },
        Class::Unauthorized => Error::Unauthorized { doing, message },
        Class::RateLimited(retry_after) => Error::RateLimited { doing, retry_after },
        Class::Unreachable => match error {
            Error::Timeout { server, after, .. } => Error::Timeout {
                server: server.clone(),
                doing,
                after: *after,
            },
            Error::Unreachable { server, reason, .. } => Error::Unreachable {
                server: server.clone(),
                doing,
                reason: reason.clone(),
            },
            _ => Error::Unreachable {
                server: String::new(),
                doing,
                reason: message,
            },
        },
        _ => match error {
            Error::ApiUnavailable { group } => Error::ApiUnavailable { group: group.clone() },
            _ => Error::Server {
                doing,
                status: 0,
                message,
            },
        },
    }
}
