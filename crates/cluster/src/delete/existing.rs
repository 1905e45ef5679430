//! What there is of a component that is to go, and what of it stays with others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenkeel_core::{ComponentName, GroupKind, ObjectRef, SkippedObject};
use futures::stream::TryStreamExt as _;

use super::DeleteOptions;
use crate::applyset::labels::PART_OF;
use crate::applyset::parent::Parent;
use crate::applyset::record::{Record, SharedRecord};
use crate::concurrent::as_they_come;
use crate::discovery::Resource;
use crate::live::LiveObjects;
use crate::namespaces::is_virtual;
use crate::objects::Selection;
use crate::plan::Removal;
use crate::plan::moves::moved_away;
use crate::target::ComponentTarget;
use crate::{Error, order};

/// Everything of a component that exists.
pub(super) struct Existing {
    /// None when somebody removed it by hand.
    pub(super) parent: Option<Parent<Record>>,
    pub(super) shared: Option<Parent<SharedRecord>>,
    /// The kinds of its objects.
    pub(super) kinds: BTreeMap<GroupKind, Arc<Resource>>,
    /// In the order of deletion.
    pub(super) removals: Vec<Removal>,
    /// What other components render, and which.
    pub(super) moving: BTreeMap<ObjectRef, (Removal, ComponentName)>,
    pub(super) kept: Vec<SkippedObject>,
    /// The names of the CustomResourceDefinitions that we made for this component alone.
    pub(super) own_definitions: BTreeSet<String>,
}

impl ComponentTarget {
    /// What exists of the component; none when nothing of it does.
    pub(super) async fn existing(&self, options: &DeleteOptions) -> Result<Option<Existing>, Error> {
        let mut parents = self.cluster().parents(self.owner(), false).await?;
        let parent = parents.components.remove(self.parent_name()).transpose()?;
        let (kinds, members) = match &parent {
            Some(parent) => {
                let kinds = self.members_kinds(parent).await?;
                let members = self.list_members(&kinds).await?;
                (kinds, members)
            }
            None => self.strays().await?,
        };
        let wants_shared = parents.shared.as_ref().is_some_and(|shared| {
            let mut objects = shared.record.objects.iter();
            objects.any(|object| object.wanted_by.contains_key(self.name()))
        });
        if parent.is_none() && members.is_empty() && !wants_shared {
            return Ok(None);
        }
        let objects = parent.iter().flat_map(|parent| &parent.record.objects);
        let recorded: BTreeSet<ObjectRef> = objects.map(|entry| entry.object()).collect();
        let mut moving = self.moving(&members).await?;
        let mut existing = Existing {
            own_definitions: self.own_definitions(parents.shared.as_ref()),
            parent,
            shared: parents.shared,
            kinds,
            removals: Vec::new(),
            moving: BTreeMap::new(),
            kept: Vec::new(),
        };
        for (object, live) in members {
            if !recorded.contains(&object) && (live.owned().is_none() || live.has_controller()) {
                continue;
            }
            let kind = object.group_kind();
            let Some(resource) = existing.kinds.get(&kind).map(Arc::clone) else {
                continue;
            };
            let stays = live.stays();
            let removal = Removal {
                object: object.clone(),
                resource,
                live,
            };
            if let Some(component) = moving.remove(&object) {
                existing.moving.insert(object, (removal, component));
            } else if let Some(reason) = stays {
                let reason = reason.to_owned();
                existing.kept.push(SkippedObject { object, reason });
            } else if order::never_pruned(&kind) && !options.all {
                let reason = "it holds data; deleted only when everything is asked for".to_owned();
                existing.kept.push(SkippedObject { object, reason });
            } else {
                existing.removals.push(removal);
            }
        }
        if !options.all {
            existing
                .kept
                .extend(self.kept_definitions(existing.shared.as_ref()));
        }
        existing
            .removals
            .sort_by_cached_key(|removal| std::cmp::Reverse(order::sort_key(&removal.object)));
        Ok(Some(existing))
    }

    /// Every object with our label, over all kinds that the cluster serves: nobody remembers which they are of.
    ///
    /// # Errors
    /// Whatever a listing fails with, and [`Error::ApiUnavailable`] when some API does not answer: then nobody knows.
    async fn strays(&self) -> Result<(BTreeMap<GroupKind, Arc<Resource>>, LiveObjects), Error> {
        let seen = self.cluster().discovery().await?;
        let discovery = self.cluster().discovery_after_miss(&seen).await?;
        let mut unavailable = discovery
            .all_unavailable()
            .filter(|group| !is_virtual(group.split('/').next().unwrap_or_default()));
        if let Some(group) = unavailable.next() {
            return Err(Error::ApiUnavailable {
                group: group.to_owned(),
            });
        }
        let kinds: BTreeMap<GroupKind, Arc<Resource>> = discovery
            .listed()
            .map(|resource| (resource.kind.group_kind(), Arc::clone(resource)))
            .filter(|(kind, _)| !order::is_shared(kind) && !is_virtual(&kind.group))
            .collect();
        let selector = format!("{PART_OF}={}", self.applyset_id());
        let selector = selector.as_str();
        let at_once = self.cluster().limits().in_flight;
        let found: Vec<LiveObjects> = as_they_come(&kinds, at_once, |(kind, resource)| {
            Box::pin(async move {
                let selection = Selection {
                    labels: selector,
                    ..Selection::default()
                };
                match self.cluster().list_live(resource, selection).await {
                    Ok(listed) => {
                        let members = listed.items.into_iter();
                        Ok(members.map(|live| (live.reference(kind), live)).collect())
                    }
                    // What we may not list, we could never have kept.
                    Err(Error::Forbidden { .. }) => Ok(LiveObjects::new()),
                    Err(error) if error.is_not_found() => {
                        match self.cluster().is_no_longer_served(kind).await? {
                            true => Ok(LiveObjects::new()),
                            false => Err(error),
                        }
                    }
                    Err(error) => Err(error),
                }
            })
        })
        .try_collect()
        .await?;
        let members: LiveObjects = found.into_iter().flatten().collect();
        let held: BTreeSet<GroupKind> = members.keys().map(ObjectRef::group_kind).collect();
        let kinds = kinds.into_iter().filter(|(kind, _)| held.contains(kind));
        Ok((kinds.collect(), members))
    }

    /// The members that other components of the configuration render, and which.
    async fn moving(&self, members: &LiveObjects) -> Result<BTreeMap<ObjectRef, ComponentName>, Error> {
        let Some(siblings) = self.siblings().filter(|_| !members.is_empty()) else {
            return Ok(BTreeMap::new());
        };
        let objects: BTreeSet<ObjectRef> = members.keys().cloned().collect();
        let wanted = siblings.wanting(self.name(), &objects).await;
        moved_away(objects, &wanted)
    }

    /// The definitions that nobody but this component wants and that did not exist before us.
    fn own_definitions(&self, shared: Option<&Parent<SharedRecord>>) -> BTreeSet<String> {
        let objects = shared.into_iter().flat_map(|shared| &shared.record.objects);
        objects
            .filter(|shared| order::is_definition(&shared.recorded.group_kind()) && shared.made_by_us)
            .filter(|shared| shared.wanted_by.len() == 1 && shared.wanted_by.contains_key(self.name()))
            .map(|shared| shared.recorded.name.clone())
            .collect()
    }

    fn kept_definitions(&self, shared: Option<&Parent<SharedRecord>>) -> Vec<SkippedObject> {
        let objects = shared.into_iter().flat_map(|shared| &shared.record.objects);
        objects
            .filter(|shared| shared.wanted_by.contains_key(self.name()))
            .map(|shared| shared.recorded.object())
            .filter(|object| order::is_definition(&object.group_kind()))
            .map(|object| SkippedObject {
                object,
                reason: "deleting it would delete every resource of its kind; deleted only when everything is asked for"
                    .to_owned(),
            })
            .collect()
    }
}
