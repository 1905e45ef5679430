//! A server that is stopped, crashes, is locked, full, slow, or has no connection left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use evenkeel_core::{ClusterState, ManualClock, OperationId, OperationState, ReconciliationState, Strategy};
use evenkeel_inventory::{
    Clusters as _, Error, NewOperation, NewReconciliation, OpenOptions, PostgresOptions, PutCluster,
    Queue as _, Reconciliations as _, Signal, SqlStore, Statuses as _, Store as _, TimeSource,
};
use evenkeel_realparts::{Durability, Postgres};
use jiff::SignedDuration;
use sqlx::{Connection as _, PgConnection};

use crate::fixture::*;

const CLUSTERS: usize = 12;
const COMPONENTS: [&str; 3] = ["a", "b", "c"];
/// How long anything may take to be right again after the server is.
const RECOVERY: Duration = Duration::from_secs(60);

struct World {
    server: Postgres,
    store: Arc<SqlStore>,
    clock: Arc<ManualClock>,
    _directory: tempfile::TempDir,
}

impl World {
    async fn new(settings: &[&str], change: impl FnOnce(&mut PostgresOptions)) -> Self {
        let server = Postgres::start_with(Durability::On, settings).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut options: PostgresOptions = server.url().parse().unwrap();
        options.acquire_timeout = Duration::from_secs(2);
        options.connections = 6;
        options.time = TimeSource::Given;
        change(&mut options);
        let clock = Arc::new(ManualClock::new("2026-03-01T02:00:00Z".parse().unwrap()));
        let options = OpenOptions::postgres(options, directory.path().join("keys"));
        let store = SqlStore::open(options, clock.clone()).await.unwrap();
        Self {
            server,
            store: Arc::new(store),
            clock,
            _directory: directory,
        }
    }

    async fn sql(&self, statement: &'static str) {
        let mut connection = PgConnection::connect(&self.server.url()).await.unwrap();
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    }
}

/// Makes a call until it succeeds; whatever else it answers has to pass by itself.
async fn at_last<T, F: Future<Output = Result<T, Error>>>(call: impl Fn() -> F) -> T {
    let begin = Instant::now();
    loop {
        match call().await {
            Ok(value) => return value,
            Err(error) => {
                assert!(error.is_transient(), "{error} {error:?}");
                assert!(begin.elapsed() < RECOVERY, "{error}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// Registers a cluster and begins a run over it, whatever happens in between.
async fn begin(store: &SqlStore, number: usize) {
    let document = spec(&format!("c{number}"), &COMPONENTS);
    let put = at_last(|| store.put_cluster(PutCluster::new(document.clone()))).await;
    let operation = |place: usize| NewOperation {
        component: COMPONENTS[place].parse().unwrap(),
        kind: Strategy::Install,
        version: put.version,
        cause: "new".to_owned(),
        depends_on: (0..place).collect(),
        carries: None,
    };
    let new = NewReconciliation {
        cluster: put.id.clone(),
        version: put.version,
        strategy: Strategy::Install,
        reason: evenkeel_core::DueReason::Change,
        deadline: "2026-03-01T09:00:00Z".parse().unwrap(),
        stamp: None,
        supersede: false,
        failing: None,
        operations: (0..COMPONENTS.len()).map(operation).collect(),
    };
    at_last(|| async {
        match store.begin_reconciliation(new.clone()).await {
            // A lost answer: it began.
            Err(Error::ReconciliationRunning { .. }) => Ok(()),
            answer => answer.map(drop),
        }
    })
    .await;
}

/// Works until nothing is left to do. Answers how often a report of each operation was accepted. Where nothing can be
/// claimed time goes on, so that leases end whose claim was made but never heard of.
async fn work(
    store: Arc<SqlStore>,
    clock: Arc<ManualClock>,
    all_begun: Arc<AtomicBool>,
) -> BTreeMap<OperationId, u32> {
    let mut done = BTreeMap::new();
    let request = claim(4);
    loop {
        let claims = at_last(|| store.claim(&request)).await;
        if claims.operations.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            clock.advance(SignedDuration::from_millis(50));
        }
        for claimed in claims.operations {
            let accepted = at_last(|| async {
                match store.report(report(&claimed, OperationState::Succeeded)).await {
                    // Its answer was lost, and somebody else was given the operation meanwhile.
                    Err(Error::LeaseLost { .. }) => Ok(false),
                    answer => answer.map(|_| true),
                }
            })
            .await;
            *done.entry(claimed.id).or_default() += u32::from(accepted);
        }
        if all_begun.load(Ordering::Relaxed)
            && at_last(|| store.settled_reconciliations(100)).await.len() == CLUSTERS
        {
            return done;
        }
    }
}

/// All clusters' runs worked off by four workers while `disturb` does its worst.
async fn worked_through(world: &mut World, disturb: impl AsyncFnOnce(&mut World)) {
    let all_begun = Arc::new(AtomicBool::new(false));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        tasks.spawn(work(world.store.clone(), world.clock.clone(), all_begun.clone()));
    }
    let store = world.store.clone();
    let planner = async {
        for number in 0..CLUSTERS {
            begin(&store, number).await;
        }
    };
    tokio::join!(planner, disturb(&mut *world));
    all_begun.store(true, Ordering::Relaxed);
    let mut done: BTreeMap<OperationId, u32> = BTreeMap::new();
    while let Some(of_worker) = tasks.join_next().await {
        for (operation, times) in of_worker.unwrap() {
            *done.entry(operation).or_default() += times;
        }
    }
    assert!(done.values().all(|times| *times <= 1), "{done:?}");
    for run in world.store.settled_reconciliations(100).await.unwrap() {
        for operation in world.store.operations(&run).await.unwrap().items {
            assert_eq!(operation.state, OperationState::Succeeded);
        }
        let end = finish(ReconciliationState::Succeeded, ClusterState::Ready, 1);
        world.store.finish_reconciliation(&run, end).await.unwrap();
    }
    let counts = world.store.cluster_counts().await.unwrap();
    assert_eq!(counts.get(&ClusterState::Ready), Some(&(CLUSTERS as u64)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_restart_in_the_middle_is_survived() {
    let mut world = World::new(&[], |_| {}).await;
    let mut due = world.store.signals().subscribe(Signal::ClusterDue);
    worked_through(&mut world, async |world| {
        for crash in [false, true] {
            let progress = world.store.settled_reconciliations(100).await.unwrap().len();
            at_last(|| async {
                let settled = world.store.settled_reconciliations(100).await?.len();
                match settled > progress || settled == CLUSTERS {
                    true => Ok(()),
                    false => Err(waiting()),
                }
            })
            .await;
            match crash {
                false => world.server.stop().unwrap(),
                true => world.server.crash().unwrap(),
            }
            // Calls fail in a bounded time, and say that it may pass.
            let begin = Instant::now();
            let error = world.store.due_clusters(1).await.unwrap_err();
            assert!(error.is_transient(), "{error}");
            assert!(begin.elapsed() < Duration::from_secs(30));
            world.server.start_again().unwrap();
        }
    })
    .await;
    // Whoever waits was told to look, since what happened meanwhile was not heard.
    assert!(due.changed().await);
}

/// "Not yet", for [`at_last`].
fn waiting() -> Error {
    Error::Database {
        doing: "waiting",
        transient: true,
        source: "not yet".into(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn killed_backends_are_replaced() {
    let mut world = World::new(&[], |_| {}).await;
    worked_through(&mut world, async |world| {
        for _ in 0..20 {
            world
                .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'evenkeel'")
                .await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_with_too_few_connections_is_waited_for() {
    // Three are for superusers, which this test is, but not enough for the pool.
    let mut world = World::new(&["max_connections=7"], |options| options.connections = 12).await;
    worked_through(&mut world, async |_| {}).await;
}

/// Refuses with an error that only passes by itself, then has it pass; a call of the store before, in between, after.
async fn refused_then_fine(world: &World, break_it: &'static str, mend_it: &'static str, message: &str) {
    let put = |name: &str| PutCluster::new(spec(name, &["web"]));
    world.store.put_cluster(put("before")).await.unwrap();
    world.sql(break_it).await;
    let error = world.store.put_cluster(put("between")).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(error.to_string().contains(message), "{error}");
    // Reading goes on.
    world
        .store
        .cluster_by_name(&"before".parse().unwrap())
        .await
        .unwrap();
    world.sql(mend_it).await;
    // Nothing of it was kept.
    let kept = world.store.cluster_by_name(&"between".parse().unwrap()).await;
    assert!(matches!(kept, Err(Error::NotFound { .. })), "{kept:?}");
    world.store.put_cluster(put("between")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_contained() {
    let world = World::new(&[], |_| {}).await;
    // The server's own words for a full disk, from inside of it.
    refused_then_fine(
        &world,
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$; \
         CREATE TRIGGER full_disk BEFORE INSERT ON components FOR EACH ROW EXECUTE FUNCTION full_disk()",
        "DROP TRIGGER full_disk ON components",
        "No space left",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_statement_is_ended() {
    let world = World::new(&[], |options| {
        options.statement_timeout = Duration::from_millis(500)
    })
    .await;
    refused_then_fine(
        &world,
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$; \
         CREATE TRIGGER slow BEFORE INSERT ON components FOR EACH ROW EXECUTE FUNCTION slow()",
        "DROP TRIGGER slow ON components",
        "statement timeout",
    )
    .await;
}

/// QDB-06: work at clusters holds neither transaction nor connection. 20 operations are held over a pool of 5 while the
/// server restarts; calls go on, each operation is still its worker's, and nobody gets one twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_work_needs_no_connection() {
    let mut world = World::new(&[], |options| options.connections = 5).await;
    for number in 0..20 {
        begin(&world.store, number).await;
    }
    let lease = Duration::from_secs(600);
    let request = evenkeel_inventory::ClaimRequest { lease, ..claim(64) };
    let held = world.store.claim(&request).await.unwrap().operations;
    assert_eq!(held.len(), 20);
    let mut connection = PgConnection::connect(&world.server.url()).await.unwrap();
    let locks: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'evenkeel' AND state LIKE 'idle in transaction%'",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!(locks, 0);
    // More calls at once than there are connections.
    let calls = (0..40).map(|_| world.store.cluster_counts());
    assert!(futures::future::join_all(calls).await.iter().all(Result::is_ok));
    world.server.crash().unwrap();
    world.server.start_again().unwrap();
    let tokens: Vec<_> = held
        .iter()
        .map(|claimed| (claimed.id.clone(), claimed.lease.fence))
        .collect();
    let renewed = at_last(|| world.store.heartbeat(&tokens, lease)).await;
    for heartbeat in &renewed {
        assert!(
            matches!(
                heartbeat.outcome,
                evenkeel_inventory::HeartbeatOutcome::Renewed(_)
            ),
            "{heartbeat:?}"
        );
    }
    assert!(
        at_last(|| world.store.claim(&request))
            .await
            .operations
            .is_empty()
    );
    let reports: Vec<_> = held
        .iter()
        .map(|claimed| report(claimed, OperationState::Succeeded))
        .collect();
    let answers = at_last(|| world.store.report_all(reports.clone())).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_table_is_not_waited_for_for_ever() {
    let world = World::new(&[], |options| options.lock_timeout = Duration::from_millis(100)).await;
    let put = |name: &str| PutCluster::new(spec(name, &["web"]));
    let mut other = PgConnection::connect(&world.server.url()).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE clusters IN SHARE MODE")
        .execute(&mut other)
        .await
        .unwrap();
    let error = world.store.put_cluster(put("a")).await.unwrap_err();
    assert!(
        error.is_transient() && error.to_string().contains("lock timeout"),
        "{error}"
    );
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    world.store.put_cluster(put("a")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_is_the_databases() {
    let world = World::new(&[], |options| options.time = TimeSource::Database).await;
    // The clock that was given stands in March; the server's does not.
    let put = PutCluster::new(spec("a", &["web"]));
    let id = world.store.put_cluster(put).await.unwrap().id;
    let created = world.store.cluster(&id).await.unwrap().created_at;
    let mut connection = PgConnection::connect(&world.server.url()).await.unwrap();
    let now: i64 = sqlx::query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    let age = now - created.as_millisecond();
    assert!((-1_000..60_000).contains(&age), "{age} ms");
}
