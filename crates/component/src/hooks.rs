//! The hooks of a chart: which of them this operation runs, and the form in which those of a deletion are kept.

use std::collections::BTreeSet;

use evenkeel_chart as chart;
use evenkeel_cluster::{ComponentTarget, HookDocument, Hooks, Occasion, Placement, Record};
use evenkeel_core::{
    ComponentRevision, Found, HookDeletePolicy, HookEvent, Namespace, PlannedHook, Sensitive, SkippedObject,
    Strategy,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::render::{Document, reference};

/// The form in which hooks are kept.
const FORMAT: u32 = 1;

/// When and how a rendered object runs as a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HookRule {
    /// None for tests and for Helm's rollback, which do not exist here.
    pub(crate) events: BTreeSet<HookEvent>,
    pub(crate) weight: i64,
    pub(crate) delete_policies: BTreeSet<HookDeletePolicy>,
}

impl HookRule {
    pub(crate) fn of(hook: &chart::Hook) -> Self {
        let event = |event: &chart::HookEvent| {
            Some(match event {
                chart::HookEvent::PreInstall => HookEvent::PreInstall,
                chart::HookEvent::PostInstall => HookEvent::PostInstall,
                chart::HookEvent::PreUpgrade => HookEvent::PreUpgrade,
                chart::HookEvent::PostUpgrade => HookEvent::PostUpgrade,
                chart::HookEvent::PreDelete => HookEvent::PreDelete,
                chart::HookEvent::PostDelete => HookEvent::PostDelete,
                chart::HookEvent::PreRollback | chart::HookEvent::PostRollback | chart::HookEvent::Test => {
                    return None;
                }
            })
        };
        let policy = |policy: &chart::HookDeletePolicy| match policy {
            chart::HookDeletePolicy::BeforeCreation => HookDeletePolicy::BeforeHookCreation,
            chart::HookDeletePolicy::Succeeded => HookDeletePolicy::HookSucceeded,
            chart::HookDeletePolicy::Failed => HookDeletePolicy::HookFailed,
        };
        Self {
            events: hook.events.iter().filter_map(event).collect(),
            weight: hook.weight,
            delete_policies: hook.delete_policies.iter().map(policy).collect(),
        }
    }
}

/// A rendered hook.
#[derive(Clone, PartialEq)]
pub(crate) struct RenderedHook {
    pub(crate) document: Document,
    pub(crate) rule: HookRule,
}

/// What an operation turned out to be for, and the hooks that have to do with it.
#[derive(Clone, Debug)]
pub(crate) struct Due {
    pub(crate) hooks: Hooks,
    pub(crate) strategy: Strategy,
    /// None when none are due: a repair runs none.
    pub(crate) occasion: Option<Occasion>,
}

impl Due {
    /// The hooks that will run, in their order.
    pub(crate) async fn planned(
        &self,
        target: &ComponentTarget,
    ) -> Result<Vec<PlannedHook>, evenkeel_cluster::Error> {
        let Some(occasion) = self.occasion.filter(|_| !self.hooks.is_empty()) else {
            return Ok(Vec::new());
        };
        let served = target.cluster().discovery().await?;
        Ok(self.hooks.planned(occasion, Some(&served)))
    }
}

/// How a component is found when `revision` is to be applied where `record` is remembered; `adopts` when that begins with
/// taking over what somebody else installed, which then is no install any more.
pub(crate) fn found(revision: ComponentRevision, record: Option<&Record>, adopts: bool) -> Found {
    match record.map(|record| (record.revision, record.taken_over)) {
        Some((Some(reached), _)) if reached == revision => Found::Differs,
        Some((Some(_), _) | (None, true)) => Found::Changed,
        None if adopts => Found::Changed,
        Some((None, false)) | None => Found::Absent,
    }
}

/// What hooks run for in an operation for `strategy`, which applies `revision` if it applies anything.
pub(crate) fn occasion(strategy: Strategy, revision: ComponentRevision) -> Option<Occasion> {
    strategy.steps().hooks?;
    Some(match strategy {
        Strategy::Install => Occasion::Install,
        Strategy::Upgrade | Strategy::Repair => Occasion::Upgrade(revision),
        Strategy::Delete => Occasion::Delete,
    })
}

/// Hooks as the cluster engine takes them.
pub(crate) fn documents(hooks: &[RenderedHook]) -> Vec<HookDocument> {
    hooks
        .iter()
        .map(|RenderedHook { document, rule }| HookDocument {
            object: document.object.clone(),
            source: document.source.clone(),
            events: rule.events.clone(),
            weight: rule.weight,
            delete_policies: rule.delete_policies.clone(),
        })
        .collect()
}

/// Hooks that are ignored, as what is left alone.
pub(crate) fn ignored(hooks: &[RenderedHook]) -> Vec<SkippedObject> {
    let skipped = |hook: &RenderedHook| SkippedObject {
        object: reference(&hook.document.object),
        reason: format!(
            "Helm hook of {}: the component's hooks are ignored",
            hook.document.source
        ),
    };
    hooks.iter().map(skipped).collect()
}

/// The hooks of a deletion as they are kept at the target. Holds secrets: it rests inside Secrets.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    format: u32,
    namespace: Namespace,
    force_namespace: bool,
    hooks: Vec<KeptHook>,
}

#[derive(Serialize, Deserialize)]
struct KeptHook {
    source: String,
    object: Value,
    #[serde(flatten)]
    rule: HookRule,
}

/// Writes the hooks of the deletion among `hooks`; none when there is none.
pub(crate) fn write(
    hooks: &[RenderedHook],
    placement: &Placement,
) -> Result<Option<Sensitive<Vec<u8>>>, serde_json::Error> {
    let of_deletion = |hook: &&RenderedHook| hook.rule.events.iter().any(|event| event.is_of_deletion());
    let hooks: Vec<KeptHook> = hooks
        .iter()
        .filter(of_deletion)
        .map(|RenderedHook { document, rule }| KeptHook {
            source: document.source.clone(),
            object: document.object.clone(),
            rule: rule.clone(),
        })
        .collect();
    if hooks.is_empty() {
        return Ok(None);
    }
    let kept = Kept {
        format: FORMAT,
        namespace: placement.namespace.clone(),
        force_namespace: placement.force_namespace,
        hooks,
    };
    serde_json::to_vec(&kept).map(Sensitive::new).map(Some)
}

/// Reads kept hooks; none when a release with another form wrote them.
pub(crate) fn read(bytes: &Sensitive<Vec<u8>>) -> Option<(Vec<HookDocument>, Placement)> {
    let kept: Kept = serde_json::from_slice(bytes.expose()).ok()?;
    if kept.format != FORMAT {
        return None;
    }
    let placement = Placement {
        namespace: kept.namespace,
        force_namespace: kept.force_namespace,
    };
    let document = |hook: KeptHook| HookDocument {
        object: hook.object,
        source: hook.source,
        events: hook.rule.events,
        weight: hook.rule.weight,
        delete_policies: hook.rule.delete_policies,
    };
    Some((kept.hooks.into_iter().map(document).collect(), placement))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(events: &[chart::HookEvent]) -> RenderedHook {
        let rule = chart::Hook {
            events: events.to_vec(),
            weight: -3,
            delete_policies: vec![chart::HookDeletePolicy::Succeeded],
        };
        RenderedHook {
            document: Document {
                source: "web/templates/job.yaml".to_owned(),
                object: serde_json::json!({"kind": "Job"}),
            },
            rule: HookRule::of(&rule),
        }
    }

    #[test]
    fn the_hooks_of_a_deletion_are_read_as_they_were_written() {
        let placement = Placement {
            namespace: "shop".parse().expect("a name"),
            force_namespace: true,
        };
        let hooks = [
            hook(&[chart::HookEvent::PreInstall]),
            hook(&[chart::HookEvent::PostInstall, chart::HookEvent::PreDelete]),
            hook(&[chart::HookEvent::Test, chart::HookEvent::PreRollback]),
        ];
        let kept = write(&hooks, &placement)
            .expect("it is JSON")
            .expect("there is one");
        let (read, where_to) = read(&kept).expect("it is ours");
        assert_eq!((read.len(), where_to.force_namespace), (1, true));
        let hook = read.first().expect("one");
        assert_eq!(
            hook.events,
            BTreeSet::from([HookEvent::PostInstall, HookEvent::PreDelete])
        );
        assert_eq!(hook.weight, -3);
        assert_eq!(
            hook.delete_policies,
            BTreeSet::from([HookDeletePolicy::HookSucceeded])
        );
        assert!(
            write(&hooks[..1], &placement).expect("it is JSON").is_none(),
            "no deletion in it"
        );
        assert!(super::read(&Sensitive::new(b"{}".to_vec())).is_none());
    }

    #[test]
    fn a_repair_runs_none_and_a_takeover_is_no_install() {
        let record = |revision: Option<u64>, taken_over: bool| -> Record {
            serde_json::from_value(serde_json::json!({
                "format": 1, "fleet": "f", "cluster": "c", "component": "web", "fence": 1,
                "revision": revision, "takenOver": taken_over,
            }))
            .expect("a record")
        };
        let of = |revision: u64, record: Option<Record>, adopts: bool| {
            let revision = ComponentRevision(revision);
            occasion(Strategy::of(found(revision, record.as_ref(), adopts)), revision)
        };
        let upgrade = |revision| Some(Occasion::Upgrade(ComponentRevision(revision)));
        assert_eq!(of(1, None, false), Some(Occasion::Install));
        assert_eq!(of(2, Some(record(None, false)), false), Some(Occasion::Install));
        assert_eq!(of(1, Some(record(Some(1), false)), false), None);
        assert_eq!(of(2, Some(record(Some(1), false)), true), upgrade(2));
        assert_eq!(of(1, None, true), upgrade(1));
        assert_eq!(of(1, Some(record(None, true)), false), upgrade(1));
    }

    #[test]
    fn the_moments_are_those_of_the_table() {
        for strategy in Strategy::ALL {
            let occasion = occasion(*strategy, ComponentRevision(2));
            let moments = occasion.map(|occasion| (occasion.before(), occasion.after()));
            assert_eq!(moments, strategy.steps().hooks, "{strategy}");
        }
    }
}
