//! Waiting until objects are really gone.

use std::collections::BTreeMap;

use evenkeel_core::ObjectRef;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::RELIST_INTERVAL;
use crate::connection::WatchEvent;
use crate::discovery::Resource;
use crate::error::StuckObject;
use crate::live::LiveObject;
use crate::objects::Selection;
use crate::progress::{Event, Observer};
use crate::{Cluster, Error, ErrorClass};

/// Waits until one object, as it is now, is gone.
///
/// # Errors
/// [`Error::Stuck`] when it is still there at `deadline`.
pub(crate) async fn of_one(
    cluster: &Cluster,
    resource: &Resource,
    object: &ObjectRef,
    deadline: Instant,
) -> Result<(), Error> {
    let Some(live) = cluster.get_live(resource, object).await? else {
        return Ok(());
    };
    let fields = format!("metadata.name={}", object.name);
    let selection = Selection {
        namespace: object.namespace.as_deref(),
        fields: &fields,
        ..Selection::default()
    };
    let awaited = BTreeMap::from([(live.uid.clone(), live)]);
    of_kind(
        cluster,
        resource,
        selection,
        awaited,
        deadline,
        &crate::progress::unobserved(),
    )
    .await
}

/// Waits until none of `awaited` (by uid) is among what `selection` names.
///
/// # Errors
/// [`Error::Stuck`] with those that are still there at `deadline`.
pub(crate) async fn of_kind(
    cluster: &Cluster,
    resource: &Resource,
    selection: Selection<'_>,
    mut awaited: BTreeMap<String, LiveObject>,
    deadline: Instant,
    observer: &Observer,
) -> Result<(), Error> {
    let outcome = timeout_at(
        deadline,
        follow(cluster, resource, selection, &mut awaited, observer),
    )
    .await;
    match outcome {
        Ok(outcome) => outcome,
        Err(_) => Err(Error::Stuck(stuck(cluster, resource, awaited).await)),
    }
}

/// Follows what is awaited until it is gone, through outages of the cluster.
async fn follow(
    cluster: &Cluster,
    resource: &Resource,
    selection: Selection<'_>,
    awaited: &mut BTreeMap<String, LiveObject>,
    observer: &Observer,
) -> Result<(), Error> {
    loop {
        let listed_at = Instant::now();
        match list_and_watch(cluster, resource, selection, awaited, observer).await {
            Ok(()) if awaited.is_empty() => return Ok(()),
            Ok(()) | Err(Error::Expired { .. }) => {}
            // The kind itself is gone, and with it every object.
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => match error.class() {
                ErrorClass::RateLimited(pause) => sleep_until(listed_at + pause).await,
                ErrorClass::Transient | ErrorClass::Unreachable => {
                    tracing::debug!(%error, "deletion cannot be followed at the moment");
                }
                _ => return Err(error),
            },
        }
        sleep_until(listed_at + RELIST_INTERVAL).await;
    }
}

/// One list and the watch that follows it, until everything is gone or the watch ends.
async fn list_and_watch(
    cluster: &Cluster,
    resource: &Resource,
    selection: Selection<'_>,
    awaited: &mut BTreeMap<String, LiveObject>,
    observer: &Observer,
) -> Result<(), Error> {
    let kind = resource.kind.group_kind();
    let listed = cluster.list_live(resource, selection).await?;
    let mut still = BTreeMap::new();
    for live in listed.items {
        if awaited.remove(&live.uid).is_some() {
            still.insert(live.uid.clone(), live);
        }
    }
    for gone in awaited.values() {
        observer(Event::Gone(gone.reference(&kind)));
    }
    *awaited = still;
    if awaited.is_empty() {
        return Ok(());
    }
    let mut watch = cluster
        .watch_kind(resource, selection, &listed.resource_version, true)
        .await?;
    while let Some(event) = watch.next().await? {
        match event {
            WatchEvent::Deleted(raw) => {
                let live = LiveObject::read(raw.get().as_bytes(), "watch deletions")?;
                if awaited.remove(&live.uid).is_some() {
                    observer(Event::Gone(live.reference(&kind)));
                }
                if awaited.is_empty() {
                    return Ok(());
                }
            }
            WatchEvent::Applied(raw) => {
                let live = LiveObject::read(raw.get().as_bytes(), "watch deletions")?;
                if let Some(known) = awaited.get_mut(&live.uid) {
                    *known = live;
                }
            }
            WatchEvent::Bookmark(_) => {}
        }
    }
    Ok(())
}

/// What holds the objects that are still there.
async fn stuck(
    cluster: &Cluster,
    resource: &Resource,
    awaited: BTreeMap<String, LiveObject>,
) -> Vec<StuckObject> {
    let kind = resource.kind.group_kind();
    let mut found = Vec::with_capacity(awaited.len());
    for live in awaited.into_values() {
        let object = live.reference(&kind);
        let message = if kind.kind == "Namespace" {
            namespace_conditions(cluster, resource, &object).await
        } else {
            None
        };
        found.push(StuckObject {
            object,
            finalizers: live.finalizers,
            message,
        });
    }
    found
}

/// What a namespace says that its deletion waits for.
async fn namespace_conditions(cluster: &Cluster, resource: &Resource, object: &ObjectRef) -> Option<String> {
    let namespace = cluster.get_full(resource, object).await.ok().flatten()?;
    let conditions = namespace.pointer("/status/conditions")?.as_array()?;
    let messages: Vec<&str> = conditions
        .iter()
        .filter(|condition| condition.get("status").and_then(|status| status.as_str()) == Some("True"))
        .filter_map(|condition| condition.get("message")?.as_str())
        .collect();
    (!messages.is_empty()).then(|| messages.join("; "))
}
