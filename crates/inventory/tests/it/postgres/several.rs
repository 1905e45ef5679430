//! Many processes on one database (K29).

use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_core::{Clock as _, ManualClock};
use evenkeel_inventory::{
    Clusters as _, Error, KeySource, Location, PutCluster, Queue as _, Signal, SqlStore, Store as _,
    TimeSource,
};
use evenkeel_telemetry::SystemClock;
use jiff::SignedDuration;
use sqlx::{Connection as _, PgConnection};

use crate::fixture::*;

/// Shorter than the time after which everybody looks anyway.
const SOON: Duration = Duration::from_secs(5);

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new("2026-03-01T02:00:00Z".parse().unwrap()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_processes_open_one_empty_database_at_once() {
    let url = new_database(server()).await;
    let directory = tempfile::tempdir().unwrap();
    // The ring is there: two processes that both make one in one place is refused elsewhere.
    SqlStore::open(
        evenkeel_inventory::OpenOptions {
            keys: KeySource::File(directory.path().join("keys")),
            ..evenkeel_inventory::OpenOptions::temporary()
        },
        clock(),
    )
    .await
    .unwrap();
    let opened = (0..8).map(|_| SqlStore::open(Pg::options(&url, &directory), clock()));
    let stores: Vec<_> = futures::future::join_all(opened)
        .await
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap();
    for (number, store) in stores.iter().enumerate() {
        let put = PutCluster::new(spec(&format!("c{number}"), &["web"]));
        let id = store.put_cluster(put).await.unwrap().id;
        for other in &stores {
            assert_eq!(other.cluster(&id).await.unwrap().id, id);
        }
    }
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let applied: Vec<i64> = sqlx::query_scalar("SELECT number FROM schema_migrations ORDER BY number")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    let expected: Vec<i64> = (1..=i64::try_from(applied.len()).unwrap()).collect();
    assert_eq!(applied, expected, "each step once");
}

#[tokio::test]
async fn another_key_ring_is_refused() {
    let fleet = Fleet::<Pg>::new().await;
    let other = tempfile::tempdir().unwrap();
    let error = SqlStore::open(Pg::options(&fleet.backend.url, &other), clock())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::KeyMissing { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_process_does_wakes_the_others() {
    let fleet = Fleet::<Pg>::new().await;
    let second = fleet.backend.second().await;
    let mut due = second.signals().subscribe(Signal::ClusterDue);
    // It begins to listen with a look around; after that it is quiet.
    assert!(due.changed().await);
    while tokio::time::timeout(Duration::from_millis(200), due.changed())
        .await
        .is_ok()
    {}
    for number in 0..3 {
        let begin = Instant::now();
        fleet.cluster(&format!("c{number}"), &["web"]).await;
        assert!(tokio::time::timeout(SOON, due.changed()).await.unwrap());
        assert!(begin.elapsed() < SOON);
    }
}

/// A machine whose clock is an hour off must neither hold a lease for an hour too long nor find none that lasts: leases
/// are in the time of the database, and the store tells it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_are_in_the_time_that_the_store_tells() {
    let fleet = Fleet::<Pg>::new().await;
    for hours in [-1, 1] {
        let id = fleet.cluster(&format!("c{}", hours + 1), &["web"]).await;
        let plan = fleet.plan(&id, &[("web", &[])]).await;
        fleet.store.begin_reconciliation(plan).await.unwrap();
        let wrong = SystemClock.now() + SignedDuration::from_hours(hours);
        let mut options = Pg::options(&fleet.backend.url, &fleet.backend.directory);
        if let Location::Postgres(server) = &mut options.location {
            server.time = TimeSource::Database;
        }
        let store = SqlStore::open(options, Arc::new(ManualClock::new(wrong)))
            .await
            .unwrap();
        let claimed = store.claim(&claim(1)).await.unwrap().operations.remove(0);
        let left = claimed.lease.until.duration_since(store.clock().now());
        let lease = SignedDuration::try_from(LEASE).unwrap();
        let slow = SignedDuration::from_mins(5);
        assert!(
            left <= lease && left > lease - slow,
            "{hours} h off: {left:?} are left"
        );
        assert!(claimed.lease.until.duration_since(wrong).abs() > SignedDuration::from_mins(50));
        store
            .report(report(&claimed, evenkeel_core::OperationState::Succeeded))
            .await
            .unwrap();
    }
}
