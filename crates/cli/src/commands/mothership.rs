//! `evenkeel mothership`: the control plane process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;
use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};
use evenkeel_core::HumanDuration;
use evenkeel_fleet::{Fleet, Parts, Settings};
use evenkeel_inventory::{KeySource, Location, OpenOptions, SqliteStore, Synchronous};
use evenkeel_server::Server;
use evenkeel_source::DirectoryPolicy;
use evenkeel_telemetry::{Metrics, SystemClock, Tasks};

use crate::commands::DEFAULT_PORT;
use crate::output;
use crate::process::Usage;

/// The database's name in the state directory.
const DATABASE: &str = "evenkeel.db";
/// What is put behind the database's name to get the key ring's.
const KEYS: &str = "keys";

/// Run the control plane: REST API, scheduler and workers on one embedded database.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where the REST API listens; loopback only, as there is no authentication yet
    #[arg(long, value_name = "ADDRESS", env = "EVENKEEL_LISTEN", default_value_t = SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT)))]
    listen: SocketAddr,
    /// The database file; made when missing [default: evenkeel.db in the XDG state directory]
    #[arg(long, value_name = "FILE", env = "EVENKEEL_DATABASE")]
    database: Option<PathBuf>,
    /// The key ring that encrypts secrets; made for a new database [default: beside the database]
    #[arg(long, value_name = "FILE", env = "EVENKEEL_KEY_FILE")]
    key_file: Option<PathBuf>,
    /// The directory below which chart directories may be used; without it, only uploaded archives
    #[arg(long, value_name = "DIRECTORY", env = "EVENKEEL_SOURCE_ROOT")]
    source_root: Option<PathBuf>,
    /// The fleet's name, written to every cluster; two fleets never touch each other's objects
    #[arg(
        long,
        value_name = "NAME",
        env = "EVENKEEL_FLEET_NAME",
        default_value = "evenkeel"
    )]
    fleet_name: String,
    /// How often an unchanged cluster is looked at
    #[arg(long, value_name = "DURATION", default_value_t = HumanDuration(Settings::default().check_interval))]
    check_interval: HumanDuration,
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
}

/// A mothership that serves.
pub(crate) struct Mothership {
    /// Where its API listens.
    pub(crate) address: SocketAddr,
    server: Server,
    fleet: Fleet,
    tasks: Tasks,
    store: Arc<SqliteStore>,
}

pub(crate) async fn run(arguments: Arguments, tasks: Tasks) -> anyhow::Result<()> {
    let database = match &arguments.database {
        Some(path) => path.clone(),
        None => state_directory()?.join(DATABASE),
    };
    let keys = arguments
        .key_file
        .clone()
        .unwrap_or_else(|| database.with_extension(KEYS));
    let options = OpenOptions {
        location: Location::File(database.clone()),
        keys: KeySource::File(keys),
        synchronous: Synchronous::Full,
    };
    let directories = arguments.directories()?;
    let mothership = Mothership::start(
        options,
        directories,
        arguments.settings(),
        arguments.listen,
        tasks,
    )
    .await?;
    tracing::info!(address = %mothership.address, database = %database.display(), "the mothership serves");
    output::note(&format!("serving on http://{}", mothership.address));
    let (store, tasks) = (mothership.store.clone(), mothership.tasks.clone());
    let served = mothership.serve().await;
    // Operations under way stop at their next object boundary and are given back before the database closes.
    crate::process::shut_down(&tasks).await;
    store.close().await;
    served
}

impl Arguments {
    fn settings(&self) -> Settings {
        Settings {
            fleet_name: self.fleet_name.clone(),
            check_interval: self.check_interval.0,
            parallel_checks: self.parallel_checks,
            slots: self.slots,
            lease: self.lease.0,
            heartbeat: self.heartbeat.0,
            write_timeout: self.write_timeout.0,
            ready_timeout: self.ready_timeout.0,
            retry_first: self.retry_first.0,
            deadline: self.deadline.0,
            ..Settings::default()
        }
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
        directories: DirectoryPolicy,
        settings: Settings,
        listen: SocketAddr,
        tasks: Tasks,
    ) -> anyhow::Result<Self> {
        // What can be wrong with the arguments is said before anything is made.
        settings.check().map_err(|error| Usage(error.into()))?;
        let server = Server::bind(listen).await?;
        let clock = Arc::new(SystemClock);
        let store = Arc::new(
            SqliteStore::open(database, clock.clone())
                .await
                .context("the database cannot be opened")?,
        );
        let parts = Parts {
            store: store.clone(),
            directories,
            settings,
            clock,
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

/// Where state belongs that should survive (XDG base directories).
fn state_directory() -> anyhow::Result<PathBuf> {
    let strategy = choose_app_strategy(AppStrategyArgs {
        top_level_domain: "dev".to_owned(),
        author: "evenkeel".to_owned(),
        app_name: "evenkeel".to_owned(),
    });
    let strategy = strategy.context("the home directory is not known: use --database")?;
    Ok(strategy
        .state_dir()
        .as_deref()
        .map_or_else(|| strategy.data_dir(), Path::to_path_buf))
}
