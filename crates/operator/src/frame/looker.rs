//! What a controller of any kind is: its passes, and how many of them run at once.

use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_core::Clock;
use evenkeel_steps::{Failure, Permission};
use evenkeel_telemetry::CancellationToken;
use evenkeel_telemetry::metrics::StepMetrics;
use kube::Client;
use kube::runtime::reflector::Store;

use super::{Access, Kind, ObjectPlan, Passed, Passes, Scope, Sources, run};
use crate::leader::Fence;

/// Looks after the objects of a kind. All clones are one.
pub(crate) struct Looker<K: Kind> {
    passes: Arc<Passes<K>>,
    client: Client,
    concurrency: u16,
    fence: Fence,
    /// Of the last run.
    store: Arc<Mutex<Option<Store<K::Object>>>>,
}

impl<K: Kind> Looker<K> {
    /// One that has not begun yet. `manager` is its field manager, and how it calls itself in events.
    pub(crate) fn new(
        kind: K,
        access: Access,
        client: Client,
        clock: Arc<dyn Clock>,
        manager: &str,
        concurrency: u16,
    ) -> Self {
        Self {
            passes: Arc::new(Passes::new(kind, access, clock, manager)),
            client,
            concurrency,
            fence: Fence::default(),
            store: Arc::default(),
        }
    }

    /// Works only while this says that the Lease is ours; to be said before it runs.
    pub(crate) fn fenced(mut self, fence: Fence) -> Self {
        self.fence = fence;
        self
    }

    /// Counts steps and passes from now on; to be said before it runs.
    pub(crate) fn measured(mut self, metrics: StepMetrics) -> Self {
        if let Some(passes) = Arc::get_mut(&mut self.passes) {
            passes.measure(metrics);
        }
        self
    }

    /// All that it asks of what is outside, each with who asks.
    pub(crate) fn permissions(&self) -> Vec<(String, Permission)> {
        self.passes.permissions()
    }

    /// The watch of its objects, to which others are added.
    pub(crate) fn sources(&self, scope: Scope) -> Sources<K::Object> {
        let sources = Sources::new::<K>(scope, self.client.clone());
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(sources.store());
        sources
    }

    /// All objects, as far as they are kept; none before it runs.
    pub(crate) fn objects(&self) -> Vec<Arc<K::Object>> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).clone();
        store.map(|store| store.state()).unwrap_or_default()
    }

    /// Brings one object a pass further.
    ///
    /// # Errors
    /// When the object itself cannot be read; everything else is told in its status.
    pub(crate) async fn pass(&self, namespace: &str, name: &str) -> Result<Passed, Failure> {
        self.passes.pass(namespace, name).await
    }

    /// What a pass over an object would do. Writes nothing anywhere.
    pub(crate) async fn plan(&self, object: K::Object) -> ObjectPlan {
        self.passes.plan(object).await
    }

    /// Lets passes plan and not act; to be said before it runs.
    pub(crate) fn observing(mut self, observes: bool) -> Self {
        if let Some(passes) = Arc::get_mut(&mut self.passes) {
            passes.observe(observes);
        }
        self
    }

    /// Runs passes over what `sources` tell until `token` is cancelled.
    pub(crate) async fn run(&self, sources: Sources<K::Object>, token: CancellationToken) {
        let passes = Arc::clone(&self.passes);
        run(passes, sources, self.concurrency, self.fence.clone(), token).await;
    }
}

impl<K: Kind> Clone for Looker<K> {
    fn clone(&self) -> Self {
        Self {
            passes: Arc::clone(&self.passes),
            client: self.client.clone(),
            concurrency: self.concurrency,
            fence: self.fence.clone(),
            store: Arc::clone(&self.store),
        }
    }
}

impl<K: Kind> std::fmt::Debug for Looker<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Looker").finish_non_exhaustive()
    }
}
