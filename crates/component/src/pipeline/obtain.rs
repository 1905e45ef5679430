//! Where chart and values come from.

use evenkeel_cluster::{ComponentTarget, DataKind, ErrorClass};
use evenkeel_core::{DataRef, Namespace, Sensitive, ValuesFrom};
use evenkeel_steps::{ClosureStep, Context, Outcome, step};

use crate::operation::Operation;
use crate::pipeline::{CHART, PREPARE_TIMEOUT, VALUES};
use crate::values::{Layer, ResolvedValues, Values, merge};
use crate::{Error, Work};

/// The chart, parsed once for all who use it.
pub(crate) fn source() -> ClosureStep<Operation> {
    step("obtain-source")
        .provides(CHART)
        .timeout(PREPARE_TIMEOUT)
        .run(|cx: Context<Operation>, ()| async move {
            let Work::Apply { source, .. } = &cx.state().task.work else {
                return Ok(not_applying());
            };
            let chart = cx
                .state()
                .shared
                .sources
                .chart(source)
                .await
                .map_err(Error::from)?;
            Ok(Outcome::Done(chart))
        })
}

/// All values as one tree; those kept at the target are read there.
pub(crate) fn values() -> ClosureStep<Operation> {
    step("resolve-values")
        .provides(VALUES)
        .timeout(PREPARE_TIMEOUT)
        .run(|cx: Context<Operation>, ()| async move {
            let task = &cx.state().task;
            let Work::Apply {
                values, namespace, ..
            } = &task.work
            else {
                return Ok(not_applying());
            };
            Ok(Outcome::Done(resolve(&task.target, values, namespace).await?))
        })
}

/// Lays all layers over each other; those kept at the target are read there.
pub(crate) async fn resolve(
    target: &ComponentTarget,
    values: &Values,
    release: &Namespace,
) -> Result<ResolvedValues, Error> {
    let mut texts = Vec::with_capacity(values.layers.len());
    for layer in &values.layers {
        match layer {
            Layer::Text { name, text } => texts.push((name.clone(), text.clone())),
            Layer::Target(from) => texts.extend(at_target(target, from, release).await?),
        }
    }
    merge(values, texts).map_err(|problem| Error::Values {
        component: target.name().clone(),
        problem,
    })
}

/// A layer that is kept in a Secret or ConfigMap; none when it is optional and not there.
async fn at_target(
    target: &ComponentTarget,
    from: &ValuesFrom,
    release: &Namespace,
) -> Result<Option<(String, Sensitive<String>)>, Error> {
    let (kind, data) = match from {
        ValuesFrom::Secret(data) => (DataKind::Secret, data),
        ValuesFrom::ConfigMap(data) => (DataKind::ConfigMap, data),
    };
    let DataRef {
        namespace,
        name,
        key,
        optional,
    } = data;
    let namespace = namespace.as_ref().unwrap_or(release);
    let title = format!("key {key} of {kind:?} {namespace}/{name}");
    let wrong = |problem: String| Error::Values {
        component: target.name().clone(),
        problem,
    };
    let bytes = match target
        .cluster()
        .read_data(kind, namespace.as_str(), name, key)
        .await
    {
        Ok(Some(bytes)) => bytes,
        Ok(None) if *optional => return Ok(None),
        Ok(None) => return Err(wrong(format!("{title} does not exist at the cluster"))),
        Err(error) if *optional && error.class() == ErrorClass::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let text =
        String::from_utf8(bytes.expose().clone()).map_err(|_| wrong(format!("{title} is not UTF-8 text")))?;
    Ok(Some((title, Sensitive::new(text))))
}

/// The pipeline of applying never runs for other work; if it did, it would end here.
pub(crate) fn not_applying<T>() -> Outcome<T> {
    Outcome::Stop {
        reason: "this operation applies nothing".to_owned(),
    }
}
