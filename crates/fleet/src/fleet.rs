//! The handle to all of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use evenkeel_cluster::{KubeconfigPolicy, Owner};
use evenkeel_component::{Kustomize, Reconciler};
use evenkeel_core::{Clock, ClusterId, ClusterName, ClusterState, Kubeconfig};
use evenkeel_inventory::{self as inventory, CheckNote, Recorded, Report, Settled, StatusChange, Store};
use evenkeel_source::{DirectoryPolicy, Remote, Signatures, Sources};
use evenkeel_telemetry::metrics::StepMetrics;
use evenkeel_telemetry::{Metrics, Restart, Tasks};

use crate::archives::StoredArchives;
use crate::batch::Batch;
use crate::breaker::Breakers;
use crate::broker::Broker;
use crate::gauges::ClusterGauges;
use crate::instances::Instances;
use crate::kubeconfigs::{KubeconfigClusters, Kubeconfigs};
use crate::refused_calls::RefusedCalls;
use crate::siblings::SiblingSets;
use crate::site::{Site, Targeted};
use crate::targets::Targets;
use crate::tuning::Tuning;
use crate::watches::{Watched, Watches};
use crate::workers::Workers;
use crate::{
    Error, Settings, bookkeeper, cleaner, instances, keys, look, pause, scheduler, sync, tuning, workers,
};

/// The content type of [`Fleet::metrics`].
pub const METRICS_CONTENT_TYPE: &str = evenkeel_telemetry::metrics::CONTENT_TYPE;

/// What a fleet is made of.
#[derive(Clone)]
pub struct Parts {
    /// The inventory.
    pub store: Arc<dyn Store>,
    /// Which directories charts may come from.
    pub directories: DirectoryPolicy,
    /// The way to charts of repositories and registries; none when they are refused.
    pub remote: Option<Remote>,
    /// The clusters that kubeconfigs are read from.
    pub kubeconfigs: KubeconfigClusters,
    /// Which sources must be signed; none when all are used as they are.
    pub signatures: Option<Arc<Signatures>>,
    /// How the mothership works.
    pub settings: Settings,
    /// Where its services and operations run; cancelling them stops the fleet.
    pub tasks: Tasks,
    /// Where it registers what it counts.
    pub metrics: Metrics,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("directories", &self.directories)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// One mothership. Cheap to clone; all clones are the same one.
#[derive(Clone)]
pub struct Fleet(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sources: Arc<Sources>,
    pub(crate) reconciler: Reconciler,
    pub(crate) settings: Settings,
    pub(crate) tuning: Arc<Tuning>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tasks: Tasks,
    pub(crate) steps: StepMetrics,
    pub(crate) kubeconfigs: Arc<Kubeconfigs>,
    pub(crate) targets: Targets,
    pub(crate) watches: Watches,
    pub(crate) workers: Workers,
    pub(crate) instances: Instances,
    pub(crate) siblings: SiblingSets,
    pub(crate) breakers: Breakers,
    pub(crate) refused_calls: RefusedCalls,
    pub(crate) broker: Option<Broker>,
    pub(crate) notes: Batch<CheckNote, Result<(), String>>,
    /// Statuses that looks found, written together.
    pub(crate) statuses: Batch<(ClusterId, StatusChange), Result<Recorded, inventory::Error>>,
    pub(crate) reports: Batch<Report, Result<Settled, evenkeel_inventory::Error>>,
    metrics: Metrics,
    /// Where its clusters are.
    pub(crate) site: Arc<dyn Site>,
    jitter: pause::Jitter,
    started: AtomicBool,
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet")
            .field("settings", &self.0.settings)
            .finish_non_exhaustive()
    }
}

/// Starts a service of a fleet.
macro_rules! service {
    ($inner:expr, $name:literal, $run:path) => {
        let service = Arc::clone($inner);
        drop($inner.tasks.service($name, Restart::default(), move |token| {
            let service = Arc::clone(&service);
            async move { $run(service, token).await }
        }));
    };
}

impl Fleet {
    /// A fleet that answers requests; work begins with [`Fleet::start`].
    ///
    /// # Errors
    /// [`Error::Setting`] for settings that would not work together; [`Error::Telemetry`] when its metrics are registered
    /// already.
    pub fn new(parts: Parts) -> Result<Self, Error> {
        let Parts {
            store,
            directories,
            remote,
            kubeconfigs,
            signatures,
            settings,
            tasks,
            metrics,
        } = parts;
        settings.check()?;
        // Leases and due times are in the inventory's time, whatever this machine's clock says.
        let clock = store.clock();
        metrics.collect_with(ClusterGauges(Arc::clone(&store)))?;
        let steps = StepMetrics::register(&metrics)?;
        let archives = Arc::new(StoredArchives(Arc::clone(&store)));
        let mut sources = Sources::new(directories, archives, Arc::clone(&clock), tasks.clone());
        if let Some(remote) = remote {
            sources = sources.with_remote(remote);
        }
        if let Some(rules) = signatures {
            sources = sources.with_signatures(rules);
        }
        let sources = Arc::new(sources);
        let reconciler = Reconciler::new(Arc::clone(&sources), tasks.clone(), Arc::clone(&clock))?;
        let reconciler = reconciler.with_declarations(settings.declarations.clone());
        let mut reconciler = reconciler.with_render_limits(settings.render_limits);
        if let Some(options) = &settings.kustomize {
            reconciler = reconciler.with_kustomize(Kustomize::new(options.clone()));
        }
        let tuning = Arc::new(Tuning::new(settings.clone()));
        let kubeconfigs = Arc::new(Kubeconfigs::new(
            Arc::clone(&store),
            kubeconfigs,
            Arc::clone(&tuning),
        ));
        let targets = Targets::new(
            Arc::clone(&store),
            Arc::clone(&kubeconfigs),
            &settings,
            Arc::clone(&clock),
        );
        let watches = Watches::new(Arc::clone(&store), &settings, Arc::clone(&clock), tasks.clone());
        metrics.collect_with(watches.gauges())?;
        let instances = Instances::new(&settings);
        let broker = settings.broker.as_ref().map(Broker::new).transpose()?;
        Ok(Self(Arc::new(Inner {
            store,
            sources,
            reconciler,
            tuning,
            settings,
            clock,
            tasks,
            steps,
            kubeconfigs,
            targets,
            watches,
            workers: Workers::default(),
            instances,
            siblings: SiblingSets::default(),
            breakers: Breakers::default(),
            refused_calls: RefusedCalls::default(),
            broker,
            notes: Batch::new(),
            statuses: Batch::new(),
            reports: Batch::new(),
            metrics,
            site: Arc::new(Targeted),
            jitter: Arc::new(pause::jitter),
            started: AtomicBool::new(false),
        })))
    }

    /// Starts the work. It stops when the tasks are cancelled: nothing new begins, what runs stops at its next object
    /// boundary and is given back. A second call changes nothing.
    pub fn start(&self) {
        if self.0.started.swap(true, Ordering::Relaxed) {
            return;
        }
        self.0.work();
        let inner = &self.0;
        service!(inner, "instances", instances::serve);
        service!(inner, "keys", keys::serve);
        service!(inner, "settings", tuning::serve);
        if inner.settings.role.looks() {
            service!(inner, "cleaner", cleaner::serve);
            service!(inner, "broker-sync", sync::serve);
        }
        if inner.settings.role.works() {
            service!(inner, "progress", workers::tell_progress);
        }
    }

    /// All metrics as text, of type [`METRICS_CONTENT_TYPE`].
    ///
    /// # Errors
    /// [`Error::Telemetry`], which no known metric causes.
    pub async fn metrics(&self) -> Result<String, Error> {
        Ok(self.0.metrics.scrape().await?)
    }

    /// How many live clusters are in each state; also tells whether the inventory answers.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn cluster_counts(&self) -> Result<std::collections::BTreeMap<ClusterState, u64>, Error> {
        Ok(self.0.store.cluster_counts().await?)
    }

    /// What this process watches live, and how much memory that takes.
    pub fn watched(&self) -> Watched {
        self.0.watches.watched()
    }

    /// Whether live watches of this process vouch for a cluster right now: everything is as the last look found it, and a
    /// change that somebody makes is seen at once.
    ///
    /// # Errors
    /// [`Error::Inventory`] when there is no such cluster.
    pub async fn is_vouched_for(&self, cluster: &ClusterName) -> Result<bool, Error> {
        let cluster = self.0.store.cluster_by_name(cluster).await?;
        Ok(self.0.watches.is_calm(&cluster.id))
    }

    pub(crate) async fn check_kubeconfig(&self, kubeconfig: &Kubeconfig) -> Result<(), Error> {
        match kubeconfig {
            Kubeconfig::Inline(content) => {
                evenkeel_cluster::Cluster::check_kubeconfig(content, &KubeconfigPolicy::Registered)
                    .await
                    .map_err(|error| Error::Kubeconfig(Box::new(error)))
            }
            Kubeconfig::From(from) => self.0.kubeconfigs.check(from).map_err(Error::KubeconfigFrom),
        }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.0.store
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    pub(crate) fn sources(&self) -> &Arc<Sources> {
        &self.0.sources
    }

    pub(crate) fn tuning(&self) -> &Tuning {
        &self.0.tuning
    }

    pub(crate) fn targets(&self) -> &Targets {
        &self.0.targets
    }
}

impl Inner {
    /// Starts what looks at clusters, works on operations and keeps the books.
    pub(crate) fn work(self: &Arc<Self>) {
        let role = self.settings.role;
        if role.looks() {
            service!(self, "check-notes", look::write_notes);
            service!(self, "check-statuses", look::write_statuses);
            service!(self, "bookkeeper", bookkeeper::serve);
        }
        if role.works() {
            service!(self, "reports", workers::write_reports);
            service!(self, "heartbeat", workers::heartbeat);
            service!(self, "workers", workers::serve);
        }
        if role.looks() {
            service!(self, "scheduler", scheduler::serve);
        }
    }

    /// A random number in `0.0..1.0`, so that what failed together does not come back together.
    pub(crate) fn jitter(&self) -> f64 {
        (self.jitter)()
    }

    /// In whose name the objects of a cluster are kept.
    pub(crate) fn owner(&self, cluster: &ClusterName) -> Result<Owner, evenkeel_cluster::Error> {
        Owner::new(self.settings.fleet_name.as_str(), cluster.clone())
    }
}

/// What a fleet before a model is made of and never touches, made once.
#[cfg(feature = "simulation")]
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) sources: Arc<Sources>,
    pub(crate) reconciler: Reconciler,
    pub(crate) steps: StepMetrics,
    pub(crate) metrics: Metrics,
}

#[cfg(feature = "simulation")]
impl Inner {
    /// A mothership whose clusters are a model, and whose chance is `jitter`.
    pub(crate) fn modelled(
        store: Arc<dyn Store>,
        settings: Settings,
        tasks: Tasks,
        unused: Model,
        site: Arc<dyn Site>,
        jitter: pause::Jitter,
    ) -> Arc<Self> {
        let clock = store.clock();
        let tuning = Arc::new(Tuning::new(settings.clone()));
        let kubeconfigs = Arc::new(Kubeconfigs::new(
            Arc::clone(&store),
            KubeconfigClusters::default(),
            Arc::clone(&tuning),
        ));
        Arc::new(Self {
            targets: Targets::new(
                Arc::clone(&store),
                Arc::clone(&kubeconfigs),
                &settings,
                Arc::clone(&clock),
            ),
            kubeconfigs,
            watches: Watches::new(Arc::clone(&store), &settings, Arc::clone(&clock), tasks.clone()),
            instances: Instances::new(&settings),
            store,
            sources: unused.sources,
            reconciler: unused.reconciler,
            tuning,
            settings,
            clock,
            tasks,
            steps: unused.steps,
            workers: Workers::default(),
            siblings: SiblingSets::default(),
            breakers: Breakers::default(),
            refused_calls: RefusedCalls::default(),
            broker: None,
            notes: Batch::new(),
            statuses: Batch::new(),
            reports: Batch::new(),
            metrics: unused.metrics,
            site,
            jitter,
            started: AtomicBool::new(true),
        })
    }
}
