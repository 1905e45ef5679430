//! A mothership, its simulated clusters and its charts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use evenkeel_api as api;
use evenkeel_core::{ClusterName, ClusterState, DeleteMode, OperationStateKind};
use evenkeel_fleet::{Error, Fleet, KubeconfigClusters, Parts, Settings};
use evenkeel_inventory::{KeySource, Location, OpenOptions, SqlStore, Synchronous};
use evenkeel_simulator::{Cluster, Options, Simulator};
use evenkeel_source::DirectoryPolicy;
use evenkeel_telemetry::{Metrics, SystemClock, Tasks};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// How long anything may take; far more than it needs.
pub(crate) const BOUND: Duration = Duration::from_secs(60);
/// How soon a version that was accepted is being brought about, and a status is written down after the report that decides it.
pub(crate) const AT_ONCE: SignedDuration = SignedDuration::from_secs(1);
/// How long services have to stop.
const STOP: Duration = Duration::from_secs(15);

/// Everything at hand. Ends with the test.
pub(crate) struct World {
    pub(crate) simulator: Simulator,
    folder: TempDir,
    settings: Settings,
    kubeconfigs: KubeconfigClusters,
    running: Option<Running>,
}

/// A mothership in a runtime of its own, which can be dropped where it stands.
struct Running {
    fleet: Option<Fleet>,
    tasks: Tasks,
    store: Weak<SqlStore>,
    runtime: Option<Runtime>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Settings for tests: nobody waits for seconds.
pub(crate) fn settings() -> Settings {
    Settings {
        fleet_name: "tests".to_owned(),
        worker: "test".to_owned(),
        // Nothing is looked at by interval unless a test wants it.
        check_interval: Duration::from_secs(60 * 60),
        // Nor watched.
        watched_clusters: 0,
        lease: Duration::from_secs(6),
        heartbeat: Duration::from_secs(1),
        write_timeout: Duration::from_secs(4),
        ready_timeout: Duration::from_secs(30),
        retry_first: Duration::from_millis(100),
        retry_longest: Duration::from_millis(500),
        ..Settings::default()
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(settings()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        Self::with_clusters(settings, KubeconfigClusters::default()).await
    }

    /// One that reads kubeconfigs from these clusters.
    pub(crate) async fn with_clusters(settings: Settings, kubeconfigs: KubeconfigClusters) -> Self {
        evenkeel_testkit::install_crypto_provider();
        let mut world = Self {
            simulator: Simulator::start(Options::default()).await.unwrap(),
            folder: tempfile::tempdir().unwrap(),
            settings,
            kubeconfigs,
            running: None,
        };
        world.start().await;
        world
    }

    /// Starts a mothership on the world's database.
    pub(crate) async fn start(&mut self) {
        // Nobody holds the store of the mothership before any more, yet another thread may still be dropping it.
        let opened = evenkeel_testkit::eventually("the database is let go", async || {
            let options = OpenOptions {
                location: Location::File(self.database()),
                keys: KeySource::File(self.database().with_file_name("keys")),
                synchronous: Synchronous::Normal,
            };
            match SqlStore::open(options, Arc::new(SystemClock)).await {
                Err(error @ evenkeel_inventory::Error::InUse { .. }) => Err(error),
                opened => Ok(opened),
            }
        });
        let store = Arc::new(opened.await.unwrap());
        let tasks = Tasks::new();
        let weak = Arc::downgrade(&store);
        let fleet = Fleet::new(Parts {
            store,
            directories: DirectoryPolicy::Below(self.charts()),
            remote: None,
            kubeconfigs: self.kubeconfigs.clone(),
            signatures: None,
            settings: self.settings.clone(),
            tasks: tasks.clone(),
            metrics: Metrics::new(),
        })
        .unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        {
            let _inside = runtime.enter();
            fleet.start();
        }
        self.running = Some(Running {
            fleet: Some(fleet),
            tasks,
            store: weak,
            runtime: Some(runtime),
        });
    }

    /// Stops the mothership cleanly.
    pub(crate) async fn stop(&mut self) {
        let mut running = self.running.take().unwrap();
        let stopped = running.tasks.shutdown(STOP).await;
        assert!(stopped.aborted.is_empty(), "{stopped:?}");
        // As a process does at its end. A store that is only dropped closes its files a moment later, and would then take
        // away those that another one has put in their place.
        let store = running.store.upgrade().unwrap();
        running.fleet = None;
        store.close().await;
        drop(store);
        released(&running.store).await;
    }

    /// Drops the mothership where it stands, as `kill -9` does: nobody is told.
    pub(crate) async fn kill(&mut self) {
        let running = self.running.take().unwrap();
        let store = running.store.clone();
        drop(running);
        released(&store).await;
    }

    /// Makes the database anew, as after a loss without a backup.
    pub(crate) async fn lose_database(&mut self) {
        self.stop().await;
        let database = self.database();
        std::fs::remove_dir_all(database.parent().unwrap()).unwrap();
        self.start().await;
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("state").join("inventory.db")
    }

    /// Where the key ring is.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.database().with_file_name("keys")
    }

    /// The inventory itself, for what no request does yet.
    pub(crate) fn store(&self) -> Arc<SqlStore> {
        self.running.as_ref().unwrap().store.upgrade().unwrap()
    }

    pub(crate) fn fleet(&self) -> &Fleet {
        self.running.as_ref().unwrap().fleet.as_ref().unwrap()
    }

    fn charts(&self) -> PathBuf {
        let charts = self.folder.path().join("charts");
        std::fs::create_dir_all(&charts).unwrap();
        charts
    }

    /// Where a file of a chart is.
    pub(crate) fn chart_file(&self, chart: &str, path: &str) -> PathBuf {
        self.charts().join(chart).join(path)
    }

    /// Writes one file of a chart; the first makes the chart.
    pub(crate) fn write(&self, chart: &str, path: &str, text: &str) {
        let chart_path = self.charts().join(chart);
        let write = |path: &Path, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let about = chart_path.join("Chart.yaml");
        if !about.exists() {
            write(
                &about,
                &format!("apiVersion: v2\nname: {chart}\nversion: 1.0.0\n"),
            );
        }
        write(&chart_path.join(path), text);
    }

    /// A chart as an archive.
    pub(crate) fn pack(&self, chart: &str) -> Vec<u8> {
        let compressed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut archive = tar::Builder::new(compressed);
        archive.append_dir_all(chart, self.charts().join(chart)).unwrap();
        archive.into_inner().unwrap().finish().unwrap()
    }

    /// A chart with one ConfigMap whose `data.text` is the value `text`.
    pub(crate) fn map_chart(&self, chart: &str) {
        self.write(chart, "values.yaml", "text: first\n");
        self.write(
            chart,
            "templates/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  text: {{ .Values.text | quote }}\n",
        );
    }

    /// A chart with one Deployment, whose pods become ready by themselves unless `behaviour` says otherwise.
    pub(crate) fn deployment_chart(&self, chart: &str) {
        self.write(chart, "values.yaml", "replicas: 1\nbehaviour: ''\nimage: a:1\n");
        self.write(chart, "templates/deployment.yaml", DEPLOYMENT);
    }

    /// A chart with one Engine, which is as ready as [`World::say`] says, and the kind in `cluster`.
    pub(crate) fn engine_chart(&self, cluster: &str, chart: &str) {
        self.cluster(cluster).create("test", definition()).unwrap();
        self.write(
            chart,
            "templates/engine.yaml",
            "apiVersion: example.com/v1\nkind: Engine\nmetadata:\n  name: {{ .Release.Name }}\n",
        );
    }

    /// Waits for the Engine of a component and says whether it is ready: "True" or "False".
    pub(crate) async fn say(&self, cluster: &str, component: &str, ready: &str) {
        let cluster = self.cluster(cluster);
        let patch = json!({"status": {"conditions": [
            {"type": "Ready", "status": ready, "reason": "Test", "message": "said so"},
        ]}});
        evenkeel_testkit::eventually("the engine is there", async || {
            let patch = patch.clone();
            let patched =
                cluster.patch_status("controller", "example.com/v1", "Engine", "apps", component, patch);
            patched.map(drop)
        })
        .await;
    }

    pub(crate) fn cluster(&self, name: &str) -> Cluster {
        self.simulator
            .cluster(name)
            .unwrap_or_else(|| self.simulator.add_cluster(name).unwrap())
    }

    /// Registers a cluster with its simulated one, or changes it.
    pub(crate) async fn put(&self, cluster: &str, components: Value) -> api::Accepted {
        let kubeconfig = self.cluster(cluster).kubeconfig().to_owned();
        self.put_with(cluster, components, &kubeconfig).await.unwrap()
    }

    pub(crate) async fn put_with(
        &self,
        cluster: &str,
        components: Value,
        kubeconfig: &str,
    ) -> Result<api::Accepted, Error> {
        // What a change may lose is the subject of tests of its own.
        let consent = evenkeel_core::ChangeConsent::ALL;
        let document =
            json!({"name": cluster, "components": components, "kubeconfig": kubeconfig, "consent": consent});
        let document = api::ClusterDocument::from_value(document).unwrap();
        self.fleet().put_cluster(&name(cluster), document).await
    }

    pub(crate) async fn status(&self, cluster: &str) -> api::ClusterStatus {
        self.fleet().status(&name(cluster)).await.unwrap()
    }

    /// Waits for a status.
    pub(crate) async fn until(
        &self,
        cluster: &str,
        what: &str,
        is: impl Fn(&api::ClusterStatus) -> bool,
    ) -> api::ClusterStatus {
        let end = Instant::now() + BOUND;
        let mut known = String::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let status = self
                .fleet()
                .status_after(&name(cluster), &known, left)
                .await
                .unwrap();
            if is(&status) {
                return status;
            }
            assert!(Instant::now() < end, "{what}: seen last {status:#?}");
            known = status.revision;
        }
    }

    /// Waits until a cluster is ready at its newest version.
    pub(crate) async fn ready(&self, cluster: &str) -> api::ClusterStatus {
        let ready = |status: &api::ClusterStatus| {
            status.state == ClusterState::Ready && status.observed_version == Some(status.version)
        };
        self.until(cluster, "ready", ready).await
    }

    pub(crate) async fn delete(&self, cluster: &str, mode: DeleteMode) {
        self.fleet().delete_cluster(&name(cluster), mode).await.unwrap();
    }

    /// Waits until a cluster's record is gone.
    pub(crate) async fn gone(&self, cluster: &str) {
        evenkeel_testkit::eventually("the cluster is gone", async || {
            match self.fleet().status(&name(cluster)).await {
                Err(Error::Inventory(evenkeel_inventory::Error::NotFound { .. })) => Ok(()),
                other => Err(other.map(|status| (status.state, status.reason))),
            }
        })
        .await;
    }

    /// The newest run of a cluster, whole.
    pub(crate) async fn newest_run(&self, cluster: &str) -> api::Reconciliation {
        let runs = self.fleet().reconciliations(&name(cluster)).await.unwrap();
        self.fleet().reconciliation(&runs[0].id).await.unwrap()
    }

    /// How long after its version was accepted the newest run began, as the inventory has both.
    pub(crate) async fn begun_after(&self, cluster: &str) -> SignedDuration {
        let run = self.newest_run(cluster).await.summary;
        let versions = self.fleet().configurations(&name(cluster)).await.unwrap();
        let version = versions.iter().find(|version| version.version == run.version);
        run.started.duration_since(version.unwrap().created)
    }

    /// How long after the last report of the newest run the state of the cluster was written down.
    pub(crate) async fn told_after(&self, cluster: &str, status: &api::ClusterStatus) -> SignedDuration {
        let operations = self.newest_run(cluster).await.operations;
        let last = operations.iter().filter_map(|operation| operation.finished).max();
        status.since.duration_since(last.unwrap())
    }

    /// Waits until an operation of the newest run has been tried that often.
    pub(crate) async fn newest_tries(&self, cluster: &str, tries: u32) -> evenkeel_core::ReconciliationId {
        evenkeel_testkit::eventually("another try", async || {
            let runs = self.fleet().reconciliations(&name(cluster)).await.unwrap();
            let Some(newest) = runs.first() else {
                return Err(Vec::new());
            };
            let operations = self.fleet().reconciliation(&newest.id).await.unwrap().operations;
            if operations.iter().any(|operation| operation.attempts >= tries) {
                Ok(newest.id.clone())
            } else {
                Err(operations)
            }
        })
        .await
    }

    pub(crate) async fn runs(&self, cluster: &str) -> usize {
        self.fleet().reconciliations(&name(cluster)).await.unwrap().len()
    }

    /// The text in the ConfigMap that [`World::map_chart`] makes.
    pub(crate) fn text(&self, cluster: &str, component: &str) -> Option<String> {
        let map = self
            .cluster(cluster)
            .get("v1", "ConfigMap", "apps", component)
            .unwrap()?;
        Some(map["data"]["text"].as_str().unwrap().to_owned())
    }
}

/// Waits until nobody holds the inventory any more.
async fn released(store: &Weak<SqlStore>) {
    evenkeel_testkit::eventually("the inventory is let go", async || match store.strong_count() {
        0 => Ok(()),
        holders => Err(holders),
    })
    .await;
}

/// One component in namespace `apps`.
pub(crate) fn component(name: &str, chart: &str) -> Value {
    json!({"name": name, "source": {"directory": {"path": chart}}, "namespace": "apps"})
}

/// The same with more fields, or others.
pub(crate) fn with(mut component: Value, fields: Value) -> Value {
    let more: BTreeMap<String, Value> = serde_json::from_value(fields).unwrap();
    component.as_object_mut().unwrap().extend(more);
    component
}

/// The same with inline values.
pub(crate) fn values(component: Value, values: Value) -> Value {
    with(component, json!({"values": [{"inline": values}]}))
}

pub(crate) fn name(cluster: &str) -> ClusterName {
    ClusterName::new(cluster).unwrap()
}

/// The state of a component.
pub(crate) fn state(status: &api::ClusterStatus, component: &str) -> Option<OperationStateKind> {
    let component = status
        .components
        .iter()
        .find(|status| status.name.as_str() == component)?;
    component.state.as_ref().map(|state| state.kind())
}

/// The reason of a component's state.
pub(crate) fn reason(status: &api::ClusterStatus, component: &str) -> String {
    let component = status
        .components
        .iter()
        .find(|status| status.name.as_str() == component);
    let state = component.and_then(|component| component.state.as_ref());
    state
        .and_then(|state| state.reason())
        .unwrap_or_default()
        .to_owned()
}

/// Each operation of a run as `kind component state`, in order.
pub(crate) fn operations(run: &api::Reconciliation) -> Vec<String> {
    let line = |operation: &api::Operation| {
        format!(
            "{} {} {}",
            operation.strategy.as_str(),
            operation.component,
            operation.state.kind()
        )
    };
    run.operations.iter().map(line).collect()
}

const DEPLOYMENT: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  annotations:
    simulator.evenkeel.dev/behaviour: {{ .Values.behaviour | quote }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels:
      app: {{ .Release.Name }}
  template:
    metadata:
      labels:
        app: {{ .Release.Name }}
    spec:
      containers:
        - name: main
          image: {{ .Values.image }}
"#;

/// A kind whose readiness is what its condition says; nobody but the test sets it.
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "engines.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "engines", "singular": "engine", "kind": "Engine", "listKind": "EngineList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}
