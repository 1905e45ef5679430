//! A plan being carried out, step by step, by one attempt.
//!
//! ```text
//! plan ──▶ Session ──▶ prepare_namespaces ──▶ apply ──▶ wait_ready ──▶ prune ──▶ record
//!                      └──── the first write takes the fence in the parent ────┘
//! ```
//! Every step is idempotent and may be the last: what is left undone shows in the next plan.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use evenkeel_core::{ComponentName, Digest, GroupKind, HookEvent, ObjectChange, ObjectRef, PlanAction};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::applyset::contest::Contest;
use crate::applyset::labels::{CLUSTER_PARENT, PART_OF, applyset_id};
use crate::applyset::parent::Parent;
use crate::applyset::record::{Record, RecordedObject, SharedRecord, Stored as _};
use crate::error::FieldConflict;
use crate::fingerprint::Fingerprint;
use crate::guard::Attempt;
use crate::hooks::{HookRun, Runner};
use crate::live::LiveObject;
use crate::objects::namespaces;
use crate::plan::{ComponentPlan, ReleaseNamespace, namespace_ref};
use crate::progress::{Event, Observer};
use crate::race::Race;
use crate::target::Inputs;
use crate::wait::absence;
use crate::{Cluster, Error};

/// How long a namespace or object that is being deleted may take to be gone before its place is used again.
pub(crate) const REPLACED_WITHIN: Duration = Duration::from_secs(120);

/// One attempt at one plan.
pub struct Session {
    pub(crate) plan: ComponentPlan,
    pub(crate) attempt: Attempt,
    pub(crate) observer: Observer,
    pub(crate) parent: Option<Parent<Record>>,
    pub(crate) shared: Option<Parent<SharedRecord>>,
    begun: bool,
    /// What the record will say of each object of the set.
    pub(crate) entries: BTreeMap<ObjectRef, RecordedObject>,
    /// Shared objects as they are now, to be noted as wanted.
    pub(crate) wants: BTreeMap<ObjectRef, Want>,
    /// Who wants shared objects, where that is not the component of the plan.
    wanted_by: BTreeMap<ObjectRef, BTreeSet<ComponentName>>,
    /// Whether definitions were applied and established, apart from the rest.
    pub(crate) defined: bool,
    /// What decided the revision, for the record.
    source: Option<Digest>,
    changes: Vec<ObjectChange>,
    /// Objects of which fields were corrected, and how often.
    contests: BTreeMap<String, Contest>,
}

/// A shared object that the component wants.
pub(crate) struct Want {
    pub(crate) live: LiveObject,
    pub(crate) made_by_us: bool,
    pub(crate) content: Option<Fingerprint>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("component", self.plan.target.name())
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

impl ComponentPlan {
    /// Begins to carry the plan out. Nothing is written before there is something to write.
    pub fn begin(self, attempt: Attempt, observer: Observer) -> Session {
        let mut entries = BTreeMap::new();
        for step in &self.steps {
            if let Some(recorded) = step.recorded.as_ref().filter(|_| !step.desired.is_shared()) {
                entries.insert(
                    step.desired.object.clone(),
                    RecordedObject {
                        kept: false,
                        ..recorded.clone()
                    },
                );
            }
        }
        entries.extend(self.kept.iter().map(|entry| (entry.object(), entry.clone())));
        let known = self
            .steps
            .iter()
            .filter_map(|step| Some((step.desired.object.to_string(), step.contest.clone()?)));
        let contests = known.collect();
        Session {
            parent: self.parent.clone(),
            shared: self.shared.clone(),
            attempt,
            observer,
            begun: false,
            entries,
            wants: BTreeMap::new(),
            wanted_by: BTreeMap::new(),
            defined: false,
            source: None,
            changes: Vec::new(),
            contests,
            plan: self,
        }
    }
}

impl Session {
    /// The plan that is carried out.
    pub fn plan(&self) -> &ComponentPlan {
        &self.plan
    }

    /// What was changed so far; complete also after an error.
    pub fn changes(&self) -> &[ObjectChange] {
        &self.changes
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        self.plan.target.cluster()
    }

    /// Says that shared objects are wanted by others than the component of the plan, in whose place it applies them.
    pub fn on_behalf_of(&mut self, wanted_by: BTreeMap<ObjectRef, BTreeSet<ComponentName>>) {
        self.wanted_by = wanted_by;
    }

    /// Who wants a shared object of the plan.
    pub(crate) fn wanting(&self, object: &ObjectRef) -> Vec<ComponentName> {
        match self.wanted_by.get(object) {
            Some(components) => components.iter().cloned().collect(),
            None => vec![self.plan.target.name().clone()],
        }
    }

    /// Remembers and tells that an object was changed.
    pub(crate) fn changed(&mut self, object: &ObjectRef, action: PlanAction) {
        self.note_change(object, action);
        (self.observer)(Event::Changed {
            object: object.clone(),
            action,
        });
    }

    /// Remembers that an object was changed, which was told already.
    pub(crate) fn note_change(&mut self, object: &ObjectRef, action: PlanAction) {
        let at = self.cluster().clock().now();
        tracing::info!(%object, %action, "object changed");
        self.changes.push(ObjectChange {
            object: object.clone(),
            action,
            at,
        });
    }

    /// Remembers that fields of an object were corrected, and from whom they were taken.
    pub(crate) fn note_correction(&mut self, object: &ObjectRef, fields: &str, taken: &[FieldConflict]) {
        let key = object.to_string();
        let now = self.cluster().clock().now().as_second();
        let contest = Contest::after(self.contests.get(&key), fields, taken, now);
        self.contests.insert(key, contest);
    }

    /// Takes the fence in the parent and announces every kind that will be written; once, before the first write.
    ///
    /// # Errors
    /// [`Error::NeedsConsent`] when the plan deletes more than it may and nobody has agreed; [`Error::Fenced`] when a newer
    /// attempt was here; [`Error::OtherOwner`] when the parent is another's.
    pub async fn take_fence(&mut self) -> Result<(), Error> {
        if self.begun {
            return Ok(());
        }
        if let Some(needed) = self.plan.consent_needed() {
            return Err(Error::NeedsConsent(Box::new(needed.clone())));
        }
        let written = self
            .plan
            .steps
            .iter()
            .filter(|step| !step.desired.is_shared())
            .map(|step| step.desired.group_kind());
        let mut kinds: BTreeSet<GroupKind> = written.collect();
        kinds.extend(self.entries.keys().map(ObjectRef::group_kind));
        let target = self.plan.target.clone();
        let (owner, cluster, guard) = (target.owner(), target.cluster(), &*self.attempt.guard);
        let mut race = Race::new(cluster, format!("take the fence of component {}", target.name()));
        loop {
            let outcome = match &self.parent {
                Some(parent) => {
                    if parent.record.fence > self.attempt.fence {
                        return Err(Error::Fenced {
                            component: target.name().to_string(),
                            ours: self.attempt.fence,
                            theirs: parent.record.fence,
                        });
                    }
                    let mut record = parent.record.clone();
                    owner.fleet().clone_into(&mut record.fleet);
                    owner.cluster().as_str().clone_into(&mut record.cluster);
                    record.fence = self.attempt.fence;
                    record.unfinished = true;
                    let all = parent.group_kinds.union(&kinds).cloned().collect();
                    cluster.update_parent(parent, owner, &record, &all, guard).await
                }
                None => {
                    let mut record = Record::new(
                        owner.fleet(),
                        owner.cluster().as_str(),
                        target.name().clone(),
                        self.attempt.fence,
                    );
                    record.unfinished = true;
                    record.namespace = Some(self.plan.desired.namespace.clone());
                    record.taken_over = self.plan.adopts;
                    cluster
                        .create_parent(target.parent_name(), owner, record, &kinds, guard)
                        .await
                }
            };
            match outcome {
                Ok(parent) => {
                    self.parent = Some(parent);
                    self.begun = true;
                    return Ok(());
                }
                Err(Error::Conflict { .. } | Error::AlreadyExists { .. } | Error::NotFound { .. }) => {
                    self.parent = target.parent_again(&mut race, self.plan.take_over).await?;
                    if let Some(parent) = self
                        .parent
                        .as_ref()
                        .filter(|parent| parent.record.component != *target.name())
                    {
                        let reason = format!("it is of component {:?}", parent.record.component.as_str());
                        return Err(Error::BadParent {
                            parent: parent.name.clone(),
                            reason,
                        });
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes the release namespace when it is missing; waits first when an old one is being deleted.
    ///
    /// # Errors
    /// [`Error::Stuck`] when the old one does not go; whatever a request fails with.
    pub async fn prepare_namespaces(&mut self) -> Result<(), Error> {
        let name = self.plan.desired.namespace.to_string();
        let object = namespace_ref(&name);
        match self.plan.release_namespace {
            ReleaseNamespace::Given => return Ok(()),
            // Ours already; that this component wants it is noted with the record.
            ReleaseNamespace::Ours => {
                let known = self.shared.as_ref().and_then(|shared| shared.record.get(&object));
                if known.is_some_and(|shared| shared.wanted_by.contains_key(self.plan.target.name())) {
                    return Ok(());
                }
                self.take_fence().await?;
                if let Some(live) = self.cluster().get_live(&namespaces(), &object).await? {
                    self.wants.insert(
                        object,
                        Want {
                            live,
                            made_by_us: true,
                            content: None,
                        },
                    );
                }
                return self.note_wants().await;
            }
            ReleaseNamespace::Terminating => {
                self.take_fence().await?;
                (self.observer)(Event::Waiting(format!("namespace {name} is being deleted")));
                let deadline = Instant::now() + REPLACED_WITHIN;
                absence::of_one(self.cluster(), &namespaces(), &object, deadline).await?;
            }
            ReleaseNamespace::Missing => self.take_fence().await?,
        }
        self.announce_shared().await?;
        let set = applyset_id(CLUSTER_PARENT);
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {PART_OF: set}}});
        let body = body.to_string().into_bytes();
        let applied = self
            .cluster()
            .apply(&namespaces(), &object, body, false, &*self.attempt.guard)
            .await?;
        if applied.created {
            self.changed(&object, PlanAction::Create);
        }
        // One that somebody else made in between is used, and not deleted one day.
        self.wants.insert(
            object,
            Want {
                live: applied.live,
                made_by_us: applied.created,
                content: None,
            },
        );
        self.note_wants().await
    }

    /// Announces the kinds of shared objects in the shared parent, before the first of them is written.
    pub(crate) async fn announce_shared(&mut self) -> Result<(), Error> {
        let mut kinds: BTreeSet<GroupKind> = self
            .plan
            .steps
            .iter()
            .filter(|step| step.desired.is_shared())
            .map(|step| step.desired.group_kind())
            .collect();
        if matches!(
            self.plan.release_namespace,
            ReleaseNamespace::Missing | ReleaseNamespace::Terminating
        ) {
            kinds.insert(namespaces().kind.group_kind());
        }
        let target = self.plan.target.clone();
        let known = self.shared.take();
        self.shared = target
            .cluster()
            .update_shared(target.owner(), known, &kinds, &*self.attempt.guard, |_| false)
            .await?;
        Ok(())
    }

    /// Notes in the shared parent what the component wants of it.
    pub(crate) async fn note_wants(&mut self) -> Result<(), Error> {
        if self.wants.is_empty() {
            return Ok(());
        }
        let wants: Vec<(ObjectRef, Want, Vec<ComponentName>)> = std::mem::take(&mut self.wants)
            .into_iter()
            .map(|(object, want)| {
                let components = self.wanting(&object);
                (object, want, components)
            })
            .collect();
        let target = self.plan.target.clone();
        let known = self.shared.take();
        self.shared = target
            .cluster()
            .update_shared(
                target.owner(),
                known,
                &BTreeSet::new(),
                &*self.attempt.guard,
                |record| {
                    for (object, want, components) in &wants {
                        for component in components {
                            record.want(
                                component,
                                object,
                                &want.live,
                                want.made_by_us,
                                want.content.as_ref(),
                            );
                        }
                    }
                    true
                },
            )
            .await?;
        Ok(())
    }

    /// Writes down what was reached: the objects as they now are, the revision, and no kinds that are no longer used.
    ///
    /// Writes nothing when the record says so already.
    ///
    /// # Errors
    /// [`Error::Fenced`] when a newer attempt has taken over; whatever a request fails with.
    pub async fn record(&mut self, inputs: &Inputs) -> Result<(), Error> {
        self.note_wants().await?;
        self.forget_wants().await?;
        self.take_over_shared().await?;
        let objects: Vec<RecordedObject> = self.entries.values().cloned().collect();
        let same = self.parent.as_ref().is_some_and(|parent| {
            let record = &parent.record;
            record.revision == Some(inputs.revision)
                && record.inputs == Some(inputs.digest)
                && record.namespace.as_ref() == Some(&self.plan.desired.namespace)
                && !record.unfinished
                && record.is_of(self.plan.target.owner())
                && same_but_versions(&record.objects, &objects)
        });
        if same && !self.begun {
            return Ok(());
        }
        self.take_fence().await?;
        let parent = self.fenced_parent()?;
        let mut record = parent.record.clone();
        record.revision = Some(inputs.revision);
        record.inputs = Some(inputs.digest);
        record.namespace = Some(self.plan.desired.namespace.clone());
        record.unfinished = false;
        record.objects = objects;
        record.source = self.source.or(record.source);
        record.forget_gone_hooks();
        record.contests.clone_from(&self.contests);
        let kinds = record.objects.iter().map(RecordedObject::group_kind).collect();
        let target = &self.plan.target;
        self.parent = Some(
            target
                .write_fenced(parent, &record, &kinds, &self.attempt)
                .await?,
        );
        Ok(())
    }

    /// Puts our name into a shared parent that was another's, when that was wanted.
    async fn take_over_shared(&mut self) -> Result<(), Error> {
        let owner = self.plan.target.owner().clone();
        let is_foreign = |shared: &Parent<SharedRecord>| !shared.record.is_of(&owner);
        if !self.shared.as_ref().is_some_and(is_foreign) {
            return Ok(());
        }
        self.take_fence().await?;
        let known = self.shared.take();
        let cluster = self.cluster().clone();
        self.shared = cluster
            .update_shared(&owner, known, &BTreeSet::new(), &*self.attempt.guard, |_| true)
            .await?;
        Ok(())
    }

    /// Writes down how far a pass came that did not reach its end, so that the next one need not apply again what was
    /// applied. Writes nothing when nothing was written before.
    ///
    /// # Errors
    /// As [`Session::record`].
    pub async fn record_progress(&mut self) -> Result<(), Error> {
        if !self.begun {
            return Ok(());
        }
        self.note_wants().await?;
        let objects = self.entries.values().cloned().collect();
        let contests = self.contests.clone();
        self.update_record(|record| {
            record.objects = objects;
            record.contests = contests;
        })
        .await
    }

    /// Notes what decided the revision that is applied: another one is another revision.
    pub fn made_from(&mut self, source: Digest) {
        self.source = Some(source);
    }

    /// Runs the hooks of `event` that have not run for this occasion yet, one after the other.
    ///
    /// # Errors
    /// [`Error::Hook`] when one fails or does not end in time, with its diagnosis; [`Error::Foreign`] when an object of its
    /// name is not ours; [`Error::UnknownKinds`]; as [`Session::take_fence`]; whatever a request fails with.
    pub async fn run_hooks(&mut self, run: HookRun<'_>, event: HookEvent) -> Result<(), Error> {
        if !run.hooks.any(event) {
            return Ok(());
        }
        self.take_fence().await?;
        let target = self.plan.target.clone();
        let parent = self.fenced_parent()?.clone();
        let mut runner = Runner {
            target: &target,
            attempt: &self.attempt,
            observer: &self.observer,
            parent,
            unwritten: false,
            changes: &mut self.changes,
            run,
        };
        let outcome = runner.run(event).await;
        // What is not written yet goes with whatever is written next.
        self.parent = Some(runner.parent);
        outcome
    }

    /// Changes the record at the target, after the fence was taken.
    pub(crate) async fn update_record(&mut self, change: impl FnOnce(&mut Record)) -> Result<(), Error> {
        let parent = self.fenced_parent()?;
        let mut record = parent.record.clone();
        change(&mut record);
        let target = &self.plan.target;
        let kinds = parent.group_kinds.clone();
        let parent = target
            .write_fenced(parent, &record, &kinds, &self.attempt)
            .await?;
        self.parent = Some(parent);
        Ok(())
    }

    fn fenced_parent(&self) -> Result<&Parent<Record>, Error> {
        let missing = || Error::Bug("the parent is missing after its fence was taken".to_owned());
        self.parent.as_ref().ok_or_else(missing)
    }

    /// Takes back that the component wants shared objects which it no longer renders. They stay.
    async fn forget_wants(&mut self) -> Result<(), Error> {
        let mut still: BTreeSet<ObjectRef> = self
            .plan
            .steps
            .iter()
            .filter(|step| step.desired.is_shared())
            .map(|step| step.desired.object.clone())
            .collect();
        still.insert(namespace_ref(self.plan.desired.namespace.as_str()));
        let name = self.plan.target.name().clone();
        let outdated = self
            .shared
            .as_ref()
            .is_some_and(|shared| shared.record.clone().unwant(&name, &still));
        if !outdated {
            return Ok(());
        }
        self.take_fence().await?;
        let target = self.plan.target.clone();
        let known = self.shared.take();
        self.shared = target
            .cluster()
            .update_shared(
                target.owner(),
                known,
                &BTreeSet::new(),
                &*self.attempt.guard,
                |record| record.unwant(&name, &still),
            )
            .await?;
        Ok(())
    }
}

/// Whether two lists of objects differ at most in resource versions, which are worth no write; that an object was found
/// ready for the first time is.
fn same_but_versions(recorded: &[RecordedObject], now: &[RecordedObject]) -> bool {
    let bare = |objects: &[RecordedObject]| -> BTreeMap<ObjectRef, RecordedObject> {
        let strip = |entry: &RecordedObject| RecordedObject {
            resource_version: entry.resource_version.chars().take(1).map(|_| '*').collect(),
            ..entry.clone()
        };
        objects
            .iter()
            .map(|entry| (entry.object(), strip(entry)))
            .collect()
    };
    bare(recorded) == bare(now)
}

/// The body of an apply: what is desired, and for an object that exists, which one is meant.
pub(crate) fn apply_body(desired: &Value, live: Option<&LiveObject>) -> Vec<u8> {
    match live {
        None => desired.to_string().into_bytes(),
        Some(live) => {
            let mut body = desired.clone();
            if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("uid".to_owned(), Value::from(live.uid.as_str()));
                metadata.insert(
                    "resourceVersion".to_owned(),
                    Value::from(live.resource_version.as_str()),
                );
            }
            body.to_string().into_bytes()
        }
    }
}
