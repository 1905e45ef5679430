//! What all clusters of a simulator have in common.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use evenkeel_core::Clock;

use crate::object::Shared;
use crate::registry::builtin::FIRST_CUSTOM_ID;
use crate::registry::{Resource, ResourceId};
use crate::simulator::Options;

/// How long simulated things take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From the creation of a pod until it is ready.
    pub pod_start: Duration,
    /// From the start of a job's pod until it has succeeded.
    pub job_run: Duration,
    /// From the deletion of a running pod until it is gone.
    pub pod_stop: Duration,
    /// Until a volume claim is bound, and a load balancer has its address.
    pub provision: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            pod_start: Duration::from_millis(200),
            job_run: Duration::from_millis(200),
            pod_stop: Duration::from_millis(50),
            provision: Duration::from_millis(100),
        }
    }
}

/// Shared storage, settings and the clock.
#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) shared: Shared,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timing: Timing,
    /// Writes that each cluster remembers for watches.
    pub(crate) history: usize,
    pub(crate) nodes: u32,
    pub(crate) controllers: bool,
    /// PEM.
    pub(crate) ca_certificate: String,
    custom: Mutex<CustomKinds>,
}

/// Custom kinds are parsed once for all clusters that define them alike.
#[derive(Debug, Default)]
struct CustomKinds {
    ids: HashMap<(String, String), ResourceId>,
    parsed: HashMap<String, Weak<Resource>>,
}

impl Environment {
    pub(crate) fn new(options: &Options, ca_certificate: String) -> Self {
        Self {
            shared: Shared::new(),
            clock: options.clock.clone(),
            timing: options.timing,
            history: options.history,
            nodes: options.nodes,
            controllers: options.controllers,
            ca_certificate,
            custom: Mutex::default(),
        }
    }

    /// The resource that a definition's spec describes; `parse` is called with the id of its group and plural.
    pub(crate) fn custom_kind(
        &self,
        spec: &str,
        group: &str,
        plural: &str,
        parse: impl FnOnce(ResourceId) -> Resource,
    ) -> Arc<Resource> {
        let mut custom = self.custom.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = custom.parsed.get(spec).and_then(Weak::upgrade) {
            return known;
        }
        custom.parsed.retain(|_, resource| resource.strong_count() > 0);
        let next = FIRST_CUSTOM_ID + u32::try_from(custom.ids.len()).unwrap_or(0);
        let id = *custom
            .ids
            .entry((group.to_owned(), plural.to_owned()))
            .or_insert(ResourceId(next));
        let resource = Arc::new(parse(id));
        custom.parsed.insert(spec.to_owned(), Arc::downgrade(&resource));
        resource
    }
}
