//! Where the source's content and the values come from.

use evenkeel_cluster::{ComponentTarget, DataKind, ErrorClass, Secrets};
use evenkeel_core::{ComponentName, DataRef, Namespace, Sensitive, ValuesFrom};
use evenkeel_goyaml::{Numbers, from_yaml};
use evenkeel_source::Content;
use evenkeel_steps::{ClosureStep, Context, Outcome, step};

use crate::operation::Operation;
use crate::pipeline::{CONTENT, PREPARE_TIMEOUT, VALUES};
use crate::values::{Layer, ResolvedValues, Values, leaves, merge};
use crate::{Error, Work};

/// What the source holds, read once for all who use it.
pub(crate) fn source() -> ClosureStep<Operation> {
    step("obtain-source")
        .provides(CONTENT)
        .timeout(PREPARE_TIMEOUT)
        .run(|cx: Context<Operation>, ()| async move {
            let operation = cx.state();
            let Work::Apply {
                source,
                format,
                values,
                ..
            } = &operation.task.work
            else {
                return Ok(not_applying());
            };
            let sources = &operation.shared.sources;
            let content = sources.content(source, *format).await.map_err(Error::from)?;
            refuse_values(operation.task.target.name(), values, &content)?;
            Ok(Outcome::Done(content))
        })
}

/// Refuses values that nothing would come of.
pub(crate) fn refuse_values(
    component: &ComponentName,
    values: &Values,
    content: &Content,
) -> Result<(), Error> {
    let format = content.format();
    if values.is_empty() || format.takes_values() {
        return Ok(());
    }
    Err(Error::NoValues {
        component: component.clone(),
        format,
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

/// What among the values is secret: what was given as such, and what is read from Secrets of the target.
pub(crate) async fn secrets(
    target: &ComponentTarget,
    values: &Values,
    release: &Namespace,
) -> Result<Secrets, Error> {
    let mut texts: Vec<String> = values
        .secrets
        .iter()
        .map(|secret| secret.expose().clone())
        .collect();
    for layer in &values.layers {
        let Layer::Target(from @ ValuesFrom::Secret(_)) = layer else {
            continue;
        };
        if let Some((_, text)) = at_target(target, from, release).await? {
            let parsed = from_yaml(text.expose().as_bytes(), Numbers::Exact).ok();
            let parsed = parsed.and_then(|value| serde_json::Value::try_from(value).ok());
            texts.extend(parsed.as_ref().map(leaves).unwrap_or_default());
        }
    }
    Ok(Secrets::new(texts))
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
