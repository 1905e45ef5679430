//! What the inventory's part of a pass over an unchanged cluster costs, whatever else is in it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_core::{ClusterSpec, ClusterState, ConfigurationVersion, DueReason};
use evenkeel_inventory::{
    CheckNote, Clusters as _, Configurations as _, Due, OpenOptions, PutCluster, Reconciliations as _,
    SqlStore, StatusChange, Statuses as _, Synchronous,
};
use evenkeel_telemetry::{SystemClock, time};
use jiff::SignedDuration;
use serde_json::json;

use crate::commands::bench::sample::median;

/// Clusters of one pass.
pub(super) const PASSES: u32 = 200;
/// Passes in each inventory, of which the middle counts.
const ROUNDS: usize = 15;

/// What was found.
pub(super) struct Ratio {
    pub(super) ratio: f64,
    pub(super) few_micros: f64,
    pub(super) many_micros: f64,
}

/// Passes in two inventories in turn, so that whatever else the machine does meets both.
pub(super) async fn ratio(folder: &Path, few: usize, many: usize) -> anyhow::Result<Ratio> {
    let small = filled(folder, "few", few).await?;
    let large = filled(folder, "many", many).await?;
    let (mut of_small, mut of_large) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_small.push(pass(&small).await?);
        of_large.push(pass(&large).await?);
    }
    let micros = |times: Vec<Duration>| median(times).as_secs_f64() * 1e6;
    let (few_micros, many_micros) = (micros(of_small), micros(of_large));
    small.close().await;
    large.close().await;
    Ok(Ratio {
        ratio: many_micros / few_micros.max(f64::MIN_POSITIVE),
        few_micros,
        many_micros,
    })
}

/// An inventory of so many clusters that are due by interval, in a file of this name.
pub(super) async fn filled(folder: &Path, name: &str, clusters: usize) -> anyhow::Result<SqlStore> {
    let options = OpenOptions {
        synchronous: Synchronous::Normal,
        ..OpenOptions::file(folder.join(name), folder.join(format!("{name}.keys")))
    };
    let store = SqlStore::open(options, Arc::new(SystemClock)).await?;
    for number in 0..clusters {
        ready(&store, &format!("cluster-{number:06}"), number).await?;
    }
    Ok(store)
}

/// Registers a cluster of one of a few tenants that is ready and due by interval, longest first.
async fn ready(store: &SqlStore, name: &str, number: usize) -> anyhow::Result<()> {
    let component =
        |name: &str| json!({"name": name, "source": {"directory": {"path": "map"}}, "namespace": "apps"});
    let spec: ClusterSpec = serde_json::from_value(json!({
        "name": name, "tenant": format!("tenant-{}", number % 50),
        "components": [component("web"), component("db")],
    }))?;
    let put = store.put_cluster(PutCluster::new(spec)).await?;
    let ago = SignedDuration::from_millis(i64::try_from(number).unwrap_or(0) - 10_000_000);
    let due = Due::At(time::now().saturating_add(ago)?, DueReason::Periodic);
    let change = StatusChange {
        due,
        stamp: Some(store.cluster(&put.id).await?.status.stamp),
        ..StatusChange::new(ClusterState::Ready, ConfigurationVersion(1))
    };
    store.record_status(&put.id, change).await?;
    Ok(())
}

/// All that the scheduler and a look ask and tell of unchanged clusters, per cluster.
async fn pass(store: &SqlStore) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let due = store.due_clusters(PASSES).await?.due;
    let count = u32::try_from(due.len()).unwrap_or(u32::MAX).max(1);
    let now = time::now();
    let mut notes = Vec::with_capacity(due.len());
    for cluster in due {
        store.cluster(&cluster.id).await?;
        store.running_reconciliation(&cluster.id).await?;
        store.newest_configuration(&cluster.id).await?;
        store.components(&cluster.id).await?;
        notes.push(CheckNote {
            cluster: cluster.id,
            stamp: cluster.stamp,
            checked_at: now,
            // Soon due again, behind the others.
            next_due_at: cluster
                .due_at
                .saturating_add(SignedDuration::from_millis(5_000_000))?,
        });
    }
    store.note_checks(&notes).await?;
    Ok(begun.elapsed() / count)
}
