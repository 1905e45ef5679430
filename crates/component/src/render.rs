//! From a chart and values to documents; a render that all clusters share is made once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_chart::{
    Capabilities, Chart, Instant, Limits, Lookup, RandomSource, Release, RenderOptions, RenderedObject,
    Taints, render_key,
};
use evenkeel_cluster::ManifestObject;
use evenkeel_core::{ComponentName, ComponentRevision, Digest, Namespace, ObjectRef};
use evenkeel_source::Cache;
use jiff::Timestamp;
use serde_json::Value;

use crate::hooks::{HookRule, RenderedHook};
use crate::values::ResolvedValues;
use crate::{Error, SystemKeys};

/// How long one render may take unless told otherwise; a chart that takes longer is at fault.
const RENDER_TIMEOUT: Duration = Duration::from_secs(30);
/// How many shared renders are kept.
const RENDERS_SHARED: usize = 512;

/// Bounds on one render, so that a hostile chart is an error and never an outage. Passing one fails the component with an
/// error that names the template and the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderLimits {
    /// What the engine counts: depth, passes through loops, bytes.
    pub engine: Limits,
    /// How long a render may take.
    pub time: Duration,
}

impl Default for RenderLimits {
    fn default() -> Self {
        Self {
            engine: Limits::default(),
            time: RENDER_TIMEOUT,
        }
    }
}

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
    /// Hooks that may run, in Helm's order of kinds.
    pub(crate) hooks: Vec<RenderedHook>,
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
}

pub(crate) fn reference(object: &Value) -> ObjectRef {
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
        render_key(
            self.chart,
            &self.values.digest,
            &self.release(),
            self.capabilities,
        )
    }

    fn release(&self) -> Release {
        Release {
            name: self.name.to_string(),
            namespace: self.namespace.to_string(),
            revision: self.revision.0,
            is_install: self.revision.0 <= 1,
            is_upgrade: self.revision.0 > 1,
            service: "Helm".to_owned(),
        }
    }

    /// Renders. Blocks for as long as the chart takes; at most as long as the limits allow.
    pub(crate) fn render(
        &self,
        now: Timestamp,
        lookup: Option<Arc<dyn Lookup>>,
        limits: RenderLimits,
    ) -> Result<Documents, Error> {
        let failed = |source| Error::Render {
            component: self.name.clone(),
            source: Box::new(source),
        };
        let instant = Instant {
            seconds: now.as_second(),
            nanos: u32::try_from(now.subsec_nanosecond()).unwrap_or_default(),
        };
        let mut options = RenderOptions::new(instant, Box::new(SystemRandom));
        options.keys = Some(Box::new(SystemKeys));
        options.lookup = lookup;
        options.limits = limits.engine;
        let begun = std::time::Instant::now();
        options.deadline = Some(Box::new(move || begun.elapsed() > limits.time));
        let rendered = evenkeel_chart::render(
            self.chart,
            &self.values.tree,
            &self.release(),
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
            // Tests are run by a person, and rollbacks do not exist here; naming them would only worry.
            hooks: hooks
                .into_iter()
                .filter_map(hook)
                .filter(|hook| !hook.rule.events.is_empty())
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

fn hook(object: RenderedObject) -> Option<RenderedHook> {
    let rule = HookRule::of(object.hook.as_ref()?);
    Some(RenderedHook {
        document: object.into(),
        rule,
    })
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

/// Renders without taints, shared by all clusters of the fleet; the least recently used makes room.
#[derive(Debug)]
pub(crate) struct SharedRenders(Cache<Digest, Documents>);

impl Default for SharedRenders {
    fn default() -> Self {
        Self(Cache::new(RENDERS_SHARED))
    }
}

impl SharedRenders {
    pub(crate) fn get(&self, key: &Digest) -> Option<Arc<Documents>> {
        self.0.get(key)
    }

    pub(crate) fn insert(&self, key: Digest, documents: &Arc<Documents>) {
        if !documents.is_marked {
            self.0.insert(key, Arc::clone(documents));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;
    use crate::values::merge;

    fn render(template: &str, limits: RenderLimits) -> Result<Documents, Error> {
        let files = [
            ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
            ("templates/a.yaml", template),
        ];
        let input = RenderInput {
            chart: &Chart::from_files(files).expect("the chart is right"),
            values: &merge(&Values::default(), Vec::new()).expect("the values are right"),
            name: &"c".parse().expect("a name"),
            namespace: &"n".parse().expect("a name"),
            revision: ComponentRevision(1),
            capabilities: &Capabilities::default(),
        };
        input.render(Timestamp::UNIX_EPOCH, None, limits)
    }

    #[test]
    fn a_passed_bound_names_the_template() {
        let template = "{{ range until 5000 }}{{ end }}apiVersion: v1\nkind: A\nmetadata: {name: a}\n";
        assert!(render(template, RenderLimits::default()).is_ok());
        let few = Limits {
            iterations: 1_000,
            ..Limits::default()
        };
        let engine = RenderLimits {
            engine: few,
            ..RenderLimits::default()
        };
        let time = RenderLimits {
            time: Duration::ZERO,
            ..RenderLimits::default()
        };
        for (limits, told) in [
            (engine, "more than 1000 passes through range"),
            (time, "the time limit"),
        ] {
            let Err(Error::Render { source, .. }) = render(template, limits) else {
                panic!("{told}: no error");
            };
            let text = source.to_string();
            assert!(
                text.contains(told) && text.contains("c/templates/a.yaml:1:"),
                "{text}"
            );
        }
    }
}
