//! Waiting until objects are really gone.

use std::collections::BTreeMap;

use evenkeel_core::ObjectRef;
use tokio::time::{Instant, timeout_at};

use super::pause_since;
use crate::connection::WatchEvent;
use crate::discovery::Resource;
use crate::error::StuckObject;
use crate::live::LiveObject;
use crate::objects::Selection;
use crate::progress::{Event, Observer};
use crate::{Cluster, Error};

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

async fn follow(
    cluster: &Cluster,
    resource: &Resource,
    selection: Selection<'_>,
    awaited: &mut BTreeMap<String, LiveObject>,
    observer: &Observer,
) -> Result<(), Error> {
    let kind = resource.kind.group_kind();
    loop {
        let listed_at = Instant::now();
        let listed = match cluster.list_live(resource, selection).await {
            Ok(listed) => listed,
            // The kind itself is gone, and with it every object.
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut still = BTreeMap::new();
        for live in listed.items {
            if awaited.remove(&live.uid).is_some() {
                still.insert(live.uid.clone(), live);
            }
        }
        awaited
            .values()
            .for_each(|gone| observer(Event::Gone(gone.reference(&kind))));
        *awaited = still;
        if awaited.is_empty() {
            return Ok(());
        }
        match cluster
            .watch_kind(resource, selection, &listed.resource_version, true)
            .await
        {
            Ok(mut watch) => loop {
                match watch.next().await {
                    Ok(Some(WatchEvent::Deleted(raw))) => {
                        let live = LiveObject::read(raw.get().as_bytes(), "watch deletions")?;
                        if awaited.remove(&live.uid).is_some() {
                            observer(Event::Gone(live.reference(&kind)));
                        }
                        if awaited.is_empty() {
                            return Ok(());
                        }
                    }
                    Ok(Some(WatchEvent::Applied(raw))) => {
                        let live = LiveObject::read(raw.get().as_bytes(), "watch deletions")?;
                        if let Some(known) = awaited.get_mut(&live.uid) {
                            *known = live;
                        }
                    }
                    Ok(Some(WatchEvent::Bookmark)) => {}
                    Ok(None) | Err(Error::Expired { .. }) => break,
                    Err(error) => return Err(error),
                }
            },
            Err(Error::Expired { .. }) => {}
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        }
        pause_since(listed_at).await;
    }
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
