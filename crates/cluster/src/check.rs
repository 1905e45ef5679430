//! A look at one cluster that decides, without writing, which of its components differ.

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
use crate::objects::Selection;
use crate::readiness::{self, ObjectState, Patience, Readiness};
use crate::{Cluster, Error, order};

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
}

/// What a check found, component by component.
#[derive(Debug)]
pub struct ClusterCheck {
    /// One verdict for each expected component.
    pub components: BTreeMap<ComponentName, Verdict>,
    /// Components of ours at the target that were not expected.
    pub unexpected: BTreeSet<ComponentName>,
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
    record: &'a Record,
    set: String,
    kinds: BTreeSet<GroupKind>,
}

type Members = BTreeMap<ObjectRef, LiveObject>;

impl Cluster {
    /// Looks at the components of this cluster at once: one LIST of parents, one metadata LIST per kind that any of them
    /// has, and one GET for each object of a kind with a readiness rule that was written since it was last found ready.
    /// Nothing is written.
    ///
    /// # Errors
    /// Whatever keeps the parents from being listed. What concerns one component alone is its verdict.
    pub async fn check(&self, owner: &Owner, expected: &[Expected]) -> Result<ClusterCheck, Error> {
        let Parents {
            shared,
            components: mut parents,
        } = self.parents(owner, false).await?;
        let mut verdicts = BTreeMap::new();
        let mut found: Vec<(&ComponentName, Parent<Record>)> = Vec::new();
        for Expected { component, inputs } in expected {
            let verdict = match parents.remove(&parent_name(component)) {
                None => Verdict::Differs(vec![Difference::NotInstalled]),
                Some(Err(error)) => Verdict::Failed(error),
                Some(Ok(parent)) => match beforehand(&parent.record, inputs.as_ref()) {
                    Some(difference) => Verdict::Differs(vec![difference]),
                    None => {
                        found.push((component, parent));
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
            .map(|(component, parent)| {
                let mut kinds = parent.group_kinds.clone();
                kinds.extend(parent.record.objects.iter().map(RecordedObject::group_kind));
                Looked {
                    component,
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
        Ok(ClusterCheck {
            components: verdicts,
            unexpected,
        })
    }

    /// One metadata LIST per kind, of all components that have it. A kind that cannot be listed fails those alone.
    async fn members(
        &self,
        looked: &[Looked<'_>],
    ) -> BTreeMap<GroupKind, Result<(Arc<Resource>, Members), Error>> {
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

    async fn members_of(
        &self,
        kind: &GroupKind,
        sets: &[&str],
    ) -> Result<Option<(Arc<Resource>, Members)>, Error> {
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
                Ok(Some((resource, members)))
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
    ) -> Result<BTreeMap<ComponentName, Vec<Difference>>, Error> {
        let mut differences: BTreeMap<ComponentName, Vec<Difference>> = BTreeMap::new();
        let Some(shared) = shared else {
            return Ok(differences);
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
            return Ok(differences);
        };
        let kind = first.recorded.group_kind();
        let live = self.members_of(&kind, &[&applyset_id(CLUSTER_PARENT)]).await?;
        let live = live.map(|(_, members)| members).unwrap_or_default();
        for object in wanted {
            if let Some(difference) = differs(&object.recorded, live.get(&object.recorded.object())) {
                for component in object.wanted_by.keys() {
                    differences
                        .entry(component.clone())
                        .or_default()
                        .push(difference.clone());
                }
            }
        }
        Ok(differences)
    }

    async fn compare(
        &self,
        looked: &Looked<'_>,
        members: &BTreeMap<GroupKind, Result<(Arc<Resource>, Members), Error>>,
        definitions: Result<&BTreeMap<ComponentName, Vec<Difference>>, &Error>,
    ) -> Result<Verdict, Error> {
        let mut differences: Vec<Difference> = match definitions {
            Ok(definitions) => definitions.get(looked.component).cloned().unwrap_or_default(),
            // Definitions are the cluster's; that they could not be listed shows where one is needed.
            Err(error) => {
                tracing::debug!(%error, "definitions could not be listed");
                Vec::new()
            }
        };
        let mut recorded: BTreeSet<ObjectRef> = BTreeSet::new();
        let mut doubtful: Vec<(&Arc<Resource>, &RecordedObject, &LiveObject)> = Vec::new();
        for entry in &looked.record.objects {
            let object = entry.object();
            let kind = entry.group_kind();
            let live = match members.get(&kind) {
                Some(Ok((resource, live))) => live.get(&object).map(|live| (resource, live)),
                Some(Err(error)) => return Err(repeat(error)),
                None => None,
            };
            if let Some(difference) = differs(entry, live.map(|(_, live)| live)) {
                differences.push(difference);
            } else if let Some((resource, live)) = live
                && !self.vouched_for(entry, live, readiness::has_rule(&kind, resource.has_status))
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
        let mut unready = self.judge(&doubtful).await?;
        unready.truncate(REASONS_MAX);
        Ok(if unready.is_empty() {
            Verdict::Unchanged
        } else {
            Verdict::NotReady(unready)
        })
    }

    /// Whether nothing about the object needs another look.
    fn vouched_for(&self, entry: &RecordedObject, live: &LiveObject, has_rule: bool) -> bool {
        !has_rule
            || entry.kept
            || live.ignores_readiness()
            || live.resource_version == entry.resource_version
            || self.memory().vouches(&live.uid, &live.resource_version)
    }

    /// Reads the objects and gives those that are not ready.
    async fn judge(
        &self,
        doubtful: &[(&Arc<Resource>, &RecordedObject, &LiveObject)],
    ) -> Result<Vec<ObjectState>, Error> {
        let at_once = self.limits().in_flight;
        let judged: Vec<Result<Option<ObjectState>, Error>> =
            in_order(doubtful, at_once, |(resource, entry, live)| {
                Box::pin(async move {
                    let object = entry.object();
                    let whole = self.get_full(resource, &object).await?;
                    let readiness = match &whole {
                        Some(whole) => readiness::judge(whole, Patience::Settled),
                        None => Readiness::InProgress("it was just deleted".to_owned()),
                    };
                    if readiness.is_ready() {
                        let version = whole
                            .as_ref()
                            .and_then(|whole| whole.pointer("/metadata/resourceVersion"));
                        self.memory()
                            .note(&live.uid, version.and_then(Value::as_str).unwrap_or_default());
                        return Ok(None);
                    }
                    Ok(Some(ObjectState {
                        object,
                        readiness,
                        details: Vec::new(),
                    }))
                })
            })
            .collect()
            .await;
        judged.into_iter().filter_map(Result::transpose).collect()
    }
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

/// How an object differs from what was recorded of it, as far as metadata tells: an equal resource version, or else the
/// same fields owned by us, prove that what we set is as we set it.
fn differs(entry: &RecordedObject, live: Option<&LiveObject>) -> Option<Difference> {
    let object = entry.object();
    let Some(live) = live else {
        let expected_absence = entry.done || entry.kept;
        return (!expected_absence).then_some(Difference::Missing(object));
    };
    if entry.kept || live.resource_version == entry.resource_version {
        return None;
    }
    if live.uid != entry.uid {
        return Some(Difference::Replaced(object));
    }
    if live.is_deleting() {
        return Some(Difference::Missing(object));
    }
    let same = entry.owned.is_some() && live.owned() == entry.owned;
    (!same).then_some(Difference::Changed(object))
}

/// Objects with our label and fields of ours that no record knows.
fn left_over(
    looked: &Looked<'_>,
    members: &BTreeMap<GroupKind, Result<(Arc<Resource>, Members), Error>>,
    recorded: &BTreeSet<ObjectRef>,
) -> Vec<Difference> {
    let listed = looked
        .kinds
        .iter()
        .filter_map(|kind| members.get(kind)?.as_ref().ok());
    listed
        .flat_map(|(_, live)| live)
        .filter(|(object, live)| {
            live.is_part_of(&looked.set)
                && !recorded.contains(*object)
                && !live.is_deleting()
                && !live.has_controller()
                && live.owned().is_some()
        })
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fingerprint::Fingerprint;

    fn entry() -> RecordedObject {
        let fields = json!({"f:data": {"f:a": {}}});
        RecordedObject {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: Some("shop".into()),
            name: "c".into(),
            uid: "u".into(),
            content: None,
            owned: Some(Fingerprint::of(&fields)),
            resource_version: "7".into(),
            kept: false,
            done: false,
        }
    }

    fn live(uid: &str, version: &str, fields: &Value) -> LiveObject {
        let body = json!({"metadata": {"name": "c", "namespace": "shop", "uid": uid, "resourceVersion": version, "managedFields": [
            {"manager": "evenkeel", "operation": "Apply", "fieldsV1": fields},
        ]}});
        LiveObject::read(body.to_string().as_bytes(), "test").expect("read")
    }

    #[test]
    fn metadata_tells_what_differs() {
        let fields = json!({"f:data": {"f:a": {}}});
        let found = |live: Option<&LiveObject>| differs(&entry(), live);
        assert_eq!(
            found(Some(&live("u", "7", &json!({})))),
            None,
            "an equal version needs no other look"
        );
        assert_eq!(
            found(Some(&live("u", "8", &fields))),
            None,
            "what others own is not drift"
        );
        assert_eq!(
            found(Some(&live("u", "8", &json!({})))),
            Some(Difference::Changed(entry().object()))
        );
        assert_eq!(
            found(Some(&live("v", "8", &fields))),
            Some(Difference::Replaced(entry().object()))
        );
        assert_eq!(found(None), Some(Difference::Missing(entry().object())));
        let kept = RecordedObject {
            kept: true,
            ..entry()
        };
        assert_eq!(differs(&kept, None), None, "what is only kept may go");
        let done = RecordedObject {
            done: true,
            ..entry()
        };
        assert_eq!(
            differs(&done, None),
            None,
            "a Job that removed itself is not run again"
        );
    }
}
