//! The settings of an operator, as flags and environment variables of Lieutenant's operator.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{ArgAction, Args};
use evenkeel_core::{HumanDuration, Sensitive};
use evenkeel_operator::git::BranchName;
use evenkeel_operator::resources::{CreationPolicy, DeletionPolicy};
use evenkeel_operator::vault::{Login, VaultSettings};
use evenkeel_operator::{GitRepoSettings, OperatorSettings, Scope, TenancySettings};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Where Kubernetes puts what a pod needs to speak to it.
pub(super) const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How long a connection to the API server may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What all that look at objects are told: which, by which settings, and how everything is reached.
#[derive(Debug, Args)]
pub(super) struct Shared {
    /// The kubeconfig; without it, that of the pod, of KUBECONFIG or of ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// The namespace to look after; empty for all
    #[arg(long, value_name = "NAME", env = "WATCH_NAMESPACE", default_value = "default")]
    pub(super) watch_namespace: String,
    /// Address of Lieutenant's API, for pipelines
    #[arg(
        long,
        value_name = "URL",
        env = "LIEUTENANT_API_URL",
        default_value = "localhost"
    )]
    pub(super) lieutenant_api_url: String,
    /// How often a repository is looked at although nothing happened
    #[arg(long, value_name = "DURATION", env = "GIT_REPO_MAX_RECONCILE_INTERVAL", default_value_t = HumanDuration(GitRepoSettings::default().interval))]
    pub(super) git_repo_max_reconcile_interval: HumanDuration,
    /// What the first branch of a repository is called
    #[arg(long, value_name = "NAME", env = "GIT_REPO_DEFAULT_BRANCH", default_value_t = BranchName::default(), value_parser = BranchName::new)]
    pub(super) git_repo_default_branch: BranchName,
    /// How many calls a Git host gets in a second at most; 0 for as many as it takes
    #[arg(
        long,
        value_name = "NUMBER",
        env = "GIT_HOST_CALLS_PER_SECOND",
        default_value_t = 0
    )]
    pub(super) git_host_calls_per_second: u32,
    /// What becomes of things outside when an object that does not say it is deleted: Archive, Delete or Retain
    #[arg(long, value_name = "POLICY", env = "DEFAULT_DELETION_POLICY", default_value = "Archive", value_parser = deletion_policy)]
    pub(super) default_deletion_policy: DeletionPolicy,
    /// What becomes of a repository that is there already, if nobody says it: Create or Adopt
    #[arg(long, value_name = "POLICY", env = "DEFAULT_CREATION_POLICY", default_value = "Create", value_parser = creation_policy)]
    pub(super) default_creation_policy: CreationPolicy,
    /// Protect every new object from deletion
    #[arg(long, env = "LIEUTENANT_DELETE_PROTECTION", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    pub(super) lieutenant_delete_protection: bool,
    /// Address of the global repository of tenants that name none
    #[arg(
        long,
        value_name = "URL",
        env = "DEFAULT_GLOBAL_GIT_REPO_URL",
        default_value = ""
    )]
    pub(super) default_global_git_repo_url: String,
    /// Make Secrets with tokens for service accounts, which agents need
    #[arg(long, env = "LIEUTENANT_CREATE_SERVICEACCOUNT_TOKEN_SECRET", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    pub(super) lieutenant_create_serviceaccount_token_secret: bool,
    /// Keep bootstrap tokens of clusters in Secrets, and only their hashes in the status: who may see a cluster then sees no token
    #[arg(long, env = "LIEUTENANT_BOOTSTRAP_TOKEN_SECRET", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    pub(super) lieutenant_bootstrap_token_secret: bool,
    /// How long tokens for Vault are good, where no Secrets with tokens are made
    #[arg(long, value_name = "DURATION", env = "SERVICEACCOUNT_TOKEN_LIFETIME", default_value_t = HumanDuration(TenancySettings::default().token_life))]
    pub(super) serviceaccount_token_lifetime: HumanDuration,
    /// Let no pass change anything: what it would change is in the status of each object
    #[arg(long, env = "EVENKEEL_OBSERVE_ONLY", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    pub(super) observe_only: bool,
    /// Keep no secrets in Vault
    #[arg(long, env = "SKIP_VAULT_SETUP", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, action = ArgAction::Set)]
    pub(super) skip_vault_setup: bool,
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

impl Shared {
    /// The settings of an operator that competes with nobody and listens nowhere.
    pub(super) fn settings(&self) -> anyhow::Result<OperatorSettings> {
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
            observe_only: self.observe_only,
            leader: None,
            metrics: None,
            health: None,
        })
    }

    /// A way to the cluster by the user's own credentials. Passes are tried again by their controllers, not calls by the client.
    pub(super) async fn config(&self) -> anyhow::Result<Config> {
        let mut config = match self.kubeconfig.as_deref() {
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
