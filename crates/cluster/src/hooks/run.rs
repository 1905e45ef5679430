//! Running the hooks of one moment, one after the other.

use std::sync::Arc;

use evenkeel_core::{Digest, HookDeletePolicy, HookEvent, ObjectChange, ObjectRef, PlanAction};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};

use super::{Hook, HookFailure, HookRun};
use crate::applyset::hooks::{HookState, RecordedHook};
use crate::applyset::labels::{HOOK_OF, HOOK_RUN};
use crate::applyset::parent::Parent;
use crate::applyset::record::Record;
use crate::discovery::Resource;
use crate::error::{ForeignObject, ManifestProblem};
use crate::guard::Attempt;
use crate::live::LiveObject;
use crate::objects::{Applied, Propagation};
use crate::progress::{Event, Observer};
use crate::race::{self, Doomed, Race};
use crate::readiness::{ObjectState, Readiness};
use crate::session::apply_body;
use crate::target::ComponentTarget;
use crate::wait::completion::{self, Completion};
use crate::wait::{absence, diagnosis};
use crate::{Error, order};

/// How long a kind may be unknown, or answer 404, after a hook defined it: API servers learn of it later.
const SERVED_WITHIN: std::time::Duration = std::time::Duration::from_secs(15);
/// How long a webhook may fail before that counts: it may have been installed just now.
const WEBHOOK_WITHIN: std::time::Duration = std::time::Duration::from_secs(20);
/// Waited between two such tries.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(250);

/// Runs hooks in the name of one attempt, which has its fence at the target already.
pub(crate) struct Runner<'a> {
    pub(crate) target: &'a ComponentTarget,
    pub(crate) attempt: &'a Attempt,
    pub(crate) observer: &'a Observer,
    /// Its record is ahead of the target's while `unwritten`.
    pub(crate) parent: Parent<Record>,
    pub(crate) unwritten: bool,
    /// What was changed, noted as it happens.
    pub(crate) changes: &'a mut Vec<ObjectChange>,
    pub(crate) run: HookRun<'a>,
}

/// A hook where it goes, and which run of it this is.
struct Placed<'a> {
    hook: &'a Hook,
    event: HookEvent,
    resource: Arc<Resource>,
    object: ObjectRef,
    body: Value,
    run: Digest,
}

/// What stands where a hook's object is to be.
enum Found {
    Nothing,
    /// This very run: it was begun before.
    Begun(LiveObject),
    /// It was made, and nobody saw its end.
    Vanished,
    /// In the way, and to be deleted first.
    Obstacle(LiveObject),
    /// Ours, and applied over.
    Older(LiveObject),
}

impl Runner<'_> {
    /// Runs every hook of `event` that has not succeeded yet, then removes what their policies say.
    ///
    /// # Errors
    /// [`Error::Hook`] when one did not succeed; [`Error::Foreign`] when an object of its name is not ours;
    /// [`Error::UnknownKinds`]; whatever a request fails with.
    pub(crate) async fn run(&mut self, event: HookEvent) -> Result<(), Error> {
        let hooks = self.run.hooks;
        let mut done: Vec<Placed<'_>> = Vec::new();
        for hook in hooks.of(event) {
            let defines = done
                .iter()
                .any(|placed| order::is_definition(&placed.hook.group_kind()));
            let placed = self.place(hook, event, defines).await?;
            match self.run_one(&placed, defines).await {
                Ok(()) => done.push(placed),
                Err(Error::Hook(failure)) => {
                    self.clean_after_failure(&placed, &done).await;
                    return Err(Error::Hook(failure));
                }
                Err(error) => return Err(error),
            }
        }
        self.remove(&done, HookDeletePolicy::HookSucceeded).await
    }

    /// What becomes of the objects once a hook failed. The failure itself is what is told.
    async fn clean_after_failure(&mut self, failed: &Placed<'_>, done: &[Placed<'_>]) {
        let cleaned = match self
            .remove(std::slice::from_ref(failed), HookDeletePolicy::HookFailed)
            .await
        {
            Ok(()) => self.remove(done, HookDeletePolicy::HookSucceeded).await,
            failed => failed,
        };
        if let Err(error) = cleaned {
            tracing::warn!(%error, "objects of hooks could not be removed after one of them failed");
        }
    }

    async fn run_one(&mut self, placed: &Placed<'_>, defines: bool) -> Result<(), Error> {
        let known = self.parent.record.hook(&placed.run).cloned();
        if known
            .as_ref()
            .is_some_and(|known| known.state == HookState::Succeeded)
        {
            return Ok(());
        }
        let live = match self.look(placed, known.as_ref()).await? {
            Found::Vanished => {
                let why =
                    "it was made, it is gone, and nobody saw how it ended; the next attempt runs it again";
                return self
                    .failed(placed, Readiness::Failed(why.to_owned()), false)
                    .await;
            }
            Found::Begun(live) => live,
            Found::Nothing => self.make(placed, None, PlanAction::Create, defines).await?,
            Found::Older(live) => self.make(placed, Some(live), PlanAction::Update, defines).await?,
            Found::Obstacle(live) => {
                self.delete(placed, live).await?;
                self.make(placed, None, PlanAction::Recreate, defines).await?
            }
        };
        if !placed.hook.is_awaited() {
            self.note(placed, &live.uid, HookState::Succeeded);
            return Ok(());
        }
        if known.is_none_or(|known| known.uid != live.uid) {
            self.note(placed, &live.uid, HookState::Begun);
            self.write().await?;
        }
        self.wait(placed, &live.uid).await
    }

    /// What stands in the hook's place, and what that means for it.
    async fn look(&self, placed: &Placed<'_>, known: Option<&RecordedHook>) -> Result<Found, Error> {
        let failed = known.is_some_and(|known| known.state == HookState::Failed);
        let was_made = known.is_some_and(|known| !known.uid.is_empty() && !known.gone);
        let live = self
            .target
            .cluster()
            .get_live(&placed.resource, &placed.object)
            .await?;
        let Some(live) = live else {
            return Ok(if was_made && !failed && placed.hook.is_awaited() {
                Found::Vanished
            } else {
                Found::Nothing
            });
        };
        let is_of_us = live.labels.hook_of.as_deref() == Some(self.target.parent_name());
        let is_this_run = is_of_us && live.annotations.hook_run.as_deref() == Some(&placed.run.hex());
        if is_this_run && !failed {
            return Ok(Found::Begun(live));
        }
        // What was an object of the component and is a hook now is ours, too.
        if !is_of_us && !live.is_part_of(self.target.applyset_id()) && !self.run.adopt {
            return Err(Error::Foreign(vec![ForeignObject {
                object: placed.object.clone(),
                owner: live.apparent_owner(),
            }]));
        }
        // A Job or Pod cannot run once more, whatever its policy says, so it is made again. The data of others is not deleted
        // for a hook.
        let is_ours = is_of_us || live.is_part_of(self.target.applyset_id());
        let in_the_way = live.is_deleting()
            || placed.hook.is_awaited()
            || placed.hook.is_deleted_by(HookDeletePolicy::BeforeHookCreation);
        let may_go = !live.is_kept() && (is_ours || !order::never_pruned(&placed.hook.group_kind()));
        Ok(if in_the_way && may_go {
            Found::Obstacle(live)
        } else {
            Found::Older(live)
        })
    }

    /// Makes the object, after writing down that it will be.
    async fn make(
        &mut self,
        placed: &Placed<'_>,
        mut over: Option<LiveObject>,
        action: PlanAction,
        defines: bool,
    ) -> Result<LiveObject, Error> {
        self.parent
            .record
            .note_hook(RecordedHook::intended(&placed.object, placed.run));
        self.unwritten = true;
        self.write().await?;
        let started = Instant::now();
        let mut race = Race::new(self.target.cluster(), format!("apply {}", placed.object));
        let applied = loop {
            let error = match self.apply(placed, over.as_ref()).await {
                Ok(applied) => break applied,
                Err(error) => error,
            };
            if let (Error::Conflict { .. }, Some(before)) = (&error, &over) {
                let now = race
                    .look_again(self.target.cluster(), &placed.resource, &placed.object)
                    .await?;
                match now {
                    Some(now)
                        if now.uid == before.uid
                            && now.labels.hook_of == before.labels.hook_of
                            && now.labels.part_of == before.labels.part_of =>
                    {
                        over = Some(now);
                        continue;
                    }
                    // Another one, or another's: looked at anew by the next pass.
                    _ => return Err(error),
                }
            }
            let patience = match &error {
                Error::NotFound { .. } if defines => SERVED_WITHIN,
                Error::Webhook { .. } => WEBHOOK_WITHIN,
                _ => return Err(error),
            };
            if started.elapsed() + PAUSE > patience {
                return Err(error);
            }
            sleep(PAUSE).await;
        };
        self.changed(&placed.object, action);
        Ok(applied.live)
    }

    async fn apply(&self, placed: &Placed<'_>, over: Option<&LiveObject>) -> Result<Applied, Error> {
        let body = apply_body(&placed.body, over);
        let foreign = || {
            Error::Foreign(vec![ForeignObject {
                object: placed.object.clone(),
                owner: None,
            }])
        };
        let applied = self
            .target
            .cluster()
            .apply(
                &placed.resource,
                &placed.object,
                body,
                over.is_some(),
                &*self.attempt.guard,
            )
            .await;
        match applied {
            // An apply cannot demand that the object be new. One that was there and has other field managers is not what
            // a late request of ours left.
            Ok(applied) if over.is_none() && !applied.created && applied.live.has_other_managers() => {
                Err(foreign())
            }
            Err(Error::FieldConflict { .. }) if over.is_none() => Err(foreign()),
            applied => applied,
        }
    }

    /// Waits until the work of the object has ended, and writes down how.
    async fn wait(&mut self, placed: &Placed<'_>, uid: &str) -> Result<(), Error> {
        (self.observer)(Event::Waiting(format!(
            "{} hook {} runs",
            placed.event, placed.object
        )));
        let deadline = Instant::now() + self.run.within;
        let ended = completion::of_one(
            self.target.cluster(),
            &placed.resource,
            &placed.object,
            uid,
            deadline,
            self.observer,
        )
        .await?;
        match ended {
            Completion::Succeeded => {
                self.note(placed, uid, HookState::Succeeded);
                // Before anything is deleted or made because of it.
                self.write().await
            }
            Completion::Failed(why) => self.failed(placed, Readiness::Failed(why), false).await,
            Completion::Gone => {
                let why = "it was deleted by somebody else before it was done".to_owned();
                self.failed(placed, Readiness::Failed(why), false).await
            }
            Completion::Late(why) => self.failed(placed, Readiness::InProgress(why), true).await,
        }
    }

    /// The failure of a hook, with its diagnosis, after writing down that it failed.
    async fn failed(&mut self, placed: &Placed<'_>, how: Readiness, late: bool) -> Result<(), Error> {
        let uid = self
            .parent
            .record
            .hook(&placed.run)
            .map(|known| known.uid.clone());
        self.note(placed, &uid.unwrap_or_default(), HookState::Failed);
        if let Err(error) = self.write().await {
            tracing::warn!(%error, "that a hook failed is not recorded");
        }
        let state = ObjectState {
            object: placed.object.clone(),
            readiness: how,
            details: Vec::new(),
        };
        let states = vec![(Arc::clone(&placed.resource), state.clone())];
        let explained = diagnosis::explain(self.target.cluster(), states).await;
        Err(Error::Hook(Box::new(HookFailure {
            event: placed.event,
            state: explained.into_iter().next().unwrap_or(state),
            late: late.then_some(self.run.within),
        })))
    }

    /// Deletes the objects of `hooks` whose `policy` says so, last one first, and waits until they are gone.
    async fn remove(&mut self, hooks: &[Placed<'_>], policy: HookDeletePolicy) -> Result<(), Error> {
        for placed in hooks.iter().rev() {
            let is_there = self
                .parent
                .record
                .hook(&placed.run)
                .is_some_and(|known| !known.gone);
            if !is_there || !placed.hook.is_deleted_by(policy) {
                continue;
            }
            // What was reached must be known before it can no longer be seen.
            self.write().await?;
            let live = self
                .target
                .cluster()
                .get_live(&placed.resource, &placed.object)
                .await?;
            match live {
                Some(live) if live.annotations.hook_run.as_deref() != Some(&placed.run.hex()) => {}
                Some(live) if live.is_kept() => continue,
                Some(live) => {
                    self.delete(placed, live).await?;
                    self.changed(&placed.object, PlanAction::Delete);
                }
                None => {}
            }
            self.parent.record.hook_is_gone(&placed.object, None);
            self.unwritten = true;
        }
        Ok(())
    }

    /// Deletes the object that was seen, and waits until it is gone, with its pods.
    async fn delete(&mut self, placed: &Placed<'_>, live: LiveObject) -> Result<(), Error> {
        let Placed { resource, object, .. } = placed;
        let deadline = Instant::now() + self.run.within;
        delete_seen(self.target, resource, object, &live, self.attempt).await?;
        absence::of_one(self.target.cluster(), resource, object, deadline).await?;
        self.parent.record.hook_is_gone(object, None);
        self.unwritten = true;
        Ok(())
    }

    fn note(&mut self, placed: &Placed<'_>, uid: &str, state: HookState) {
        self.parent.record.note_hook(RecordedHook {
            uid: uid.to_owned(),
            state,
            ..RecordedHook::intended(&placed.object, placed.run)
        });
        // There is one object of a name.
        self.parent.record.hook_is_gone(&placed.object, Some(&placed.run));
        self.unwritten = true;
    }

    fn changed(&mut self, object: &ObjectRef, action: PlanAction) {
        let at = self.target.cluster().clock().now();
        tracing::info!(%object, %action, "object of a hook changed");
        self.changes.push(ObjectChange {
            object: object.clone(),
            action,
            at,
        });
        (self.observer)(Event::Changed {
            object: object.clone(),
            action,
        });
    }

    /// Writes the record, if it is ahead of the target's.
    pub(crate) async fn write(&mut self) -> Result<(), Error> {
        if !self.unwritten {
            return Ok(());
        }
        let kinds = self.parent.group_kinds.clone();
        let record = self.parent.record.clone();
        self.parent = self
            .target
            .write_fenced(&self.parent, &record, &kinds, self.attempt)
            .await?;
        self.unwritten = false;
        Ok(())
    }

    /// Where a hook goes, with our label.
    async fn place<'h>(&self, hook: &'h Hook, event: HookEvent, defines: bool) -> Result<Placed<'h>, Error> {
        let resource = self.resource(hook, defines).await?;
        let object = hook.object(resource.namespaced);
        let mut body = hook.body.clone();
        let metadata = body
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            match &object.namespace {
                Some(namespace) => {
                    metadata.insert("namespace".to_owned(), Value::from(namespace.as_str()));
                }
                None => drop(metadata.remove("namespace")),
            }
        }
        let run = self.digest(event, &body);
        let marks = [
            ("labels", HOOK_OF, self.target.parent_name().to_owned()),
            ("annotations", HOOK_RUN, run.hex()),
        ];
        for (field, key, value) in marks {
            let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
            let map =
                metadata.map(|metadata| metadata.entry(field).or_insert_with(|| Value::Object(Map::new())));
            if let Some(map) = map.and_then(Value::as_object_mut) {
                map.insert(key.to_owned(), Value::from(value));
            }
        }
        Ok(Placed {
            hook,
            event,
            resource,
            object,
            body: Value::Object(body),
            run,
        })
    }

    /// Names a run: by the hook, and by what it runs once in, which is the life of the component's parent for an install and
    /// a deletion, a revision for an upgrade.
    fn digest(&self, event: HookEvent, body: &Map<String, Value>) -> Digest {
        let revision = match self.run.occasion {
            super::Occasion::Upgrade(revision) => revision.to_string(),
            super::Occasion::Install | super::Occasion::Delete => String::new(),
        };
        let body = Value::Object(body.clone()).to_string();
        Digest::of_parts([
            self.parent.uid.as_bytes(),
            event.as_str().as_bytes(),
            revision.as_bytes(),
            body.as_bytes(),
        ])
    }

    /// The hook's kind as served; one that a hook before it defined may take a moment.
    async fn resource(&self, hook: &Hook, defines: bool) -> Result<Arc<Resource>, Error> {
        let cluster = self.target.cluster();
        let deadline = Instant::now() + SERVED_WITHIN;
        loop {
            if let Some(resource) = cluster.resource(&hook.kind).await? {
                return Ok(resource);
            }
            if !defines || Instant::now() + PAUSE > deadline {
                return Err(Error::UnknownKinds(vec![ManifestProblem {
                    source: hook.source.clone(),
                    object: format!("{}/{}", hook.kind.kind, hook.name),
                    message: format!("{} is not served", hook.kind),
                }]));
            }
            sleep(PAUSE).await;
            let seen = cluster.discovery().await?;
            cluster.rediscover(&seen).await?;
        }
    }
}

/// Asks for the deletion of an object of a hook as it was seen, also when others write it meanwhile; not when another one has
/// taken its place.
pub(super) async fn delete_seen(
    target: &ComponentTarget,
    resource: &Resource,
    object: &ObjectRef,
    live: &LiveObject,
    attempt: &Attempt,
) -> Result<(), Error> {
    if live.is_deleting() {
        return Ok(());
    }
    let propagation = if order::owns_pods(&object.group_kind()) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    let doomed = Doomed {
        resource,
        object,
        uid: &live.uid,
        resource_version: &live.resource_version,
    };
    let still = |now: &LiveObject| !now.is_kept();
    race::delete(target.cluster(), doomed, propagation, &*attempt.guard, &still)
        .await
        .map(drop)
}
