//! What decides a component's objects, as digests.

use evenkeel_chart::Capabilities;
use evenkeel_core::{ComponentName, Digest, Namespace};

use crate::render::capabilities_digest;

/// The version of the engine, part of every render's inputs: a release that renders differently looks at every component
/// once. Raise it with each change that makes other bytes or other objects of the same chart.
pub const ENGINE: &str = "1";

/// The digests of what decides a component's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Considered {
    /// Chart, values, name and namespace: another one is another component revision.
    pub revision: Digest,
    /// All that the render could see, the cluster's version and ours included: another one is worth another look.
    pub all: Digest,
}

impl Considered {
    pub(crate) fn new(
        chart: Digest,
        values: Digest,
        name: &ComponentName,
        namespace: &Namespace,
        force_namespace: bool,
        capabilities: &Capabilities,
    ) -> Self {
        let revision = Digest::of_parts([
            chart.as_bytes().as_slice(),
            values.as_bytes(),
            name.as_str().as_bytes(),
            namespace.as_str().as_bytes(),
        ]);
        let all = Digest::of_parts([
            revision.as_bytes().as_slice(),
            &[u8::from(force_namespace)],
            capabilities_digest(capabilities).as_bytes(),
            ENGINE.as_bytes(),
        ]);
        Self { revision, all }
    }
}
