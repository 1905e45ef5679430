//! `evenkeel mothership`: the control plane process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;
use evenkeel_core::{HumanDuration, LossLimit};
use evenkeel_fleet::{Fleet, KubeconfigClusters, Parts, Settings};
use evenkeel_inventory::{OpenOptions, Role, SqlStore};
use evenkeel_server::Server;
use evenkeel_source::{DirectoryPolicy, Remote, Signatures};
use evenkeel_telemetry::{Metrics, SystemClock, Tasks};

use crate::commands::DEFAULT_PORT;
use crate::output;
use crate::process::Usage;

/// Run the control plane: REST API, scheduler and workers; several processes share one PostgreSQL database.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where the REST API listens; loopback only, as there is no authentication yet
    #[arg(long, value_name = "ADDRESS", env = "EVENKEEL_LISTEN", default_value_t = SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT)))]
    listen: SocketAddr,
    #[command(flatten)]
    database: crate::database::Arguments,
    /// The directory below which chart directories may be used; without it, only uploaded archives
    #[arg(long, value_name = "DIRECTORY", env = "EVENKEEL_SOURCE_ROOT")]
    source_root: Option<PathBuf>,
    #[command(flatten)]
    kustomize: crate::kustomize::Arguments,
    #[command(flatten)]
    limits: crate::limits::Arguments,
    #[command(flatten)]
    charts: crate::charts::Arguments,
    #[command(flatten)]
    kubeconfigs: crate::kubeconfigs::Arguments,
    /// The fleet's name, written to every cluster; two fleets never touch each other's objects
    #[arg(
        long,
        value_name = "NAME",
        env = "EVENKEEL_FLEET_NAME",
        default_value = "evenkeel"
    )]
    fleet_name: String,
    /// What this process does, of several on one database: everything, only decide what is to be done, or only do it
    #[arg(long, value_enum, env = "EVENKEEL_ROLE", default_value_t = WhichRole::All)]
    role: WhichRole,
    /// How often an unchanged cluster is looked at
    #[arg(long, value_name = "DURATION", default_value_t = HumanDuration(Settings::default().check_interval))]
    check_interval: HumanDuration,
    /// How many clusters are watched live, so that drift is healed at once; each keeps a connection open, 0 watches none
    #[arg(long, value_name = "COUNT", default_value_t = Settings::default().watched_clusters)]
    watched_clusters: usize,
    /// How many watches there are at most, one per kind of object of a cluster; beyond, clusters are looked at by interval
    #[arg(long, value_name = "COUNT", default_value_t = Settings::default().watches)]
    watches: usize,
    /// Ask a cluster whose watches say that nothing changed only at each so manieth look
    #[arg(long, value_name = "COUNT", default_value_t = Settings::default().full_check_every)]
    full_check_every: u32,
    /// How many clusters are looked at, at the same time
    #[arg(long, value_name = "COUNT", default_value_t = Settings::default().parallel_checks)]
    parallel_checks: usize,
    /// How many operations run at the same time
    #[arg(long, value_name = "COUNT", default_value_t = Settings::default().slots)]
    slots: usize,
    /// How long a worker holds an operation without a sign of life
    #[arg(long, value_name = "DURATION", default_value_t = HumanDuration(Settings::default().lease))]
    lease: HumanDuration,
    /// How often workers give one
    #[arg(long, value_name = "DURATION", default_value_t = HumanDuration(Settings::default().heartbeat))]
    heartbeat: HumanDuration,
    /// How long one write to a cluster may take; shorter than lease less heartbeat
    #[arg(long, value_name = "DURATION", default_value_t = HumanDuration(Settings::default().write_timeout))]
    write_timeout: HumanDuration,
    /// How long a component's objects may take to become ready unless it says otherwise
    #[arg(long, value_name = "DURATION", default_value_t = HumanDuration(Settings::default().ready_timeout))]
    ready_timeout: HumanDuration,
    /// The first pause between tries; it doubles with every failure
    #[arg(long, value_name = "DURATION", default_value_t = HumanDuration(Settings::default().retry_first))]
    retry_first: HumanDuration,
    /// How long one reconciliation may take with all its tries
    #[arg(long, value_name = "DURATION", default_value_t = HumanDuration(Settings::default().deadline))]
    deadline: HumanDuration,
    /// How many per cent of a component's objects one operation may delete without consent
    #[arg(long, value_name = "PERCENT", default_value_t = LossLimit::OBJECTS.percent, value_parser = clap::value_parser!(u8).range(..=100))]
    deletions_percent: u8,
    /// Fewer deletions than this never need consent
    #[arg(long, value_name = "COUNT", default_value_t = LossLimit::OBJECTS.least)]
    deletions_least: usize,
    /// How long an operation waits for consent
    #[arg(long, value_name = "DURATION", default_value_t = HumanDuration(Settings::default().consent_within))]
    consent_within: HumanDuration,
    #[command(flatten)]
    order: crate::order::Arguments,
    #[command(flatten)]
    scheduling: crate::scheduling::Arguments,
    #[command(flatten)]
    broker: crate::broker::Arguments,
}

/// What a process does.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum WhichRole {
    /// Everything
    All,
    /// Look at clusters, watch them and keep the books; work on no operation
    Control,
    /// Work on operations, and decide nothing
    Worker,
}

impl From<WhichRole> for Role {
    fn from(which: WhichRole) -> Self {
        match which {
            WhichRole::All => Self::All,
            WhichRole::Control => Self::Control,
            WhichRole::Worker => Self::Worker,
        }
    }
}

/// How this process is told from others on other machines: the machine's or pod's name, and the process id.
fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "mothership",
        host => host,
    };
    format!("{host}/{}", std::process::id())
}

/// Where a mothership's charts and its clusters' kubeconfigs may come from.
pub(crate) struct Sources {
    /// Which directories.
    pub(crate) directories: DirectoryPolicy,
    /// The way to repositories and registries, if there is one.
    pub(crate) remote: Option<Remote>,
    /// The clusters that kubeconfigs are read from.
    pub(crate) kubeconfigs: KubeconfigClusters,
    /// Which of them must be signed.
    pub(crate) signatures: Option<Arc<Signatures>>,
}

/// A mothership that serves.
pub(crate) struct Mothership {
    /// Where its API listens.
    pub(crate) address: SocketAddr,
    server: Server,
    fleet: Fleet,
    tasks: Tasks,
    store: Arc<SqlStore>,
}

pub(crate) async fn run(arguments: Arguments, tasks: Tasks) -> anyhow::Result<()> {
    let options = arguments.database.options()?;
    let database = options.location.to_string();
    let sources = Sources {
        directories: arguments.directories()?,
        remote: Some(arguments.charts.remote(&tasks)?),
        kubeconfigs: arguments.kubeconfigs.clusters().await?,
        signatures: arguments.charts.signatures()?,
    };
    let mothership =
        Mothership::start(options, sources, arguments.settings()?, arguments.listen, tasks).await?;
    tracing::info!(address = %mothership.address, %database, "the mothership serves");
    output::note(&format!("serving on http://{}", mothership.address));
    let (store, tasks) = (mothership.store.clone(), mothership.tasks.clone());
    let served = mothership.serve().await;
    // Operations under way stop at their next object boundary and are given back before the database closes.
    crate::process::shut_down(&tasks).await;
    store.close().await;
    served
}

impl Arguments {
    fn settings(&self) -> anyhow::Result<Settings> {
        Ok(self.scheduling.complete(Settings {
            fleet_name: self.fleet_name.clone(),
            worker: own_name(),
            role: self.role.into(),
            check_interval: self.check_interval.0,
            watched_clusters: self.watched_clusters,
            watches: self.watches,
            full_check_every: self.full_check_every,
            parallel_checks: self.parallel_checks,
            slots: self.slots,
            lease: self.lease.0,
            heartbeat: self.heartbeat.0,
            write_timeout: self.write_timeout.0,
            ready_timeout: self.ready_timeout.0,
            retry_first: self.retry_first.0,
            deadline: self.deadline.0,
            kustomize: self.kustomize.named()?,
            render_limits: self.limits.limits(),
            object_losses: LossLimit {
                percent: self.deletions_percent,
                least: self.deletions_least,
            },
            consent_within: self.consent_within.0,
            prerequisites: self.order.prerequisites.clone(),
            declarations: self.order.declarations()?,
            broker: self.broker.options(),
            ..Settings::default()
        }))
    }

    fn directories(&self) -> anyhow::Result<DirectoryPolicy> {
        match &self.source_root {
            None => Ok(DirectoryPolicy::Refused),
            Some(root) if root.is_dir() => Ok(DirectoryPolicy::Below(root.clone())),
            Some(root) => Err(Usage(anyhow!("--source-root {} is not a directory", root.display())).into()),
        }
    }
}

impl Mothership {
    /// Opens everything and begins the work; the API listens already but is answered by [`Mothership::serve`].
    pub(crate) async fn start(
        database: OpenOptions,
        sources: Sources,
        settings: Settings,
        listen: SocketAddr,
        tasks: Tasks,
    ) -> anyhow::Result<Self> {
        // What can be wrong with the arguments is said before anything is made.
        settings.check().map_err(|error| Usage(error.into()))?;
        let server = Server::bind(listen).await?;
        let store = Arc::new(
            SqlStore::open(database, Arc::new(SystemClock))
                .await
                .context("the database cannot be opened")?,
        );
        let parts = Parts {
            store: store.clone(),
            directories: sources.directories,
            remote: sources.remote,
            kubeconfigs: sources.kubeconfigs,
            signatures: sources.signatures,
            settings,
            tasks: tasks.clone(),
            metrics: Metrics::new(),
        };
        let fleet = Fleet::new(parts)?;
        fleet.start();
        Ok(Self {
            address: server.address(),
            server,
            fleet,
            tasks,
            store,
        })
    }

    /// Answers requests until the tasks are cancelled.
    pub(crate) async fn serve(self) -> anyhow::Result<()> {
        Ok(self.server.serve(self.fleet, self.tasks.token()).await?)
    }
}
