//! Server-side apply of a plan, phase by phase.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{ObjectRef, PlanAction};
use futures::stream::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::applyset::labels::REPLICAS_MANAGER;
use crate::concurrent::as_they_come;
use crate::connection::{Guard, PatchKind};
use crate::error::{FieldConflict, ForeignObject, ObjectError};
use crate::live::LiveObject;
use crate::objects::Applied;
use crate::order::{self, Phase};
use crate::plan::{Step, decide};
use crate::progress::Event;
use crate::readiness::{self, Patience};
use crate::session::{REPLACED_WITHIN, Session, Want, apply_body};
use crate::wait::absence;
use crate::{Cluster, Error, adopt};

/// How long a CustomResourceDefinition may take to be established.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(60);
/// How long a kind may answer 404 after its definition was established: other API servers learn of it later.
const SERVED_WITHIN: Duration = Duration::from_secs(15);
/// How long a webhook may fail right after its installation before that counts.
const WEBHOOK_WITHIN: Duration = Duration::from_secs(20);
/// Waited between two such tries, at first; it doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How often an object that others write at the same time is read again.
const RACES_MAX: usize = 5;

/// What applying one step came to.
struct Outcome {
    index: usize,
    result: Result<Done, Error>,
}

struct Done {
    applied: Applied,
    action: PlanAction,
    forced: Vec<FieldConflict>,
}

impl Session {
    /// Applies everything that the plan creates, updates or adopts.
    ///
    /// Definitions first, until they are established; then phase after phase, several objects at a time. An object that
    /// fails does not keep the others of its phase from being applied; later phases do not begin.
    ///
    /// # Errors
    /// [`Error::Objects`] with every object that failed; [`Error::Stopped`] when the guard ended the work;
    /// [`Error::Fenced`] when a newer attempt was here.
    pub async fn apply(&mut self) -> Result<(), Error> {
        if self.plan.steps.iter().any(|step| step.action != PlanAction::None) {
            self.take_fence().await?;
        }
        if self
            .plan
            .steps
            .iter()
            .any(|step| step.action != PlanAction::None && step.desired.is_shared())
        {
            self.announce_shared().await?;
        }
        let adopts = self
            .plan
            .steps
            .iter()
            .any(|step| step.action == PlanAction::Adopt && step.desired.is_shared());
        if adopts {
            self.note_adoptions().await?;
        }
        for phase in Phase::ALL {
            self.apply_phase(phase).await?;
            if phase == Phase::Definitions {
                self.establish_definitions().await?;
            }
        }
        self.note_unchanged_wants();
        self.note_wants().await
    }

    /// That a shared object existed before us is written down before it gets our label.
    async fn note_adoptions(&mut self) -> Result<(), Error> {
        for step in &self.plan.steps {
            if let Some(live) = step
                .live
                .as_ref()
                .filter(|_| step.action == PlanAction::Adopt && step.desired.is_shared())
            {
                let want = Want {
                    live: live.clone(),
                    made_by_us: false,
                    content: None,
                };
                self.wants.insert(step.desired.object.clone(), want);
            }
        }
        self.note_wants().await
    }

    async fn apply_phase(&mut self, phase: Phase) -> Result<(), Error> {
        let cluster = self.cluster().clone();
        let guard = Arc::clone(&self.attempt.guard);
        let outcomes: Vec<Outcome> = {
            let (cluster, guard, observer) = (&cluster, &*guard, &self.observer);
            let due = self.plan.steps.iter().enumerate().filter(|(_, step)| {
                step.action != PlanAction::None && order::phase(&step.desired.group_kind()) == phase
            });
            as_they_come(due, cluster.limits().apply_concurrency, |(index, step)| {
                Box::pin(async move {
                    let result = apply_step(cluster, step, guard).await;
                    // Told at once: a phase may be long.
                    if let Ok(Done { action, .. }) = &result
                        && *action != PlanAction::None
                    {
                        observer(Event::Changed {
                            object: step.desired.object.clone(),
                            action: *action,
                        });
                    }
                    Outcome { index, result }
                })
            })
            .collect()
            .await
        };
        let mut failures = Vec::new();
        for Outcome { index, result } in outcomes {
            match result {
                Ok(done) => self.note(index, done),
                Err(error) => {
                    if let Some(step) = self.plan.steps.get(index) {
                        failures.push(ObjectError {
                            object: step.desired.object.clone(),
                            error,
                        });
                    }
                }
            }
        }
        failures.sort_by(|a, b| a.object.cmp(&b.object));
        // One reason that ends the attempt is told as such, not as so many failed objects.
        if let Some(at) = failures
            .iter()
            .position(|failed| matches!(failed.error, Error::Stopped { .. }))
        {
            return Err(failures.swap_remove(at).error);
        }
        if failures.is_empty() {
            Ok(())
        } else {
            Err(Error::Objects(failures))
        }
    }

    fn note(&mut self, index: usize, done: Done) {
        let Done {
            applied,
            action,
            forced,
        } = done;
        let Some(step) = self.plan.steps.get(index) else {
            return;
        };
        let object = step.desired.object.clone();
        let content = step.desired.content.clone();
        let shared = step.desired.is_shared();
        if !forced.is_empty() {
            tracing::info!(%object, conflicts = ?forced, "fields were taken from other field managers");
            (self.observer)(Event::Forced {
                object: object.clone(),
                conflicts: forced,
            });
        }
        if shared {
            let made_by_us = match action {
                PlanAction::Create => true,
                PlanAction::Adopt => false,
                _ => self
                    .shared
                    .as_ref()
                    .and_then(|shared| shared.record.get(&object))
                    .is_none_or(|shared| shared.made_by_us),
            };
            self.wants.insert(
                object.clone(),
                Want {
                    live: applied.live,
                    made_by_us,
                    content: Some(content),
                },
            );
        } else {
            let mut entry = decide::recorded(&object, &applied.live, Some(&content), false);
            if step.desired.has_readiness_rule() {
                // Set when it is found ready.
                entry.resource_version.clear();
            }
            self.entries.insert(object.clone(), entry);
        }
        if action != PlanAction::None {
            self.note_change(&object, action);
        }
    }

    /// Shared objects that are as they should be, but not yet noted as wanted by this component.
    fn note_unchanged_wants(&mut self) {
        for step in self.plan.steps.iter().filter(|step| step.desired.is_shared()) {
            let known = self
                .shared
                .as_ref()
                .and_then(|shared| shared.record.get(&step.desired.object));
            let wanted = known.is_some_and(|shared| {
                shared.wanted_by.get(self.plan.target.name()) == Some(&Some(step.desired.content.clone()))
            });
            if let (false, PlanAction::None, Some(live)) = (wanted, step.action, &step.live) {
                let made_by_us = known.is_none_or(|shared| shared.made_by_us);
                let want = Want {
                    live: live.clone(),
                    made_by_us,
                    content: Some(step.desired.content.clone()),
                };
                self.wants.insert(step.desired.object.clone(), want);
            }
        }
    }

    /// Waits until the definitions that were just applied serve their kinds, and learns those kinds.
    async fn establish_definitions(&mut self) -> Result<(), Error> {
        let pending: Vec<&Step> = self
            .plan
            .steps
            .iter()
            .filter(|step| {
                step.action != PlanAction::None && order::is_definition(&step.desired.group_kind())
            })
            .collect();
        if pending.is_empty() {
            return Ok(());
        }
        let deadline = Instant::now() + ESTABLISHED_WITHIN;
        for step in &pending {
            established(self.cluster(), step, deadline).await?;
        }
        // Discovery learns of them a little later still. It is no error when it does not: the applies try again.
        let kinds: Vec<_> = self
            .plan
            .steps
            .iter()
            .filter(|step| step.desired.pending.is_some())
            .map(|step| &step.desired.resource.kind)
            .collect();
        let deadline = Instant::now() + SERVED_WITHIN;
        let mut pause = PAUSE_MIN;
        loop {
            let seen = self.cluster().discovery().await?;
            let now = self.cluster().rediscover(&seen).await?;
            if kinds.iter().all(|kind| now.exact(kind).is_some()) || Instant::now() + pause > deadline {
                return Ok(());
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

async fn established(cluster: &Cluster, step: &Step, deadline: Instant) -> Result<(), Error> {
    let mut pause = PAUSE_MIN;
    loop {
        let object = &step.desired.object;
        let verdict = match cluster.get_full(&step.desired.resource, object).await? {
            Some(definition) => readiness::judge(&definition, Patience::Fresh),
            None => readiness::Readiness::InProgress("it was deleted by somebody else".to_owned()),
        };
        if verdict.is_ready() {
            return Ok(());
        }
        let terminal = verdict.is_failed();
        if terminal || Instant::now() + pause >= deadline {
            let state = readiness::ObjectState {
                object: object.clone(),
                readiness: verdict,
                details: Vec::new(),
            };
            return Err(Error::NotReady {
                terminal,
                objects: vec![state],
            });
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Applies one object, through what passes by itself: a kind that is not served everywhere yet, a webhook that is not
/// up yet, an old object that is still going.
async fn apply_step(cluster: &Cluster, step: &Step, guard: Guard<'_>) -> Result<Done, Error> {
    let started = Instant::now();
    let mut pause = PAUSE_MIN;
    loop {
        let error = match apply_once(cluster, step, guard).await {
            Err(error) => error,
            done => return done,
        };
        let patience = match &error {
            Error::NotFound { .. } if step.desired.pending.is_some() => SERVED_WITHIN,
            Error::Webhook { .. } => WEBHOOK_WITHIN,
            _ => return Err(error),
        };
        if started.elapsed() + pause > patience {
            return Err(error);
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

async fn apply_once(cluster: &Cluster, step: &Step, guard: Guard<'_>) -> Result<Done, Error> {
    let desired = &step.desired;
    let mut live = step.live.clone();
    if live.as_ref().is_some_and(LiveObject::is_deleting) {
        absence::of_one(
            cluster,
            &desired.resource,
            &desired.object,
            Instant::now() + REPLACED_WITHIN,
        )
        .await?;
        live = None;
    }
    if step.hand_over_replicas {
        hand_over_replicas(cluster, step, guard).await?;
        live = cluster.get_live(&desired.resource, &desired.object).await?;
    }
    let Some(mut live) = live else {
        return create(cluster, step, guard).await;
    };
    if step.action == PlanAction::Adopt
        && let Some(patch) = adopt::take_fields(&live.managed_fields(), &live.resource_version)
    {
        live = cluster
            .patch(&desired.resource, &desired.object, PatchKind::Json, &patch, guard)
            .await?;
    }
    // Others may write the object between our look and our apply; then it is looked at again.
    for _ in 0..RACES_MAX {
        let before = live.resource_version.clone();
        match apply_over(cluster, step, &live, guard).await {
            Ok((applied, forced)) => {
                let unchanged = applied.live.resource_version == before;
                let action = if unchanged { PlanAction::None } else { step.action };
                return Ok(Done {
                    applied,
                    action,
                    forced,
                });
            }
            Err(error @ Error::Conflict { .. }) => {
                match cluster.get_live(&desired.resource, &desired.object).await? {
                    None => return create(cluster, step, guard).await,
                    Some(now) if now.uid != live.uid || now.labels.part_of != live.labels.part_of => {
                        return Err(error);
                    }
                    Some(now) => live = now,
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::Conflict {
        doing: format!("apply {}", desired.object),
        message: "others write it all the time".to_owned(),
    })
}

/// Applies over an object that is ours or to be adopted: politely at first, to learn whose fields we take.
async fn apply_over(
    cluster: &Cluster,
    step: &Step,
    live: &LiveObject,
    guard: Guard<'_>,
) -> Result<(Applied, Vec<FieldConflict>), Error> {
    let desired = &step.desired;
    let body = apply_body(&desired.body, Some(live));
    match cluster
        .apply(&desired.resource, &desired.object, body.clone(), false, guard)
        .await
    {
        Ok(applied) => Ok((applied, Vec::new())),
        Err(Error::FieldConflict { conflicts, .. }) => {
            let applied = cluster
                .apply(&desired.resource, &desired.object, body, true, guard)
                .await?;
            Ok((applied, conflicts))
        }
        Err(error) => Err(error),
    }
}

/// Applies an object that did not exist when the plan was made.
async fn create(cluster: &Cluster, step: &Step, guard: Guard<'_>) -> Result<Done, Error> {
    let desired = &step.desired;
    let body = apply_body(&desired.body, None);
    let foreign = || {
        Error::Foreign(vec![ForeignObject {
            object: desired.object.clone(),
            owner: None,
        }])
    };
    match cluster
        .apply(&desired.resource, &desired.object, body, false, guard)
        .await
    {
        // An apply cannot demand that the object be new. One that was there and has other field managers is not what a
        // late request of ours left.
        Ok(applied) if !applied.created && applied.live.has_other_managers() => Err(foreign()),
        Ok(applied) => Ok(Done {
            applied,
            action: PlanAction::Create,
            forced: Vec::new(),
        }),
        Err(Error::FieldConflict { .. }) => Err(foreign()),
        Err(error) => Err(error),
    }
}

/// Lets another field manager of ours own the replicas as they are, so that not applying them any more does not reset
/// them to the default.
async fn hand_over_replicas(cluster: &Cluster, step: &Step, guard: Guard<'_>) -> Result<(), Error> {
    let desired = &step.desired;
    let Some(whole) = cluster.get_full(&desired.resource, &desired.object).await? else {
        return Ok(());
    };
    let Some(replicas) = whole.pointer("/spec/replicas").and_then(Value::as_i64) else {
        return Ok(());
    };
    let ObjectRef { namespace, name, .. } = &desired.object;
    let body = json!({
        "apiVersion": desired.resource.kind.api_version(),
        "kind": desired.resource.kind.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas},
    });
    let body = body.to_string().into_bytes();
    cluster
        .apply_as(
            REPLICAS_MANAGER,
            &desired.resource,
            &desired.object,
            body,
            true,
            guard,
        )
        .await
        .map(drop)
}
