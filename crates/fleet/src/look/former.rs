//! Which version listed a component last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenkeel_core::{ClusterId, ClusterSpec, ComponentName, ComponentSpec, ConfigurationVersion};
use evenkeel_inventory::{Error, Store};

/// How many versions before the newest are looked through; a component that was removed longer ago and is still there has
/// been tried to be removed as often.
const VERSIONS_SEARCHED: u64 = 100;

/// The version that listed a component last.
#[derive(Clone)]
pub(crate) struct Listing {
    pub(super) version: ConfigurationVersion,
    spec: Arc<ClusterSpec>,
}

impl Listing {
    /// The component as it was listed.
    pub(crate) fn component(&self, name: &ComponentName) -> Option<&ComponentSpec> {
        self.spec.components.iter().find(|spec| spec.name == *name)
    }

    /// The components that depended on `component`.
    pub(super) fn dependents(&self, component: &ComponentName) -> BTreeSet<ComponentName> {
        self.spec
            .components
            .iter()
            .filter(|spec| spec.depends_on.contains(component))
            .map(|spec| spec.name.clone())
            .collect()
    }

    /// The components that `component` depended on.
    pub(super) fn depends_on(&self, component: &ComponentName) -> &[ComponentName] {
        self.spec
            .components
            .iter()
            .find(|spec| spec.name == *component)
            .map_or(&[], |spec| &spec.depends_on)
    }
}

/// For each of `wanted` the newest version before `newest` that lists it, where there is one.
pub(crate) async fn listings(
    store: &dyn Store,
    cluster: &ClusterId,
    newest: ConfigurationVersion,
    wanted: &BTreeSet<ComponentName>,
) -> Result<BTreeMap<ComponentName, Listing>, Error> {
    let mut found = BTreeMap::new();
    let oldest = newest.0.saturating_sub(VERSIONS_SEARCHED).max(1);
    for number in (oldest..newest.0).rev() {
        if found.len() == wanted.len() {
            break;
        }
        let version = ConfigurationVersion(number);
        let configuration = match store.configuration(cluster, version).await {
            Ok(configuration) => configuration,
            // Older ones are gone too.
            Err(Error::NotFound { .. }) => break,
            Err(error @ Error::Unreadable { .. }) => {
                tracing::error!(%error, "a configuration cannot be read and is passed over");
                continue;
            }
            Err(error) => return Err(error),
        };
        let spec = Arc::new(configuration.spec);
        for component in spec.components.iter().filter(|spec| wanted.contains(&spec.name)) {
            found.entry(component.name.clone()).or_insert_with(|| Listing {
                version,
                spec: Arc::clone(&spec),
            });
        }
    }
    Ok(found)
}
