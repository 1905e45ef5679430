//! Deleting an object and making it again, because fields of it must change that the server never changes.
//!
//! Nothing is lost when it is broken off in the middle: an object that is gone, or going, is made by the next pass like
//! one that somebody deleted.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::time::Instant;

use super::{Done, apply_body, create};
use crate::connection::Guard;
use crate::fingerprint::Fingerprint;
use crate::live::LiveObject;
use crate::objects::{Propagation, Selection};
use crate::plan::Step;
use crate::race::{self, Deleted, Doomed};
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
    let (resource, object) = (&*step.desired.resource, &step.desired.object);
    let doomed = Doomed {
        resource,
        object,
        uid: &live.uid,
        resource_version: &live.resource_version,
    };
    let part_of = &live.labels.part_of;
    let still = |now: &LiveObject| now.labels.part_of == *part_of && !now.is_protected();
    match race::delete(cluster, doomed, propagation, guard, &still).await? {
        Deleted::Asked => Ok(true),
        Deleted::Gone => Ok(false),
        // Another one, no longer ours, or protected since: looked at anew by the next pass.
        Deleted::NotOurs => Err(Error::Conflict {
            doing: format!("delete {object} to make it again"),
            message: "it is not the object any more that was looked at, or is protected since".to_owned(),
        }),
    }
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
