//! Deleting an object and making it again, because fields of it must change that the server never changes.
//!
//! Nothing is lost when it is broken off in the middle: an object that is gone, or going, is made by the next pass like
//! one that somebody deleted.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::time::Instant;

use super::{Done, RACES_MAX, apply_body, create};
use crate::connection::Guard;
use crate::fingerprint::Fingerprint;
use crate::live::LiveObject;
use crate::objects::{DeletePreconditions, Propagation, Selection};
use crate::plan::Step;
use crate::session::REPLACED_WITHIN;
use crate::wait::absence;
use crate::{Cluster, Error};

/// Deletes `live` as `propagation` says, waits until it is gone, and makes it again.
pub(super) async fn recreate(
    cluster: &Cluster,
    step: &Step,
    live: &LiveObject,
    propagation: Propagation,
    guard: Guard<'_>,
) -> Result<Done, Error> {
    would_be_accepted(cluster, step).await?;
    let replicas = autoscaled_replicas(cluster, step).await?;
    if delete(cluster, step, live, propagation, guard).await? {
        let desired = &step.desired;
        let fields = format!("metadata.name={}", desired.object.name);
        let selection = Selection {
            namespace: desired.object.namespace.as_deref(),
            fields: &fields,
            ..Selection::default()
        };
        let awaited = BTreeMap::from([(live.uid.clone(), live.clone())]);
        let deadline = Instant::now() + REPLACED_WITHIN;
        let observer = crate::progress::unobserved();
        absence::of_kind(
            cluster,
            &desired.resource,
            selection,
            awaited,
            deadline,
            &observer,
        )
        .await?;
    }
    let done = create(cluster, step, replicas.as_ref(), guard).await?;
    Ok(Done {
        action: step.action,
        ..done
    })
}

/// Asks the server whether it would take the new object, under a name that nobody has: what cannot be made again is not
/// deleted.
async fn would_be_accepted(cluster: &Cluster, step: &Step) -> Result<(), Error> {
    let desired = &step.desired;
    let mut object = desired.object.clone();
    object.name = format!(
        "evenkeel-try-{}",
        Fingerprint::of(&Value::from(object.name.as_str()))
    );
    let mut body = desired.body.clone();
    if let Some(name) = body.pointer_mut("/metadata/name") {
        *name = Value::from(object.name.as_str());
    }
    match cluster
        .dry_run(&desired.resource, &object, apply_body(&body, None))
        .await
    {
        // A full quota has room again once the old one is gone; a webhook without dry runs says nothing.
        Err(Error::Forbidden { message, .. }) if message.contains("exceeded quota") => Ok(()),
        Err(Error::Invalid { message, .. }) if message.contains("dry run") => Ok(()),
        tried => tried,
    }
}

/// Asks for the deletion of the very object that was looked at; `false` when it is gone already.
async fn delete(
    cluster: &Cluster,
    step: &Step,
    live: &LiveObject,
    propagation: Propagation,
    guard: Guard<'_>,
) -> Result<bool, Error> {
    let desired = &step.desired;
    let mut live = live.clone();
    for _ in 0..RACES_MAX {
        let preconditions = DeletePreconditions {
            uid: &live.uid,
            resource_version: &live.resource_version,
        };
        let deleted = cluster
            .delete(
                &desired.resource,
                &desired.object,
                preconditions,
                propagation,
                guard,
            )
            .await;
        match deleted {
            Err(error @ Error::Conflict { .. }) => {
                match cluster.get_live(&desired.resource, &desired.object).await? {
                    None => return Ok(false),
                    // Another one, or no longer ours: looked at anew by the next pass.
                    Some(now) if now.uid != live.uid || now.labels.part_of != live.labels.part_of => {
                        return Err(error);
                    }
                    // Protected since.
                    Some(now) if now.is_protected() => return Err(error),
                    Some(now) if now.is_deleting() => return Ok(true),
                    Some(now) => live = now,
                }
            }
            deleted => return deleted,
        }
    }
    Err(Error::Conflict {
        doing: format!("delete {} to make it again", desired.object),
        message: "others write it all the time".to_owned(),
    })
}

/// The replicas that an autoscaler has set, which the new object keeps.
async fn autoscaled_replicas(cluster: &Cluster, step: &Step) -> Result<Option<Value>, Error> {
    if !step.desired.autoscaled {
        return Ok(None);
    }
    let live = cluster
        .get_full(&step.desired.resource, &step.desired.object)
        .await?;
    Ok(live.and_then(|live| live.pointer("/spec/replicas").cloned()))
}
