//! A cluster in the words of the environment broker (K33, K48): what the one table of `evenkeel-core` asks for.

use evenkeel_core::{BrokerStatus, ClusterFacts, OperationFacts, Reports};
use evenkeel_inventory::{Cluster, Operation};

/// The status of a cluster whose live run, if there is one, has the operations `live`.
pub(crate) fn status(cluster: &Cluster, suspended: bool, live: Option<&[Operation]>) -> BrokerStatus {
    let facts = |operation: &Operation| OperationFacts::new(&operation.state, operation.attempt);
    let facts = ClusterFacts {
        state: cluster.status.state,
        suspended,
        failed_before: cluster.status.failures > 0,
        live: live.map(|operations| Reports::of(operations.iter().map(facts))),
    };
    facts.status()
}
