//! Taking a component away: its objects deleted and really gone, or left behind without our marks.

mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{GroupKind, ObjectChange, ObjectRef, Plan, PlanAction, PlannedChange, SkippedObject};
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::json;
use tokio::time::Instant;

use crate::applyset::labels::PART_OF;
use crate::applyset::parent::Parent;
use crate::applyset::record::{Record, SharedRecord};
use crate::concurrent::as_they_come;
use crate::connection::PatchKind;
use crate::error::{ObjectError, StuckObject};
use crate::guard::Attempt;
use crate::live::LiveObject;
use crate::objects::{Propagation, Selection};
use crate::order::{self, Phase};
use crate::plan::Removal;
use crate::progress::{Event, Observer};
use crate::prune::{Deleted, delete_batch, stop_or_fail};
use crate::target::ComponentTarget;
use crate::wait::absence;
use crate::{Cluster, Error};

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
}

impl Default for DeleteOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(300),
            all: false,
            blocking: true,
            namespaces: true,
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

/// Everything of a component that exists.
struct Inventory {
    parent: Parent<Record>,
    shared: Option<Parent<SharedRecord>>,
    removals: Vec<Removal>,
    kept: Vec<SkippedObject>,
}

impl ComponentTarget {
    /// What [`ComponentTarget::delete`] would do.
    ///
    /// # Errors
    /// As [`ComponentTarget::delete`], of its reads.
    pub async fn plan_deletion(&self, options: &DeleteOptions) -> Result<Plan, Error> {
        let Some(inventory) = self.inventory(options).await? else {
            return Ok(Plan::default());
        };
        let change = |object: ObjectRef, reason: &str| PlannedChange {
            object,
            action: PlanAction::Delete,
            reason: reason.to_owned(),
        };
        let mut changes: Vec<PlannedChange> = inventory
            .removals
            .iter()
            .map(|removal| change(removal.object.clone(), "the component is deleted"))
            .collect();
        if let Some(shared) = inventory.shared.as_ref().filter(|_| options.namespaces) {
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
        Ok(Plan {
            changes,
            skipped: inventory.kept,
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
        let deadline = Instant::now() + options.timeout;
        let Some(inventory) = self.inventory(options).await? else {
            return Ok(Deletion {
                complete: true,
                ..Deletion::default()
            });
        };
        let mut parent = self.fence_parent(inventory.parent, attempt).await?;
        let mut deletion = Deletion {
            kept: inventory.kept,
            ..Deletion::default()
        };
        for phase in Phase::ALL.into_iter().rev() {
            let batch: Vec<Removal> = inventory
                .removals
                .iter()
                .filter(|removal| order::phase(&removal.object.group_kind()) == phase)
                .cloned()
                .collect();
            self.delete_phase(&batch, attempt, options, deadline, observer, &mut deletion)
                .await?;
        }
        if !options.blocking {
            return Ok(deletion);
        }
        self.release_shared(
            inventory.shared,
            options,
            attempt,
            deadline,
            observer,
            &mut deletion,
        )
        .await?;
        self.delete_renders(attempt).await?;
        // Written again since: only a newer attempt does that.
        match self.cluster().delete_parent(&parent, &*attempt.guard).await {
            Err(Error::Conflict { .. }) => {
                let now = self
                    .cluster()
                    .parent::<Record>(self.parent_name(), self.owner(), false)
                    .await?;
                if let Some(now) = now {
                    parent = self.fence_parent(now, attempt).await?;
                    self.cluster().delete_parent(&parent, &*attempt.guard).await?;
                }
            }
            outcome => outcome?,
        }
        deletion.complete = true;
        Ok(deletion)
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
        let Some(inventory) = self.inventory(&options).await? else {
            return Ok(Deletion {
                complete: true,
                ..Deletion::default()
            });
        };
        let parent = self.fence_parent(inventory.parent, attempt).await?;
        let mut deletion = Deletion::default();
        let members = self.members_kinds(&parent).await?;
        let mut live = self.list_members(&members).await?;
        live.retain(|_, live| live.owned().is_some());
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
        self.let_go_of_shared(inventory.shared, attempt).await?;
        self.delete_renders(attempt).await?;
        self.cluster().delete_parent(&parent, &*attempt.guard).await?;
        deletion.complete = true;
        Ok(deletion)
    }

    async fn inventory(&self, options: &DeleteOptions) -> Result<Option<Inventory>, Error> {
        let mut parents = self.cluster().parents(self.owner(), false).await?;
        let Some(parent) = parents.components.remove(self.parent_name()).transpose()? else {
            return Ok(None);
        };
        let kinds = self.members_kinds(&parent).await?;
        let recorded: BTreeSet<ObjectRef> =
            parent.record.objects.iter().map(|entry| entry.object()).collect();
        let mut removals = Vec::new();
        let mut kept = Vec::new();
        for (object, live) in self.list_members(&kinds).await? {
            if !recorded.contains(&object) && (live.owned().is_none() || live.has_controller()) {
                continue;
            }
            let kind = object.group_kind();
            if live.is_kept() {
                kept.push(SkippedObject {
                    object,
                    reason: "helm.sh/resource-policy: keep".to_owned(),
                });
            } else if order::never_pruned(&kind) && !options.all {
                let reason = "it holds data; deleted only when everything is asked for".to_owned();
                kept.push(SkippedObject { object, reason });
            } else if let Some(resource) = kinds.get(&kind) {
                removals.push(Removal {
                    object,
                    resource: Arc::clone(resource),
                    live,
                });
            }
        }
        if let Some(shared) = parents.shared.as_ref().filter(|_| !options.all) {
            let wanted = shared
                .record
                .objects
                .iter()
                .filter(|shared| shared.wanted_by.contains_key(self.name()));
            kept.extend(wanted.map(|shared| shared.recorded.object()).filter(|o| order::is_definition(&o.group_kind())).map(
                |object| SkippedObject {
                    object,
                    reason: "deleting it would delete every resource of its kind; deleted only when everything is asked for"
                        .to_owned(),
                },
            ));
        }
        removals.sort_by_cached_key(|removal| std::cmp::Reverse(order::sort_key(&removal.object)));
        Ok(Some(Inventory {
            parent,
            shared: parents.shared,
            removals,
            kept,
        }))
    }

    /// Takes the fence without announcing anything new.
    async fn fence_parent(&self, parent: Parent<Record>, attempt: &Attempt) -> Result<Parent<Record>, Error> {
        let mut parent = parent;
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
                Err(Error::Conflict { .. }) => {
                    match self
                        .cluster()
                        .parent(self.parent_name(), self.owner(), false)
                        .await?
                    {
                        Some(now) => parent = now,
                        None => return Ok(parent),
                    }
                }
                outcome => return outcome,
            }
        }
    }

    async fn delete_phase(
        &self,
        batch: &[Removal],
        attempt: &Attempt,
        options: &DeleteOptions,
        deadline: Instant,
        observer: &Observer,
        deletion: &mut Deletion,
    ) -> Result<(), Error> {
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
        resource: &crate::Resource,
        object: &ObjectRef,
        live: &LiveObject,
        attempt: &Attempt,
    ) -> Result<(), Error> {
        let patch = json!({"metadata": {"uid": live.uid, "labels": {PART_OF: null}}});
        match self
            .patch(resource, object, PatchKind::Merge, &patch, &*attempt.guard)
            .await
        {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }
}
