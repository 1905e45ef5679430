//! Custom resources: by the conditions that kstatus agreed on with their authors.

use super::{Object, Patience, Readiness, Surroundings};

pub(super) fn resource(object: &Object<'_>, surroundings: &Surroundings) -> Readiness {
    if surroundings.reports_generation && object.number("/status/observedGeneration").is_none() {
        return Readiness::InProgress("its controller has not seen it yet".to_owned());
    }
    let generation = object.number("/metadata/generation");
    let current = |observed: Option<i64>| match (generation, observed) {
        (Some(generation), Some(observed)) => observed >= generation,
        _ => true,
    };
    if let Some(stalled) = object
        .condition("Stalled")
        .filter(|condition| condition.is("True"))
        && current(stalled.observed_generation())
    {
        return Readiness::Failed(stalled.explain());
    }
    if let Some(reconciling) = object
        .condition("Reconciling")
        .filter(|condition| condition.is("True"))
    {
        return Readiness::InProgress(reconciling.explain());
    }
    match object.condition("Ready") {
        Some(ready) if !current(ready.observed_generation()) => {
            Readiness::InProgress("its Ready condition is about an older generation".to_owned())
        }
        Some(ready) if ready.is("True") => Readiness::Ready,
        Some(ready) => Readiness::InProgress(ready.explain()),
        None if says_nothing(object) && surroundings.patience == Patience::Fresh => {
            Readiness::InProgress("its controller has written no status yet".to_owned())
        }
        None => Readiness::Ready,
    }
}

fn says_nothing(object: &Object<'_>) -> bool {
    object
        .0
        .get("status")
        .and_then(serde_json::Value::as_object)
        .is_none_or(|status| {
            status
                .values()
                .all(|value| value.is_null() || value.as_array().is_some_and(Vec::is_empty))
        })
}
