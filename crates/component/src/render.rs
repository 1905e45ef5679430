//! From a chart and values to documents; a render that all clusters share is made once.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_chart::{
    Capabilities, Chart, HookEvent, Instant, Lookup, RandomSource, Release, RenderOptions, RenderedObject,
    Taints,
};
use evenkeel_cluster::ManifestObject;
use evenkeel_core::{ComponentName, ComponentRevision, Digest, Namespace, ObjectRef, SkippedObject};
use jiff::Timestamp;
use serde_json::Value;

use crate::values::ResolvedValues;
use crate::{Error, SystemKeys};

/// How long one render may take; a chart that takes longer is at fault.
const RENDER_TIMEOUT: Duration = Duration::from_secs(30);
/// How many shared renders are kept.
const RENDERS_SHARED: usize = 512;

/// All that decides the bytes of a render without taints.
pub(crate) struct RenderInput<'a> {
    pub(crate) chart: &'a Chart,
    pub(crate) values: &'a ResolvedValues,
    pub(crate) name: &'a ComponentName,
    pub(crate) namespace: &'a Namespace,
    pub(crate) revision: ComponentRevision,
    pub(crate) capabilities: &'a Capabilities,
}

/// Rendered documents, ready for the target. `Debug` shows no content.
#[derive(Clone, PartialEq)]
pub(crate) struct Documents {
    /// What is applied: custom resource definitions first, then in Helm's order.
    pub(crate) objects: Vec<Document>,
    /// Hooks; listed, never applied.
    pub(crate) hooks: Vec<Document>,
    /// Whether the same input would give other bytes.
    pub(crate) is_marked: bool,
}

/// One rendered document and the file it came from.
#[derive(Clone, PartialEq)]
pub(crate) struct Document {
    pub(crate) source: String,
    pub(crate) object: Value,
}

impl fmt::Debug for Documents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Documents")
            .field("objects", &self.objects.len())
            .field("hooks", &self.hooks.len())
            .field("is_marked", &self.is_marked)
            .finish()
    }
}

impl Documents {
    /// The documents as the cluster engine takes them.
    pub(crate) fn manifest(&self) -> Vec<ManifestObject> {
        let object = |document: &Document| ManifestObject {
            object: document.object.clone(),
            source: document.source.clone(),
        };
        self.objects.iter().map(object).collect()
    }

    /// The hooks, as what is left alone.
    pub(crate) fn skipped(&self) -> Vec<SkippedObject> {
        let skipped = |hook: &Document| SkippedObject {
            object: reference(&hook.object),
            reason: format!("Helm hook of {}: hooks are not run", hook.source),
        };
        self.hooks.iter().map(skipped).collect()
    }
}

fn reference(object: &Value) -> ObjectRef {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let api_version = text("/apiVersion");
    ObjectRef {
        group: api_version
            .split_once('/')
            .map(|(group, _)| group.to_owned())
            .unwrap_or_default(),
        kind: text("/kind"),
        namespace: Some(text("/metadata/namespace")).filter(|namespace| !namespace.is_empty()),
        name: text("/metadata/name"),
    }
}

impl RenderInput<'_> {
    /// Names the render among all that share it.
    pub(crate) fn key(&self) -> Digest {
        let Self {
            chart,
            values,
            name,
            namespace,
            revision,
            capabilities,
        } = self;
        Digest::of_parts([
            chart.digest().as_bytes().as_slice(),
            values.digest.as_bytes(),
            name.as_str().as_bytes(),
            namespace.as_str().as_bytes(),
            &revision.0.to_be_bytes(),
            capabilities_digest(capabilities).as_bytes(),
        ])
    }

    /// Renders. Blocks for as long as the chart takes; at most as long as the engine's limits allow.
    pub(crate) fn render(&self, now: Timestamp, lookup: Option<Arc<dyn Lookup>>) -> Result<Documents, Error> {
        let failed = |source| Error::Render {
            component: self.name.clone(),
            source: Box::new(source),
        };
        let release = Release {
            name: self.name.to_string(),
            namespace: self.namespace.to_string(),
            revision: self.revision.0,
            is_install: self.revision.0 <= 1,
            is_upgrade: self.revision.0 > 1,
            service: "Helm".to_owned(),
        };
        let instant = Instant {
            seconds: now.as_second(),
            nanos: u32::try_from(now.subsec_nanosecond()).unwrap_or_default(),
        };
        let mut options = RenderOptions::new(instant, Box::new(SystemRandom));
        options.keys = Some(Box::new(SystemKeys));
        options.lookup = lookup;
        let begun = std::time::Instant::now();
        options.deadline = Some(Box::new(move || begun.elapsed() > RENDER_TIMEOUT));
        let rendered = evenkeel_chart::render(
            self.chart,
            &self.values.tree,
            &release,
            self.capabilities,
            options,
        )
        .map_err(failed)?;
        let Taints { random, time, lookup } = rendered.taints;
        let mut objects = rendered.crd_objects().map_err(failed)?;
        objects.extend(rendered.objects().map_err(failed)?);
        let (hooks, objects): (Vec<_>, Vec<_>) =
            objects.into_iter().partition(|object| object.hook.is_some());
        Ok(Documents {
            objects: objects.into_iter().map(Document::from).collect(),
            // Test hooks are never run by anyone but `helm test`; naming them would only worry.
            hooks: hooks
                .into_iter()
                .filter(|hook| !is_test(hook))
                .map(Document::from)
                .collect(),
            is_marked: random || time || lookup,
        })
    }
}

impl From<RenderedObject> for Document {
    fn from(rendered: RenderedObject) -> Self {
        Self {
            source: rendered.source,
            object: rendered.object,
        }
    }
}

fn is_test(object: &RenderedObject) -> bool {
    object
        .hook
        .as_ref()
        .is_some_and(|hook| hook.events.iter().all(|event| *event == HookEvent::Test))
}

/// Names what a chart can see of a cluster's kind.
pub(crate) fn capabilities_digest(capabilities: &Capabilities) -> Digest {
    let version = capabilities.kube_version.version.as_bytes();
    Digest::of_parts(std::iter::once(version).chain(capabilities.api_versions.iter().map(String::as_bytes)))
}

/// Randomness for passwords and keys in charts.
struct SystemRandom;

impl RandomSource for SystemRandom {
    fn fill(&mut self, buffer: &mut [u8]) {
        // The system's generator cannot fail on the systems we run on; a buffer left at zero would be a known
        // password, so the process ends rather than go on.
        if aws_lc_rs::rand::fill(buffer).is_err() {
            std::process::abort();
        }
    }
}

/// Renders without taints, shared by all clusters of the fleet; the oldest makes room.
#[derive(Debug, Default)]
pub(crate) struct SharedRenders(Mutex<Shared>);

#[derive(Debug, Default)]
struct Shared {
    renders: HashMap<Digest, Arc<Documents>>,
    order: std::collections::VecDeque<Digest>,
}

impl SharedRenders {
    pub(crate) fn get(&self, key: &Digest) -> Option<Arc<Documents>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .renders
            .get(key)
            .cloned()
    }

    pub(crate) fn insert(&self, key: Digest, documents: &Arc<Documents>) {
        if documents.is_marked {
            return;
        }
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.renders.insert(key, Arc::clone(documents)).is_none() {
            shared.order.push_back(key);
        }
        while shared.order.len() > RENDERS_SHARED {
            if let Some(oldest) = shared.order.pop_front() {
                shared.renders.remove(&oldest);
            }
        }
    }
}
