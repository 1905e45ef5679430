//! Taking a component away: its objects deleted and really gone, or left behind without our marks.

mod existing;
mod shared;
mod stuck;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use evenkeel_core::{
    ComponentName, GroupKind, ObjectChange, ObjectRef, Plan, PlanAction, PlannedChange, SkippedObject,
};
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::json;
use tokio::time::Instant;

use crate::applyset::labels::{PART_OF, applyset_id, parent_name};
use crate::applyset::parent::Parent;
use crate::applyset::record::Record;
use crate::concurrent::as_they_come;
use crate::connection::PatchKind;
use crate::error::{ObjectError, StuckObject};
use crate::guard::Attempt;
use crate::hooks::Leftovers;
use crate::live::LiveObject;
use crate::objects::{Propagation, Selection};
use crate::order::{self, Phase};
use crate::plan::Removal;
use crate::progress::{Event, Observer};
use crate::prune::{delete_batch, stop_or_fail};
use crate::race::{Deleted, Race};
use crate::target::ComponentTarget;
use crate::wait::absence;
use crate::{Cluster, Error, Resource};

use existing::Existing;

/// How a component is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteOptions {
    /// How long everything may take to be gone.
    pub timeout: Duration,
    /// Also volumes, volume claims and the CustomResourceDefinitions that only this component wants.
    pub all: bool,
    /// Whether to wait until everything is gone; without it neither namespaces nor the parent are deleted, and a later
    /// call finishes the work.
    pub blocking: bool,
    /// Whether the component's namespace may be deleted when we made it and it is empty.
    pub namespaces: bool,
    /// Whether finalizers that still hold an object when time is up are taken off it, where the object is of a kind that we
    /// defined for this component alone: its controller may have gone before it. Objects of other kinds never lose a
    /// finalizer.
    pub strip_finalizers: bool,
}

impl Default for DeleteOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(300),
            all: false,
            blocking: true,
            namespaces: true,
            strip_finalizers: false,
        }
    }
}

/// What a deletion did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Every object that was deleted or let go.
    pub changes: Vec<ObjectChange>,
    /// What stays, and why.
    pub kept: Vec<SkippedObject>,
    /// Whether the component is gone from the cluster, with its parent.
    pub complete: bool,
}

/// What a deletion in progress goes by.
struct Going<'a> {
    attempt: &'a Attempt,
    options: &'a DeleteOptions,
    /// When everything is to be gone.
    deadline: Instant,
    observer: &'a Observer,
    /// The names of the definitions of the component's own kinds.
    own_definitions: BTreeSet<String>,
}

impl ComponentTarget {
    /// What [`ComponentTarget::delete`] would do.
    ///
    /// # Errors
    /// As [`ComponentTarget::delete`], of its reads.
    pub async fn plan_deletion(&self, options: &DeleteOptions) -> Result<Plan, Error> {
        let Some(existing) = self.existing(options).await? else {
            return Ok(Plan::default());
        };
        let leftovers = match &existing.parent {
            Some(parent) => self.hook_leftovers(parent, options.all).await?,
            None => Leftovers::default(),
        };
        let change = |object: ObjectRef, reason: &str| PlannedChange {
            object,
            action: PlanAction::Delete,
            reason: reason.to_owned(),
        };
        let mut changes: Vec<PlannedChange> = existing
            .removals
            .iter()
            .map(|removal| change(removal.object.clone(), "the component is deleted"))
            .collect();
        let left = leftovers.removals.into_iter();
        changes.extend(left.map(|removal| change(removal.object, "a hook left it")));
        if let Some(shared) = existing.shared.as_ref().filter(|_| options.namespaces) {
            changes.extend(
                shared
                    .record
                    .left_over_namespaces(self.name())
                    .into_iter()
                    .map(|shared| {
                        change(
                            shared.recorded.object(),
                            "we made it; deleted only if it is empty then",
                        )
                    }),
            );
        }
        let mut skipped = existing.kept;
        skipped.extend(leftovers.kept);
        skipped.extend(
            existing
                .moving
                .into_iter()
                .map(|(object, (_, component))| SkippedObject {
                    object,
                    reason: format!("it moves to component {component}"),
                }),
        );
        Ok(Plan {
            changes,
            hooks: Vec::new(),
            skipped,
        })
    }

    /// Deletes the component: its objects in reverse order, phase by phase, each phase when the one before is really
    /// gone; then namespaces that we made and that are empty; the parent last. Another call goes on where one ended.
    ///
    /// # Errors
    /// [`Error::Stuck`] with everything still there when time is up, and the finalizers that hold it; [`Error::Objects`]
    /// with what could not be deleted; [`Error::Fenced`] and [`Error::Stopped`] as for every write.
    pub async fn delete(
        &self,
        attempt: &Attempt,
        options: &DeleteOptions,
        observer: &Observer,
    ) -> Result<Deletion, Error> {
        let mut deletion = self.delete_objects(attempt, options, observer).await?;
        if options.blocking && !deletion.complete {
            let rest = self.delete_rest(attempt, options, observer).await?;
            deletion.changes.extend(rest.changes);
            deletion.kept.extend(rest.kept);
            deletion.complete = rest.complete;
        }
        Ok(deletion)
    }

    /// The first half of [`ComponentTarget::delete`]: its objects. What they were in and are remembered by stays.
    ///
    /// # Errors
    /// As [`ComponentTarget::delete`].
    pub async fn delete_objects(
        &self,
        attempt: &Attempt,
        options: &DeleteOptions,
        observer: &Observer,
    ) -> Result<Deletion, Error> {
        let deadline = Instant::now() + options.timeout;
        let Some(mut existing) = self.existing(options).await? else {
            return Ok(Deletion {
                complete: true,
                ..Deletion::default()
            });
        };
        let going = Going {
            attempt,
            options,
            deadline,
            observer,
            own_definitions: std::mem::take(&mut existing.own_definitions),
        };
        self.fence(&mut existing, attempt).await?;
        let mut deletion = Deletion {
            kept: existing.kept,
            ..Deletion::default()
        };
        let moving = existing.moving.into_values();
        self.hand_over(moving.collect(), attempt, observer, &mut deletion)
            .await?;
        for phase in Phase::ALL.into_iter().rev() {
            let batch: Vec<Removal> = existing
                .removals
                .iter()
                .filter(|removal| order::phase(&removal.object.group_kind()) == phase)
                .cloned()
                .collect();
            self.delete_phase(&batch, &going, &mut deletion).await?;
        }
        Ok(deletion)
    }

    /// The second half of [`ComponentTarget::delete`], for when its objects are gone: what hooks left, namespaces that we made
    /// and that are empty, what is kept of it, and its parent.
    ///
    /// # Errors
    /// As [`ComponentTarget::delete`]; [`Error::Stuck`] when objects are there all the same.
    pub async fn delete_rest(
        &self,
        attempt: &Attempt,
        options: &DeleteOptions,
        observer: &Observer,
    ) -> Result<Deletion, Error> {
        let deadline = Instant::now() + options.timeout;
        let mut deletion = Deletion::default();
        let Some(mut existing) = self.existing(options).await? else {
            deletion.complete = true;
            return Ok(deletion);
        };
        if !existing.removals.is_empty() {
            let removals = existing.removals.into_iter();
            let there = removals.map(|removal| StuckObject {
                object: removal.object,
                finalizers: removal.live.finalizers,
                message: None,
            });
            return Err(Error::Stuck(there.collect()));
        }
        let going = Going {
            attempt,
            options,
            deadline,
            observer,
            own_definitions: std::mem::take(&mut existing.own_definitions),
        };
        let parent = self.fence(&mut existing, attempt).await?;
        if let Some(parent) = &parent {
            let leftovers = self.hook_leftovers(parent, options.all).await?;
            self.remove_leftovers(leftovers, attempt, deadline, observer, &mut deletion)
                .await?;
        }
        self.release_shared(existing.shared, &going, &mut deletion)
            .await?;
        self.delete_renders(attempt).await?;
        self.remove_parent(parent, attempt).await?;
        deletion.complete = true;
        Ok(deletion)
    }

    /// Removes the parent, if there is one.
    async fn remove_parent(&self, parent: Option<Parent<Record>>, attempt: &Attempt) -> Result<(), Error> {
        let Some(mut parent) = parent else {
            return Ok(());
        };
        let mut race = Race::new(self.cluster(), format!("remove {}", parent.name));
        while let Err(error) = self.cluster().delete_parent(&parent, &*attempt.guard).await {
            // By a newer attempt, which then has the fence, or by somebody who notes something in it.
            let Error::Conflict { .. } = error else {
                return Err(error);
            };
            match self.parent_again(&mut race, false).await? {
                Some(now) => parent = self.fence_parent(now, attempt).await?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Lets the component go: our labels are taken off its objects, its parent is removed, everything else stays.
    ///
    /// # Errors
    /// [`Error::Objects`] with what could not be let go; [`Error::Fenced`] and [`Error::Stopped`] as for every write.
    pub async fn orphan(&self, attempt: &Attempt, observer: &Observer) -> Result<Deletion, Error> {
        let options = DeleteOptions {
            all: true,
            ..DeleteOptions::default()
        };
        let Some(mut existing) = self.existing(&options).await? else {
            return Ok(Deletion {
                complete: true,
                ..Deletion::default()
            });
        };
        let parent = self.fence(&mut existing, attempt).await?;
        if let Some(parent) = &parent {
            self.let_go_of_leftovers(parent, attempt).await?;
        }
        let mut deletion = Deletion::default();
        let members = &existing.kinds;
        let mut live = self.list_members(members).await?;
        live.retain(|object, live| live.owned().is_some() && !existing.moving.contains_key(object));
        let at_once = self.cluster().limits().apply_concurrency;
        let outcomes: Vec<(ObjectRef, Result<(), Error>)> = as_they_come(live, at_once, |(object, live)| {
            let resource = members.get(&object.group_kind()).cloned();
            Box::pin(async move {
                let outcome = match resource {
                    Some(resource) => self.cluster().let_go(&resource, &object, &live, attempt).await,
                    None => Ok(()),
                };
                (object, outcome)
            })
        })
        .collect()
        .await;
        let mut failures = Vec::new();
        for (object, outcome) in outcomes {
            match outcome {
                Ok(()) => {
                    observer(Event::Changed {
                        object: object.clone(),
                        action: PlanAction::Update,
                    });
                    let at = self.cluster().clock().now();
                    deletion.changes.push(ObjectChange {
                        object,
                        action: PlanAction::Update,
                        at,
                    });
                }
                Err(error) => failures.push(ObjectError { object, error }),
            }
        }
        stop_or_fail(failures)?;
        let moving = existing.moving.into_values();
        self.hand_over(moving.collect(), attempt, observer, &mut deletion)
            .await?;
        self.let_go_of_shared(existing.shared, attempt).await?;
        self.delete_renders(attempt).await?;
        self.remove_parent(parent, attempt).await?;
        deletion.complete = true;
        Ok(deletion)
    }

    /// Takes the fence; in a parent that is made anew when somebody removed it by hand and objects are left.
    async fn fence(
        &self,
        existing: &mut Existing,
        attempt: &Attempt,
    ) -> Result<Option<Parent<Record>>, Error> {
        if let Some(parent) = existing.parent.take() {
            return self.fence_parent(parent, attempt).await.map(Some);
        }
        if existing.removals.is_empty() && existing.moving.is_empty() {
            return Ok(None);
        }
        let owner = self.owner();
        let (fleet, cluster) = (owner.fleet(), owner.cluster().as_str());
        let mut record = Record::new(fleet, cluster, self.name().clone(), attempt.fence);
        record.unfinished = true;
        let kinds = existing.kinds.keys().cloned().collect();
        self.cluster()
            .create_parent(self.parent_name(), owner, record, &kinds, &*attempt.guard)
            .await
            .map(Some)
    }

    /// Gives objects to the components that render them: they change hands by their label alone.
    async fn hand_over(
        &self,
        moving: Vec<(Removal, ComponentName)>,
        attempt: &Attempt,
        observer: &Observer,
        deletion: &mut Deletion,
    ) -> Result<(), Error> {
        let mut failures = Vec::new();
        for (removal, component) in moving {
            let Removal {
                object,
                resource,
                live,
            } = removal;
            let set = applyset_id(&parent_name(&component));
            match self
                .cluster()
                .relabel(&resource, &object, &live, Some(&set), attempt)
                .await
            {
                Ok(()) => {
                    observer(Event::Changed {
                        object: object.clone(),
                        action: PlanAction::Update,
                    });
                    deletion.kept.push(SkippedObject {
                        object,
                        reason: format!("it moves to component {component}"),
                    });
                }
                Err(error) => failures.push(ObjectError { object, error }),
            }
        }
        stop_or_fail(failures)
    }

    /// Takes the fence without announcing anything new.
    pub(crate) async fn fence_parent(
        &self,
        parent: Parent<Record>,
        attempt: &Attempt,
    ) -> Result<Parent<Record>, Error> {
        let mut parent = parent;
        let mut race = Race::new(self.cluster(), format!("take the fence in {}", parent.name));
        loop {
            if parent.record.fence > attempt.fence {
                return Err(Error::Fenced {
                    component: self.name().to_string(),
                    ours: attempt.fence,
                    theirs: parent.record.fence,
                });
            }
            let mut record = parent.record.clone();
            record.fence = attempt.fence;
            record.unfinished = true;
            if record == parent.record {
                return Ok(parent);
            }
            let kinds = parent.group_kinds.clone();
            match self
                .cluster()
                .update_parent(&parent, self.owner(), &record, &kinds, &*attempt.guard)
                .await
            {
                Err(Error::Conflict { .. }) => match self.parent_again(&mut race, false).await? {
                    Some(now) => parent = now,
                    None => return Ok(parent),
                },
                outcome => return outcome,
            }
        }
    }

    async fn delete_phase(
        &self,
        batch: &[Removal],
        going: &Going<'_>,
        deletion: &mut Deletion,
    ) -> Result<(), Error> {
        let Going {
            attempt,
            options,
            deadline,
            observer,
            ..
        } = going;
        if batch.is_empty() {
            return Ok(());
        }
        let set = self.applyset_id();
        let outcomes = delete_batch(
            self.cluster(),
            batch,
            set,
            Propagation::Foreground,
            &*attempt.guard,
        )
        .await;
        let mut failures = Vec::new();
        let mut awaited: BTreeMap<GroupKind, (&Removal, BTreeMap<String, LiveObject>)> = BTreeMap::new();
        for (object, outcome) in outcomes {
            let Some(removal) = batch.iter().find(|removal| removal.object == object) else {
                continue;
            };
            match outcome {
                Ok(Deleted::Asked) => {
                    observer(Event::Changed {
                        object: object.clone(),
                        action: PlanAction::Delete,
                    });
                    let at = self.cluster().clock().now();
                    deletion.changes.push(ObjectChange {
                        object: object.clone(),
                        action: PlanAction::Delete,
                        at,
                    });
                    let of_kind = awaited
                        .entry(object.group_kind())
                        .or_insert((removal, BTreeMap::new()));
                    of_kind.1.insert(removal.live.uid.clone(), removal.live.clone());
                }
                Ok(Deleted::Gone) => {}
                Ok(Deleted::NotOurs) => {
                    let reason = "it is no longer ours".to_owned();
                    deletion.kept.push(SkippedObject { object, reason });
                }
                Err(error) => failures.push(ObjectError { object, error }),
            }
        }
        stop_or_fail(failures)?;
        if !options.blocking {
            return Ok(());
        }
        // Time must be left for what comes after the finalizers.
        let now = Instant::now();
        let deadline = match options.strip_finalizers {
            true => now + deadline.saturating_duration_since(now) / 2,
            false => *deadline,
        };
        let selector = format!("{PART_OF}={set}");
        let mut waits: FuturesUnordered<_> = awaited
            .into_values()
            .map(|(removal, objects)| {
                let selection = Selection {
                    labels: &selector,
                    ..Selection::default()
                };
                absence::of_kind(
                    self.cluster(),
                    &removal.resource,
                    selection,
                    objects,
                    deadline,
                    observer,
                )
            })
            .collect();
        let mut stuck: Vec<StuckObject> = Vec::new();
        while let Some(outcome) = waits.next().await {
            match outcome {
                Ok(()) => {}
                Err(Error::Stuck(objects)) => stuck.extend(objects),
                Err(error) => return Err(error),
            }
        }
        if options.strip_finalizers {
            stuck = self.strip_own(stuck, batch, going).await?;
        }
        stuck.sort_by(|a, b| a.object.cmp(&b.object));
        if stuck.is_empty() {
            Ok(())
        } else {
            Err(Error::Stuck(stuck))
        }
    }
}

impl Cluster {
    /// Takes our label off one object, if it still is the one that we saw.
    async fn let_go(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        live: &LiveObject,
        attempt: &Attempt,
    ) -> Result<(), Error> {
        self.relabel(resource, object, live, None, attempt).await
    }

    /// Makes one object part of another set or of none, if it still is the one that we saw.
    async fn relabel(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        live: &LiveObject,
        set: Option<&str>,
        attempt: &Attempt,
    ) -> Result<(), Error> {
        self.set_label(resource, object, live, (PART_OF, set), attempt)
            .await
    }

    /// Sets or removes one label of the very object that was seen, also when others write it meanwhile.
    pub(crate) async fn set_label(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        live: &LiveObject,
        (label, value): (&str, Option<&str>),
        attempt: &Attempt,
    ) -> Result<(), Error> {
        let patch = json!({"metadata": {"uid": live.uid, "labels": {label: value}}});
        let mut race = Race::new(self, format!("label {object}"));
        loop {
            match self
                .patch(resource, object, PatchKind::Merge, &patch, &*attempt.guard)
                .await
            {
                Ok(_) => return Ok(()),
                Err(error) if error.is_not_found() => return Ok(()),
                // The server itself tries a few times. Another object of that name is a conflict, too.
                Err(error @ Error::Conflict { .. }) => match race.look_again(self, resource, object).await? {
                    None => return Ok(()),
                    Some(now) if now.uid != live.uid => return Err(error),
                    Some(_) => {}
                },
                Err(error) => return Err(error),
            }
        }
    }
}
