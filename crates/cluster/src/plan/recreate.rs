//! Whether a change can be made in place, or the object must be made again.

use evenkeel_core::{GroupKind, PlanAction};
use serde_json::Value;

use super::Step;
use crate::applyset::labels::PROTECT;
use crate::error::ImmutableChange;
use crate::immutable::{self, Policy};
use crate::objects::Propagation;
use crate::target::ComponentTarget;
use crate::{DesiredObject, Error, ErrorClass, drift, order};

/// A step with its reason, and what stands against it.
pub(super) struct Settled {
    pub(super) step: Step,
    pub(super) reason: String,
    pub(super) refused: Option<ImmutableChange>,
}

impl ComponentTarget {
    /// Finds out whether the server would refuse the change of `step` because fields stay as they were made, and decides
    /// what follows. Costs nothing as long as what is rendered for such fields is what was applied.
    pub(super) async fn settle_immutable(&self, mut step: Step, reason: String) -> Result<Settled, Error> {
        let accepted = |step, reason| Settled {
            step,
            reason,
            refused: None,
        };
        if !is_candidate(&step) {
            return Ok(accepted(step, reason));
        }
        let desired = &step.desired;
        let body = desired.body.to_string().into_bytes();
        let by_server = match self
            .cluster()
            .dry_run(&desired.resource, &desired.object, body)
            .await
        {
            Err(Error::Immutable { fields, .. }) => Some(fields),
            // Some webhook does not take part in dry runs; then the table must do.
            Err(Error::Invalid { message, .. }) if message.contains("dry run") => None,
            Err(error) if must_be_told(&error) => return Err(error),
            // Whatever else is wrong with it is told when it is applied.
            Ok(()) | Err(_) => return Ok(accepted(step, reason)),
        };
        let live = self
            .cluster()
            .get_full(&desired.resource, &desired.object)
            .await?;
        let Some(live) = live else {
            return Ok(accepted(step, reason));
        };
        let named = differing(desired, &live);
        let fields = match (named.is_empty(), by_server) {
            (false, _) => named,
            (true, Some(fields)) => fields,
            (true, None) => return Ok(accepted(step, reason)),
        };
        let kind = desired.group_kind();
        let adopts = step.action == PlanAction::Adopt;
        match policy(desired, &live, adopts) {
            Ok(propagation) => {
                let reason = format!(
                    "{} cannot be changed, so it is {}",
                    drift::describe(&fields),
                    how(propagation)
                );
                step.action = PlanAction::Recreate;
                step.recreate = Some(propagation);
                step.hand_over_replicas = false;
                Ok(accepted(step, reason))
            }
            Err(why) => {
                let refused = ImmutableChange {
                    object: desired.object.clone(),
                    fields,
                    advice: why.unwrap_or_else(|| immutable::advice(&kind)),
                };
                Ok(Settled {
                    step,
                    reason,
                    refused: Some(refused),
                })
            }
        }
    }
}

/// Whether the change may touch fields that stay as they were made.
fn is_candidate(step: &Step) -> bool {
    let changes = matches!(step.action, PlanAction::Update | PlanAction::Adopt);
    let Some(live) = step.live.as_ref().filter(|live| changes && !live.is_deleting()) else {
        return false;
    };
    let kind = step.desired.group_kind();
    let Some(fixed) = immutable::fixed(&kind, &step.desired.body) else {
        // Definitions of custom kinds may fix fields, too; whoever knows of one has said so.
        return immutable::asked(&step.desired.body).is_some_and(|asked| asked != Policy::Refuse);
    };
    step.recorded
        .as_ref()
        .is_none_or(|recorded| recorded.uid != live.uid || recorded.fixed.as_ref() != Some(&fixed))
}

/// A failure of the dry run that says nothing of the object.
fn must_be_told(error: &Error) -> bool {
    match error.class() {
        ErrorClass::Unreachable
        | ErrorClass::Unauthorized
        | ErrorClass::RateLimited(_)
        | ErrorClass::Conflict => true,
        ErrorClass::Transient => !matches!(error, Error::Webhook { .. } | Error::NamespaceTerminating { .. }),
        _ => false,
    }
}

/// The fixed fields that differ, as far as that shows without the server.
fn differing(desired: &DesiredObject, live: &Value) -> Vec<String> {
    let Some(rule) = immutable::rule_of(&desired.group_kind()) else {
        return Vec::new();
    };
    let mut differences = drift::differences(&immutable::only_fixed(rule, &desired.body), live);
    if is_claim(&desired.group_kind()) {
        // A size may grow.
        differences.retain(|field| field != drift::STORAGE_REQUEST || drift::is_grown(&desired.body, live));
    }
    differences
}

/// How the object is made again, or why it is not; without a reason when the rule of its kind says so.
fn policy(desired: &DesiredObject, live: &Value, adopts: bool) -> Result<Propagation, Option<String>> {
    let kind = desired.group_kind();
    let asked = immutable::asked(&desired.body);
    // What others made is deleted only when its own manifest says so.
    let by_rule = immutable::rule_of(&kind).map_or(Policy::Refuse, |rule| rule.policy);
    if is_protected(&desired.body) || is_protected(live) {
        return Err(Some(format!(
            "its annotation {PROTECT} keeps it from being deleted and made again"
        )));
    }
    let policy = match asked {
        Some(asked) => asked,
        None if adopts => Policy::Refuse,
        None => by_rule,
    };
    match policy {
        _ if immutable::never_deleted(&kind) => Err(None),
        Policy::Refuse => Err(None),
        Policy::Recreate if deletes_claims(live) => Err(Some(
            "its claims would be deleted with it, because spec.persistentVolumeClaimRetentionPolicy.whenDeleted is Delete; \
             set that to Retain first"
                .to_owned(),
        )),
        Policy::Recreate if order::owns_pods(&kind) => Ok(Propagation::Foreground),
        Policy::Recreate => Ok(Propagation::Background),
        Policy::OrphanRecreate if !selects(&desired.body, live) => Err(Some(format!(
            "its pods go on only if the new selector matches the labels they have, and it does not; {}",
            immutable::advice(&kind)
        ))),
        Policy::OrphanRecreate => Ok(Propagation::Orphan),
    }
}

/// Whether the annotation of an object as it is rendered, or as it is, protects it.
fn is_protected(object: &Value) -> bool {
    let protect = object
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(PROTECT))
        .and_then(Value::as_str);
    protect.is_some_and(|protect| protect.trim() != "false")
}

fn deletes_claims(live: &Value) -> bool {
    live.pointer("/spec/persistentVolumeClaimRetentionPolicy/whenDeleted")
        .and_then(Value::as_str)
        == Some("Delete")
}

/// Whether the pods that the live object made are ones that the desired one takes over.
fn selects(desired: &Value, live: &Value) -> bool {
    let selector = |object: &Value| object.pointer("/spec/selector").cloned();
    if selector(desired) == selector(live) {
        return true;
    }
    let labels = live.pointer("/spec/template/metadata/labels");
    let expressions = desired
        .pointer("/spec/selector/matchExpressions")
        .and_then(Value::as_array);
    let wanted = desired
        .pointer("/spec/selector/matchLabels")
        .and_then(Value::as_object);
    let has = |(key, value): (&String, &Value)| labels.and_then(|labels| labels.get(key)) == Some(value);
    expressions.is_none_or(Vec::is_empty) && wanted.is_some_and(|wanted| wanted.iter().all(has))
}

pub(super) fn is_claim(kind: &GroupKind) -> bool {
    kind.group.is_empty() && kind.kind == "PersistentVolumeClaim"
}

fn how(propagation: Propagation) -> &'static str {
    match propagation {
        Propagation::Orphan => "deleted without its pods and made again",
        Propagation::Background | Propagation::Foreground => "deleted and made again",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_taken_over_only_by_a_selector_that_matches_them() {
        let live = json!({"spec": {"selector": {"matchLabels": {"app": "a", "tier": "x"}},
            "template": {"metadata": {"labels": {"app": "a", "tier": "x"}}}}});
        for (selector, matches) in [
            (json!({"matchLabels": {"app": "a"}}), true),
            (json!({"matchLabels": {"app": "a", "tier": "x"}}), true),
            (json!({"matchLabels": {"app": "b"}}), false),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
                false,
            ),
        ] {
            assert_eq!(
                selects(&json!({"spec": {"selector": selector}}), &live),
                matches,
                "{selector}"
            );
        }
    }
}
