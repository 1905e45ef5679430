//! What of the component exists, and what of its names is taken by others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenkeel_core::{GroupKind, ObjectRef};
use futures::stream::TryStreamExt as _;

use super::{ReleaseNamespace, namespace_ref};
use crate::applyset::labels::PART_OF;
use crate::applyset::parent::Parent;
use crate::applyset::record::{Record, SharedRecord};
use crate::concurrent::as_they_come;
use crate::discovery::Resource;
use crate::live::{LiveObject, LiveObjects};
use crate::objects::{Selection, namespaces};
use crate::target::ComponentTarget;
use crate::{Desired, DesiredObject, Error, order};

/// From this many objects of one kind and namespace on, one LIST is cheaper than a GET each.
const LIST_FROM: usize = 3;

impl ComponentTarget {
    /// The kinds whose members are listed: those that the parent announces or the component wants. A kind that is no
    /// longer served has no objects; one whose server is down stops the component.
    pub(super) async fn kinds_to_list(
        &self,
        parent: Option<&Parent<Record>>,
        desired: &Desired,
    ) -> Result<BTreeMap<GroupKind, Arc<Resource>>, Error> {
        let Some(parent) = parent else {
            // Nothing was applied yet; whatever exists is found by name.
            return Ok(BTreeMap::new());
        };
        let mut kinds: BTreeMap<GroupKind, Arc<Resource>> = desired
            .objects()
            .iter()
            .filter(|object| object.pending.is_none() && !object.is_shared())
            .map(|object| (object.group_kind(), object.resource.clone()))
            .collect();
        kinds.extend(self.members_kinds(parent).await?.into_iter().filter(|(kind, _)| {
            // The version of the manifest stays, so that conversion webhooks are not called needlessly.
            !desired
                .objects()
                .iter()
                .any(|object| object.group_kind() == *kind && object.pending.is_none())
        }));
        Ok(kinds)
    }

    /// The served kinds that the parent announces or records.
    pub(crate) async fn members_kinds(
        &self,
        parent: &Parent<Record>,
    ) -> Result<BTreeMap<GroupKind, Arc<Resource>>, Error> {
        let mut wanted: BTreeSet<GroupKind> = parent.group_kinds.clone();
        wanted.extend(parent.record.objects.iter().map(|object| object.group_kind()));
        let mut kinds = BTreeMap::new();
        for kind in wanted {
            if let Some(resource) = self.cluster().preferred_resource(&kind).await? {
                kinds.insert(kind, resource);
            }
        }
        Ok(kinds)
    }

    /// Every object with our label, one metadata LIST per kind.
    pub(crate) async fn list_members(
        &self,
        kinds: &BTreeMap<GroupKind, Arc<Resource>>,
    ) -> Result<LiveObjects, Error> {
        let selector = format!("{PART_OF}={}", self.applyset_id());
        let selector = selector.as_str();
        let at_once = self.cluster().limits().in_flight;
        let lists: Vec<LiveObjects> = as_they_come(kinds, at_once, |(kind, resource)| {
            Box::pin(async move {
                let listed = self
                    .cluster()
                    .list_live(
                        resource,
                        Selection {
                            labels: selector,
                            ..Selection::default()
                        },
                    )
                    .await;
                match listed {
                    Ok(listed) => Ok(listed
                        .items
                        .into_iter()
                        .map(|live| (live.reference(kind), live))
                        .collect()),
                    // Its definition went away since discovery: it has no objects.
                    Err(error) if error.is_not_found() => {
                        if self.cluster().is_no_longer_served(kind).await? {
                            Ok(LiveObjects::new())
                        } else {
                            Err(error)
                        }
                    }
                    Err(error) => Err(error),
                }
            })
        })
        .try_collect()
        .await?;
        Ok(lists.into_iter().flatten().collect())
    }

    /// The state of the release namespace; read only when no living object of ours proves that it is there.
    pub(super) async fn release_namespace(
        &self,
        desired: &Desired,
        live: &LiveObjects,
        shared: Option<&Parent<SharedRecord>>,
        shared_set: &str,
    ) -> Result<ReleaseNamespace, Error> {
        let object = namespace_ref(desired.namespace.as_str());
        let made_by_us = shared
            .and_then(|shared| shared.record.get(&object))
            .is_some_and(|shared| shared.made_by_us);
        let lives_in_it = |(reference, live): (&ObjectRef, &LiveObject)| {
            reference.namespace.as_deref() == Some(desired.namespace.as_str()) && !live.is_deleting()
        };
        if live.iter().any(lives_in_it) {
            return Ok(if made_by_us {
                ReleaseNamespace::Ours
            } else {
                ReleaseNamespace::Given
            });
        }
        Ok(match self.cluster().get_live(&namespaces(), &object).await? {
            None => ReleaseNamespace::Missing,
            Some(live) if live.is_deleting() => ReleaseNamespace::Terminating,
            // The label without a record: we made it and were interrupted.
            Some(live) if live.is_part_of(shared_set) => ReleaseNamespace::Ours,
            Some(_) => ReleaseNamespace::Given,
        })
    }

    /// What exists under the names of desired objects that are not among our members.
    ///
    /// `absent` is a namespace that does not exist, so that nothing can be in it.
    pub(super) async fn look_for_others(
        &self,
        desired: &Desired,
        members: &LiveObjects,
        absent: Option<&str>,
    ) -> Result<LiveObjects, Error> {
        // Definitions first: without one, no resource of its kind can exist.
        let mut found = self
            .look_up(desired, members, |object| object.is_shared())
            .await?;
        let exists = |object: &DesiredObject| match &object.pending {
            Some(definition) => found.contains_key(definition),
            None => true,
        };
        let in_nowhere = |object: &DesiredObject| {
            let namespace = object.object.namespace.as_deref();
            namespace.is_some() && namespace == absent
        };
        let rest = self
            .look_up(desired, members, |object| {
                !object.is_shared() && exists(object) && !in_nowhere(object)
            })
            .await?;
        found.extend(rest);
        Ok(found)
    }

    /// What exists under the names of the desired objects that are no members and that `wanted` names.
    async fn look_up(
        &self,
        desired: &Desired,
        members: &LiveObjects,
        wanted: impl Fn(&DesiredObject) -> bool,
    ) -> Result<LiveObjects, Error> {
        let mut places: BTreeMap<(GroupKind, Option<&str>), Vec<&DesiredObject>> = BTreeMap::new();
        for object in desired.objects() {
            if !members.contains_key(&object.object) && wanted(object) {
                let namespace = object.object.namespace.as_deref();
                places
                    .entry((object.group_kind(), namespace))
                    .or_default()
                    .push(object);
            }
        }
        let mut reads = Vec::new();
        for ((kind, namespace), objects) in places {
            // Of shared kinds a cluster may have very many; a kind that is not served yet cannot be listed.
            let single = objects.len() < LIST_FROM || order::is_shared(&kind);
            match objects.first().filter(|first| !single && first.pending.is_none()) {
                Some(first) => {
                    let resource = &first.resource;
                    let names = objects.iter().map(|object| &object.object).collect();
                    reads.push(Look::List(kind, namespace, resource, names));
                }
                None => reads.extend(
                    objects
                        .iter()
                        .map(|object| Look::Get(&object.resource, &object.object)),
                ),
            }
        }
        let found: Vec<Vec<(ObjectRef, LiveObject)>> =
            as_they_come(reads, self.cluster().limits().in_flight, |look| {
                Box::pin(self.look(look))
            })
            .try_collect()
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn look(&self, look: Look<'_>) -> Result<Vec<(ObjectRef, LiveObject)>, Error> {
        match look {
            Look::Get(resource, object) => {
                let live = self.cluster().get_live(resource, object).await?;
                Ok(live.map(|live| (object.clone(), live)).into_iter().collect())
            }
            Look::List(kind, namespace, resource, objects) => {
                let listed = self
                    .cluster()
                    .list_live(
                        resource,
                        Selection {
                            namespace,
                            ..Selection::default()
                        },
                    )
                    .await?;
                let wanted: BTreeSet<&ObjectRef> = objects.into_iter().collect();
                let found = listed.items.into_iter().map(|live| (live.reference(&kind), live));
                Ok(found.filter(|(object, _)| wanted.contains(object)).collect())
            }
        }
    }
}

enum Look<'a> {
    Get(&'a Arc<Resource>, &'a ObjectRef),
    List(GroupKind, Option<&'a str>, &'a Arc<Resource>, Vec<&'a ObjectRef>),
}
