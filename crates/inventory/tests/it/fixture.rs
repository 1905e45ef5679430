//! Stores to test, and short words for what the tests do with them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ClusterSpec, ClusterState, ConfigurationVersion, DueReason, Fence, ManualClock,
    OperationState, ReconciliationState, Sensitive, Strategy,
};
use evenkeel_inventory::{
    ClaimRequest, ClaimedOperation, Claims, Finish, Location, NewOperation, NewReconciliation, OpenOptions,
    PutCluster, PutOutcome, Report, Settled, SqliteStore, StatusChange, Store,
};
use jiff::{SignedDuration, Timestamp};

pub(crate) const LEASE: Duration = Duration::from_secs(15);

/// A database that can be opened anew, as after a crash.
#[async_trait]
pub(crate) trait Backend: Send + Sized {
    /// An empty database.
    async fn empty(clock: Arc<ManualClock>) -> Self;

    /// The open store.
    fn store(&self) -> Arc<dyn Store>;

    /// Drops the store without closing it and opens the database again.
    async fn crash(self) -> Self;
}

/// A file in a directory of its own.
pub(crate) struct Sqlite {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<SqliteStore>,
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
        let store = SqliteStore::open(Self::options(&directory), clock.clone())
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
    async fn empty(clock: Arc<ManualClock>) -> Self {
        Self::open(tempfile::tempdir().unwrap(), clock).await
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

/// A store, its clock, and the usual moves.
pub(crate) struct Fleet<B> {
    pub(crate) backend: B,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn Store>,
}

impl<B: Backend> Fleet<B> {
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(ManualClock::new("2026-03-01T02:00:00Z".parse().unwrap()));
        let backend = B::empty(clock.clone()).await;
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
        let backend = backend.crash().await;
        let store = backend.store();
        Self {
            backend,
            clock,
            store,
        }
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
            operations: operations
                .iter()
                .map(|(component, depends_on)| NewOperation {
                    component: component.parse().unwrap(),
                    kind: Strategy::Install,
                    version,
                    cause: "it is new".to_owned(),
                    depends_on: depends_on.to_vec(),
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

pub(crate) fn fence(number: u64) -> Fence {
    Fence(number)
}
