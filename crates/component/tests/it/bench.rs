//! One component at one cluster, and what tests do with it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_cluster::{
    Attempt, Cluster, ComponentTarget, ConnectOptions, KubeconfigPolicy, Limits, Owner, Unguarded,
};
use evenkeel_component::{Layer, Outcome, Reconciler, RunOptions, TargetLedger, Task, Values, Work};
use evenkeel_core::{ClusterName, ComponentName, Fence, Namespace, Sensitive, SourceRef, ValuesFrom};
use evenkeel_simulator::{Options, Simulator};
use evenkeel_source::{DirectoryPolicy, NoArchives, Sources};
use evenkeel_steps::Mode;
use evenkeel_telemetry::{SystemClock, Tasks};

/// How long objects may take to be ready, or gone; far more than they need.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Bench {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: Namespace,
    target: ComponentTarget,
    reconciler: Reconciler,
    chart: tempfile::TempDir,
    _simulator: Option<Simulator>,
}

impl Bench {
    pub(crate) async fn real(scenario: &str) -> Self {
        let cluster = evenkeel_testkit::cluster("component");
        Self::new(cluster.kubeconfig(), scenario, None).await
    }

    pub(crate) async fn simulated(scenario: &str) -> Self {
        evenkeel_testkit::install_crypto_provider();
        let simulator = Simulator::start(Options::default()).await.unwrap();
        let cluster = simulator.add_cluster("component").unwrap();
        let kubeconfig = cluster.kubeconfig().to_owned();
        Self::new(&kubeconfig, scenario, Some(simulator)).await
    }

    async fn new(kubeconfig: &str, scenario: &str, simulator: Option<Simulator>) -> Self {
        evenkeel_testkit::install_crypto_provider();
        let options = ConnectOptions {
            policy: KubeconfigPolicy::Registered,
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
        };
        let cluster = Cluster::connect(&Sensitive::new(kubeconfig.to_owned()), options)
            .await
            .unwrap();
        // Scenarios run side by side on the real cluster: each has a component and a namespace of its own.
        let name: String = scenario.replace('_', "-").chars().take(40).collect();
        let name = name.trim_end_matches('-');
        let owner = Owner::new("tests", ClusterName::new("component").unwrap()).unwrap();
        let target = cluster.component(&owner, &ComponentName::new(name).unwrap());
        let (tasks, clock) = (Tasks::new(), Arc::new(SystemClock));
        let sources = Sources::new(
            DirectoryPolicy::Anywhere,
            Arc::new(NoArchives),
            clock.clone(),
            tasks.clone(),
        );
        let bench = Self {
            cluster,
            namespace: Namespace::new(name).unwrap(),
            target,
            reconciler: Reconciler::new(Arc::new(sources), tasks, clock).unwrap(),
            chart: tempfile::tempdir().unwrap(),
            _simulator: simulator,
        };
        bench.write("Chart.yaml", "apiVersion: v2\nname: sample\nversion: 1.0.0\n");
        bench
    }

    /// Writes a file of the chart.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.chart.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.chart.path().join(path)).unwrap();
    }

    pub(crate) async fn apply(&self, values: &str) -> Outcome {
        self.run(self.work(values, Vec::new()), Mode::Live).await
    }

    pub(crate) async fn apply_with(&self, from: ValuesFrom) -> Outcome {
        self.run(self.work("{}", vec![Layer::Target(from)]), Mode::Live)
            .await
    }

    pub(crate) async fn plan(&self, values: &str) -> Outcome {
        self.run(self.work(values, Vec::new()), Mode::DryRun).await
    }

    pub(crate) async fn uninstall(&self) -> Outcome {
        self.run(
            Work::Uninstall {
                gone_within: PATIENCE,
            },
            Mode::Live,
        )
        .await
    }

    pub(crate) async fn orphan(&self) -> Outcome {
        self.run(Work::Orphan, Mode::Live).await
    }

    fn work(&self, values: &str, more: Vec<Layer>) -> Work {
        let text = Layer::Text {
            name: "values.yaml".to_owned(),
            text: Sensitive::new(values.to_owned()),
        };
        Work::Apply {
            source: SourceRef::Directory {
                path: self.chart.path().display().to_string(),
            },
            values: Values {
                layers: std::iter::once(text).chain(more).collect(),
                ..Values::default()
            },
            namespace: self.namespace.clone(),
            force_namespace: false,
            adopt: false,
            moved_away: BTreeSet::new(),
            ready_within: Some(PATIENCE),
        }
    }

    async fn run(&self, work: Work, mode: Mode) -> Outcome {
        let fence = self
            .target
            .record()
            .await
            .unwrap()
            .map_or(Fence(1), |record| record.fence.next());
        let task = Task {
            target: self.target.clone(),
            work,
            attempt: Attempt {
                fence,
                guard: Arc::new(Unguarded),
            },
            ledger: Arc::new(TargetLedger::new(self.target.clone())),
        };
        self.reconciler
            .run(
                task,
                RunOptions {
                    mode,
                    ..RunOptions::default()
                },
            )
            .await
    }

    /// An object of the core group in the component's namespace.
    pub(crate) async fn get(&self, kind: &str, name: &str) -> Option<serde_json::Value> {
        self.cluster
            .lookup("v1", kind, self.namespace.as_str(), name)
            .await
            .unwrap()
    }

    /// Writes an object as somebody else.
    pub(crate) async fn create(&self, object: serde_json::Value) {
        let (plural, namespaced) = match object["kind"].as_str().unwrap() {
            "Namespace" => ("namespaces", false),
            "ConfigMap" => ("configmaps", true),
            "Secret" => ("secrets", true),
            other => panic!("{other} is not known here"),
        };
        let path = if namespaced {
            format!("/api/v1/namespaces/{}/{plural}", self.namespace)
        } else {
            format!("/api/v1/{plural}")
        };
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(serde_json::to_vec(&object).unwrap()).unwrap();
        self.cluster
            .raw_client()
            .request::<serde_json::Value>(request)
            .await
            .unwrap();
    }
}
