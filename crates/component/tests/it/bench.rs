//! One component at one cluster, and what tests do with it.

use std::path::Path;
use std::sync::{Arc, Once};
use std::time::Duration;

use evenkeel_cluster::{
    Attempt, Cluster, ComponentTarget, ConnectOptions, KubeconfigPolicy, Limits, Owner, Record,
    SYSTEM_NAMESPACE, Unguarded, WriteGuard,
};
use evenkeel_component::{
    Considered, Error, KUSTOMIZE_TIMEOUT, Kustomize, KustomizeOptions, Layer, Operation, Outcome, Reconciler,
    RemoteBases, RenderedSiblings, RunOptions, Sibling, SiblingSet, TargetLedger, Task, Values, Work,
};
use evenkeel_core::{
    ClusterName, ComponentName, DeleteKind, Fence, HookPolicy, InjectedProxies, Namespace, Sensitive,
    SourceRef, ValuesFrom,
};
use evenkeel_simulator::{Options, Simulator};
use evenkeel_source::{DirectoryPolicy, NoArchives, Sources};
use evenkeel_steps::{Bundle, Mode};
use evenkeel_telemetry::{CancellationToken, SystemClock, Tasks};
use evenkeel_testkit::TestCluster;

/// How long objects may take to be ready, or gone; far more than they need.
const PATIENCE: Duration = Duration::from_secs(60);

/// The real program.
pub(crate) fn kustomize() -> KustomizeOptions {
    KustomizeOptions {
        program: evenkeel_testkit::realparts::kustomize().unwrap(),
        remote: RemoteBases::Refused,
        timeout: KUSTOMIZE_TIMEOUT,
    }
}

pub(crate) struct Bench {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: Namespace,
    target: ComponentTarget,
    reconciler: Reconciler,
    chart: tempfile::TempDir,
    _simulator: Option<Simulator>,
}

/// Keeps something in our namespace of the real cluster. Scenarios run side by side there: the deletion of one that is alone
/// for a moment would take the namespace along, and others begin meanwhile.
fn keep_system_namespace(cluster: &TestCluster) {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kept.yaml");
        let objects = format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: {SYSTEM_NAMESPACE}}}}}\n---\n\
             {{apiVersion: v1, kind: ConfigMap, metadata: {{name: kept, namespace: {SYSTEM_NAMESPACE}}}}}\n"
        );
        std::fs::write(&file, objects).unwrap();
        let applied = cluster
            .kubectl()
            .arg("apply")
            .arg("-f")
            .arg(&file)
            .output()
            .unwrap();
        assert!(applied.status.success(), "{applied:?}");
    });
}

impl Bench {
    pub(crate) async fn real(scenario: &str) -> Self {
        let cluster = evenkeel_testkit::cluster("component");
        keep_system_namespace(cluster);
        Self::new(cluster.kubeconfig(), scenario, None, Some(kustomize())).await
    }

    pub(crate) async fn simulated(scenario: &str) -> Self {
        Self::simulated_with(scenario, Some(kustomize())).await
    }

    /// With another program that builds kustomizations, or none.
    pub(crate) async fn simulated_with(scenario: &str, kustomize: Option<KustomizeOptions>) -> Self {
        evenkeel_testkit::install_crypto_provider();
        let simulator = Simulator::start(Options::default()).await.unwrap();
        let cluster = simulator.add_cluster("component").unwrap();
        let kubeconfig = cluster.kubeconfig().to_owned();
        Self::new(&kubeconfig, scenario, Some(simulator), kustomize).await
    }

    async fn new(
        kubeconfig: &str,
        scenario: &str,
        simulator: Option<Simulator>,
        kustomize: Option<KustomizeOptions>,
    ) -> Self {
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
        let mut reconciler = Reconciler::new(Arc::new(sources), tasks, clock).unwrap();
        if let Some(options) = kustomize {
            reconciler = reconciler.with_kustomize(Kustomize::new(options));
        }
        let bench = Self {
            cluster,
            namespace: Namespace::new(name).unwrap(),
            target,
            reconciler,
            chart: tempfile::tempdir().unwrap(),
            _simulator: simulator,
        };
        bench.write("Chart.yaml", "apiVersion: v2\nname: sample\nversion: 1.0.0\n");
        bench
    }

    /// With steps and hooks in every pipeline.
    pub(crate) fn with_bundle(mut self, every: &impl Bundle<Operation>) -> Self {
        self.reconciler = self.reconciler.clone().with_bundle(every).unwrap();
        self
    }

    pub(crate) fn describe(&self) -> [String; 4] {
        self.reconciler.describe()
    }

    /// Writes a file of the chart.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.chart.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn chart_path(&self) -> String {
        self.chart.path().display().to_string()
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

    /// Applies what takes no values.
    pub(crate) async fn apply_plain(&self) -> Outcome {
        self.run(self.plain(), Mode::Live).await
    }

    /// The same, until `cancel`.
    pub(crate) async fn apply_until(&self, cancel: CancellationToken) -> Outcome {
        let options = RunOptions {
            cancel,
            ..RunOptions::default()
        };
        self.run_with(self.plain(), options).await
    }

    /// What decides the objects, as a look at the cluster asks for it.
    pub(crate) async fn consider(&self) -> Result<Considered, Error> {
        let spec = serde_json::from_value(serde_json::json!({
            "name": self.target.name().as_str(),
            "source": {"directory": {"path": self.chart.path()}},
            "namespace": self.namespace.as_str(),
        }));
        self.reconciler.consider(&self.target, &spec.unwrap()).await
    }

    fn plain(&self) -> Work {
        let mut work = self.work("{}", Vec::new());
        if let Work::Apply { values, .. } = &mut work {
            *values = Values::default();
        }
        work
    }

    pub(crate) async fn uninstall(&self) -> Outcome {
        self.run(self.uninstalling(HookPolicy::Run), Mode::Live).await
    }

    /// Uninstalls without the hooks of the deletion.
    pub(crate) async fn uninstall_without_hooks(&self) -> Outcome {
        self.run(self.uninstalling(HookPolicy::Ignore), Mode::Live).await
    }

    /// What an uninstall would do.
    pub(crate) async fn plan_uninstall(&self) -> Outcome {
        self.run(self.uninstalling(HookPolicy::Run), Mode::DryRun).await
    }

    fn uninstalling(&self, hooks: HookPolicy) -> Work {
        Work::Uninstall {
            gone_within: PATIENCE,
            hooks,
            kind: DeleteKind::System,
            blocking: true,
            strip_finalizers: false,
        }
    }

    /// Applies with hooks ignored, or objects of others taken over.
    pub(crate) async fn apply_so(&self, text: &str, policy: HookPolicy, take_over: bool) -> Outcome {
        let mut work = self.work(text, Vec::new());
        if let Work::Apply { hooks, adopt, .. } = &mut work {
            *hooks = policy;
            *adopt = take_over;
        }
        self.run(work, Mode::Live).await
    }

    /// Applies a component that injects proxies into pods of others.
    pub(crate) async fn apply_injecting(&self, text: &str, injected: InjectedProxies, mode: Mode) -> Outcome {
        let mut work = self.work(text, Vec::new());
        if let Work::Apply { proxies, .. } = &mut work {
            *proxies = Some(injected);
        }
        self.run(work, mode).await
    }

    /// Deletes everything of the component, with definitions and data.
    pub(crate) async fn uninstall_all(&self) -> Outcome {
        let mut work = self.uninstalling(HookPolicy::Run);
        if let Work::Uninstall { kind, .. } = &mut work {
            *kind = DeleteKind::All;
        }
        self.run(work, Mode::Live).await
    }

    /// Applies the definitions of other components in one operation, before any of these.
    pub(crate) async fn define(&self, others: &[(&str, &Path)]) -> Outcome {
        let sibling = |(name, path): &(&str, &Path)| Sibling {
            name: self.other(name),
            source: SourceRef::Directory {
                path: path.display().to_string(),
            },
            format: None,
            values: Values::default(),
            namespace: self.namespace.clone(),
            force_namespace: false,
        };
        let set = Arc::new(SiblingSet::new(others.iter().map(sibling).collect()));
        let (cluster, owner) = (self.cluster.clone(), self.target.owner().clone());
        let components = RenderedSiblings::new(self.reconciler.clone(), cluster, owner, set);
        let target = self
            .cluster
            .component(self.target.owner(), &ComponentName::definitions());
        let record = target.record().await.unwrap();
        let task = Task {
            work: Work::Define { components },
            attempt: Attempt {
                fence: record.map_or(Fence(1), |record| record.fence.next()),
                guard: Arc::new(Unguarded),
            },
            ledger: Arc::new(TargetLedger::new(target.clone())),
            target,
        };
        self.reconciler.run(task, RunOptions::default()).await
    }

    /// The name of another component of this scenario.
    pub(crate) fn other(&self, name: &str) -> ComponentName {
        ComponentName::new(format!("{name}-{}", self.target.name())).unwrap()
    }

    /// Applies as long as `guard` lets it write, until `cancel`.
    pub(crate) async fn apply_guarded(
        &self,
        values: &str,
        guard: Arc<dyn WriteGuard>,
        cancel: CancellationToken,
    ) -> Outcome {
        let options = RunOptions {
            cancel,
            ..RunOptions::default()
        };
        self.run_as(self.work(values, Vec::new()), options, guard).await
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
            format: None,
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
            on_conflict: Default::default(),
            readiness: Default::default(),
            ready_within: Some(PATIENCE),
            hooks: HookPolicy::Run,
            hooks_within: PATIENCE,
            proxies: None,
        }
    }

    async fn run(&self, work: Work, mode: Mode) -> Outcome {
        let options = RunOptions {
            mode,
            ..RunOptions::default()
        };
        self.run_with(work, options).await
    }

    async fn run_with(&self, work: Work, options: RunOptions) -> Outcome {
        self.run_as(work, options, Arc::new(Unguarded)).await
    }

    async fn run_as(&self, work: Work, options: RunOptions, guard: Arc<dyn WriteGuard>) -> Outcome {
        let fence = self
            .target
            .record()
            .await
            .unwrap()
            .map_or(Fence(1), |record| record.fence.next());
        let task = Task {
            target: self.target.clone(),
            work,
            attempt: Attempt { fence, guard },
            ledger: Arc::new(TargetLedger::new(self.target.clone())),
        };
        self.reconciler.run(task, options).await
    }

    /// An object of the core group in the component's namespace.
    pub(crate) async fn get(&self, kind: &str, name: &str) -> Option<serde_json::Value> {
        self.cluster
            .lookup("v1", kind, self.namespace.as_str(), name)
            .await
            .unwrap()
    }

    /// An object of any group in the component's namespace.
    pub(crate) async fn find(&self, api_version: &str, kind: &str, name: &str) -> Option<serde_json::Value> {
        self.cluster
            .lookup(api_version, kind, self.namespace.as_str(), name)
            .await
            .unwrap()
    }

    /// What the target remembers of the component.
    pub(crate) async fn record(&self) -> Option<Record> {
        self.target.record().await.unwrap()
    }

    /// Changes or deletes an object of the component's namespace as somebody else.
    pub(crate) async fn send(&self, method: &str, object: &str, patch: &serde_json::Value) {
        let (root, object) = object.split_once(' ').unwrap();
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{root}/namespaces/{}/{object}", self.namespace))
            .header("content-type", "application/merge-patch+json");
        let body = if patch.is_null() {
            Vec::new()
        } else {
            serde_json::to_vec(patch).unwrap()
        };
        self.cluster
            .raw_client()
            .request::<serde_json::Value>(request.body(body).unwrap())
            .await
            .unwrap();
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
