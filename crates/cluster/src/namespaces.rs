//! Namespaces that we made and nobody wants any more: deleted when nothing is left in them, and only then.

use std::time::Duration;

use evenkeel_core::{GroupKind, ObjectRef};
use futures::stream::TryStreamExt as _;
use tokio::time::{Instant, sleep};

use crate::concurrent::as_they_come;
use crate::connection::Guard;
use crate::discovery::Resource;
use crate::live::LiveObject;
use crate::objects::{DeletePreconditions, Propagation, Selection, namespaces};
use crate::race::Race;
use crate::wait::absence;
use crate::{Cluster, Error, ErrorClass};

/// How long objects that are on their way out may take before the namespace counts as not empty.
const SETTLED_WITHIN: Duration = Duration::from_secs(20);
/// Between two looks at such a namespace.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Objects listed per kind: enough to look past what Kubernetes itself puts there.
const LOOKED_AT: usize = 20;
/// How often a look is begun anew that the server failed.
const FAILED_MAX: usize = 2;
/// Between two such looks.
const FAILED_PAUSE: Duration = Duration::from_millis(200);
/// The most objects that a message names.
const NAMED_MAX: usize = 3;

/// What lives in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing but what Kubernetes puts into every namespace.
    Empty,
    /// Objects; some of them by name.
    Occupied(Vec<ObjectRef>),
}

impl Cluster {
    /// What lives in `namespace`, over every kind that the cluster serves.
    ///
    /// # Errors
    /// Whatever a listing fails with, and [`Error::ApiUnavailable`] when some API does not answer: then nobody knows.
    pub(crate) async fn namespace_content(&self, namespace: &str) -> Result<Content, Error> {
        let deadline = Instant::now() + SETTLED_WITHIN;
        loop {
            let (objects, passing) = self.look_into(namespace).await?;
            if objects.is_empty() {
                return Ok(Content::Empty);
            }
            // What is being deleted, or goes with its owner, is given a moment.
            if !passing || Instant::now() + LOOK_INTERVAL > deadline {
                return Ok(Content::Occupied(objects));
            }
            sleep(LOOK_INTERVAL).await;
        }
    }

    /// The objects found, and whether all of them are on their way out.
    async fn look_into(&self, namespace: &str) -> Result<(Vec<ObjectRef>, bool), Error> {
        let seen = self.discovery().await?;
        // A kind that appeared since must not be overlooked.
        let discovery = self.discovery_after_miss(&seen).await?;
        if let Some(group) = discovery.all_unavailable().next() {
            return Err(Error::ApiUnavailable {
                group: group.to_owned(),
            });
        }
        let found: Vec<Vec<(ObjectRef, bool)>> =
            as_they_come(discovery.namespaced(), self.limits().in_flight, |resource| {
                Box::pin(self.occupants(resource, namespace))
            })
            .try_collect()
            .await?;
        let found: Vec<(ObjectRef, bool)> = found.into_iter().flatten().collect();
        let passing = found.iter().all(|(_, passing)| *passing);
        Ok((found.into_iter().map(|(object, _)| object).collect(), passing))
    }

    async fn occupants(&self, resource: &Resource, namespace: &str) -> Result<Vec<(ObjectRef, bool)>, Error> {
        let kind = resource.kind.group_kind();
        if is_ignored(&kind) {
            return Ok(Vec::new());
        }
        let some = Selection {
            namespace: Some(namespace),
            at_most: Some(LOOKED_AT),
            ..Selection::default()
        };
        let occupants = |listed: &[LiveObject]| -> Vec<(ObjectRef, bool)> {
            let others = listed.iter().filter(|live| !is_kubernetes_own(&kind, live));
            others
                .map(|live| (live.reference(&kind), is_passing(&kind, live)))
                .collect()
        };
        match self.list_live(resource, some).await {
            Ok(listed) => {
                let found = occupants(&listed.items);
                if !found.is_empty() || !listed.more {
                    return Ok(found);
                }
                let all = Selection {
                    at_most: None,
                    ..some
                };
                Ok(occupants(&self.list_live(resource, all).await?.items))
            }
            Err(error) if error.is_not_found() => {
                if self.is_no_longer_served(&kind).await? {
                    Ok(Vec::new())
                } else {
                    Err(error)
                }
            }
            // Aggregated APIs announce kinds that cannot be listed by these means; they store nothing here.
            Err(Error::Invalid { .. }) if is_virtual(&kind.group) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Deletes a namespace of ours if it is empty, and waits until it is gone. `Ok(Some(why))` when it stays.
    pub(crate) async fn delete_namespace_if_empty(
        &self,
        object: &ObjectRef,
        uid: &str,
        deadline: Instant,
        guard: Guard<'_>,
    ) -> Result<Option<String>, Error> {
        let kept = self.try_to_delete_namespace(object, uid, deadline, guard).await?;
        if let Some(reason) = &kept {
            tracing::info!(namespace = object.name, reason, "the namespace stays");
        }
        Ok(kept)
    }

    async fn try_to_delete_namespace(
        &self,
        object: &ObjectRef,
        uid: &str,
        deadline: Instant,
        guard: Guard<'_>,
    ) -> Result<Option<String>, Error> {
        let mut failed = 0;
        let mut race = Race::new(self, format!("delete {object}")).by(deadline);
        let mut seen = self.get_live(&namespaces(), object).await?;
        loop {
            let Some(live) = seen else {
                return Ok(None);
            };
            if live.uid != uid {
                return Ok(Some("it was made anew by somebody else".to_owned()));
            }
            if let Some(reason) = live.stays() {
                return Ok(Some(reason.to_owned()));
            }
            if live.is_deleting() {
                break;
            }
            match self.namespace_content(&object.name).await {
                Ok(Content::Empty) => {}
                Ok(Content::Occupied(objects)) => {
                    return Ok(Some(format!("it is not empty: {}", name_some(&objects))));
                }
                Err(error) if says_nothing(&error) => return Err(error),
                // A server may fail once without meaning anything.
                Err(Error::Server { .. } | Error::Decode { .. }) if failed < FAILED_MAX => {
                    failed += 1;
                    sleep(FAILED_PAUSE).await;
                    seen = self.get_live(&namespaces(), object).await?;
                    continue;
                }
                Err(error) => return Ok(Some(format!("whether it is empty cannot be told: {error}"))),
            }
            let preconditions = DeletePreconditions {
                uid: &live.uid,
                resource_version: &live.resource_version,
            };
            let deleted = self
                .delete(
                    &namespaces(),
                    object,
                    preconditions,
                    Propagation::Background,
                    guard,
                )
                .await;
            match deleted {
                Ok(_) => break,
                // Written in between, as controllers do: looked at, and into, once more.
                Err(Error::Conflict { .. }) => {
                    seen = match race.look_again(self, &namespaces(), object).await {
                        Err(Error::LostRace(lost)) => return Ok(Some(lost.to_string())),
                        looked => looked?,
                    };
                }
                Err(error) => return Err(error),
            }
        }
        absence::of_one(self, &namespaces(), object, deadline).await?;
        Ok(None)
    }
}

/// Whether a failure is about the way to the cluster or the attempt, and nothing of the namespace: then the next attempt
/// looks again.
fn says_nothing(error: &Error) -> bool {
    matches!(
        error.class(),
        ErrorClass::Stopped
            | ErrorClass::Fenced(_)
            | ErrorClass::Unreachable
            | ErrorClass::Unauthorized
            | ErrorClass::RateLimited(_)
            | ErrorClass::Conflict
    )
}

fn name_some(objects: &[ObjectRef]) -> String {
    let mut names: Vec<String> = objects
        .iter()
        .take(NAMED_MAX)
        .map(|object| format!("{}/{}", object.group_kind(), object.name))
        .collect();
    if objects.len() > NAMED_MAX {
        names.push(format!("{} more", objects.len() - NAMED_MAX));
    }
    names.join(", ")
}

/// Whether the object is on its way out, or goes when what it belongs to has gone. A Service's Endpoints name no owner;
/// their controller removes them after the Service.
fn is_passing(kind: &GroupKind, live: &LiveObject) -> bool {
    let made_for_a_service =
        kind.group.is_empty() && kind.kind == "Endpoints" && live.labels.endpoints_made_by.is_some();
    live.is_deleting() || !live.owner_references.is_empty() || made_for_a_service
}

/// Kinds that say nothing about whether a namespace is used.
fn is_ignored(kind: &GroupKind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("" | "events.k8s.io", "Event")
    )
}

/// Groups whose objects are computed, not stored.
pub(crate) fn is_virtual(group: &str) -> bool {
    group == "metrics.k8s.io" || group.ends_with(".metrics.k8s.io")
}

/// What Kubernetes itself puts into every namespace.
fn is_kubernetes_own(kind: &GroupKind, live: &LiveObject) -> bool {
    if !kind.group.is_empty() {
        return false;
    }
    match kind.kind.as_str() {
        "ConfigMap" => live.name == "kube-root-ca.crt",
        "ServiceAccount" => live.name == "default",
        "Secret" => live.annotations.service_account.as_deref() == Some("default"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn live(name: &str, annotations: &serde_json::Value) -> LiveObject {
        let body = json!({"metadata": {"name": name, "annotations": annotations}});
        LiveObject::read(body.to_string().as_bytes(), "test").expect("read")
    }

    #[test]
    fn only_what_kubernetes_puts_there_is_overlooked() {
        let core = |kind: &str| GroupKind::new("", kind);
        assert!(is_kubernetes_own(
            &core("ConfigMap"),
            &live("kube-root-ca.crt", &json!({}))
        ));
        assert!(!is_kubernetes_own(
            &core("ConfigMap"),
            &live("settings", &json!({}))
        ));
        assert!(is_kubernetes_own(
            &core("ServiceAccount"),
            &live("default", &json!({}))
        ));
        assert!(!is_kubernetes_own(
            &core("ServiceAccount"),
            &live("web", &json!({}))
        ));
        let token = json!({"kubernetes.io/service-account.name": "default"});
        assert!(is_kubernetes_own(
            &core("Secret"),
            &live("default-token-x", &token)
        ));
        assert!(!is_kubernetes_own(
            &core("Secret"),
            &live("default-token-x", &json!({}))
        ));
        assert!(!is_kubernetes_own(
            &GroupKind::new("ex.io", "ConfigMap"),
            &live("kube-root-ca.crt", &json!({}))
        ));
        let mut endpoints = live("web", &json!({}));
        assert!(!is_passing(&core("Endpoints"), &endpoints));
        endpoints.labels.endpoints_made_by = Some("endpoint-controller".to_owned());
        assert!(is_passing(&core("Endpoints"), &endpoints));
        assert!(!is_passing(&core("ConfigMap"), &endpoints));
        assert!(
            is_ignored(&GroupKind::new("events.k8s.io", "Event"))
                && !is_ignored(&core("PersistentVolumeClaim"))
        );
    }
}
