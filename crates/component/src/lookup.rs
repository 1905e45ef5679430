//! `lookup` in templates, answered by the target.

use evenkeel_chart::Lookup;
use evenkeel_cluster::Cluster;
use serde_json::Value;
use tokio::runtime::Handle;

/// Asks a live cluster from a thread that may block, where charts are rendered.
#[derive(Debug)]
pub struct LiveLookup {
    cluster: Cluster,
    runtime: Handle,
}

impl LiveLookup {
    /// Lookups at `cluster`, run by the runtime of the caller.
    pub fn new(cluster: Cluster, runtime: Handle) -> Self {
        Self { cluster, runtime }
    }
}

impl Lookup for LiveLookup {
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, String> {
        let lookup = self.cluster.lookup(api_version, kind, namespace, name);
        self.runtime.block_on(lookup).map_err(|error| error.to_string())
    }
}
