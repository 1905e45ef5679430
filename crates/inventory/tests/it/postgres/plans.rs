//! No statement of the store walks a large table. The server itself says how it ran each of them, on a database as large
//! as a fleet's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_core::{
    ClusterState, ComponentRevision, DeleteMode, Digest, DueReason, ManualClock, ReconciliationState,
    Sensitive,
};
use evenkeel_inventory::{
    AuditFilter, ChangeFilter, CheckNote, Chore, ClusterFilter, Instance, OpenOptions, PageRequest,
    PostgresOptions, PutCluster, RetentionPolicy, Setting, SettingScope, SqlStore, Store, TimeSource,
};
use evenkeel_realparts::Postgres;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use uuid::Uuid;

use crate::fixture::*;

/// Clusters; each with 5 components and 2 runs of 5 operations. A thousand times a test's, and enough for a walk through
/// a table to cost more than any use of an index.
const CLUSTERS: u32 = 10_000;
/// Set to 100000 it is the fleet of the performance goals, and the times are told.
const SCALE: &str = "EVENKEEL_TEST_CLUSTERS";
/// The tables that grow with the fleet.
const LARGE: [&str; 8] = [
    "clusters",
    "cluster_labels",
    "cluster_configurations",
    "cluster_status",
    "components",
    "reconciliations",
    "operations",
    "operation_dependencies",
];
/// Indexes that hold only what is at work, and may be walked.
const SMALL_INDEXES: [&str; 4] = [
    "operations_ready",
    "operations_running",
    "operations_wake",
    "reconciliations_deadline",
];

fn fill(clusters: u32) -> String {
    format!(
        "INSERT INTO clusters (id, name, tenant, cluster_group, labels, version, created_at) \
         SELECT 'c' || i, 'cluster-' || lpad(i::text, 7, '0'), 't' || i % 50, 'g' || i % 20, '{{}}', 1, 0 \
         FROM generate_series(1, {clusters}) i; \
         INSERT INTO cluster_labels SELECT 'env', CASE WHEN i % 3 = 0 THEN 'prod' ELSE 'dev' END, \
         'cluster-' || lpad(i::text, 7, '0'), 'c' || i FROM generate_series(1, {clusters}) i; \
         INSERT INTO cluster_configurations SELECT 'c' || i, 1, '\\x00', '\\x00', NULL, 0 \
         FROM generate_series(1, {clusters}) i; \
         INSERT INTO cluster_status (cluster_id, name, state, since, observed_version, due_lane, next_due_at, due_stamp, \
         failures, changes) SELECT 'c' || i, 'cluster-' || lpad(i::text, 7, '0'), \
         CASE i % 100 WHEN 0 THEN 'failed' WHEN 1 THEN 'reconciling' ELSE 'ready' END, 0, 1, 4, \
         1800000000000 + i, 1, 0, 0 FROM generate_series(1, {clusters}) i; \
         INSERT INTO components (cluster_id, component, name, listed, revision, fence) \
         SELECT 'c' || i, 'component-' || k, 'cluster-' || lpad(i::text, 7, '0'), 1, 1, 1 \
         FROM generate_series(1, {clusters}) i, generate_series(1, 5) k; \
         INSERT INTO reconciliations (id, cluster_id, version, strategy, due_lane, state, created_at, deadline, finished_at) \
         SELECT 'c' || i || '--r' || k, 'c' || i, 1, 'repair', 4, \
         CASE WHEN i % 100 = 1 AND k = 2 THEN 'running' ELSE 'succeeded' END, 0, 1800000000000, \
         CASE WHEN i % 100 = 1 AND k = 2 THEN NULL ELSE 0 END \
         FROM generate_series(1, {clusters}) i, generate_series(1, 2) k; \
         INSERT INTO operations (id, reconciliation_id, position, cluster_id, component, kind, version, due_lane, cause, state, \
         blocked_by, rank, attempt, fence, reports, timeline_entries, created_at, finished_at) \
         SELECT r.id || '--o' || k, r.id, k, r.cluster_id, 'component-' || k, 'repair', 1, 4, '\\x00', \
         CASE WHEN r.state = 'running' THEN 'pending' ELSE 'succeeded' END, 0, \
         CASE WHEN r.state = 'running' THEN 4000000000000 END, 1, 1, 0, 0, 0, r.finished_at \
         FROM reconciliations r, generate_series(1, 5) k; \
         INSERT INTO operation_dependencies SELECT reconciliation_id || '--o' || position, \
         reconciliation_id || '--o' || position - 1 FROM operations WHERE position > 1"
    )
}

/// How long each call took, by name.
#[derive(Default)]
struct Times(BTreeMap<&'static str, Vec<Duration>>);

impl Times {
    async fn take<T>(&mut self, name: &'static str, call: impl Future<Output = T>) -> T {
        let begin = Instant::now();
        let answer = call.await;
        self.0.entry(name).or_default().push(begin.elapsed());
        answer
    }
}

/// Calls everything that the API, the scheduler and the workers call.
async fn exercise(store: &dyn Store, clock: &ManualClock, round: usize, times: &mut Times) {
    use evenkeel_core::Clock as _;
    let name = format!("own-{round}");
    let put = PutCluster::new(spec(&name, &["web", "db"])).with_kubeconfig(Sensitive::new("k".to_owned()));
    let id = times
        .take("put_cluster", store.put_cluster(put))
        .await
        .unwrap()
        .id;
    let changed = PutCluster::new(spec(&name, &["web", "other"]));
    let version = store.put_cluster(changed).await.unwrap().version;
    times.take("cluster", store.cluster(&id)).await.unwrap();
    times
        .take("cluster_by_name", store.cluster_by_name(&name.parse().unwrap()))
        .await
        .unwrap();
    store.kubeconfig(&id).await.unwrap();
    store.newest_configuration(&id).await.unwrap();
    store.configuration(&id, version).await.unwrap();
    store.configurations(&id, &PageRequest::first(20)).await.unwrap();
    store.record_identity(&id, &format!("uid-{round}")).await.unwrap();
    store
        .confirm_identity(&id, &format!("uid-{round}b"))
        .await
        .unwrap();
    let after = PageRequest::after("cluster-0005000".parse().unwrap(), 100);
    let text = |text: &str| Some(text.to_owned());
    let any = ClusterFilter::default;
    for (name, filter) in [
        ("list: all", any()),
        (
            "list: tenant",
            ClusterFilter {
                tenant: text("t7"),
                ..any()
            },
        ),
        (
            "list: group",
            ClusterFilter {
                group: text("g7"),
                ..any()
            },
        ),
        (
            "list: failed",
            ClusterFilter {
                state: Some(ClusterState::Failed),
                ..any()
            },
        ),
        (
            "list: ready",
            ClusterFilter {
                state: Some(ClusterState::Ready),
                ..any()
            },
        ),
        (
            "list: component",
            ClusterFilter {
                component: Some("component-3".parse().unwrap()),
                ..any()
            },
        ),
        (
            "list: label",
            ClusterFilter {
                labels: [("env".to_owned(), "prod".to_owned())].into(),
                ..any()
            },
        ),
    ] {
        times.take(name, store.clusters(&filter, &after)).await.unwrap();
    }
    times.take("due_clusters", store.due_clusters(64)).await.unwrap();
    let stamp = store.cluster(&id).await.unwrap().status.stamp;
    let note = CheckNote {
        cluster: id.clone(),
        stamp,
        checked_at: clock.now(),
        next_due_at: clock.now(),
    };
    times
        .take("note_checks", store.note_checks(&[note]))
        .await
        .unwrap();
    store.make_due(&id, clock.now(), DueReason::Change).await.unwrap();
    store.suspend(&id, Some(clock.now())).await.unwrap();
    store.suspend(&id, None).await.unwrap();

    let operation = |component: &str, depends_on: &[usize]| evenkeel_inventory::NewOperation {
        component: component.parse().unwrap(),
        kind: evenkeel_core::Strategy::Install,
        version,
        cause: "new".to_owned(),
        depends_on: depends_on.to_vec(),
        carries: None,
    };
    let new = evenkeel_inventory::NewReconciliation {
        cluster: id.clone(),
        version,
        strategy: evenkeel_core::Strategy::Install,
        reason: DueReason::Deletion,
        deadline: "2026-03-02T00:00:00Z".parse().unwrap(),
        stamp: None,
        supersede: true,
        failing: None,
        operations: vec![operation("web", &[]), operation("other", &[0])],
    };
    store.begin_reconciliation(new.clone()).await.unwrap();
    let begun = times
        .take("begin", store.begin_reconciliation(new))
        .await
        .unwrap();
    let web = "web".parse().unwrap();
    store.resolve_revision(&id, &web, &Digest::of("x")).await.unwrap();
    let render = Sensitive::new(b"r".to_vec());
    store
        .put_render(&id, &web, ComponentRevision(1), render)
        .await
        .unwrap();
    store.render(&id, &web, ComponentRevision(1)).await.unwrap();
    store.raise_fence(&id, &web, fence(3)).await.unwrap();
    // The filling cannot be worked on: its rows are of nobody. They are in the way once.
    let claims = times.take("claim", store.claim(&claim(1))).await.unwrap();
    let claimed = claims.operations.first().unwrap();
    assert_eq!(claimed.id, begun.operations[0]);
    times
        .take(
            "heartbeat",
            store.heartbeat(&[(claimed.id.clone(), claimed.lease.fence)], LEASE),
        )
        .await
        .unwrap();
    let failure = report(claimed, failed("no"));
    times.take("report", store.report(failure)).await.unwrap();
    store.settled_reconciliations(10).await.unwrap();
    store.overdue_reconciliations(10).await.unwrap();
    store.running_reconciliation(&id).await.unwrap();
    store.worked_on(&id).await.unwrap();
    store.reconciliation(&begun.id).await.unwrap();
    times
        .take("operations", store.operations(&begun.id))
        .await
        .unwrap();
    store.operation(&claimed.id).await.unwrap();
    store.operation_changes(&claimed.id).await.unwrap();
    store.operation_timeline(&claimed.id).await.unwrap();
    let end = finish(ReconciliationState::Failed, ClusterState::Degraded, version.0);
    times
        .take("finish", store.finish_reconciliation(&begun.id, end))
        .await
        .unwrap();
    times
        .take(
            "reconciliations",
            store.reconciliations(&id, &PageRequest::first(20)),
        )
        .await
        .unwrap();
    times.take("components", store.components(&id)).await.unwrap();
    times
        .take(
            "status_history",
            store.status_history(&id, &PageRequest::first(20)),
        )
        .await
        .unwrap();
    let scope = SettingScope::Cluster(id.clone());
    store
        .put_setting(&scope, "failures-max", Some(Setting::Integer(9)))
        .await
        .unwrap();
    store.effective_setting(&id, "failures-max").await.unwrap();
    store.setting_layers().await.unwrap();
    let policy = RetentionPolicy::default();
    times
        .take("clean", store.clean(&policy, Some(&"c5".parse().unwrap())))
        .await
        .unwrap();
    store.clean_audit(&policy).await.unwrap();
    times
        .take(
            "object_changes",
            store.object_changes(&id, &ChangeFilter::default(), &PageRequest::first(20)),
        )
        .await
        .unwrap();
    store
        .audit_entries(&AuditFilter::default(), &PageRequest::first(20))
        .await
        .unwrap();
    let place = times.take("reencrypt", store.reencrypt(None)).await.unwrap().next;
    store.reencrypt(place).await.unwrap();
    store.refresh_keys().await.unwrap();
    let digest = store.put_archive(format!("a{round}").into_bytes()).await.unwrap();
    store.archive(&digest).await.unwrap();
    store.remove_unused_archives(clock.now(), 10).await.unwrap();
    let instance = Instance {
        id: Uuid::nil(),
        host: "h".to_owned(),
        version: "0".to_owned(),
        role: evenkeel_inventory::Role::All,
        draining: false,
    };
    store.note_instance(&instance).await.unwrap();
    store.instances(clock.now()).await.unwrap();
    store.forget_instances(clock.now()).await.unwrap();
    let lease = store
        .take_chore(Chore::Clean, Uuid::nil(), LEASE, LEASE)
        .await
        .unwrap();
    if let Some(lease) = lease {
        store.end_chore(Chore::Clean, lease.fence, false).await.unwrap();
    }
    times
        .take(
            "request_deletion",
            store.request_deletion(&id, DeleteMode::Forget),
        )
        .await
        .unwrap();
}

/// What a plan does wrong, and which tables it reads.
fn judge(node: &serde_json::Value, wrong: &mut Vec<String>, tables: &mut BTreeSet<String>) {
    let text = |key: &str| node[key].as_str().unwrap_or_default();
    let (kind, table, index) = (text("Node Type"), text("Relation Name"), text("Index Name"));
    if LARGE.contains(&table) {
        tables.insert(table.to_owned());
        let walks = match kind {
            "Seq Scan" | "Sample Scan" => true,
            "Index Scan" | "Index Only Scan" => {
                node["Index Cond"].is_null() && !SMALL_INDEXES.contains(&index)
            }
            _ => false,
        };
        if walks {
            wrong.push(format!("{kind} of {table} by {index:?}"));
        }
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        judge(child, wrong, tables);
    }
}

/// The plans that a server wrote to its log: statement, plan.
fn plans(log: &str) -> Vec<(String, serde_json::Value)> {
    let mut plans = Vec::new();
    let mut lines = log.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.ends_with("plan:") {
            continue;
        }
        let mut json = String::new();
        while let Some(more) = lines.next_if(|line| line.starts_with('\t')) {
            json.push_str(more);
        }
        let mut plan: serde_json::Value = serde_json::from_str(&json).unwrap();
        let statement = plan["Query Text"].as_str().unwrap().to_owned();
        plans.push((statement, plan["Plan"].take()));
    }
    plans
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_walks_a_large_table() {
    let clusters = std::env::var(SCALE).map_or(CLUSTERS, |count| count.parse().unwrap());
    let server = Postgres::start_with(
        evenkeel_realparts::Durability::Off,
        &[
            "shared_preload_libraries=auto_explain",
            "auto_explain.log_format=json",
            "shared_buffers=256MB",
        ],
    )
    .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut options: PostgresOptions = server.url().parse().unwrap();
    options.time = TimeSource::Given;
    let clock = Arc::new(ManualClock::new("2026-03-01T02:00:00Z".parse().unwrap()));
    let options = OpenOptions::postgres(options, directory.path().join("keys"));
    let open = || SqlStore::open(options.clone(), clock.clone());
    open().await.unwrap().close().await;
    let mut connection = PgConnection::connect(&server.url()).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(fill(clusters)))
        .execute(&mut connection)
        .await
        .unwrap();
    for statement in [
        "ALTER SYSTEM SET auto_explain.log_min_duration = 0",
        "SELECT pg_reload_conf()",
    ] {
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    }
    let mut times = Times::default();
    // First as it is filled, of which the planner knows nothing, then with statistics and plans made anew.
    for analysed in [false, true] {
        if analysed {
            sqlx::raw_sql("VACUUM ANALYZE")
                .execute(&mut connection)
                .await
                .unwrap();
        }
        let store = open().await.unwrap();
        // Often enough for prepared statements to get the plan that they keep.
        for round in 0..8 {
            let round = round + if analysed { 8 } else { 0 };
            exercise(&store, &clock, round, &mut times).await;
        }
        store.close().await;
    }
    let log = std::fs::read_to_string(server.log()).unwrap();
    let mut bad = BTreeSet::new();
    let (mut statements, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for (statement, plan) in plans(&log) {
        // Foreign keys are looked up by the server itself; what this test says is not the store's.
        if statement.contains("generate_series") || statement.contains("pg_reload_conf") {
            continue;
        }
        let mut wrong = Vec::new();
        judge(&plan, &mut wrong, &mut seen);
        for wrong in wrong {
            bad.insert(format!("{wrong}: {statement}"));
        }
        statements.insert(statement);
    }
    assert!(bad.is_empty(), "{bad:#?}");
    assert!(statements.len() > 80, "{} statements were seen", statements.len());
    assert_eq!(seen.len(), LARGE.len(), "{seen:?}");
    if std::env::var_os(SCALE).is_some() {
        for (name, mut taken) in times.0 {
            taken.sort();
            eprintln!(
                "{name}: median {:?}, longest {:?}",
                taken[taken.len() / 2],
                taken.last().unwrap()
            );
        }
    }
}
