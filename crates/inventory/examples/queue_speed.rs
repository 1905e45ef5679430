//! How many operations a second go through the queue on this machine: planned, claimed in batches, reported done.
//!
//! `cargo run --release -p evenkeel-inventory --example queue_speed [-- full]`; `full` puts each commit on the disk
//! before it is answered.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_core::{Clock, DueReason, OperationState, Strategy};
use evenkeel_inventory::{
    ClaimRequest, Clusters as _, NewOperation, NewReconciliation, OpenOptions, PutCluster, Queue as _,
    Reconciliations as _, Report, SqliteStore, Statuses as _, Synchronous,
};
use jiff::{SignedDuration, Timestamp};

const CLUSTERS: usize = 1_000;
const COMPONENTS: usize = 20;
const BATCH: u32 = 32;

#[derive(Debug)]
struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        #[expect(
            clippy::disallowed_methods,
            reason = "an example has no telemetry to take a clock from"
        )]
        Timestamp::now()
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let directory = tempfile::tempdir_in(".").unwrap();
    let mut options = OpenOptions::file(directory.path().join("db"), directory.path().join("keys"));
    if std::env::args().any(|argument| argument == "full") {
        options.synchronous = Synchronous::Full;
    }
    println!(
        "{:?}, {CLUSTERS} clusters of {COMPONENTS} components",
        options.synchronous
    );
    let store = SqliteStore::open(options, Arc::new(WallClock)).await.unwrap();
    plan(&store).await;
    work(&store).await;
    let start = Instant::now();
    for _ in 0..1_000 {
        store.due_clusters(32).await.unwrap();
    }
    println!("due: {:.0} µs a call", start.elapsed().as_secs_f64() * 1e3);
    store.close().await;
}

async fn plan(store: &SqliteStore) {
    let names: Vec<_> = (0..COMPONENTS)
        .map(|number| format!("component-{number}"))
        .collect();
    let components: Vec<_> = names
        .iter()
        .map(|name| serde_json::json!({"name": name, "source": {"directory": {"path": "x"}}, "namespace": "apps"}))
        .collect();
    let start = Instant::now();
    for number in 0..CLUSTERS {
        let document = serde_json::json!({"name": format!("cluster-{number}"), "components": components});
        let put = PutCluster::new(serde_json::from_value(document).unwrap());
        let outcome = store.put_cluster(put).await.unwrap();
        let new = NewReconciliation {
            cluster: outcome.id,
            version: outcome.version,
            strategy: Strategy::Install,
            reason: DueReason::Change,
            deadline: WallClock.now() + SignedDuration::from_hours(1),
            stamp: None,
            supersede: false,
            operations: names
                .iter()
                .map(|name| NewOperation {
                    component: name.parse().unwrap(),
                    kind: Strategy::Install,
                    version: outcome.version,
                    cause: "it is new".to_owned(),
                    depends_on: Vec::new(),
                })
                .collect(),
        };
        store.begin_reconciliation(new).await.unwrap();
    }
    let each = start.elapsed().as_secs_f64() * 1e3 / CLUSTERS as f64;
    println!("put and begin: {each:.2} ms a cluster");
}

async fn work(store: &SqliteStore) {
    let request = ClaimRequest {
        worker: "speed".to_owned(),
        limit: BATCH,
        lease: Duration::from_secs(600),
    };
    let (mut claiming, mut reporting, mut count) = (Duration::ZERO, Duration::ZERO, 0_u32);
    loop {
        let start = Instant::now();
        let claims = store.claim(&request).await.unwrap().operations;
        claiming += start.elapsed();
        if claims.is_empty() {
            break;
        }
        count += u32::try_from(claims.len()).unwrap();
        let reports = claims
            .into_iter()
            .map(|claimed| Report {
                operation: claimed.id,
                fence: claimed.lease.fence,
                state: OperationState::Succeeded,
                changes: Vec::new(),
                timeline: Vec::new(),
            })
            .collect();
        let start = Instant::now();
        for answer in store.report_all(reports).await.unwrap() {
            answer.unwrap();
        }
        reporting += start.elapsed();
    }
    let rate = |time: Duration| f64::from(count) / time.as_secs_f64();
    println!("{count} operations in batches of {BATCH}");
    println!("claims: {:.0} a second", rate(claiming));
    println!("reports: {:.0} a second", rate(reporting));
    println!(
        "claim through final report: {:.0} a second",
        rate(claiming + reporting)
    );
}
