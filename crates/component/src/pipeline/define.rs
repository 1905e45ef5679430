//! The definitions of all components of a configuration, applied before any of the components begins (K41).
//!
//! What is wrong with one of them is told and fails nobody here: the operation of its component meets it again, and that
//! is the one to fail. Only what keeps the whole cluster from being written to ends this one.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_cluster::{
    ComponentPlan, Error, ErrorClass, Inputs, ManifestObject, Placement, PlanOptions, SYSTEM_NAMESPACE,
    Session,
};
use evenkeel_core::{ComponentName, ComponentRevision, Digest, Namespace, ObjectRef};
use evenkeel_steps::{ClosureStep, Context, Decision, Failure, Outcome, Progress, step};
use tokio::sync::Mutex;

use crate::Work;
use crate::operation::Operation;
use crate::pipeline::apply::{changes, told};
use crate::pipeline::{APPLY_TIMEOUT, DEFINITIONS, PLAN, PREPARE_TIMEOUT, SESSION};
use crate::render::reference;

/// The definitions that the components of a configuration render.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// One for each name; where two components render the same, that of the first.
    pub(crate) documents: Vec<ManifestObject>,
    /// Who renders them.
    pub(crate) wanted_by: BTreeMap<ObjectRef, BTreeSet<ComponentName>>,
    /// Components whose definitions are not known, and why.
    pub(crate) unknown: Vec<(ComponentName, String)>,
}

impl Definitions {
    /// Adds those that `component` renders.
    pub(crate) fn add(&mut self, component: &ComponentName, documents: Vec<ManifestObject>) {
        for document in documents {
            let wanted_by = self.wanted_by.entry(reference(&document.object)).or_default();
            if wanted_by.is_empty() {
                self.documents.push(document);
            }
            wanted_by.insert(component.clone());
        }
    }

    fn without(&mut self, objects: &BTreeSet<ObjectRef>) {
        self.documents
            .retain(|document| !objects.contains(&reference(&document.object)));
        self.wanted_by.retain(|object, _| !objects.contains(object));
    }

    /// What decides them, for the record.
    fn inputs(&self) -> Inputs {
        let parts: Vec<String> = self
            .documents
            .iter()
            .map(|document| document.object.to_string())
            .collect();
        Inputs {
            revision: ComponentRevision(1),
            digest: Digest::of_parts(parts.iter().map(String::as_bytes)),
        }
    }
}

/// Renders every component as far as its definitions go.
pub(crate) fn collect() -> ClosureStep<Operation> {
    step("collect-definitions")
        .provides(DEFINITIONS)
        .timeout(PREPARE_TIMEOUT)
        .run(|cx: Context<Operation>, ()| async move {
            let Work::Define { components } = &cx.state().task.work else {
                return Ok(not_defining());
            };
            let definitions = components.definitions().await?;
            for (component, reason) in &definitions.unknown {
                cx.progress()
                    .line(format!("component {component} is left to itself: {reason}"));
            }
            Ok(Outcome::Done(definitions))
        })
}

/// Compares them with what is there. Writes nothing.
pub(crate) fn plan() -> ClosureStep<Operation> {
    step("plan")
        .needs(DEFINITIONS)
        .provides((PLAN, SESSION))
        .timeout(PREPARE_TIMEOUT)
        .run(|cx: Context<Operation>, definitions| async move {
            let operation = cx.state();
            let mut mine = Definitions {
                documents: definitions.documents.clone(),
                wanted_by: definitions.wanted_by.clone(),
                unknown: Vec::new(),
            };
            let plan = match planned(operation, &mine).await {
                Err(Error::Foreign(foreign)) => {
                    let objects: BTreeSet<ObjectRef> =
                        foreign.iter().map(|foreign| foreign.object.clone()).collect();
                    for object in &objects {
                        cx.progress()
                            .line(format!("{object} is not ours and left to its component"));
                    }
                    mine.without(&objects);
                    planned(operation, &mine).await
                }
                planned => planned,
            };
            let plan = plan.map_err(|error| operation.failed(error))?;
            let summary = plan.summary().clone();
            cx.progress().line(summary.to_string());
            let mut session = plan.begin(operation.task.attempt.clone(), operation.observer());
            session.on_behalf_of(mine.wanted_by);
            Ok(Outcome::Done((summary, Mutex::new(session))))
        })
}

async fn planned(operation: &Operation, definitions: &Definitions) -> Result<ComponentPlan, Error> {
    let target = &operation.task.target;
    let namespace = Namespace::new(SYSTEM_NAMESPACE).map_err(|error| Error::Bug(error.to_string()))?;
    let placement = Placement {
        namespace,
        force_namespace: false,
    };
    let desired = target
        .desired(definitions.documents.clone(), &placement, Vec::new())
        .await?;
    target.plan(desired, &PlanOptions::default()).await
}

/// Applies them, and waits until they are established.
pub(crate) fn define() -> ClosureStep<Operation> {
    step("define")
        .needs((PLAN, SESSION))
        .timeout(APPLY_TIMEOUT)
        .decide(|cx: Context<Operation>, (plan, session)| async move {
            let changes = changes(&plan, |_| true);
            if changes.is_empty() {
                return Ok(Decision::End(Outcome::done()));
            }
            Ok(Decision::act(changes, async move {
                let operation = cx.state();
                operation.attach(cx.progress());
                let mut session = session.lock().await;
                let before = session.changes().len();
                if let Err(error) = session.apply().await {
                    of_one(operation, &cx.progress(), error)?;
                }
                Ok(told(session.changes().len() - before))
            }))
        })
}

/// Tells of what concerns single definitions.
///
/// # Errors
/// What concerns the whole cluster, or the whole attempt.
fn of_one(operation: &Operation, progress: &Progress, error: Error) -> Result<(), Failure> {
    let of_the_cluster = matches!(
        error.class(),
        ErrorClass::Fenced(_)
            | ErrorClass::Stopped
            | ErrorClass::Unreachable
            | ErrorClass::Unauthorized
            | ErrorClass::RateLimited(_)
            | ErrorClass::Transient
            | ErrorClass::Bug
    );
    if of_the_cluster {
        return Err(operation.failed(error));
    }
    progress.line(format!("left to the component: {error}"));
    Ok(())
}

/// Writes down at the target that this attempt is over.
pub(crate) fn record() -> ClosureStep<Operation> {
    step("record")
        .needs((SESSION, DEFINITIONS))
        .after("define")
        .timeout(APPLY_TIMEOUT)
        .live_only()
        .run(|cx: Context<Operation>, (session, definitions)| async move {
            let operation = cx.state();
            let mut session: tokio::sync::MutexGuard<'_, Session> = session.lock().await;
            // Nothing is remembered of what nobody has.
            if definitions.documents.is_empty() {
                return Ok(Outcome::done());
            }
            let recorded = session.record(&definitions.inputs()).await;
            recorded.map_err(|error| operation.failed(error))?;
            Ok(Outcome::done())
        })
}

fn not_defining<T>() -> Outcome<T> {
    Outcome::Stop {
        reason: "this operation defines nothing".to_owned(),
    }
}
