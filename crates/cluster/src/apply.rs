//! Server-side apply of a plan, phase by phase.

mod collisions;
pub(crate) mod conflicts;
mod recreate;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{GroupKind, ObjectRef, OnConflict, PlanAction};
use futures::stream::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::applyset::labels::{FIELD_MANAGER, REPLICAS_MANAGER};
use crate::concurrent::as_they_come;
use crate::connection::{Guard, PatchKind};
use crate::error::{FieldConflict, ForeignObject, ObjectError};
use crate::live::LiveObject;
use crate::objects::Applied;
use crate::order::{self, Phase};
use crate::plan::{Step, decide};
use crate::progress::Event;
use crate::race::Race;
use crate::readiness::{self, Patience};
use crate::session::{REPLACED_WITHIN, Session, Want, apply_body};
use crate::wait::absence;
use crate::{Cluster, Error, adopt, immutable};

/// How long a CustomResourceDefinition may take to be established.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(60);
/// How long a kind may answer 404 after its definition was established: other API servers learn of it later.
const SERVED_WITHIN: Duration = Duration::from_secs(15);
/// How long an object may not fit the schema of a definition that was just changed, for the same reason.
const SCHEMA_WITHIN: Duration = Duration::from_secs(3);
/// How long a webhook may fail right after its installation before that counts.
const WEBHOOK_WITHIN: Duration = Duration::from_secs(20);
/// Waited between two such tries, at first; it doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What applying one step came to.
struct Outcome {
    index: usize,
    result: Result<Done, Error>,
}

struct Done {
    applied: Applied,
    action: PlanAction,
    forced: Vec<FieldConflict>,
    left: Vec<FieldConflict>,
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
        self.announce().await?;
        self.define().await?;
        for phase in Phase::ALL {
            if phase != Phase::Definitions {
                self.apply_phase(phase).await?;
            }
        }
        self.note_unchanged_wants();
        self.note_wants().await
    }

    /// Applies the definitions alone, until they are established: hooks that run before everything else may use their kinds.
    /// [`Session::apply`] does not apply them again.
    ///
    /// # Errors
    /// As [`Session::apply`].
    pub async fn apply_definitions(&mut self) -> Result<(), Error> {
        let due =
            |step: &Step| step.action != PlanAction::None && order::is_definition(&step.desired.group_kind());
        if !self.plan.steps.iter().any(due) {
            return Ok(());
        }
        self.announce().await?;
        self.define().await?;
        self.note_wants().await
    }

    async fn define(&mut self) -> Result<(), Error> {
        if !self.defined {
            self.apply_phase(Phase::Definitions).await?;
            self.establish_definitions().await?;
            self.defined = true;
        }
        Ok(())
    }

    /// Takes the fence and announces what is about to be written.
    async fn announce(&mut self) -> Result<(), Error> {
        if self.defined {
            return Ok(());
        }
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
        Ok(())
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
        let fresh = self.changed_definitions();
        let outcomes: Vec<Outcome> = {
            let (cluster, guard, observer, fresh) = (&cluster, &*guard, &self.observer, &fresh);
            let due = self.plan.steps.iter().enumerate().filter(|(_, step)| {
                step.action != PlanAction::None && order::phase(&step.desired.group_kind()) == phase
            });
            as_they_come(due, cluster.limits().apply_concurrency, |(index, step)| {
                Box::pin(async move {
                    let is_fresh = fresh.contains(&step.desired.group_kind());
                    let result = apply_step(cluster, step, is_fresh, guard).await;
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
            left,
        } = done;
        let Some(step) = self.plan.steps.get(index) else {
            return;
        };
        let object = step.desired.object.clone();
        let content = step.desired.content.clone();
        let shared = step.desired.is_shared();
        let drifted = step.drifted.clone();
        if !forced.is_empty() {
            tracing::info!(%object, conflicts = ?forced, "fields were taken from other field managers");
            (self.observer)(Event::Forced {
                object: object.clone(),
                conflicts: forced.clone(),
            });
        }
        if !left.is_empty() {
            tracing::info!(%object, conflicts = ?left, "fields were left to other field managers");
            (self.observer)(Event::Left {
                object: object.clone(),
                conflicts: left,
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
            entry.fixed = immutable::fixed(&step.desired.group_kind(), &step.desired.body);
            if step.desired.judged {
                // Set when it is found ready.
                entry.resource_version.clear();
            }
            self.entries.insert(object.clone(), entry);
        }
        if let Some(fields) = drifted.filter(|_| action != PlanAction::None) {
            self.note_correction(&object, &fields, &forced);
        }
        if action != PlanAction::None {
            self.note_change(&object, action);
        }
    }

    /// The kinds whose definitions this pass changes: API servers learn their schemas a little later.
    fn changed_definitions(&self) -> BTreeSet<GroupKind> {
        let definitions = self.plan.steps.iter().filter(|step| {
            step.action != PlanAction::None && order::is_definition(&step.desired.group_kind())
        });
        definitions
            .filter_map(|step| {
                let text = |pointer: &str| step.desired.body.pointer(pointer)?.as_str();
                Some(GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?))
            })
            .collect()
    }

    /// Shared objects that are as they should be, but not yet noted as wanted by this component.
    fn note_unchanged_wants(&mut self) {
        for step in self.plan.steps.iter().filter(|step| step.desired.is_shared()) {
            let known = self
                .shared
                .as_ref()
                .and_then(|shared| shared.record.get(&step.desired.object));
            let content = Some(step.desired.content.clone());
            let wanting = self.wanting(&step.desired.object);
            let wanted = known.is_some_and(|shared| {
                let mut wanting = wanting.iter();
                wanting.all(|component| shared.wanted_by.get(component) == Some(&content))
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
async fn apply_step(cluster: &Cluster, step: &Step, is_fresh: bool, guard: Guard<'_>) -> Result<Done, Error> {
    let started = Instant::now();
    let mut pause = PAUSE_MIN;
    loop {
        let error = match apply_once(cluster, step, guard).await {
            Err(error) => error,
            done => return done,
        };
        let patience = match &error {
            Error::NotFound { .. } if step.desired.pending.is_some() => SERVED_WITHIN,
            Error::NotFound { .. } | Error::Server { .. } if is_fresh => SERVED_WITHIN,
            Error::Invalid { .. } if is_fresh => SCHEMA_WITHIN,
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
        return create(cluster, step, None, guard).await;
    };
    if let Some(propagation) = step.recreate {
        return recreate::recreate(cluster, step, &live, propagation, guard).await;
    }
    let mut race = Race::new(cluster, format!("apply {}", desired.object));
    let mut taken = Vec::new();
    loop {
        match take_and_apply(cluster, step, &live, &mut taken, guard).await {
            Err(error @ Error::Conflict { .. }) => {
                match race
                    .look_again(cluster, &desired.resource, &desired.object)
                    .await?
                {
                    None => return create(cluster, step, None, guard).await,
                    Some(now) if now.uid != live.uid || now.labels.part_of != live.labels.part_of => {
                        return Err(error);
                    }
                    Some(now) => live = now,
                }
            }
            outcome => return outcome,
        }
    }
}

/// Takes the fields of the tool that kept the object before, where it is adopted, and applies over it.
async fn take_and_apply(
    cluster: &Cluster,
    step: &Step,
    live: &LiveObject,
    taken: &mut Vec<FieldConflict>,
    guard: Guard<'_>,
) -> Result<Done, Error> {
    let desired = &step.desired;
    let patch = match step.action {
        PlanAction::Adopt => adopt::take_fields(&live.managed_fields(), &live.resource_version),
        _ => None,
    };
    let handed;
    let live = match patch {
        Some(patch) => {
            handed = cluster
                .patch(&desired.resource, &desired.object, PatchKind::Json, &patch, guard)
                .await?;
            &handed
        }
        None => live,
    };
    let done = apply_over(cluster, step, live, taken, guard).await?;
    let unchanged = done.applied.live.resource_version == live.resource_version;
    let action = if unchanged { PlanAction::None } else { step.action };
    Ok(Done { action, ..done })
}

/// Applies over an object that is ours or to be adopted: politely at first, to learn whose fields we would take. `taken` are
/// those that an earlier try of the same race has learnt; then only one request lies between the look and the write.
async fn apply_over(
    cluster: &Cluster,
    step: &Step,
    live: &LiveObject,
    taken: &mut Vec<FieldConflict>,
    guard: Guard<'_>,
) -> Result<Done, Error> {
    let desired = &step.desired;
    let done = |applied, forced, left| Done {
        applied,
        action: step.action,
        forced,
        left,
    };
    let apply = |body, force| cluster.apply(&desired.resource, &desired.object, body, force, guard);
    let body = apply_body(&desired.body, Some(live));
    if !taken.is_empty() {
        let applied = apply(body, true).await?;
        return Ok(done(applied, std::mem::take(taken), Vec::new()));
    }
    let (error, conflicts) = match apply(body.clone(), false).await {
        Ok(applied) => return Ok(done(applied, Vec::new(), Vec::new())),
        Err(Error::FieldConflict { doing, conflicts }) => {
            let told = conflicts.clone();
            (Error::FieldConflict { doing, conflicts }, told)
        }
        Err(Error::Invalid { doing, message }) if collisions::is_collision(&message) => {
            let whole = cluster.get_full(&desired.resource, &desired.object).await?;
            let conflicts = whole.map(|whole| collisions::with_others(&desired.body, &whole, FIELD_MANAGER));
            return Err(match conflicts.filter(|conflicts| !conflicts.is_empty()) {
                Some(conflicts) => Error::FieldConflict { doing, conflicts },
                None => Error::Invalid { doing, message },
            });
        }
        Err(error) => return Err(error),
    };
    match desired.on_conflict() {
        OnConflict::Force => {
            *taken = conflicts;
            let applied = apply(body, true).await?;
            Ok(done(applied, std::mem::take(taken), Vec::new()))
        }
        OnConflict::Leave => {
            let Some(rest) = conflicts::without(&desired.body, &conflicts) else {
                return Err(error);
            };
            let body = apply_body(&rest, Some(live));
            Ok(done(apply(body, false).await?, Vec::new(), conflicts))
        }
        OnConflict::Refuse => Err(error),
    }
}

/// Applies an object that did not exist when the plan was made.
async fn create(
    cluster: &Cluster,
    step: &Step,
    replicas: Option<&Value>,
    guard: Guard<'_>,
) -> Result<Done, Error> {
    let desired = &step.desired;
    let mut object = desired.body.clone();
    if let (Some(replicas), Some(Value::Object(spec))) = (replicas, object.get_mut("spec")) {
        spec.insert("replicas".to_owned(), replicas.clone());
    }
    let body = apply_body(&object, None);
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
            left: Vec::new(),
        }),
        Err(Error::FieldConflict { .. }) => Err(foreign()),
        Err(error) => Err(error),
    }
}

/// Lets another field manager of ours own the replicas as they are, so that not applying them any more does not reset
/// them to the default.
async fn hand_over_replicas(cluster: &Cluster, step: &Step, guard: Guard<'_>) -> Result<(), Error> {
    let desired = &step.desired;
    let ObjectRef { namespace, name, .. } = &desired.object;
    let mut race = Race::new(cluster, format!("hand over the replicas of {}", desired.object));
    loop {
        let Some(whole) = cluster.get_full(&desired.resource, &desired.object).await? else {
            return Ok(());
        };
        let Some(replicas) = whole.pointer("/spec/replicas").and_then(Value::as_i64) else {
            return Ok(());
        };
        let body = json!({
            "apiVersion": desired.resource.kind.api_version(),
            "kind": desired.resource.kind.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"replicas": replicas},
        });
        let body = body.to_string().into_bytes();
        match cluster
            .apply_as(
                REPLICAS_MANAGER,
                &desired.resource,
                &desired.object,
                body,
                true,
                guard,
            )
            .await
        {
            Err(Error::Conflict { .. }) => {
                race.look_again(cluster, &desired.resource, &desired.object)
                    .await?;
            }
            outcome => return outcome.map(drop),
        }
    }
}
