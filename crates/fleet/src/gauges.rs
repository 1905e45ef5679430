//! Gauges that are computed from the database when somebody looks, so that every replica says the same (K1).

use std::sync::Arc;

use evenkeel_core::ClusterState;
use evenkeel_inventory::Store;
use evenkeel_telemetry::BoxError;
use evenkeel_telemetry::metrics::{Collector, Gauges};
use futures::FutureExt as _;
use futures::future::BoxFuture;

/// Clusters by state; a state that no cluster is in shows 0.
pub(crate) struct ClusterGauges(pub(crate) Arc<dyn Store>);

const CLUSTERS: &str = "clusters";

impl Collector for ClusterGauges {
    fn name(&self) -> &'static str {
        "clusters"
    }

    fn gauges(&self) -> &'static [&'static str] {
        &[CLUSTERS]
    }

    fn collect(&self) -> BoxFuture<'_, Result<Vec<Gauges>, BoxError>> {
        async {
            let counts = self.0.cluster_counts().await?;
            let by_state = ClusterState::ALL
                .iter()
                .filter(|state| **state != ClusterState::Deleted)
                .map(|state| {
                    // Exact up to 2^53 clusters.
                    let count = counts.get(state).copied().unwrap_or_default() as f64;
                    (state.as_str(), count)
                });
            Ok(vec![Gauges::by(CLUSTERS, "Clusters by state", "state", by_state)])
        }
        .boxed()
    }
}
