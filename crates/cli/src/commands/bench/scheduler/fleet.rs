//! A mothership on simulated clusters, timed from outside.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use evenkeel_api::{ClusterDocument, ClusterStatus, Suspend};
use evenkeel_core::{ClusterName, ClusterState, OperationStateKind};
use evenkeel_fleet::{Fleet, Parts, Settings};
use evenkeel_inventory::{OpenOptions, Reconciliations as _, SqlStore, Statuses as _, Synchronous};
use evenkeel_simulator::{Options, Simulator, Timing};
use evenkeel_source::DirectoryPolicy;
use evenkeel_telemetry::{Metrics, SystemClock, Tasks, time};
use serde_json::{Value, json};

use super::cost;
use crate::commands::bench::sample::{median, p99};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a component takes to be ready in the installation that is timed.
const STAGE: Duration = Duration::from_millis(500);
/// How long nobody writes before what was written is counted: longer than a busy machine keeps a writer waiting.
const QUIET: Duration = Duration::from_secs(1);
/// Components of the run that tells what each further one costs.
const FURTHER: u32 = 9;

/// The rows of passes.
pub(super) struct Rows {
    pub(super) changed: f64,
    pub(super) further: f64,
    pub(super) noop: f64,
}

/// A fleet at work.
pub(super) struct Bench {
    simulator: Simulator,
    store: Arc<SqlStore>,
    fleet: Fleet,
}

impl Bench {
    /// A mothership that begins with `due` clusters that are due by interval. They have no kubeconfig: each is looked at as far
    /// as that.
    pub(super) async fn start(folder: &Path, due: usize, tasks: Tasks) -> anyhow::Result<Self> {
        let charts = folder.join("charts");
        let definitions = format!("{DEFINITION}---\n{STAGED}");
        for (chart, template) in [("map", MAP), ("stage", STAGED), ("definitions", &definitions)] {
            write(
                &charts.join(chart).join("Chart.yaml"),
                &format!("apiVersion: v2\nname: {chart}\nversion: 1.0.0\n"),
            )?;
            write(&charts.join(chart).join("values.yaml"), "text: first\n")?;
            write(&charts.join(chart).join("templates/object.yaml"), template)?;
        }
        // Before it runs, and not to be waited for longer than need be: nothing here is measured.
        cost::filled(folder, "fleet", due).await?.close().await;
        let options = OpenOptions {
            synchronous: Synchronous::Full,
            ..OpenOptions::file(folder.join("fleet"), folder.join("fleet.keys"))
        };
        let store = Arc::new(SqlStore::open(options, Arc::new(SystemClock)).await?);
        let timing = Timing {
            pod_start: STAGE,
            ..Timing::default()
        };
        let simulator = Simulator::start(Options {
            timing,
            ..Options::default()
        })
        .await?;
        let fleet = Fleet::new(Parts {
            store: store.clone(),
            directories: DirectoryPolicy::Below(charts),
            remote: None,
            kubeconfigs: evenkeel_fleet::KubeconfigClusters::default(),
            signatures: None,
            settings: Settings {
                fleet_name: "bench".to_owned(),
                // Signs of life are not counted: nobody gives one meanwhile.
                lease: 4 * PATIENCE,
                heartbeat: 3 * PATIENCE,
                // What a check costs is measured, not what watches save of it.
                watched_clusters: 0,
                ..Settings::default()
            },
            tasks,
            metrics: Metrics::new(),
        })?;
        fleet.start();
        Ok(Self {
            simulator,
            store,
            fleet,
        })
    }

    /// Ends what the process does not end by itself.
    pub(super) async fn stop(self) {
        drop(self.fleet);
        self.simulator.stop().await;
    }

    async fn put(&self, name: &str, components: Value) -> anyhow::Result<()> {
        if self.simulator.cluster(name).is_none() {
            self.simulator.add_cluster(name)?;
        }
        let document = json!({
            "name": name, "tenant": name, "components": components, "kubeconfig": self.simulator.kubeconfig(name)?,
        });
        self.fleet
            .put_cluster(&ClusterName::new(name)?, ClusterDocument::from_value(document)?)
            .await?;
        Ok(())
    }

    async fn until(&self, name: &str, is: impl Fn(&ClusterStatus) -> bool) -> anyhow::Result<ClusterStatus> {
        let name = ClusterName::new(name)?;
        let end = Instant::now() + PATIENCE;
        let mut known = String::new();
        loop {
            let status = self
                .fleet
                .status_after(&name, &known, Duration::from_secs(1))
                .await?;
            if is(&status) {
                return Ok(status);
            }
            if Instant::now() > end {
                bail!(
                    "cluster {name} did not get there within {PATIENCE:?}: it is {}",
                    status.state
                );
            }
            known = status.revision;
        }
    }

    async fn ready(&self, name: &str) -> anyhow::Result<ClusterStatus> {
        let ready = |status: &ClusterStatus| {
            status.state == ClusterState::Ready && status.observed_version == Some(status.version)
        };
        self.until(name, ready).await
    }

    /// Rows added by runs over one and over ten changed components, and written by a check that finds nothing.
    pub(super) async fn rows(&self) -> anyhow::Result<Rows> {
        let components = |changed: u32, text: &str| -> Value {
            let one = |number: u32| {
                let text = if number < changed { text } else { "first" };
                map(&format!("component-{number}"), text)
            };
            (0..=FURTHER).map(one).collect()
        };
        self.put("rows", components(0, "")).await?;
        self.ready("rows").await?;
        let mut added = Vec::new();
        for (changed, text) in [(1, "second"), (FURTHER + 1, "third")] {
            // What accepting the version took is none of the pass, and a pass that is not held back begins before it
            // could be told.
            self.fleet
                .suspend(&ClusterName::new("rows")?, Suspend::default())
                .await?;
            self.put("rows", components(changed, text)).await?;
            let before = self.store.row_measures().await?.rows;
            self.fleet.resume(&ClusterName::new("rows")?).await?;
            self.ready("rows").await?;
            let after = self.store.row_measures().await?.rows;
            added.push(after.saturating_sub(before) as f64);
        }
        let [one, ten] = added[..] else {
            bail!("two runs were measured");
        };
        // Now and then a heartbeat falls into one, which is not counted: the middle of three.
        let checks = vec![self.check().await?, self.check().await?, self.check().await?];
        Ok(Rows {
            changed: one,
            further: (ten - one) / f64::from(FURTHER),
            noop: median(checks) as f64,
        })
    }

    /// Rows written by one check that finds nothing, and by whatever the process says of itself meanwhile.
    async fn check(&self) -> anyhow::Result<u64> {
        let name = ClusterName::new("rows")?;
        let asked = self.settled().await?;
        let cluster = self.fleet.status(&name).await?;
        self.store
            .make_due(&cluster.id, time::now(), evenkeel_core::DueReason::Periodic)
            .await?;
        self.until("rows", |status| {
            status.checked > cluster.checked && status.next_due > Some(time::now())
        })
        .await?;
        let after = self.settled().await?;
        // One row is what made it due.
        Ok(after.saturating_sub(asked).saturating_sub(1))
    }

    /// How many rows were written, once nobody writes for a moment.
    async fn settled(&self) -> anyhow::Result<u64> {
        let written = async || {
            let measures = self.store.row_measures().await?;
            measures
                .written
                .context("the database does not count what is written")
        };
        let end = Instant::now() + PATIENCE;
        let mut before = written().await?;
        loop {
            tokio::time::sleep(QUIET).await;
            let now = written().await?;
            if now == before {
                return Ok(now);
            }
            if Instant::now() > end {
                bail!("something writes to the database all the time");
            }
            before = now;
        }
    }

    /// How soon changes are claimed, one after the other, of clusters in turn.
    pub(super) async fn change_to_claim(&self, changes: usize) -> anyhow::Result<f64> {
        let names = ["amber", "birch", "coral", "denim"];
        for name in names {
            self.put(name, json!([map("web", "first")])).await?;
            self.ready(name).await?;
        }
        let mut times = Vec::with_capacity(changes);
        for (number, name) in (0..changes).zip(names.iter().cycle()) {
            let sent = time::now();
            self.put(name, json!([map("web", &format!("{} {number}", time::now()))]))
                .await?;
            let status = self.ready(name).await?;
            let run = status.reconciliation.context("a run was made")?;
            let operations = self.store.operations(&run).await?.items;
            let claimed = operations
                .iter()
                .filter_map(|operation| operation.started_at)
                .min();
            let claimed = claimed.context("an operation was claimed")?;
            times.push(Duration::try_from(claimed.duration_since(sent)).unwrap_or_default());
        }
        Ok(p99(&mut times))
    }

    /// How many of the clusters that it began with have not been looked at.
    pub(super) async fn still_due(&self) -> anyhow::Result<u64> {
        Ok(self
            .fleet
            .cluster_counts()
            .await?
            .get(&ClusterState::Ready)
            .copied()
            .unwrap_or_default())
    }

    /// How long an installation takes whose components need half a second each: definitions, a mesh, two on it.
    pub(super) async fn install_ready(&self) -> anyhow::Result<f64> {
        let component = |name: &str, chart: &str, depends_on: &[&str]| {
            json!({
                "name": name, "namespace": "apps", "source": {"directory": {"path": chart}}, "dependsOn": depends_on,
            })
        };
        let begun = Instant::now();
        let components = json!([
            component("definitions", "definitions", &[]),
            component("istio", "stage", &["definitions"]),
            component("base", "stage", &["istio"]),
            component("eventing", "stage", &["istio"]),
        ]);
        self.put("install", components).await?;
        let status = self.ready("install").await?;
        let elapsed = begun.elapsed().as_secs_f64();
        let done = |component: &evenkeel_api::ComponentStatus| {
            component.state.as_ref().map(|state| state.kind()) == Some(OperationStateKind::Succeeded)
        };
        if !status.components.iter().all(done) {
            bail!("a component was not installed: {:?}", status.components);
        }
        Ok(elapsed)
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("{} cannot be made", parent.display()))?;
    }
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

fn map(name: &str, text: &str) -> Value {
    json!({
        "name": name, "namespace": "apps", "source": {"directory": {"path": "map"}}, "values": [{"inline": {"text": text}}],
    })
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  text: {{ .Values.text | quote }}\n";
const STAGED: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  selector:\n    matchLabels: {app: {{ .Release.Name }}}\n  template:\n    metadata:\n      labels: {app: {{ .Release.Name }}}\n    spec:\n      containers:\n        - {name: main, image: \"a:1\"}\n";
/// A kind, and its controller.
const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: engines.example.com\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: engines, singular: engine, kind: Engine, listKind: EngineList}\n  versions:\n    - name: v1\n      served: true\n      storage: true\n      schema:\n        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}\n";
