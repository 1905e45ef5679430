//! What is to be done for one component, decided from its record and metadata alone where those suffice.

pub(crate) mod decide;
mod existing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenkeel_core::{GroupKind, ObjectRef, Plan, PlanAction, PlannedChange, SkippedObject};
use futures::stream::TryStreamExt as _;
use serde_json::Value;

use crate::applyset::applyset_id;
use crate::applyset::labels::CLUSTER_PARENT;
use crate::applyset::parent::Parent;
use crate::applyset::record::{Record, RecordedObject, SharedRecord};
use crate::concurrent::in_order;
use crate::discovery::Resource;
use crate::error::ForeignObject;
use crate::fingerprint::Fingerprint;
use crate::live::{LiveObject, LiveObjects};
use crate::manifest::autoscale;
use crate::objects::{Selection, namespaces};
use crate::target::ComponentTarget;
use crate::{Desired, DesiredObject, Error, drift, order, readiness};

use decide::Sameness;

/// What a plan may do besides creating and updating what is ours.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    /// Take over existing objects that are not ours.
    pub adopt: bool,
    /// Take over the parent of another fleet or cluster, and with it its objects.
    pub take_over: bool,
    /// Objects that move to another component: no longer rendered here, not to be deleted.
    pub moved_away: BTreeSet<ObjectRef>,
    /// Objects that move here from another component of ours: to be taken over.
    pub moved_here: BTreeSet<ObjectRef>,
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
    pub(crate) release_namespace: ReleaseNamespace,
    pub(crate) parent: Option<Parent<Record>>,
    pub(crate) shared: Option<Parent<SharedRecord>>,
    pub(crate) take_over: bool,
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
}

impl Step {
    /// Brings the record of an unchanged object up to date. A resource version vouches for readiness too, so a new one
    /// of a kind with a readiness rule is noted only when the object was found ready at it.
    fn refresh(&mut self) {
        let has_rule = self.desired.has_readiness_rule();
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

    /// What the target remembered when the plan was made.
    pub fn record(&self) -> Option<&Record> {
        self.parent.as_ref().map(|parent| &parent.record)
    }

    /// How many of our objects the plan deletes, and how many there are: for a cap on deletions.
    pub fn deletions(&self) -> (usize, usize) {
        let ours = self.steps.iter().filter(|step| step.recorded.is_some()).count();
        (
            self.deletions.len(),
            ours + self.deletions.len() + self.kept.len(),
        )
    }
}

impl ComponentTarget {
    /// Compares `desired` with the cluster and decides what to do, without writing.
    ///
    /// Costs one LIST of parents and one metadata LIST per kind of the set; objects that seem to differ are read.
    ///
    /// # Errors
    /// [`Error::Foreign`] with every object that exists and is not ours, unless told to adopt; [`Error::OtherOwner`]
    /// when the parent is another's, unless told to take over; whatever a request fails with.
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

        let objects = std::mem::take(&mut desired.objects);
        let mut context = Context {
            target: self,
            options,
            shared: parents.shared.as_ref(),
            shared_set: &shared_set,
            recorded: &recorded,
            foreign: Vec::new(),
        };
        let mut drafts = Vec::with_capacity(objects.len());
        for object in objects {
            let there = live
                .remove(&object.object)
                .or_else(|| found.get(&object.object).cloned());
            drafts.push(context.draft(object, there));
        }
        if !context.foreign.is_empty() {
            return Err(Error::Foreign(context.foreign));
        }
        let decided = self.settle(drafts).await?;
        if desired_has(&decided, &desired) {
            release = ReleaseNamespace::Given;
        }

        let mut summary = Plan {
            changes: Vec::with_capacity(decided.len()),
            skipped: desired.skipped.clone(),
        };
        if matches!(release, ReleaseNamespace::Missing | ReleaseNamespace::Terminating) {
            summary.changes.push(PlannedChange {
                object: namespace_ref(desired.namespace.as_str()),
                action: PlanAction::Create,
                reason: "it is the release namespace and does not exist".to_owned(),
            });
        }
        let mut steps = Vec::with_capacity(decided.len());
        for (step, reason) in decided {
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
        let (deletions, kept) = self.leftovers(live, &kinds, &recorded, options, &mut summary);
        desired.objects = steps.iter().map(|step| step.desired.clone()).collect();
        Ok(ComponentPlan {
            target: self.clone(),
            summary,
            desired,
            steps,
            deletions,
            kept,
            release_namespace: release,
            parent,
            shared: parents.shared,
            take_over: options.take_over,
        })
    }

    /// Objects of the set that are not desired: to be deleted, or kept with the reason.
    fn leftovers(
        &self,
        live: LiveObjects,
        kinds: &BTreeMap<GroupKind, Arc<Resource>>,
        recorded: &BTreeMap<ObjectRef, RecordedObject>,
        options: &PlanOptions,
        summary: &mut Plan,
    ) -> (Vec<Removal>, Vec<RecordedObject>) {
        let mut deletions = Vec::new();
        let mut kept = Vec::new();
        for (object, live) in live {
            let kind = object.group_kind();
            // Controllers copy labels onto what they make; without fields of ours it is theirs.
            if !recorded.contains_key(&object) && (live.owned().is_none() || live.has_controller()) {
                continue;
            }
            let reason = if options.moved_away.contains(&object) {
                Some("it moves to another component")
            } else if order::never_pruned(&kind) {
                Some("objects of this kind are never deleted because a render lacks them")
            } else if live.is_kept() {
                Some("helm.sh/resource-policy: keep")
            } else {
                None
            };
            match (reason, kinds.get(&kind)) {
                (Some(reason), _) => {
                    kept.push(decide::recorded(&object, &live, None, true));
                    summary.skipped.push(SkippedObject {
                        object,
                        reason: format!("no longer rendered, stays: {reason}"),
                    });
                }
                (None, Some(resource)) => deletions.push(Removal {
                    object,
                    resource: resource.clone(),
                    live,
                }),
                (None, None) => {}
            }
        }
        deletions.sort_by_cached_key(|removal| std::cmp::Reverse(order::sort_key(&removal.object)));
        summary
            .changes
            .extend(deletions.iter().map(|removal| PlannedChange {
                object: removal.object.clone(),
                action: PlanAction::Delete,
                reason: "it is no longer rendered".to_owned(),
            }));
        (deletions, kept)
    }

    /// Reads what only a look at the whole object can decide, a few at a time.
    async fn settle(&self, drafts: Vec<Draft>) -> Result<Vec<(Step, String)>, Error> {
        in_order(drafts, self.cluster().limits().in_flight, |draft| {
            Box::pin(async move {
                match draft {
                    Draft::Decided(step, reason) => Ok((*step, reason)),
                    Draft::Suspect(step) => self.compare_whole(*step).await,
                    Draft::Scaled(step) => self.compare_scaled(*step).await,
                }
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
        let differences = drift::differences(&step.desired.body, &whole);
        if differences.is_empty() {
            step.action = PlanAction::None;
            step.refresh();
            return Ok((step, "unchanged: what others changed is not ours".to_owned()));
        }
        step.action = PlanAction::Update;
        Ok((
            step,
            format!("changed by somebody else: {}", drift::describe(&differences)),
        ))
    }

    /// Replicas that somebody scaled: an autoscaler keeps them, a hand does not.
    async fn compare_scaled(&self, mut step: Step) -> Result<(Step, String), Error> {
        if self.has_autoscaler(&step.desired.object).await? {
            step.desired.autoscaled = true;
            autoscale::remove_replicas(&mut step.desired.body);
            step.desired.content = Fingerprint::of(&step.desired.body);
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
fn desired_has(steps: &[(Step, String)], desired: &Desired) -> bool {
    let release = namespace_ref(desired.namespace.as_str());
    steps.iter().any(|(step, _)| step.desired.object == release)
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
    foreign: Vec<ForeignObject>,
}

impl Context<'_> {
    fn draft(&mut self, desired: DesiredObject, live: Option<LiveObject>) -> Draft {
        let recorded = self.recorded_of(&desired);
        let mut step = Step {
            desired,
            action: PlanAction::Create,
            live,
            recorded,
            hand_over_replicas: false,
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
            let moved = self.options.moved_here.contains(&step.desired.object);
            if !self.options.adopt && !moved {
                self.foreign.push(ForeignObject {
                    object: step.desired.object.clone(),
                    owner: live.apparent_owner(),
                });
            }
            step.action = PlanAction::Adopt;
            step.recorded = None;
            if step.desired.replicas().is_some() && live.was_scaled() {
                return Draft::Scaled(Box::new(step));
            }
            let reason = if moved {
                "it moves here from another component"
            } else {
                "it exists and is taken over"
            };
            return decided(step, reason);
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
        recorded.content = shared.wanted_by.get(self.target.name()).cloned().flatten();
        Some(recorded)
    }
}

impl DesiredObject {
    pub(crate) fn has_readiness_rule(&self) -> bool {
        readiness::has_rule(&self.group_kind(), self.resource.has_status)
    }

    fn replicas(&self) -> Option<&Value> {
        self.body.pointer("/spec/replicas")
    }
}
