//! What is to be done for one component, decided from its record and metadata alone where those suffice.

mod consent;
pub(crate) mod decide;
mod diff;
mod existing;
mod leftovers;
pub(crate) mod moves;
mod recreate;

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_core::{
    ComponentName, ConsentNeeded, GroupKind, LossLimit, ObjectRef, OnConflict, Plan, PlanAction,
    PlannedChange,
};
use futures::stream::TryStreamExt as _;
use serde_json::Value;

use crate::applyset::applyset_id;
use crate::applyset::contest::Contest;
use crate::applyset::labels::CLUSTER_PARENT;
use crate::applyset::parent::Parent;
use crate::applyset::record::{Record, RecordedObject, SharedRecord};
use crate::concurrent::in_order;
use crate::discovery::Resource;
use crate::error::ForeignObject;
use crate::live::LiveObject;
use crate::manifest::autoscale;
use crate::objects::{Propagation, Selection, namespaces};
use crate::target::ComponentTarget;
use crate::{Desired, DesiredObject, Error, ReadinessRules, drift, order};

pub use diff::Secrets;

use decide::Sameness;
use moves::Moves;
use recreate::Settled;

/// What a plan may do besides creating and updating what is ours.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Take over existing objects that are not ours.
    pub adopt: bool,
    /// Take over the parent of another fleet or cluster, and with it its objects.
    pub take_over: bool,
    /// What is done about fields of others, where the object's annotation says nothing else.
    pub on_conflict: OnConflict,
    /// How many objects may be deleted without consent.
    pub deletions: LossLimit,
    /// When objects count as ready that the rules of their kinds do not know.
    pub readiness: ReadinessRules,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            adopt: false,
            take_over: false,
            on_conflict: OnConflict::default(),
            deletions: LossLimit::OBJECTS,
            readiness: ReadinessRules::default(),
        }
    }
}

/// What is to be done, with all that doing it needs. Nothing is written until a [`Session`](crate::Session) runs it.
#[derive(Debug)]
pub struct ComponentPlan {
    pub(crate) target: ComponentTarget,
    pub(crate) summary: Plan,
    pub(crate) desired: Desired,
    /// One for each desired object, in the order of application.
    pub(crate) steps: Vec<Step>,
    /// In the order of deletion.
    pub(crate) deletions: Vec<Removal>,
    /// Ours, no longer rendered, and staying.
    pub(crate) kept: Vec<RecordedObject>,
    /// What nobody has agreed to yet.
    consent: Option<ConsentNeeded>,
    pub(crate) release_namespace: ReleaseNamespace,
    pub(crate) parent: Option<Parent<Record>>,
    pub(crate) shared: Option<Parent<SharedRecord>>,
    pub(crate) take_over: bool,
    /// Whether objects of somebody else become its own.
    pub(crate) adopts: bool,
    pub(crate) readiness: ReadinessRules,
}

/// One desired object and what is to be done for it.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) desired: DesiredObject,
    pub(crate) action: PlanAction,
    pub(crate) live: Option<LiveObject>,
    /// What the record says of it, brought up to date when nothing is to be done.
    pub(crate) recorded: Option<RecordedObject>,
    /// Whether the replicas must pass to an autoscaler before we let go of them.
    pub(crate) hand_over_replicas: bool,
    /// How it is deleted before it is made again, when it cannot be changed in place.
    pub(crate) recreate: Option<Propagation>,
    /// Which fields somebody changed, when that is why it is applied.
    pub(crate) drifted: Option<String>,
    /// How often fields of it were corrected in vain.
    pub(crate) contest: Option<Contest>,
}

impl Step {
    /// Brings the record of an unchanged object up to date. A resource version vouches for readiness too, so a new one
    /// of a kind with a readiness rule is noted only when the object was found ready at it.
    fn refresh(&mut self) {
        let has_rule = self.desired.judged;
        if let (Some(recorded), Some(live)) = (&mut self.recorded, &self.live)
            && recorded.resource_version != live.resource_version
        {
            recorded.owned = live.owned();
            recorded.resource_version = if has_rule {
                String::new()
            } else {
                live.resource_version.clone()
            };
        }
    }
}

/// One object to be deleted.
#[derive(Clone, Debug)]
pub(crate) struct Removal {
    pub(crate) object: ObjectRef,
    pub(crate) resource: Arc<Resource>,
    pub(crate) live: LiveObject,
}

/// How the release namespace was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReleaseNamespace {
    /// It is there and not ours, or rendered by the component itself.
    Given,
    /// It is there and we made it.
    Ours,
    /// It is not there.
    Missing,
    /// It is being deleted.
    Terminating,
}

impl ComponentPlan {
    /// The plan for people: every object, what happens to it and why.
    pub fn summary(&self) -> &Plan {
        &self.summary
    }

    /// The objects that the component should have.
    pub fn desired(&self) -> &Desired {
        &self.desired
    }

    /// Whether no object is to be written.
    pub fn is_noop(&self) -> bool {
        self.summary.is_noop()
    }

    /// Whether it takes over objects of somebody else, so that the component does not begin its life with it.
    pub fn adopts(&self) -> bool {
        self.adopts
    }

    /// What the target remembered when the plan was made.
    pub fn record(&self) -> Option<&Record> {
        self.parent.as_ref().map(|parent| &parent.record)
    }
}

impl ComponentTarget {
    /// Compares `desired` with the cluster and decides what to do, without writing.
    ///
    /// Costs one LIST of parents and one metadata LIST per kind of the set; objects that seem to differ are read.
    ///
    /// # Errors
    /// [`Error::Foreign`] with every object that exists and is not ours, unless told to adopt;
    /// [`Error::ImmutableFields`] with every object that would have to be made again and is not to be;
    /// [`Error::RenderedTwice`] with every object that a sibling renders, too;
    /// [`Error::OtherOwner`] when the parent is another's, unless told to take over; whatever a request fails with.
    pub async fn plan(&self, mut desired: Desired, options: &PlanOptions) -> Result<ComponentPlan, Error> {
        let mut parents = self.cluster().parents(self.owner(), options.take_over).await?;
        let parent = parents.components.remove(self.parent_name()).transpose()?;
        self.check_name(parent.as_ref())?;
        let kinds = self.kinds_to_list(parent.as_ref(), &desired).await?;
        let mut live = self.list_members(&kinds).await?;
        let recorded: BTreeMap<ObjectRef, RecordedObject> = parent
            .iter()
            .flat_map(|parent| &parent.record.objects)
            .map(|entry| (entry.object(), entry.clone()))
            .collect();
        let shared_set = applyset_id(CLUSTER_PARENT);
        let mut release = self
            .release_namespace(&desired, &live, parents.shared.as_ref(), &shared_set)
            .await?;
        let absent = (release == ReleaseNamespace::Missing).then(|| desired.namespace.to_string());
        let found = self.look_for_others(&desired, &live, absent.as_deref()).await?;
        let owners = moves::owners(&parents);
        let existing = moves::Found {
            members: &live,
            others: &found,
            recorded: &recorded,
            owners: &owners,
        };
        let moves = self.moves(&desired, &existing).await?;

        let objects = std::mem::take(&mut desired.objects);
        let mut context = Context {
            target: self,
            options,
            shared: parents.shared.as_ref(),
            shared_set: &shared_set,
            recorded: &recorded,
            moves: &moves,
            owners: &owners,
            record: parent.as_ref().map(|parent| &parent.record),
            foreign: Vec::new(),
        };
        let mut drafts = Vec::with_capacity(objects.len());
        for mut object in objects {
            object.set_policy(options.on_conflict);
            object.judged |= options
                .readiness
                .covers(&object.group_kind(), &object.object.name);
            let there = live
                .remove(&object.object)
                .or_else(|| found.get(&object.object).cloned());
            drafts.push(context.draft(object, there));
        }
        if !context.foreign.is_empty() {
            return Err(Error::Foreign(context.foreign));
        }
        let decided = self.settle(drafts).await?;
        let refused: Vec<_> = decided
            .iter()
            .filter_map(|settled| settled.refused.clone())
            .collect();
        if !refused.is_empty() {
            return Err(Error::ImmutableFields(refused));
        }
        if desired_has(&decided, &desired) {
            release = ReleaseNamespace::Given;
        }

        let mut summary = Plan {
            changes: Vec::with_capacity(decided.len()),
            hooks: Vec::new(),
            skipped: desired.skipped.clone(),
        };
        if matches!(release, ReleaseNamespace::Missing | ReleaseNamespace::Terminating) {
            summary.changes.push(PlannedChange {
                object: namespace_ref(desired.namespace.as_str()),
                action: PlanAction::Create,
                reason: "it is the release namespace and does not exist".to_owned(),
            });
        }
        let adopts = decided.iter().any(|Settled { step, .. }| {
            step.action == PlanAction::Adopt
                && !step.desired.is_shared()
                && !moves.here.contains_key(&step.desired.object)
        });
        let mut steps = Vec::with_capacity(decided.len());
        for Settled { step, reason, .. } in decided {
            summary.changes.push(PlannedChange {
                object: step.desired.object.clone(),
                action: step.action,
                reason,
            });
            steps.push(step);
        }
        // Namespaces come after definitions.
        summary
            .changes
            .sort_by_cached_key(|change| order::sort_key(&change.object).0);
        let (deletions, kept) = self.leftovers(live, &kinds, &recorded, &moves, &mut summary);
        desired.objects = steps.iter().map(|step| step.desired.clone()).collect();
        let mut plan = ComponentPlan {
            target: self.clone(),
            summary,
            desired,
            steps,
            deletions,
            kept,
            consent: None,
            release_namespace: release,
            parent,
            shared: parents.shared,
            take_over: options.take_over,
            adopts,
            readiness: options.readiness.clone(),
        };
        plan.consent = plan.question(options.deletions);
        Ok(plan)
    }

    /// Reads what only a look at the whole object can decide, a few at a time.
    async fn settle(&self, drafts: Vec<Draft>) -> Result<Vec<Settled>, Error> {
        in_order(drafts, self.cluster().limits().in_flight, |draft| {
            Box::pin(async move {
                let (step, reason) = match draft {
                    Draft::Decided(step, reason) => (*step, reason),
                    Draft::Suspect(step) => self.compare_whole(*step).await?,
                    Draft::Scaled(step) => self.compare_scaled(*step).await?,
                };
                self.settle_immutable(step, reason).await
            })
        })
        .try_collect()
        .await
    }

    /// Whether fields that we set differ; if none does, the object is remembered as it is.
    async fn compare_whole(&self, mut step: Step) -> Result<(Step, String), Error> {
        let Some(whole) = self
            .cluster()
            .get_full(&step.desired.resource, &step.desired.object)
            .await?
        else {
            step.live = None;
            step.action = PlanAction::Create;
            return Ok((step, "it was deleted by somebody else".to_owned()));
        };
        let mut differences = drift::differences(&step.desired.body, &whole);
        if recreate::is_claim(&step.desired.group_kind()) && drift::is_grown(&step.desired.body, &whole) {
            // Growing a full volume by hand is no drift that could be healed: a claim cannot shrink.
            differences.retain(|field| field != drift::STORAGE_REQUEST);
        }
        if differences.is_empty() {
            step.action = PlanAction::None;
            step.refresh();
            return Ok((step, "unchanged: what others changed is not ours".to_owned()));
        }
        let fields = drift::describe(&differences);
        let now = self.cluster().clock().now().as_second();
        if let Some(why) = step
            .contest
            .as_ref()
            .and_then(|contest| contest.holds_for(&fields, now))
        {
            step.action = PlanAction::None;
            return Ok((step, why));
        }
        step.action = PlanAction::Update;
        let reason = format!("changed by somebody else: {fields}");
        step.drifted = Some(fields);
        Ok((step, reason))
    }

    /// Replicas that somebody scaled: an autoscaler keeps them, a hand does not.
    async fn compare_scaled(&self, mut step: Step) -> Result<(Step, String), Error> {
        if self.has_autoscaler(&step.desired.object).await? {
            step.desired.autoscaled = true;
            autoscale::remove_replicas(&mut step.desired.body);
            step.desired.content = step.desired.fingerprint();
            step.hand_over_replicas = step.live.as_ref().is_some_and(LiveObject::owns_replicas);
        }
        let Some(live) = step.live.clone() else {
            return Ok((step, "it is new".to_owned()));
        };
        if step.action == PlanAction::Adopt {
            return Ok((step, "it exists and is taken over".to_owned()));
        }
        match decide::compare(&step.desired.content, step.recorded.as_ref(), &live) {
            Sameness::Same => {
                step.action = PlanAction::None;
                step.refresh();
                Ok((step, "unchanged".to_owned()))
            }
            Sameness::Changed(reason) => {
                step.action = PlanAction::Update;
                Ok((step, reason.to_owned()))
            }
            Sameness::Suspect => self.compare_whole(step).await,
        }
    }

    async fn has_autoscaler(&self, object: &ObjectRef) -> Result<bool, Error> {
        let kind = GroupKind::new("autoscaling", "HorizontalPodAutoscaler");
        let Some(resource) = self.cluster().preferred_resource(&kind).await? else {
            return Ok(false);
        };
        let namespace = object.namespace.as_deref();
        let listed = self
            .cluster()
            .list_full(
                &resource,
                Selection {
                    namespace,
                    ..Selection::default()
                },
            )
            .await?;
        let target = autoscale::Target {
            group: object.group.clone(),
            kind: object.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
        };
        Ok(listed
            .items
            .iter()
            .any(|hpa| autoscale::Target::of(hpa, namespace).as_ref() == Some(&target)))
    }

    fn check_name(&self, parent: Option<&Parent<Record>>) -> Result<(), Error> {
        match parent {
            Some(parent) if parent.record.component != *self.name() => Err(Error::BadParent {
                parent: parent.name.clone(),
                reason: format!("it is of component {:?}", parent.record.component.as_str()),
            }),
            _ => Ok(()),
        }
    }
}

/// Whether the component renders its release namespace itself.
fn desired_has(steps: &[Settled], desired: &Desired) -> bool {
    let release = namespace_ref(desired.namespace.as_str());
    steps.iter().any(|settled| settled.step.desired.object == release)
}

pub(crate) fn namespace_ref(name: &str) -> ObjectRef {
    let kind = namespaces().kind.kind.clone();
    ObjectRef {
        group: String::new(),
        kind,
        namespace: None,
        name: name.to_owned(),
    }
}

/// A step on its way to a decision.
enum Draft {
    Decided(Box<Step>, String),
    /// Owned fields seem to have changed: the whole object must be read.
    Suspect(Box<Step>),
    /// Its replicas were scaled: whether by an autoscaler must be read.
    Scaled(Box<Step>),
}

struct Context<'a> {
    target: &'a ComponentTarget,
    options: &'a PlanOptions,
    shared: Option<&'a Parent<SharedRecord>>,
    shared_set: &'a str,
    recorded: &'a BTreeMap<ObjectRef, RecordedObject>,
    moves: &'a Moves,
    /// The other components of ours, by the ids of their sets.
    owners: &'a BTreeMap<String, ComponentName>,
    record: Option<&'a Record>,
    foreign: Vec<ForeignObject>,
}

impl Context<'_> {
    fn draft(&mut self, desired: DesiredObject, live: Option<LiveObject>) -> Draft {
        let recorded = self.recorded_of(&desired);
        let contest = self.record.and_then(|record| record.contest(&desired.object));
        let mut step = Step {
            contest: contest.cloned(),
            drifted: None,
            desired,
            action: PlanAction::Create,
            live,
            recorded,
            hand_over_replicas: false,
            recreate: None,
        };
        let decided = |step: Step, reason: &str| Draft::Decided(Box::new(step), reason.to_owned());
        let Some(live) = &step.live else {
            if let Some(recorded) = &step.recorded {
                if recorded.done && recorded.content.as_ref() == Some(&step.desired.content) {
                    step.action = PlanAction::None;
                    return decided(step, "it is done and was removed by its time to live");
                }
                return decided(step, "it was deleted by somebody else");
            }
            return decided(step, "it is new");
        };
        if live.is_deleting() {
            return decided(
                step,
                "it is being deleted by somebody else and will be made again",
            );
        }
        let set = if step.desired.is_shared() {
            self.shared_set
        } else {
            self.target.applyset_id()
        };
        let ours = live.is_part_of(set);
        let unlabelled = live.labels.part_of.is_none()
            && step
                .recorded
                .as_ref()
                .is_some_and(|recorded| recorded.uid == live.uid);
        if !ours && !unlabelled {
            let moved = self.moves.here.get(&step.desired.object);
            let was_hook = live.labels.hook_of.as_deref() == Some(self.target.parent_name());
            if !self.options.adopt && moved.is_none() && !was_hook {
                let sibling = live.labels.part_of.as_ref().and_then(|set| self.owners.get(set));
                self.foreign.push(ForeignObject {
                    object: step.desired.object.clone(),
                    owner: match sibling {
                        Some(component) => Some(format!("component {component} of this cluster")),
                        None => live.apparent_owner(),
                    },
                });
            }
            step.action = PlanAction::Adopt;
            step.recorded = None;
            if step.desired.replicas().is_some() && live.was_scaled() {
                return Draft::Scaled(Box::new(step));
            }
            return match moved {
                None if was_hook => decided(step, "a hook of the component made it"),
                Some(component) => decided(step, &format!("it moves here from component {component}")),
                None => decided(step, "it exists and is taken over"),
            };
        }
        if unlabelled {
            step.action = PlanAction::Update;
            return decided(step, "our label was taken off");
        }
        step.hand_over_replicas = step.desired.autoscaled && live.owns_replicas();
        match decide::compare(&step.desired.content, step.recorded.as_ref(), live) {
            Sameness::Same => {
                step.action = PlanAction::None;
                step.refresh();
                decided(step, "unchanged")
            }
            // Before anything is done to what somebody scaled, it is to be known who.
            _ if step.desired.replicas().is_some() && live.was_scaled() => Draft::Scaled(Box::new(step)),
            Sameness::Changed(reason) => {
                step.action = PlanAction::Update;
                decided(step, reason)
            }
            Sameness::Suspect => Draft::Suspect(Box::new(step)),
        }
    }

    /// What is remembered of an object. Of a shared one, the content that this very component rendered last: another
    /// component that renders it differently does not make the two apply it in turns for ever.
    fn recorded_of(&self, desired: &DesiredObject) -> Option<RecordedObject> {
        if !desired.is_shared() {
            return self.recorded.get(&desired.object).cloned();
        }
        let shared = self.shared?.record.get(&desired.object)?;
        let mut recorded = shared.recorded.clone();
        // Who applies definitions in the place of others goes by what was applied last, whoever wanted it.
        if !self.target.name().is_definitions() {
            recorded.content = shared.wanted_by.get(self.target.name()).cloned().flatten();
        }
        Some(recorded)
    }
}

impl DesiredObject {
    fn replicas(&self) -> Option<&Value> {
        self.body.pointer("/spec/replicas")
    }
}
