//! From chart and values to what the cluster should have.

use std::sync::Arc;

use evenkeel_chart::Chart;
use evenkeel_cluster::Placement;
use evenkeel_core::ComponentRevision;
use evenkeel_steps::{ClosureStep, Context, Failure, Mode, Outcome, step};

use crate::inputs::Considered;
use crate::lookup::LiveLookup;
use crate::operation::Operation;
use crate::pipeline::obtain::not_applying;
use crate::pipeline::{CHART, DESIRED, PREPARE_TIMEOUT, RENDERED, Rendered, VALUES};
use crate::render::{Documents, RenderInput};
use crate::values::ResolvedValues;
use crate::{Error, Work, kept};

/// The documents: kept ones when this revision was marked, shared ones when another cluster asked for the same.
pub(crate) fn render() -> ClosureStep<Operation> {
    step("render")
        .needs((CHART, VALUES))
        .provides(RENDERED)
        .timeout(PREPARE_TIMEOUT)
        .run(|cx: Context<Operation>, (chart, values)| async move {
            let operation = cx.state();
            let Work::Apply {
                namespace,
                force_namespace,
                ..
            } = &operation.task.work
            else {
                return Ok(not_applying());
            };
            let name = operation.task.target.name();
            let capabilities = &operation.capabilities;
            let considered =
                Considered::new(&chart, &values, name, namespace, *force_namespace, capabilities);
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
            let documents = rendered(&cx, Arc::clone(&chart), values, revision).await?;
            for hook in documents.skipped() {
                cx.progress()
                    .line(format!("{} is left alone: {}", hook.object, hook.reason));
            }
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
        let documents = Arc::new(input.render(operation.shared.clock.now(), Some(lookup))?);
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
        .provides(DESIRED)
        .timeout(PREPARE_TIMEOUT)
        .run(|cx: Context<Operation>, rendered| async move {
            let operation = cx.state();
            let Work::Apply {
                namespace,
                force_namespace,
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
            let desired = operation
                .task
                .target
                .desired(documents.manifest(), &placement, documents.skipped())
                .await;
            Ok(Outcome::Done(desired.map_err(|error| operation.failed(error))?))
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
