//! What hooks left behind when their component goes. Helm leaves it for ever; here it goes with the component, which would
//! otherwise leave its namespace full. What holds data stays, as for the component's own objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use evenkeel_core::{ObjectChange, ObjectRef, PlanAction, SkippedObject};
use tokio::time::Instant;

use super::run::delete_seen;
use crate::applyset::hooks::RecordedHook;
use crate::applyset::labels::HOOK_OF;
use crate::applyset::parent::Parent;
use crate::applyset::record::Record;
use crate::guard::Attempt;
use crate::plan::Removal;
use crate::progress::{Event, Observer};
use crate::target::ComponentTarget;
use crate::wait::absence;
use crate::{Deletion, Error, order};

/// Objects that hooks left.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// In the order of their deletion.
    pub(crate) removals: Vec<Removal>,
    pub(crate) kept: Vec<SkippedObject>,
}

impl ComponentTarget {
    /// What the hooks of this component left; with `all`, what holds data goes, too.
    pub(crate) async fn hook_leftovers(
        &self,
        parent: &Parent<Record>,
        all: bool,
    ) -> Result<Leftovers, Error> {
        let mut leftovers = Leftovers::default();
        let mut seen: BTreeSet<ObjectRef> = BTreeSet::new();
        for hook in parent.record.hooks.iter().rev().filter(|hook| !hook.gone) {
            let object = hook.object();
            if !seen.insert(object.clone()) {
                continue;
            }
            let Some(removal) = self.leftover(hook, object).await? else {
                continue;
            };
            let kind = removal.object.group_kind();
            let reason = if removal.live.is_kept() {
                "helm.sh/resource-policy: keep"
            } else if order::is_definition(&kind) || order::never_pruned(&kind) && !all {
                "a hook made it, and what it holds is deleted only when everything is asked for"
            } else {
                leftovers.removals.push(removal);
                continue;
            };
            leftovers.kept.push(SkippedObject {
                object: removal.object,
                reason: reason.to_owned(),
            });
        }
        Ok(leftovers)
    }

    /// The object of a run, if it still is there and is ours.
    async fn leftover(&self, hook: &RecordedHook, object: ObjectRef) -> Result<Option<Removal>, Error> {
        let Some(resource) = self.cluster().preferred_resource(&hook.group_kind()).await? else {
            return Ok(None);
        };
        let live = self.cluster().get_live(&resource, &object).await?;
        Ok(live
            .filter(|live| live.labels.hook_of.as_deref() == Some(self.parent_name()))
            .map(|live| Removal {
                object,
                resource: Arc::clone(&resource),
                live,
            }))
    }

    /// Deletes what hooks left and waits until it is gone.
    pub(crate) async fn remove_leftovers(
        &self,
        leftovers: Leftovers,
        attempt: &Attempt,
        deadline: Instant,
        observer: &Observer,
        deletion: &mut Deletion,
    ) -> Result<(), Error> {
        deletion.kept.extend(leftovers.kept);
        for removal in &leftovers.removals {
            let Removal {
                object,
                resource,
                live,
            } = removal;
            delete_seen(self, resource, object, live, attempt).await?;
            deletion.changes.push(ObjectChange {
                object: object.clone(),
                action: PlanAction::Delete,
                at: self.cluster().clock().now(),
            });
            observer(Event::Changed {
                object: object.clone(),
                action: PlanAction::Delete,
            });
        }
        for Removal { object, resource, .. } in &leftovers.removals {
            absence::of_one(self.cluster(), resource, object, deadline).await?;
        }
        Ok(())
    }

    /// Takes our label off what hooks left.
    pub(crate) async fn let_go_of_leftovers(
        &self,
        parent: &Parent<Record>,
        attempt: &Attempt,
    ) -> Result<(), Error> {
        let mut seen = BTreeSet::new();
        for hook in parent.record.hooks.iter().filter(|hook| !hook.gone) {
            let object = hook.object();
            if !seen.insert(object.clone()) {
                continue;
            }
            let Some(Removal {
                object,
                resource,
                live,
            }) = self.leftover(hook, object).await?
            else {
                continue;
            };
            self.cluster()
                .set_label(&resource, &object, &live, (HOOK_OF, None), attempt)
                .await?;
        }
        Ok(())
    }
}
