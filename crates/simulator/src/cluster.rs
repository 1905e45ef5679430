//! One simulated cluster, as the server and its owner see it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::behaviours::Runner;
use crate::body::Body;
use crate::counters::{Counters, Counts};
use crate::environment::Environment;
use crate::error::Error;
use crate::faults::Faults;
use crate::log::{LoggedWrite, WriteLog};
use crate::object::Key;
use crate::patch::PatchType;
use crate::request::{FieldValidation, WriteOptions};
use crate::state::delete::DeleteOptions;
use crate::state::patch::not_handled;
use crate::state::{Endpoint, State};
use crate::status::ApiError;

/// What the server keeps of a cluster.
pub(crate) struct ClusterState {
    pub(crate) name: String,
    pub(crate) token: String,
    /// Further tokens that are accepted, each until its moment.
    issued: Mutex<HashMap<String, Instant>>,
    /// Whether the first token is not accepted any more.
    revoked: AtomicBool,
    pub(crate) faults: Faults,
    pub(crate) counters: Counters,
    pub(crate) log: WriteLog,
    environment: Arc<Environment>,
    state: Mutex<Option<Box<State>>>,
    revision: watch::Sender<u64>,
    runner: Arc<Runner>,
    /// Waits for the runner to look at it.
    pub(crate) queued: AtomicBool,
    removed: AtomicBool,
}

impl fmt::Debug for ClusterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterState")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl ClusterState {
    pub(crate) fn new(name: &str, token: String, environment: Arc<Environment>, runner: Arc<Runner>) -> Self {
        Self {
            name: name.to_owned(),
            token,
            issued: Mutex::default(),
            revoked: AtomicBool::new(false),
            faults: Faults::default(),
            counters: Counters::default(),
            log: WriteLog::default(),
            environment,
            state: Mutex::new(None),
            revision: watch::Sender::new(0),
            runner,
            queued: AtomicBool::new(false),
            removed: AtomicBool::new(false),
        }
    }

    /// Whether a bearer token is accepted now.
    pub(crate) fn accepts(&self, token: &str) -> bool {
        if token == self.token {
            return !self.revoked.load(Ordering::Relaxed);
        }
        let issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        issued.get(token).is_some_and(|until| Instant::now() < *until)
    }

    /// Runs `call` on the state, which is made now if this is the first contact. Watches and controllers hear of what
    /// it writes. The lock is never held over an await.
    pub(crate) fn with<R>(self: &Arc<Self>, call: impl FnOnce(&mut State) -> R) -> R {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = guard
            .get_or_insert_with(|| Box::new(State::bootstrap(&self.name, self.environment.clone())))
            .as_mut();
        let result = call(state);
        let revision = state.store.revision();
        let ready = state.work.has_ready();
        drop(guard);
        self.revision
            .send_if_modified(|known| std::mem::replace(known, revision) != revision);
        if ready && !self.removed.load(Ordering::Acquire) {
            self.runner.wake(self);
        }
        result
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Ends watches and controllers, and forgets everything.
    pub(crate) fn close(&self) {
        self.removed.store(true, Ordering::Release);
        self.revision.send_modify(|revision| *revision = u64::MAX);
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }
}

/// A handle to a simulated cluster: its kubeconfig, its counters, its faults, and its objects without going through
/// HTTP, for tests that play another client.
#[derive(Debug, Clone)]
pub struct Cluster {
    pub(crate) inner: Arc<ClusterState>,
    pub(crate) kubeconfig: Arc<str>,
}

impl Cluster {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The content of a kubeconfig for it: server URL, certificate authority and token, no file paths.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// The bearer token.
    pub fn token(&self) -> &str {
        &self.inner.token
    }

    /// Accepts a further bearer token for a while; answers a kubeconfig with it.
    pub fn issue(&self, token: &str, lifetime: Duration) -> String {
        let until = Instant::now() + lifetime;
        let mut issued = self.inner.issued.lock().unwrap_or_else(PoisonError::into_inner);
        issued.insert(token.to_owned(), until);
        self.kubeconfig.replace(&self.inner.token, token)
    }

    /// Accepts no token any more that was accepted so far, but for one that was issued.
    pub fn revoke_tokens(&self, but: Option<&str>) {
        self.inner.revoked.store(true, Ordering::Relaxed);
        let mut issued = self.inner.issued.lock().unwrap_or_else(PoisonError::into_inner);
        issued.retain(|token, _| Some(token.as_str()) == but);
    }

    /// What it was asked so far, or since the last reset. Calls on this handle do not count.
    pub fn counters(&self) -> Counts {
        self.inner.counters.snapshot()
    }

    /// Sets all counts to zero; gives what they were.
    pub fn reset_counters(&self) -> Counts {
        self.inner.counters.reset()
    }

    /// Keeps the last `writes` requests that change something, from now on.
    pub fn log_writes(&self, writes: usize) {
        self.inner.log.keep(writes);
    }

    /// The requests that changed something, oldest first, as far as they are kept. Calls on this handle are none.
    pub fn logged_writes(&self) -> Vec<LoggedWrite> {
        self.inner.log.all()
    }

    /// Its faults.
    pub fn faults(&self) -> &Faults {
        &self.inner.faults
    }

    /// How many objects it has.
    pub fn objects(&self) -> usize {
        self.inner.with(|state| state.store.count())
    }

    /// Its current resource version.
    pub fn resource_version(&self) -> u64 {
        self.inner.with(|state| state.store.revision())
    }

    /// Forgets its history of changes, so that watches from an older resource version get 410 Gone.
    pub fn compact(&self) {
        self.inner.with(|state| state.store.compact());
    }

    /// Reads an object; `None` when there is none. `namespace` is empty for cluster-wide kinds.
    ///
    /// # Errors
    /// The kind is not served.
    pub fn get(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, Error> {
        self.inner.with(|state| {
            let endpoint = find(state, api_version, kind)?;
            let object = state.store.get(endpoint.resource.id, &Key::new(namespace, name));
            Ok(object.map(|object| endpoint.read(object)))
        })
    }

    /// Lists the objects of a kind, in all namespaces when `namespace` is empty.
    ///
    /// # Errors
    /// The kind is not served.
    pub fn list(&self, api_version: &str, kind: &str, namespace: &str) -> Result<Vec<Value>, Error> {
        self.inner.with(|state| {
            let endpoint = find(state, api_version, kind)?;
            Ok(state
                .store
                .list(endpoint.resource.id, namespace)
                .map(|object| endpoint.read(object))
                .collect())
        })
    }

    /// Creates an object as the field manager `manager`.
    ///
    /// # Errors
    /// What an API server would answer.
    pub fn create(&self, manager: &str, object: Value) -> Result<Value, Error> {
        let text = |path: &[&str]| crate::json::text(&object, path).to_owned();
        let (api_version, kind, namespace) = (
            text(&["apiVersion"]),
            text(&["kind"]),
            text(&["metadata", "namespace"]),
        );
        self.inner.with(|state| {
            let endpoint = find(state, &api_version, &kind)?;
            let decoded = state
                .decode(&endpoint, object)
                .map_err(|error| not_handled(&endpoint, &error.0))?;
            let written = state.create(&endpoint, &namespace, decoded, None, &options(manager))?;
            Ok(endpoint.read(&written.object))
        })
    }

    /// Changes an object with a merge patch (RFC 7386) as the field manager `manager`.
    ///
    /// # Errors
    /// What an API server would answer.
    pub fn patch(
        &self,
        manager: &str,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Value, Error> {
        self.patch_at(manager, api_version, kind, namespace, name, "", patch)
    }

    /// Changes the status of an object with a merge patch, as its controller does.
    ///
    /// # Errors
    /// What an API server would answer.
    pub fn patch_status(
        &self,
        manager: &str,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Value, Error> {
        self.patch_at(manager, api_version, kind, namespace, name, "status", patch)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a URL, a manager and a patch"
    )]
    fn patch_at(
        &self,
        manager: &str,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        subresource: &str,
        patch: Value,
    ) -> Result<Value, Error> {
        self.inner.with(|state| {
            let endpoint = find(state, api_version, kind)?;
            let body = Body {
                value: patch,
                duplicates: Vec::new(),
            };
            let options = options(manager);
            let written = state.patch(
                &endpoint,
                &Key::new(namespace, name),
                subresource,
                PatchType::Merge,
                body,
                &options,
            )?;
            Ok(endpoint.read(&written.object))
        })
    }

    /// Deletes an object, what it owns in the background.
    ///
    /// # Errors
    /// What an API server would answer.
    pub fn delete(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Result<(), Error> {
        self.inner.with(|state| {
            let endpoint = find(state, api_version, kind)?;
            state.delete(&endpoint, namespace, name, &DeleteOptions::default())?;
            Ok(())
        })
    }
}

fn options(manager: &str) -> WriteOptions {
    WriteOptions {
        manager: manager.to_owned(),
        dry_run: false,
        validation: FieldValidation::Warn,
        force: false,
    }
}

fn find(state: &State, api_version: &str, kind: &str) -> Result<Endpoint, ApiError> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = state.registry.find_kind(group, kind).cloned();
    let resource = resource.ok_or_else(ApiError::no_such_resource)?;
    let version = resource
        .versions
        .iter()
        .position(|known| known.name == version && known.served);
    Ok(Endpoint {
        version: version.ok_or_else(ApiError::no_such_resource)?,
        resource,
    })
}
