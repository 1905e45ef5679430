//! Deleting what is no longer rendered.

use std::sync::Arc;

use evenkeel_core::{ObjectRef, PlanAction};
use futures::stream::StreamExt as _;

use crate::concurrent::as_they_come;
use crate::connection::Guard;
use crate::error::ObjectError;
use crate::live::LiveObject;
use crate::objects::Propagation;
use crate::order::{self, Phase};
use crate::plan::Removal;
use crate::race::{self, Deleted, Doomed};
use crate::session::Session;
use crate::{Cluster, Error};

impl Session {
    /// Deletes what the plan found no longer rendered, last phase first, without waiting for it to be gone.
    ///
    /// # Errors
    /// [`Error::Objects`] with every object that could not be deleted; [`Error::Stopped`] when the guard ended the work.
    pub async fn prune(&mut self) -> Result<(), Error> {
        if self.plan.deletions.is_empty() {
            return Ok(());
        }
        self.take_fence().await?;
        let (cluster, guard) = (self.cluster().clone(), Arc::clone(&self.attempt.guard));
        let set = self.plan.target.applyset_id().to_owned();
        for phase in Phase::ALL.into_iter().rev() {
            let batch: Vec<Removal> = self
                .plan
                .deletions
                .iter()
                .filter(|removal| order::phase(&removal.object.group_kind()) == phase)
                .cloned()
                .collect();
            let outcomes = delete_batch(&cluster, &batch, &set, Propagation::Background, &*guard).await;
            let mut failures = Vec::new();
            for (object, outcome) in outcomes {
                match outcome {
                    Ok(deleted) => {
                        self.entries.remove(&object);
                        if deleted == Deleted::Asked {
                            self.changed(&object, PlanAction::Delete);
                        }
                    }
                    Err(error) => failures.push(ObjectError { object, error }),
                }
            }
            stop_or_fail(failures)?;
        }
        Ok(())
    }
}

/// One reason that ends the attempt is told as such, not as so many failed objects.
pub(crate) fn stop_or_fail(mut failures: Vec<ObjectError>) -> Result<(), Error> {
    if let Some(at) = failures
        .iter()
        .position(|failed| matches!(failed.error, Error::Stopped { .. }))
    {
        return Err(failures.swap_remove(at).error);
    }
    failures.sort_by(|a, b| a.object.cmp(&b.object));
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Error::Objects(failures))
    }
}

/// Deletes several objects at a time.
pub(crate) async fn delete_batch(
    cluster: &Cluster,
    batch: &[Removal],
    set: &str,
    propagation: Propagation,
    guard: Guard<'_>,
) -> Vec<(ObjectRef, Result<Deleted, Error>)> {
    let at_once = cluster.limits().apply_concurrency;
    as_they_come(batch, at_once, |removal| {
        Box::pin(async move {
            (
                removal.object.clone(),
                delete_one(cluster, removal, set, propagation, guard).await,
            )
        })
    })
    .collect()
    .await
}

/// Deletes one object, if it still is the one that we saw with our label.
async fn delete_one(
    cluster: &Cluster,
    removal: &Removal,
    set: &str,
    propagation: Propagation,
    guard: Guard<'_>,
) -> Result<Deleted, Error> {
    let Removal {
        object,
        resource,
        live,
    } = removal;
    if live.is_deleting() {
        return Ok(Deleted::Asked);
    }
    // What owns pods is gone when its pods are; whoever waits for its absence waits for theirs.
    let propagation = match propagation {
        Propagation::Foreground if !order::owns_pods(&object.group_kind()) => Propagation::Background,
        propagation => propagation,
    };
    let doomed = Doomed {
        resource,
        object,
        uid: &live.uid,
        resource_version: &live.resource_version,
    };
    let still = |now: &LiveObject| now.is_part_of(set) && now.stays().is_none();
    race::delete(cluster, doomed, propagation, guard, &still).await
}
