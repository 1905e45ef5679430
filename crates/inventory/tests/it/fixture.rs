//! Stores to test, and short words for what the tests do with them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ClusterSpec, ClusterState, ConfigurationVersion, DueReason, Fence, Kubeconfig, ManualClock,
    OperationState, ReconciliationState, Sensitive, Strategy,
};
use evenkeel_inventory::{
    ClaimRequest, ClaimedOperation, Claims, Error, Finish, KeyringFile, Link, Location, MemoryDatabase,
    MemoryStore, NewOperation, NewReconciliation, OpenOptions, PostgresOptions, PutCluster, PutOutcome,
    Report, Settled, SqlStore, StatusChange, Store, TimeSource,
};
use evenkeel_realparts::Postgres;
use jiff::{SignedDuration, Timestamp};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

pub(crate) const LEASE: Duration = Duration::from_secs(15);

/// A database that can be opened anew, as after a crash.
#[async_trait]
pub(crate) trait Backend: Send + Sized {
    /// Whether it gives a signal only when something happened. Where others write too, everybody looks now and then.
    const QUIET: bool;

    /// An empty database.
    async fn empty(clock: Arc<ManualClock>) -> Self;

    /// An empty database, opened with the options of a mothership on a machine that has this clock.
    async fn as_shipped(clock: Arc<ManualClock>) -> Self;

    /// The open store.
    fn store(&self) -> Arc<dyn Store>;

    /// Drops the store without closing it and opens the database again.
    async fn crash(self) -> Self;
}

/// A real database, whose values are encrypted at rest.
pub(crate) trait Database: Backend {
    /// The key ring file.
    fn ring(&self) -> KeyringFile;

    /// The open store as what it is.
    fn sql(&self) -> &SqlStore;
}

/// Rows in memory.
pub(crate) struct Memory {
    clock: Arc<ManualClock>,
    database: Arc<MemoryDatabase>,
    store: Arc<MemoryStore>,
}

impl Memory {
    fn open(database: Arc<MemoryDatabase>, clock: Arc<ManualClock>) -> Self {
        let store = MemoryStore::open(&database, clock.clone(), Arc::new(KeptPromises));
        Self {
            clock,
            database,
            store: Arc::new(store),
        }
    }
}

/// A link that never fails, and no promise about the rows is broken.
struct KeptPromises;

#[async_trait]
impl Link for KeptPromises {
    async fn there(&self, _: &'static str) -> Result<(), Error> {
        Ok(())
    }

    async fn back(&self, _: &'static str) -> Result<(), Error> {
        Ok(())
    }

    fn hears(&self) -> bool {
        true
    }

    fn wrote(&self, call: &'static str, broken: Option<String>) {
        // Who tests the store alone records states that no fleet would: due never, and nothing under way.
        let broken = broken.filter(|broken| !broken.contains("nothing works on it"));
        assert_eq!(broken, None, "after {call}");
    }
}

#[async_trait]
impl Backend for Memory {
    const QUIET: bool = true;

    async fn empty(clock: Arc<ManualClock>) -> Self {
        Self::open(MemoryDatabase::new(), clock)
    }

    async fn as_shipped(clock: Arc<ManualClock>) -> Self {
        Self::empty(clock).await
    }

    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn crash(self) -> Self {
        Self::open(self.database, self.clock)
    }
}

/// A file in a directory of its own.
pub(crate) struct Sqlite {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<SqlStore>,
}

impl Sqlite {
    pub(crate) fn options(directory: &tempfile::TempDir) -> OpenOptions {
        let options = OpenOptions::file(directory.path().join("db"), directory.path().join("keys"));
        assert!(matches!(options.location, Location::File(_)));
        options
    }

    /// Closes the store, so that its file can be looked at, and hands out where it is.
    pub(crate) async fn close(self) -> (tempfile::TempDir, Arc<ManualClock>) {
        self.store.close().await;
        (self.directory, self.clock)
    }

    pub(crate) async fn open(directory: tempfile::TempDir, clock: Arc<ManualClock>) -> Self {
        let store = SqlStore::open(Self::options(&directory), clock.clone())
            .await
            .unwrap();
        Self {
            directory,
            clock,
            store: Arc::new(store),
        }
    }
}

#[async_trait]
impl Backend for Sqlite {
    const QUIET: bool = true;

    async fn empty(clock: Arc<ManualClock>) -> Self {
        Self::open(tempfile::tempdir().unwrap(), clock).await
    }

    async fn as_shipped(clock: Arc<ManualClock>) -> Self {
        Self::empty(clock).await
    }

    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn crash(self) -> Self {
        let Self {
            directory,
            clock,
            store,
        } = self;
        drop(store);
        Self::open(directory, clock).await
    }
}

impl Database for Sqlite {
    fn ring(&self) -> KeyringFile {
        KeyringFile::new(self.directory.path().join("keys"))
    }

    fn sql(&self) -> &SqlStore {
        &self.store
    }
}

/// The server of all tests that need no server of their own. It ends with the process.
pub(crate) fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(|| Postgres::start().unwrap())
}

/// A new, empty database on a server.
pub(crate) async fn new_database(server: &Postgres) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let mut connection = PgConnection::connect(&server.url()).await.unwrap();
    let create = AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE template0"));
    sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
    server.url_of(&name)
}

/// A database of its own on the common server.
pub(crate) struct Pg {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) url: String,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<SqlStore>,
}

impl Pg {
    pub(crate) fn options(url: &str, directory: &tempfile::TempDir) -> OpenOptions {
        let mut server: PostgresOptions = url.parse().unwrap();
        server.connections = 12;
        server.time = TimeSource::Given;
        OpenOptions::postgres(server, directory.path().join("keys"))
    }

    pub(crate) async fn open(url: String, directory: tempfile::TempDir, clock: Arc<ManualClock>) -> Self {
        let store = SqlStore::open(Self::options(&url, &directory), clock.clone())
            .await
            .unwrap();
        Self {
            directory,
            url,
            clock,
            store: Arc::new(store),
        }
    }

    /// Another process on the same database.
    pub(crate) async fn second(&self) -> SqlStore {
        SqlStore::open(Self::options(&self.url, &self.directory), self.clock.clone())
            .await
            .unwrap()
    }
}

#[async_trait]
impl Backend for Pg {
    const QUIET: bool = false;

    async fn empty(clock: Arc<ManualClock>) -> Self {
        let url = new_database(server()).await;
        Self::open(url, tempfile::tempdir().unwrap(), clock).await
    }

    async fn as_shipped(clock: Arc<ManualClock>) -> Self {
        let url = new_database(server()).await;
        let directory = tempfile::tempdir().unwrap();
        let options = OpenOptions::postgres(url.parse().unwrap(), directory.path().join("keys"));
        let store = Arc::new(SqlStore::open(options, clock.clone()).await.unwrap());
        Self {
            directory,
            url,
            clock,
            store,
        }
    }

    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn crash(self) -> Self {
        let Self {
            directory,
            url,
            clock,
            store,
        } = self;
        drop(store);
        Self::open(url, directory, clock).await
    }
}

impl Database for Pg {
    fn ring(&self) -> KeyringFile {
        KeyringFile::new(self.directory.path().join("keys"))
    }

    fn sql(&self) -> &SqlStore {
        &self.store
    }
}

/// A store, its clock, and the usual moves.
pub(crate) struct Fleet<B> {
    pub(crate) backend: B,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn Store>,
}

impl<B: Backend> Fleet<B> {
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(ManualClock::new("2026-03-01T02:00:00Z".parse().unwrap()));
        Self::on(B::empty(clock.clone()).await, clock)
    }

    /// With the options of a mothership on a machine whose clock shows `now`.
    pub(crate) async fn as_shipped(now: Timestamp) -> Self {
        let clock = Arc::new(ManualClock::new(now));
        Self::on(B::as_shipped(clock.clone()).await, clock)
    }

    fn on(backend: B, clock: Arc<ManualClock>) -> Self {
        let store = backend.store();
        Self {
            backend,
            clock,
            store,
        }
    }

    pub(crate) async fn crash(self) -> Self {
        let Self {
            backend,
            clock,
            store,
        } = self;
        drop(store);
        Self::on(backend.crash().await, clock)
    }

    pub(crate) fn now(&self) -> Timestamp {
        use evenkeel_core::Clock as _;
        self.clock.now()
    }

    pub(crate) fn advance(&self, seconds: i64) {
        self.clock.advance(SignedDuration::from_secs(seconds));
    }

    pub(crate) fn after(&self, seconds: i64) -> Timestamp {
        self.now() + SignedDuration::from_secs(seconds)
    }

    pub(crate) async fn put(&self, spec: ClusterSpec) -> PutOutcome {
        self.store.put_cluster(PutCluster::new(spec)).await.unwrap()
    }

    /// A cluster with components and no dependencies between them.
    pub(crate) async fn cluster(&self, name: &str, components: &[&str]) -> ClusterId {
        self.put(spec(name, components)).await.id
    }

    /// A run over the newest version.
    pub(crate) async fn plan(
        &self,
        cluster: &ClusterId,
        operations: &[(&str, &[usize])],
    ) -> NewReconciliation {
        let version = self.store.cluster(cluster).await.unwrap().version;
        NewReconciliation {
            cluster: cluster.clone(),
            version,
            strategy: Strategy::Install,
            reason: DueReason::Change,
            deadline: self.after(3_600),
            stamp: None,
            supersede: false,
            failing: None,
            operations: operations
                .iter()
                .map(|(component, depends_on)| NewOperation {
                    component: component.parse().unwrap(),
                    kind: Strategy::Install,
                    version,
                    cause: "it is new".to_owned(),
                    depends_on: depends_on.to_vec(),
                    carries: None,
                })
                .collect(),
        }
    }

    pub(crate) async fn claims(&self, limit: u32) -> Claims {
        self.store.claim(&claim(limit)).await.unwrap()
    }

    /// Claims exactly one.
    pub(crate) async fn claim_one(&self) -> ClaimedOperation {
        let mut claims = self.claims(8).await.operations;
        assert_eq!(claims.len(), 1, "{claims:?}");
        claims.remove(0)
    }

    pub(crate) async fn report(&self, claimed: &ClaimedOperation, state: OperationState) -> Settled {
        self.store.report(report(claimed, state)).await.unwrap()
    }

    pub(crate) async fn succeed(&self, claimed: &ClaimedOperation) -> Settled {
        self.report(claimed, OperationState::Succeeded).await
    }
}

pub(crate) fn spec(name: &str, components: &[&str]) -> ClusterSpec {
    let components: Vec<_> = components
        .iter()
        .map(|name| serde_json::json!({"name": name, "source": {"directory": {"path": name}}, "namespace": "apps"}))
        .collect();
    serde_json::from_value(serde_json::json!({"name": name, "components": components})).unwrap()
}

pub(crate) fn claim(limit: u32) -> ClaimRequest {
    ClaimRequest {
        worker: "w1".to_owned(),
        limit,
        lease: LEASE,
    }
}

pub(crate) fn report(claimed: &ClaimedOperation, state: OperationState) -> Report {
    Report {
        operation: claimed.id.clone(),
        fence: claimed.lease.fence,
        state,
        changes: Vec::new(),
        timeline: Vec::new(),
    }
}

pub(crate) fn failed(reason: &str) -> OperationState {
    OperationState::Failed {
        reason: reason.to_owned(),
    }
}

pub(crate) fn finish(state: ReconciliationState, cluster: ClusterState, version: u64) -> Finish {
    Finish {
        state,
        reason: None,
        status: StatusChange::new(cluster, ConfigurationVersion(version)),
    }
}

pub(crate) fn secret(text: &str) -> Sensitive<String> {
    Sensitive::new(text.to_owned())
}

/// The kubeconfig itself, which must have been sent.
pub(crate) fn content(kubeconfig: &Kubeconfig) -> &str {
    match kubeconfig {
        Kubeconfig::Inline(content) => content.expose(),
        Kubeconfig::From(from) => panic!("it is read from {from}"),
    }
}

pub(crate) fn fence(number: u64) -> Fence {
    Fence(number)
}
