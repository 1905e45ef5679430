//! `evenkeel operator`: looks after tenants, clusters and Git repositories. Flags and environment variables are those of
//! Lieutenant's operator.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::{ArgAction, Args};
use evenkeel_core::{HumanDuration, Sensitive};
use evenkeel_operator::git::BranchName;
use evenkeel_operator::resources::{CreationPolicy, DeletionPolicy};
use evenkeel_operator::vault::{Login, VaultSettings};
use evenkeel_operator::{
    GitRepoSettings, LeaderSettings, Operator, OperatorSettings, Scope, TenancySettings,
};
use evenkeel_server::{Server, lieutenant};
use evenkeel_telemetry::{OnCancel, OnError, SystemClock, Tasks};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::output;
use crate::process::Usage;

/// Where Kubernetes puts what a pod needs to speak to it.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How long a connection to the API server may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Look after tenants, clusters and Git repositories: custom resources of syn.tools/v1alpha1.
#[derive(Debug, Args)]
#[command(next_line_help = true)]
pub(crate) struct Arguments {
    /// The kubeconfig; without it, that of the pod, of KUBECONFIG or of ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The namespace to look after; empty for all
    #[arg(long, value_name = "NAME", env = "WATCH_NAMESPACE", default_value = "default")]
    watch_namespace: String,
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
    /// Address of Lieutenant's API, for pipelines
    #[arg(
        long,
        value_name = "URL",
        env = "LIEUTENANT_API_URL",
        default_value = "localhost"
    )]
    lieutenant_api_url: String,
    /// How often a repository is looked at although nothing happened
    #[arg(long, value_name = "DURATION", env = "GIT_REPO_MAX_RECONCILE_INTERVAL", default_value_t = HumanDuration(GitRepoSettings::default().interval))]
    git_repo_max_reconcile_interval: HumanDuration,
    /// What the first branch of a repository is called
    #[arg(long, value_name = "NAME", env = "GIT_REPO_DEFAULT_BRANCH", default_value_t = BranchName::default(), value_parser = BranchName::new)]
    git_repo_default_branch: BranchName,
    /// How many calls a Git host gets in a second at most; 0 for as many as it takes
    #[arg(
        long,
        value_name = "NUMBER",
        env = "GIT_HOST_CALLS_PER_SECOND",
        default_value_t = 0
    )]
    git_host_calls_per_second: u32,
    /// What becomes of things outside when an object that does not say it is deleted: Archive, Delete or Retain
    #[arg(long, value_name = "POLICY", env = "DEFAULT_DELETION_POLICY", default_value = "Archive", value_parser = deletion_policy)]
    default_deletion_policy: DeletionPolicy,
    /// What becomes of a repository that is there already, if nobody says it: Create or Adopt
    #[arg(long, value_name = "POLICY", env = "DEFAULT_CREATION_POLICY", default_value = "Create", value_parser = creation_policy)]
    default_creation_policy: CreationPolicy,
    /// Protect every new object from deletion
    #[arg(long, env = "LIEUTENANT_DELETE_PROTECTION", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    lieutenant_delete_protection: bool,
    /// Address of the global repository of tenants that name none
    #[arg(
        long,
        value_name = "URL",
        env = "DEFAULT_GLOBAL_GIT_REPO_URL",
        default_value = ""
    )]
    default_global_git_repo_url: String,
    /// Make Secrets with tokens for service accounts, which agents need
    #[arg(long, env = "LIEUTENANT_CREATE_SERVICEACCOUNT_TOKEN_SECRET", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    lieutenant_create_serviceaccount_token_secret: bool,
    /// Keep bootstrap tokens of clusters in Secrets, and only their hashes in the status: who may see a cluster then sees no token
    #[arg(long, env = "LIEUTENANT_BOOTSTRAP_TOKEN_SECRET", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    lieutenant_bootstrap_token_secret: bool,
    /// How long tokens for Vault are good, where no Secrets with tokens are made
    #[arg(long, value_name = "DURATION", env = "SERVICEACCOUNT_TOKEN_LIFETIME", default_value_t = HumanDuration(TenancySettings::default().token_life))]
    serviceaccount_token_lifetime: HumanDuration,
    /// Keep no secrets in Vault
    #[arg(long, env = "SKIP_VAULT_SETUP", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    skip_vault_setup: bool,
    #[command(flatten)]
    vault: VaultArguments,
}

/// How Vault is reached; by the environment, as its own tools are.
#[derive(Debug, Args)]
struct VaultArguments {
    /// Vault's address
    #[arg(long, value_name = "URL", env = "VAULT_ADDR")]
    vault_addr: Option<String>,
    /// A token for Vault; taken only outside of pods, whose service accounts log in themselves
    #[arg(long, value_name = "TOKEN", env = "VAULT_TOKEN", hide_env_values = true)]
    vault_token: Option<String>,
    /// Where Vault logs service accounts in
    #[arg(
        long,
        value_name = "PATH",
        env = "VAULT_AUTH_PATH",
        default_value = "kubernetes"
    )]
    vault_auth_path: String,
    /// The role to log in as
    #[arg(
        long,
        value_name = "ROLE",
        env = "VAULT_ROLE",
        default_value = "lieutenant-operator"
    )]
    vault_role: String,
    /// Where Vault's key-value engine is
    #[arg(
        long,
        value_name = "PATH",
        env = "VAULT_SECRET_ENGINE_PATH",
        default_value = "kv"
    )]
    vault_secret_engine_path: String,
    /// The namespace of an enterprise Vault
    #[arg(long, value_name = "NAME", env = "VAULT_NAMESPACE")]
    vault_namespace: Option<String>,
    /// A certificate authority to trust for Vault, in PEM
    #[arg(long, value_name = "FILE", env = "VAULT_CACERT")]
    vault_cacert: Option<PathBuf>,
}

pub(crate) async fn run(arguments: Arguments, tasks: Tasks) -> anyhow::Result<()> {
    let settings = arguments.settings().map_err(Usage)?;
    let api = address(&arguments.api_bind_address).map_err(Usage)?;
    let config = config(arguments.kubeconfig.as_deref()).await?;
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
        let global = Some(self.default_global_git_repo_url.clone()).filter(|url| !url.is_empty());
        Ok(OperatorSettings {
            scope: match self.watch_namespace.as_str() {
                "" => Scope::All,
                name => Scope::Namespace(name.to_owned()),
            },
            tenancy: TenancySettings {
                deletion_policy: self.default_deletion_policy,
                creation_policy: self.default_creation_policy,
                protect: self.lieutenant_delete_protection,
                token_secrets: self.lieutenant_create_serviceaccount_token_secret,
                bootstrap_secrets: self.lieutenant_bootstrap_token_secret,
                token_life: self.serviceaccount_token_lifetime.0,
                global_git_repo_url: global,
                api_url: self.lieutenant_api_url.clone(),
                ..TenancySettings::default()
            },
            repositories: GitRepoSettings {
                deletion_policy: self.default_deletion_policy,
                creation_policy: self.default_creation_policy,
                protect: self.lieutenant_delete_protection,
                first_branch: self.git_repo_default_branch.clone(),
                interval: self.git_repo_max_reconcile_interval.0,
                calls_per_second: NonZeroU32::new(self.git_host_calls_per_second),
                ..GitRepoSettings::default()
            },
            vault: if self.skip_vault_setup {
                None
            } else {
                Some(self.vault.settings()?)
            },
            leader: self.leader_elect.then(|| self.leader()),
            metrics: address(&self.metrics_bind_address)?,
            health: address(&self.health_probe_bind_address)?,
        })
    }

    fn leader(&self) -> LeaderSettings {
        let of_pod = || {
            let text = std::fs::read_to_string(Path::new(SERVICE_ACCOUNT).join("namespace")).ok()?;
            Some(text.trim().to_owned())
        };
        let watched = Some(self.watch_namespace.clone()).filter(|name| !name.is_empty());
        let namespace = self.leader_election_namespace.clone().or_else(of_pod).or(watched);
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        LeaderSettings {
            namespace: namespace.unwrap_or_else(|| "default".to_owned()),
            identity: format!("{}_{:016x}", host.trim(), rand::random::<u64>()),
        }
    }
}

impl VaultArguments {
    fn settings(&self) -> anyhow::Result<VaultSettings> {
        let address = self
            .vault_addr
            .as_deref()
            .filter(|address| !address.is_empty())
            .ok_or_else(|| {
                anyhow!("there is no address of Vault: set VAULT_ADDR, or --skip-vault-setup to do without")
            })?;
        let address = address
            .parse()
            .with_context(|| format!("{address:?} is no address of a Vault"))?;
        let token_file = Path::new(SERVICE_ACCOUNT).join("token");
        let login = match &self.vault_token {
            Some(token) if !token_file.exists() => Login::Token(Sensitive::new(token.clone())),
            _ => Login::Kubernetes {
                mount: self.vault_auth_path.clone(),
                role: self.vault_role.clone(),
                token_file,
            },
        };
        let authority = self
            .vault_cacert
            .as_ref()
            .map(|file| std::fs::read(file).with_context(|| format!("cannot read {}", file.display())))
            .transpose()?;
        Ok(VaultSettings {
            namespace: self.vault_namespace.clone().filter(|name| !name.is_empty()),
            mount: self.vault_secret_engine_path.clone(),
            authority,
            ..VaultSettings::new(address, login)
        })
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

/// A way to the cluster by the user's own credentials. Passes are tried again by their controllers, not calls by the client.
async fn config(kubeconfig: Option<&Path>) -> anyhow::Result<Config> {
    let mut config = match kubeconfig {
        Some(file) => {
            let kubeconfig = Kubeconfig::read_from(file)
                .with_context(|| format!("the kubeconfig {} cannot be read", file.display()))?;
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?
        }
        None => Config::infer()
            .await
            .context("there is no way to a cluster: give --kubeconfig")?,
    };
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.default_retry = false;
    Ok(config)
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

/// Strict: a policy that is not known is refused, not replaced (B33).
fn deletion_policy(text: &str) -> Result<DeletionPolicy, String> {
    match text {
        "Archive" => Ok(DeletionPolicy::Archive),
        "Delete" => Ok(DeletionPolicy::Delete),
        "Retain" => Ok(DeletionPolicy::Retain),
        _ => Err("one of Archive, Delete and Retain is expected".to_owned()),
    }
}

fn creation_policy(text: &str) -> Result<CreationPolicy, String> {
    match text {
        "Create" => Ok(CreationPolicy::Create),
        "Adopt" => Ok(CreationPolicy::Adopt),
        _ => Err("one of Create and Adopt is expected".to_owned()),
    }
}
