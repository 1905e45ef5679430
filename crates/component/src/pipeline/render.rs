//! From the source's content and values to what the cluster should have.

use std::sync::Arc;

use evenkeel_chart::{Capabilities, Chart};
use evenkeel_cluster::{Hooks, Placement, Stop};
use evenkeel_core::{ComponentName, ComponentRevision, Digest, HookPolicy, Namespace, SourceFormat};
use evenkeel_source::{Content, Kustomization, Manifests};
use evenkeel_steps::{ClosureStep, Context, Failure, Mode, Outcome, step};

use crate::inputs::Considered;
use crate::kustomize::{Fault, Kustomize};
use crate::lookup::LiveLookup;
use crate::operation::{Operation, Shared};
use crate::pipeline::hooks::Prepared;
use crate::pipeline::obtain::not_applying;
use crate::pipeline::{CONTENT, DESIRED, HOOKS, PREPARE_TIMEOUT, RENDERED, Rendered, VALUES};
use crate::render::{Document, Documents, RenderInput};
use crate::values::ResolvedValues;
use crate::{Error, Work, hooks, kept};

/// The documents: kept ones when this revision was marked, shared ones when another cluster asked for the same.
pub(crate) fn render() -> ClosureStep<Operation> {
    step("render")
        .needs((CONTENT, VALUES))
        .provides(RENDERED)
        .timeout(PREPARE_TIMEOUT)
        .run(|cx: Context<Operation>, (content, values)| async move {
            let operation = cx.state();
            let Work::Apply {
                namespace,
                force_namespace,
                on_conflict,
                readiness,
                hooks,
                ..
            } = &operation.task.work
            else {
                return Ok(not_applying());
            };
            let name = operation.task.target.name();
            let place = Place {
                name,
                namespace,
                force_namespace: *force_namespace,
            };
            let capabilities = &operation.capabilities;
            let considered = consider(&operation.shared, &content, &values, capabilities, place)
                .await?
                .with_readiness(readiness.seal())
                .with_hooks(*hooks)
                .with_conflicts(*on_conflict);
            let revision = operation
                .task
                .ledger
                .revision(&considered, operation.record.as_ref())
                .await?;
            if let Some((documents, kept)) = kept_render(operation, revision, &considered).await? {
                cx.progress()
                    .line(format!("revision {revision}: the kept render is used"));
                return Ok(Outcome::Done(Rendered {
                    documents,
                    considered,
                    revision,
                    kept: Some(kept),
                }));
            }
            let documents = match &*content {
                Content::Chart(chart) => rendered(&cx, Arc::clone(chart), values, revision).await?,
                Content::Manifests(manifests) => as_they_are(operation, manifests),
                Content::Kustomization(kustomization) => built(&cx, kustomization).await?,
            };
            if !documents.is_marked || cx.mode() == Mode::DryRun {
                return Ok(Outcome::Done(Rendered {
                    documents,
                    considered,
                    revision,
                    kept: None,
                }));
            }
            // The first kept render counts, so that every attempt applies the same passwords.
            let written = kept::write(&documents, considered.revision)
                .map_err(|error| keep_failed(operation, &error))?;
            let kept = operation.task.ledger.keep(revision, written).await?;
            let documents = kept::read(&kept, considered.revision).map_or(documents, Arc::new);
            Ok(Outcome::Done(Rendered {
                documents,
                considered,
                revision,
                kept: Some(kept),
            }))
        })
}

/// Where a component goes, and under which name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) name: &'a ComponentName,
    pub(crate) namespace: &'a Namespace,
    pub(crate) force_namespace: bool,
}

/// What decides the objects. Renders and builds nothing.
pub(crate) async fn consider(
    shared: &Shared,
    content: &Content,
    values: &ResolvedValues,
    capabilities: &Capabilities,
    place: Place<'_>,
) -> Result<Considered, Error> {
    let Place {
        name,
        namespace,
        force_namespace,
    } = place;
    let version = match content {
        Content::Chart(chart) => {
            return Ok(Considered::of_chart(
                chart,
                values,
                name,
                namespace,
                force_namespace,
                capabilities,
            ));
        }
        Content::Manifests(_) => String::new(),
        Content::Kustomization(_) => {
            let version = kustomize(shared, name)?.version().await;
            version.map_err(|fault| build_failed(name, fault))?
        }
    };
    let (format, source) = (content.format(), content.digest());
    Ok(Considered::without_values(
        format,
        source,
        &version,
        name,
        namespace,
        force_namespace,
    ))
}

/// The objects of plain manifests, shared by all clusters that have them.
fn as_they_are(operation: &Operation, manifests: &Manifests) -> Arc<Documents> {
    let format = SourceFormat::Manifests.as_str().as_bytes();
    let key = Digest::of_parts([format, manifests.digest().as_bytes()]);
    let renders = &operation.shared.renders;
    if let Some(documents) = renders.get(&key) {
        return documents;
    }
    let documents = Arc::new(Documents {
        objects: manifests.objects().iter().cloned().map(Document::from).collect(),
        hooks: Vec::new(),
        is_marked: false,
    });
    renders.insert(key, &documents);
    documents
}

/// The objects of a kustomization. The program is ended when the operation is to stop.
async fn built(
    cx: &Context<Operation>,
    kustomization: &Arc<Kustomization>,
) -> Result<Arc<Documents>, Failure> {
    let operation = cx.state();
    let name = operation.task.target.name();
    let kustomize = kustomize(&operation.shared, name)?;
    let built = tokio::select! {
        built = kustomize.build(kustomization, &operation.shared.tasks) => built,
        () = cx.cancelled() => {
            return Err(operation.failed(evenkeel_cluster::Error::Stopped {
                doing: "the kustomization was built".to_owned(),
                why: Stop::Cancelled,
            }));
        }
    };
    let built = built.map_err(|fault| build_failed(name, fault))?;
    for warning in built.warnings.iter() {
        cx.progress().line(warning.clone());
    }
    Ok(built.documents)
}

/// The objects of a kustomization, without telling anybody of its warnings.
pub(crate) async fn built_of(
    shared: &Shared,
    component: &ComponentName,
    kustomization: &Arc<Kustomization>,
) -> Result<Arc<Documents>, Error> {
    let built = kustomize(shared, component)?
        .build(kustomization, &shared.tasks)
        .await;
    Ok(built.map_err(|fault| build_failed(component, fault))?.documents)
}

fn kustomize<'a>(shared: &'a Shared, component: &ComponentName) -> Result<&'a Kustomize, Error> {
    shared.kustomize.as_ref().ok_or_else(|| Error::NoKustomize {
        component: component.clone(),
    })
}

fn build_failed(component: &ComponentName, fault: Fault) -> Error {
    let (problem, transient) = match fault {
        Fault::Refused(problem) => (problem, false),
        Fault::Unavailable(problem) => (problem, true),
    };
    Error::Kustomize {
        component: component.clone(),
        problem,
        transient,
    }
}

/// What is kept of a marked render: in the ledger, else at the target.
async fn kept_render(
    operation: &Operation,
    revision: ComponentRevision,
    considered: &Considered,
) -> Result<Option<(Arc<Documents>, evenkeel_core::Sensitive<Vec<u8>>)>, Failure> {
    let in_ledger = operation.task.ledger.render(revision).await?;
    let kept = match in_ledger {
        Some(kept) => Some(kept),
        None => operation
            .task
            .target
            .load_render(revision)
            .await
            .map_err(|error| operation.failed(error))?,
    };
    Ok(kept.and_then(|kept| Some((Arc::new(kept::read(&kept, considered.revision)?), kept))))
}

/// A new render, on a thread that may block; or one that another cluster has made of the same input.
async fn rendered(
    cx: &Context<Operation>,
    chart: Arc<Chart>,
    values: Arc<ResolvedValues>,
    revision: ComponentRevision,
) -> Result<Arc<Documents>, Failure> {
    let operation = cx.shared_state();
    let Work::Apply { namespace, .. } = &operation.task.work else {
        return Err(Failure::bug("only an operation that applies renders"));
    };
    let namespace = namespace.clone();
    let name = operation.task.target.name().clone();
    let runtime = tokio::runtime::Handle::current();
    let input = move |chart: &Chart, values: &ResolvedValues, operation: &Operation| {
        let capabilities = &operation.capabilities;
        let input = RenderInput {
            chart,
            values,
            name: &name,
            namespace: &namespace,
            revision,
            capabilities,
        };
        let key = input.key();
        if let Some(documents) = operation.shared.renders.get(&key) {
            return Ok(documents);
        }
        let lookup = Arc::new(LiveLookup::new(
            operation.task.target.cluster().clone(),
            runtime.clone(),
        ));
        let documents = Arc::new(input.render(
            operation.shared.clock.now(),
            Some(lookup),
            operation.shared.render_limits,
        )?);
        operation.shared.renders.insert(key, &documents);
        Ok::<_, Error>(documents)
    };
    let tasks = operation.shared.tasks.clone();
    let documents = tasks
        .blocking("render a chart", move || input(&chart, &values, &operation))
        .await;
    Ok(documents.unwrap_or(Err(Error::Ending))?)
}

/// The objects in their namespaces and with our labels.
pub(crate) fn transform() -> ClosureStep<Operation> {
    step("transform")
        .needs(RENDERED)
        .provides((DESIRED, HOOKS))
        .timeout(PREPARE_TIMEOUT)
        .run(|cx: Context<Operation>, rendered| async move {
            let operation = cx.state();
            let Work::Apply {
                namespace,
                force_namespace,
                hooks: policy,
                ..
            } = &operation.task.work
            else {
                return Ok(not_applying());
            };
            let placement = Placement {
                namespace: namespace.clone(),
                force_namespace: *force_namespace,
            };
            let documents = &rendered.documents;
            let (run, skipped) = match policy {
                HookPolicy::Run => (documents.hooks.as_slice(), Vec::new()),
                HookPolicy::Ignore => (&[][..], hooks::ignored(&documents.hooks)),
            };
            let failed = |error| operation.failed(error);
            let desired = operation
                .task
                .target
                .desired(documents.manifest(), &placement, skipped)
                .await
                .map_err(failed)?;
            let of_deletion =
                hooks::write(run, &placement).map_err(|error| keep_failed(operation, &error))?;
            let hooks = Hooks::new(hooks::documents(run), &placement).map_err(failed)?;
            Ok(Outcome::Done((desired, Prepared { hooks, of_deletion })))
        })
}

fn keep_failed(operation: &Operation, error: &serde_json::Error) -> Error {
    // The error's text may quote the render.
    let problem = format!("it cannot be written as JSON ({:?})", error.classify());
    Error::Keep {
        component: operation.task.target.name().clone(),
        problem,
    }
}
