//! Objects that finalizers hold for ever, because whoever would remove them has gone with the component.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::Going;
use crate::Error;
use crate::connection::PatchKind;
use crate::error::StuckObject;
use crate::plan::Removal;
use crate::progress::Event;
use crate::target::ComponentTarget;
use crate::wait::absence;

/// How long an object without finalizers may take to be gone.
const STRIPPED_WITHIN: Duration = Duration::from_secs(10);

impl ComponentTarget {
    /// Takes the finalizers off those of `stuck` that are of the component's own kinds and going. Answers what is still
    /// there.
    pub(super) async fn strip_own(
        &self,
        stuck: Vec<StuckObject>,
        batch: &[Removal],
        going: &Going<'_>,
    ) -> Result<Vec<StuckObject>, Error> {
        let mut left = Vec::new();
        for held in stuck {
            let removal = batch.iter().find(|removal| removal.object == held.object);
            let own = |removal: &&Removal| {
                let resource = &removal.resource;
                let definition = format!("{}.{}", resource.plural, resource.kind.group);
                going.own_definitions.contains(&definition)
            };
            match removal.filter(own) {
                Some(removal) => left.extend(self.strip(held, removal, going).await?),
                None => left.push(held),
            }
        }
        Ok(left)
    }

    /// Takes the finalizers off one object and waits a moment for it to be gone.
    async fn strip(
        &self,
        held: StuckObject,
        removal: &Removal,
        going: &Going<'_>,
    ) -> Result<Option<StuckObject>, Error> {
        let Removal {
            object,
            resource,
            live,
        } = removal;
        let now = match self.cluster().get_live(resource, object).await? {
            Some(now) if now.uid == live.uid => now,
            _ => return Ok(None),
        };
        if !now.is_deleting() || !now.is_part_of(self.applyset_id()) {
            return Ok(Some(held));
        }
        let patch = json!({"metadata": {
            "uid": now.uid, "resourceVersion": now.resource_version, "finalizers": null,
        }});
        let guard = &*going.attempt.guard;
        let stripped = self
            .cluster()
            .patch(resource, object, PatchKind::Merge, &patch, guard)
            .await;
        match stripped {
            Ok(_) => {}
            Err(error) if error.is_not_found() => return Ok(None),
            // Somebody is at it after all.
            Err(Error::Conflict { .. }) => return Ok(Some(held)),
            Err(error) => return Err(error),
        }
        tracing::warn!(%object, finalizers = ?now.finalizers, "finalizers were taken off, as the policy of the component says");
        (going.observer)(Event::Waiting(format!(
            "{object}: finalizers were taken off, as onStuckFinalizers says: {}",
            now.finalizers.join(", ")
        )));
        let deadline = Instant::now() + STRIPPED_WITHIN;
        match absence::of_one(self.cluster(), resource, object, deadline).await {
            Ok(()) => Ok(None),
            Err(Error::Stuck(_)) => Ok(Some(held)),
            Err(error) => Err(error),
        }
    }
}
