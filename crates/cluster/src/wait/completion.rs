//! Waiting until one object has done its work: the question of hooks, which is another one than whether it is as it should
//! be. A Job that runs or rests is as it should be; done it is when it completed.

use evenkeel_core::ObjectRef;
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{RELIST_INTERVAL, completed, uid};
use crate::connection::WatchEvent;
use crate::discovery::Resource;
use crate::objects::Selection;
use crate::progress::{Event, Observer};
use crate::readiness::{self, ObjectState, Patience, Readiness};
use crate::{Cluster, Error, ErrorClass};

/// How the work of an object ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// It is done.
    Succeeded,
    /// It ended badly; why.
    Failed(String),
    /// It was deleted before it was done.
    Gone,
    /// It has not ended in time; what it does.
    Late(String),
}

/// Waits until the work of the object `uid` has ended, through outages of the cluster.
///
/// # Errors
/// Whatever a request fails with that does not pass by itself; an outage that lasts until `deadline`.
pub(crate) async fn of_one(
    cluster: &Cluster,
    resource: &Resource,
    object: &ObjectRef,
    uid: &str,
    deadline: Instant,
    observer: &Observer,
) -> Result<Completion, Error> {
    let mut wait = Wait {
        object,
        uid,
        observer,
        last: None,
        outage: None,
    };
    match timeout_at(deadline, wait.follow(cluster, resource)).await {
        Ok(ended) => ended,
        Err(_) => match (wait.outage, wait.last) {
            // Nobody knows how it is.
            (Some(outage), _) => Err(outage),
            (None, Some(Readiness::InProgress(why) | Readiness::Failed(why))) => Ok(Completion::Late(why)),
            (None, _) => Ok(Completion::Late("nothing was learnt of it in time".to_owned())),
        },
    }
}

struct Wait<'a> {
    object: &'a ObjectRef,
    uid: &'a str,
    observer: &'a Observer,
    last: Option<Readiness>,
    outage: Option<Error>,
}

impl Wait<'_> {
    async fn follow(&mut self, cluster: &Cluster, resource: &Resource) -> Result<Completion, Error> {
        loop {
            let listed_at = Instant::now();
            let pause = match self.list_and_watch(cluster, resource).await {
                Ok(Some(ended)) => return Ok(ended),
                Ok(None) | Err(Error::Expired { .. }) => RELIST_INTERVAL,
                Err(error) => {
                    let pause = match error.class() {
                        ErrorClass::RateLimited(pause) => pause,
                        ErrorClass::Transient | ErrorClass::Unreachable => RELIST_INTERVAL,
                        _ => return Err(error),
                    };
                    tracing::debug!(%error, "a hook cannot be followed at the moment");
                    self.outage = Some(error);
                    pause
                }
            };
            sleep_until(listed_at + pause).await;
        }
    }

    /// One list and the watch that follows it; none when the watch ended first.
    async fn list_and_watch(
        &mut self,
        cluster: &Cluster,
        resource: &Resource,
    ) -> Result<Option<Completion>, Error> {
        let fields = format!("metadata.name={}", self.object.name);
        let selection = Selection {
            namespace: self.object.namespace.as_deref(),
            fields: &fields,
            ..Selection::default()
        };
        let listed = cluster.list_full(resource, selection).await?;
        self.outage = None;
        let Some(mut found) = listed.items.into_iter().find(|item| uid(item) == self.uid) else {
            return Ok(Some(Completion::Gone));
        };
        // Items of a list do not say what they are.
        if let Some(found) = found.as_object_mut() {
            found.insert("apiVersion".to_owned(), Value::from(resource.kind.api_version()));
            found.insert("kind".to_owned(), Value::from(resource.kind.kind.as_str()));
        }
        if let Some(ended) = self.note(&found) {
            return Ok(Some(ended));
        }
        let mut watch = cluster
            .watch_kind(resource, selection, &listed.resource_version, false)
            .await?;
        while let Some(event) = watch.next().await? {
            let (raw, deleted) = match event {
                WatchEvent::Applied(raw) => (raw, false),
                WatchEvent::Deleted(raw) => (raw, true),
                WatchEvent::Bookmark(_) => continue,
            };
            let Ok(object) = serde_json::from_str::<Value>(raw.get()) else {
                return Ok(None);
            };
            if uid(&object) != self.uid {
                continue;
            }
            // Its last state says how it ended, also when it removed itself.
            if let Some(ended) = self.note(&object) {
                return Ok(Some(ended));
            }
            if deleted {
                return Ok(Some(Completion::Gone));
            }
        }
        Ok(None)
    }

    /// Judges a state, and tells whoever listens if it is news.
    fn note(&mut self, object: &Value) -> Option<Completion> {
        let progress = progress(object);
        if self.last.as_ref() != Some(&progress) {
            (self.observer)(Event::Readiness(ObjectState {
                object: self.object.clone(),
                readiness: progress.clone(),
                details: Vec::new(),
            }));
        }
        let ended = match &progress {
            Readiness::Ready => Some(Completion::Succeeded),
            Readiness::Failed(why) => Some(Completion::Failed(why.clone())),
            Readiness::InProgress(_) => None,
        };
        self.last = Some(progress);
        ended
    }
}

/// How far a Job or Pod has come with its work: `Ready` when it is done.
fn progress(object: &Value) -> Readiness {
    let phase = object.pointer("/status/phase").and_then(Value::as_str);
    if completed(object) || phase == Some("Succeeded") {
        return Readiness::Ready;
    }
    // One that failed stays that while it is being deleted.
    let mut seen = object.clone();
    if let Some(metadata) = seen.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("deletionTimestamp");
        metadata.remove("annotations");
    }
    let running = match readiness::judge(&seen, Patience::Fresh) {
        Readiness::Failed(why) => return Readiness::Failed(why),
        Readiness::InProgress(why) => why,
        Readiness::Ready if object.pointer("/spec/suspend") == Some(&Value::Bool(true)) => {
            "it is suspended".to_owned()
        }
        Readiness::Ready => "it runs".to_owned(),
    };
    Readiness::InProgress(match object.pointer("/metadata/deletionTimestamp") {
        Some(_) => "it is being deleted".to_owned(),
        None => running,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(spec: Value, status: Value) -> Value {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generation": 1}, "spec": spec, "status": status})
    }

    /// RDY-10: whether a Job is as it should be and whether it is done are two questions.
    #[test]
    fn done_is_when_it_completed() {
        let condition = |kind: &str| json!([{"type": kind, "status": "True", "reason": "Why"}]);
        let running = job(json!({}), json!({"active": 1}));
        let retrying = job(json!({"backoffLimit": 6}), json!({"failed": 2, "active": 1}));
        let suspended = job(
            json!({"suspend": true}),
            json!({"conditions": condition("Suspended")}),
        );
        for unfinished in [&running, &retrying, &suspended] {
            assert!(
                matches!(progress(unfinished), Readiness::InProgress(_)),
                "{unfinished}"
            );
        }
        let mut done = job(
            json!({}),
            json!({"succeeded": 1, "conditions": condition("Complete")}),
        );
        assert!(progress(&done).is_ready());
        done["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(progress(&done).is_ready(), "it removes itself");
        let mut failed = job(json!({}), json!({"failed": 1, "conditions": condition("Failed")}));
        assert!(progress(&failed).is_failed());
        failed["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(progress(&failed).is_failed());
    }

    #[test]
    fn a_pod_that_is_ready_is_not_done() {
        let pod = |phase: &str| {
            let ready = json!([{"type": "Ready", "status": "True"}]);
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "status": {"phase": phase, "conditions": ready}})
        };
        assert!(matches!(progress(&pod("Running")), Readiness::InProgress(_)));
        assert!(matches!(progress(&pod("Pending")), Readiness::InProgress(_)));
        assert!(progress(&pod("Succeeded")).is_ready());
        assert!(progress(&pod("Failed")).is_failed());
    }
}
