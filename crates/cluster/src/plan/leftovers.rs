//! What is ours and no longer rendered.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_core::{GroupKind, ObjectRef, Plan, PlanAction, PlannedChange, SkippedObject};

use super::moves::{self, Moves};
use super::{Removal, decide};
use crate::applyset::record::RecordedObject;
use crate::discovery::Resource;
use crate::live::LiveObjects;
use crate::order;
use crate::target::ComponentTarget;

impl ComponentTarget {
    /// Objects of the set that are not desired: to be deleted, or kept with the reason.
    pub(super) fn leftovers(
        &self,
        live: LiveObjects,
        kinds: &BTreeMap<GroupKind, Arc<Resource>>,
        recorded: &BTreeMap<ObjectRef, RecordedObject>,
        moves: &Moves,
        summary: &mut Plan,
    ) -> (Vec<Removal>, Vec<RecordedObject>) {
        let mut deletions = Vec::new();
        let mut kept = Vec::new();
        for (object, live) in live {
            let kind = object.group_kind();
            if !moves::is_ours(&object, &live, recorded) {
                continue;
            }
            let reason = if let Some(component) = moves.away.get(&object) {
                Some(format!("it moves to component {component}"))
            } else if order::never_pruned(&kind) {
                Some("objects of this kind are never deleted because a render lacks them".to_owned())
            } else {
                live.stays().map(str::to_owned)
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
}
