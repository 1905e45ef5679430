//! `evenkeel operator`: looks after tenants, clusters and Git repositories. Flags and environment variables are those of
//! Lieutenant's operator.

mod arguments;
mod describe;
mod plan;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::{ArgAction, Args, Subcommand};
use evenkeel_operator::{LeaderSettings, Operator, OperatorSettings, Scope};
use evenkeel_server::{Server, lieutenant};
use evenkeel_telemetry::{OnCancel, OnError, SystemClock, Tasks};
use kube::{Client, Config};

use crate::output;
use crate::process::Usage;
use arguments::{SERVICE_ACCOUNT, Shared};

/// Look after tenants, clusters and Git repositories: custom resources of syn.tools/v1alpha1.
#[derive(Debug, Args)]
#[command(next_line_help = true, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    shared: Shared,
    /// Where metrics are shown; `0` shows none
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "METRICS_BIND_ADDRESS",
        default_value = ":8080"
    )]
    metrics_bind_address: String,
    /// Where /healthz and /readyz answer; `0` answers nowhere
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HEALTH_PROBE_BIND_ADDRESS",
        default_value = ":8081"
    )]
    health_probe_bind_address: String,
    /// Where Lieutenant's REST API answers (docs/lieutenant-api.md), also while the Lease is another's; `0` answers nowhere
    #[arg(long, value_name = "ADDRESS", env = "API_BIND_ADDRESS", default_value = "0")]
    api_bind_address: String,
    /// Work only while the Lease 9b76ddd4.syn.tools is ours
    #[arg(long, env = "LEADER_ELECT", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    leader_elect: bool,
    /// The namespace of that Lease; without it, that of the pod, or the one to look after
    #[arg(long, value_name = "NAME", env = "LEADER_ELECTION_NAMESPACE")]
    leader_election_namespace: Option<String>,
}

/// What else can be done than to look after objects.
#[derive(Debug, Subcommand)]
enum Command {
    /// Show what would be done, step by step, and change nothing
    Plan(Box<plan::Arguments>),
    /// Print the steps of all kinds, and change nothing
    Describe(describe::Arguments),
}

pub(crate) async fn run(arguments: Arguments, tasks: Tasks) -> anyhow::Result<()> {
    match arguments.command {
        Some(Command::Plan(arguments)) => return plan::run(*arguments, tasks).await,
        Some(Command::Describe(arguments)) => return describe::run(&arguments),
        None => {}
    }
    let settings = arguments.settings().map_err(Usage)?;
    let api = address(&arguments.api_bind_address).map_err(Usage)?;
    let config = arguments.shared.config().await?;
    if let Some(address) = api {
        let address = serve_api(address, &config, &tasks).await?;
        output::note(&format!("serving Lieutenant's API on http://{address}"));
    }
    let client = Client::try_from(config).context("the cluster cannot be used")?;
    let scope = settings.scope.clone();
    let operator = Operator::start(settings, client, Arc::new(SystemClock), tasks.clone()).await?;
    let addresses = operator.addresses();
    tracing::info!(?scope, metrics = ?addresses.metrics, health = ?addresses.health, "the operator runs");
    output::note(&match scope {
        Scope::All => "looking after all namespaces".to_owned(),
        Scope::Namespace(name) => format!("looking after namespace {name}"),
    });
    let run = tasks.spawn("operator", OnError::Shutdown, OnCancel::Wait, |token| {
        operator.run(token)
    });
    Ok(run.join().await?)
}

impl Arguments {
    fn settings(&self) -> anyhow::Result<OperatorSettings> {
        Ok(OperatorSettings {
            leader: self.leader_elect.then(|| self.leader()),
            metrics: address(&self.metrics_bind_address)?,
            health: address(&self.health_probe_bind_address)?,
            ..self.shared.settings()?
        })
    }

    fn leader(&self) -> LeaderSettings {
        let of_pod = || {
            let text = std::fs::read_to_string(Path::new(SERVICE_ACCOUNT).join("namespace")).ok()?;
            Some(text.trim().to_owned())
        };
        let watched = Some(self.shared.watch_namespace.clone()).filter(|name| !name.is_empty());
        let namespace = self.leader_election_namespace.clone().or_else(of_pod).or(watched);
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        LeaderSettings {
            namespace: namespace.unwrap_or_else(|| "default".to_owned()),
            identity: format!("{}_{:016x}", host.trim(), rand::random::<u64>()),
        }
    }
}

/// Serves Lieutenant's REST API until the process stops. Its settings are those of Lieutenant's, from the environment.
async fn serve_api(address: SocketAddr, config: &Config, tasks: &Tasks) -> anyhow::Result<SocketAddr> {
    let settings = lieutenant::Settings::from_environment(|name| std::env::var(name).ok());
    let settings = settings.map_err(|error| Usage(error.into()))?;
    let router = lieutenant::router(settings, config, Arc::new(SystemClock), tasks)?;
    let server = Server::bind_authenticated(address).await?;
    let address = server.address();
    drop(tasks.spawn("api", OnError::Shutdown, OnCancel::Wait, |token| {
        server.serve_router(router, token)
    }));
    Ok(address)
}

/// An address as Go writes it: `:8080` is that port of every interface, `0` is none.
fn address(text: &str) -> anyhow::Result<Option<SocketAddr>> {
    if matches!(text, "" | "0") {
        return Ok(None);
    }
    let whole = match text.strip_prefix(':') {
        Some(port) => format!("0.0.0.0:{port}"),
        None => text.to_owned(),
    };
    match whole.parse() {
        Ok(address) => Ok(Some(address)),
        Err(_) => bail!("{text:?} is no address to listen on: write it like :8080 or 127.0.0.1:8080"),
    }
}
