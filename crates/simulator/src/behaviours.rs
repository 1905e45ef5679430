//! What controllers, scheduler and kubelets do in a real cluster, driven by the writes that concern them.
//!
//! One task serves all clusters: a write puts items into the cluster's [`Work`](crate::work::Work) and the cluster into
//! the [`Runner`]'s queue; timers put it there again. Nothing polls, and a cluster where nothing happens costs nothing.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use evenkeel_telemetry::CancellationToken;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::BEHAVIOUR_ANNOTATION;
use crate::cluster::ClusterState;
use crate::json::{at, items, text};
use crate::object::{Key, Object};
use crate::state::State;
use crate::status::ApiError;
use crate::work::Item;

mod adoption;
mod daemon_set;
mod deployment;
mod endpoint_slice;
mod garbage;
mod job;
mod namespace;
mod pod;
mod provision;
mod replica_set;
mod stateful_set;

/// Items that a cluster may have looked at before others get their turn.
const TURN: usize = 500;
/// After an unexpected refusal an item is looked at again.
const RETRY: Duration = Duration::from_secs(1);
/// Manager name of controllers.
pub(crate) const CONTROLLER: &str = "kube-controller-manager";

/// The queue of clusters with work; each is in it at most once.
#[derive(Debug, Default)]
pub(crate) struct Runner {
    queue: Mutex<VecDeque<Arc<ClusterState>>>,
    notify: Notify,
}

impl Runner {
    pub(crate) fn wake(&self, cluster: &Arc<ClusterState>) {
        if !cluster.queued.swap(true, Ordering::AcqRel) {
            self.queue
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push_back(cluster.clone());
            self.notify.notify_one();
        }
    }

    fn pop(&self) -> Option<Arc<ClusterState>> {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }
}

/// Timers of clusters, at most one each.
#[derive(Default)]
struct Timers {
    due: BTreeSet<(Instant, String)>,
    by_name: HashMap<String, (Instant, Arc<ClusterState>)>,
}

impl Timers {
    fn set(&mut self, cluster: &Arc<ClusterState>, due: Instant) {
        if let Some((known, _)) = self.by_name.get(&cluster.name) {
            if *known <= due {
                return;
            }
            self.due.remove(&(*known, cluster.name.clone()));
        }
        self.by_name.insert(cluster.name.clone(), (due, cluster.clone()));
        self.due.insert((due, cluster.name.clone()));
    }

    fn next(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    fn pop(&mut self, now: Instant) -> Option<Arc<ClusterState>> {
        if self.next()? > now {
            return None;
        }
        let (_, name) = self.due.pop_first()?;
        self.by_name.remove(&name).map(|(_, cluster)| cluster)
    }
}

/// Looks at clusters until cancelled.
pub(crate) async fn run(runner: Arc<Runner>, token: CancellationToken) -> Result<(), Infallible> {
    let mut timers = Timers::default();
    loop {
        while let Some(cluster) = timers.pop(Instant::now()) {
            runner.wake(&cluster);
        }
        if let Some(cluster) = runner.pop() {
            cluster.queued.store(false, Ordering::Release);
            if !cluster.is_removed() {
                let next = cluster.with(turn);
                if let Some(due) = next {
                    timers.set(&cluster, due);
                }
            }
            tokio::task::yield_now().await;
            if token.is_cancelled() {
                return Ok(());
            }
            continue;
        }
        let next = timers.next();
        tokio::select! {
            () = runner.notify.notified() => {}
            () = async {
                match next {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            } => {}
            () = token.cancelled() => return Ok(()),
        }
    }
}

/// Works off what is due, up to a limit; says when to come again.
fn turn(state: &mut State) -> Option<Instant> {
    for _ in 0..TURN {
        let now = Instant::now();
        let Some(item) = state.work.pop(now) else { break };
        match state.reconcile(item.clone(), now) {
            Ok(()) => {}
            Err(error) if error.code == 404 => {}
            Err(error) => {
                tracing::debug!(?item, error = %error.message, "a simulated controller was refused");
                state.work.push_at(now + RETRY, item);
            }
        }
    }
    state.work.next_due(Instant::now())
}

impl State {
    fn reconcile(&mut self, item: Item, now: Instant) -> Result<(), ApiError> {
        match item {
            // These belong to the API server itself.
            Item::Definition(name) => self.reconcile_definition(&name),
            _ if !self.environment.controllers => Ok(()),
            Item::Namespace(name) => self.reconcile_namespace(&name),
            Item::Deployment(key) => self.reconcile_deployment(&key, now),
            Item::ReplicaSet(key) => self.reconcile_replica_set(&key, now),
            Item::StatefulSet(key) => self.reconcile_stateful_set(&key, now),
            Item::DaemonSet(key) => self.reconcile_daemon_set(&key, now),
            Item::Nodes => {
                if let Some(id) = self.id("apps", "daemonsets") {
                    let keys: Vec<Key> = self.store.list(id, "").map(|object| object.key.clone()).collect();
                    keys.into_iter()
                        .for_each(|key| self.work.push(Item::DaemonSet(key)));
                }
                Ok(())
            }
            Item::Job(key) => self.reconcile_job(&key, now),
            Item::Pod(key) => self.reconcile_pod(&key, now),
            Item::Claim(key) => self.reconcile_claim(&key, now),
            Item::Service(key) => self.reconcile_service(&key, now),
            Item::EndpointSlices(namespace) => self.reconcile_endpoint_slices(&namespace),
            Item::DisruptionBudgets(namespace) => self.reconcile_disruption_budgets(&namespace),
            Item::Dependents(uid) => self.collect_dependents(uid),
            Item::Owners(resource, key) => self.check_owners(resource, &key),
        }
    }

    /// Reads an object of a kind in its storage version.
    fn read(&self, group: &str, plural: &str, key: &Key) -> Option<(Arc<Object>, Value)> {
        let endpoint = self.endpoint(group, plural)?;
        let object = self.store.get(endpoint.resource.id, key)?.clone();
        let value = endpoint.read(&object);
        Some((object, value))
    }

    /// Objects of a kind in a namespace whose controller has this uid, oldest first.
    fn owned(&self, group: &str, plural: &str, namespace: &str, uid: &str) -> Vec<Value> {
        let Some(endpoint) = self.endpoint(group, plural) else {
            return Vec::new();
        };
        let mut owned: Vec<(i64, Value)> = self
            .store
            .list(endpoint.resource.id, namespace)
            .filter(|object| object.owned && object.mentions(uid))
            .map(|object| (object.created, endpoint.read(object)))
            .filter(|(_, value)| {
                let mut references = items(value, &["metadata", "ownerReferences"]).iter();
                references.any(|owner| text(owner, &["uid"]) == uid && owner["controller"] == json!(true))
            })
            .collect();
        owned.sort_by_key(|(created, _)| *created);
        owned.into_iter().map(|(_, value)| value).collect()
    }

    /// Writes an object's status, if it changes.
    fn write_status(
        &mut self,
        group: &str,
        plural: &str,
        key: &Key,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), ApiError> {
        let Some(endpoint) = self.endpoint(group, plural) else {
            return Ok(());
        };
        self.change(&endpoint, key, "status", CONTROLLER, change)?;
        Ok(())
    }

    /// Changes an object as its controller.
    fn write(
        &mut self,
        group: &str,
        plural: &str,
        key: &Key,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), ApiError> {
        let Some(endpoint) = self.endpoint(group, plural) else {
            return Ok(());
        };
        self.change(&endpoint, key, "", CONTROLLER, change)?;
        Ok(())
    }

    fn remove_object(&mut self, group: &str, plural: &str, key: &Key) -> Result<(), ApiError> {
        let Some(endpoint) = self.endpoint(group, plural) else {
            return Ok(());
        };
        self.delete(&endpoint, &key.namespace, &key.name, &Default::default())?;
        Ok(())
    }
}

/// What an annotation makes of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Normal,
    /// Takes ten times as long.
    Slow,
    /// Runs but never becomes ready.
    Stuck,
    /// Crashes.
    Fail,
    /// Never gets its image.
    Pull,
}

/// Reads the annotation of an object.
fn behaviour(object: &Value) -> Behaviour {
    match text(object, &["metadata", "annotations", BEHAVIOUR_ANNOTATION]) {
        "slow" => Behaviour::Slow,
        "stuck" => Behaviour::Stuck,
        "fail" => Behaviour::Fail,
        "pull" => Behaviour::Pull,
        _ => Behaviour::Normal,
    }
}

/// An owner reference to a controller.
fn controller_reference(api_version: &str, kind: &str, owner: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": text(owner, &["metadata", "name"]),
        "uid": text(owner, &["metadata", "uid"]), "controller": true, "blockOwnerDeletion": true})
}

/// A pod made from the template of a workload.
fn pod_from_template(owner: &Value, api_version: &str, kind: &str, labels: &[(&str, &str)]) -> Value {
    let template = at(owner, &["spec", "template"]).cloned().unwrap_or_default();
    let mut metadata = at(&template, &["metadata"]).cloned().unwrap_or_else(|| json!({}));
    for field in ["name", "namespace", "creationTimestamp"] {
        crate::json::remove(&mut metadata, &[field]);
    }
    for (label, value) in labels {
        crate::json::set(&mut metadata, &["labels", label], *value);
    }
    // A script on the workload itself holds for its pods.
    let script = text(owner, &["metadata", "annotations", BEHAVIOUR_ANNOTATION]);
    if !script.is_empty() && text(&metadata, &["annotations", BEHAVIOUR_ANNOTATION]).is_empty() {
        crate::json::set(&mut metadata, &["annotations", BEHAVIOUR_ANNOTATION], script);
    }
    crate::json::set(
        &mut metadata,
        &["namespace"],
        text(owner, &["metadata", "namespace"]),
    );
    crate::json::set(
        &mut metadata,
        &["ownerReferences"],
        json!([controller_reference(api_version, kind, owner)]),
    );
    json!({"metadata": metadata, "spec": template.get("spec")})
}

/// A short name for a template: equal templates have equal names.
fn template_hash(template: &Value) -> String {
    const LETTERS: &[u8] = b"bcdf2456789ghjklmnpqrstvwxz";
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in template.to_string().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (0..10)
        .filter_map(|_| {
            let letter = LETTERS.get(usize::try_from(hash % LETTERS.len() as u64).unwrap_or(0));
            hash /= LETTERS.len() as u64;
            letter.map(|letter| char::from(*letter))
        })
        .collect()
}

fn is_deleting(object: &Value) -> bool {
    at(object, &["metadata", "deletionTimestamp"]).is_some()
}

/// Whether a condition of an object is True.
fn is_true(object: &Value, kind: &str) -> bool {
    items(object, &["status", "conditions"])
        .iter()
        .any(|condition| text(condition, &["type"]) == kind && text(condition, &["status"]) == "True")
}

fn is_finished(pod: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&text(pod, &["status", "phase"]))
}

/// Seconds until a ready pod counts as available: 0 when it does, `None` when it is not ready.
fn available_in(pod: &Value, min_ready: i64, now: i64) -> Option<i64> {
    if !is_true(pod, "Ready") || is_deleting(pod) {
        return None;
    }
    let ready = items(pod, &["status", "conditions"])
        .iter()
        .find(|condition| text(condition, &["type"]) == "Ready");
    let since =
        ready.and_then(|condition| crate::clock::parse_seconds(text(condition, &["lastTransitionTime"])));
    Some((since.unwrap_or(now) + min_ready - now).max(0))
}

/// How pods of a set are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Readiness {
    ready: i64,
    available: i64,
    /// Seconds until the next ready pod becomes available.
    next: Option<i64>,
}

fn readiness<'p>(pods: impl Iterator<Item = &'p Value>, min_ready: i64, now: i64) -> Readiness {
    let mut all = Readiness::default();
    for pod in pods {
        match available_in(pod, min_ready, now) {
            None => {}
            Some(0) => {
                all.ready += 1;
                all.available += 1;
            }
            Some(wait) => {
                all.ready += 1;
                all.next = Some(all.next.map_or(wait, |known| known.min(wait)));
            }
        }
    }
    all
}

/// Sets a condition, keeping its transition time where the status stays.
fn set_condition(object: &mut Value, now: &str, kind: &str, status: &str, reason: &str, message: &str) {
    let known = items(object, &["status", "conditions"])
        .iter()
        .find(|known| text(known, &["type"]) == kind)
        .cloned();
    let same = known
        .as_ref()
        .is_some_and(|known| text(known, &["status"]) == status);
    let since = known
        .as_ref()
        .map(|known| text(known, &["lastTransitionTime"]).to_owned())
        .filter(|_| same);
    let mut condition = json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since.unwrap_or_else(|| now.to_owned())});
    if let Some(known) = &known {
        // Some kinds note when a condition was last looked at; that stays while nothing else changes.
        for field in [
            "lastUpdateTime",
            "lastProbeTime",
            "lastHeartbeatTime",
            "observedGeneration",
        ] {
            if let Some(value) = at(known, &[field]) {
                crate::json::set(&mut condition, &[field], value.clone());
            }
        }
    }
    let mut conditions = items(object, &["status", "conditions"]).to_vec();
    match conditions.iter_mut().find(|known| text(known, &["type"]) == kind) {
        Some(slot) => *slot = condition,
        None => conditions.push(condition),
    }
    crate::json::set(object, &["status", "conditions"], conditions);
}

fn key_of(object: &Value) -> Key {
    Key::new(
        text(object, &["metadata", "namespace"]),
        text(object, &["metadata", "name"]),
    )
}
