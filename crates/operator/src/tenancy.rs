//! The controllers of Tenant and Cluster, and what they have in common.

mod access_rights;
mod cluster;
pub(crate) mod metrics;
mod repository;
mod spec;
mod steps;
mod template;
mod tenant;

use std::time::Duration;

pub use cluster::Clusters;
pub(crate) use cluster::pipelines as cluster_pipelines;
pub use tenant::Tenants;
pub(crate) use tenant::pipelines as tenant_pipelines;

use crate::frame::DEFAULT_CALL_TIMEOUT;
use crate::resources::{CreationPolicy, DeletionPolicy};

/// How many objects of a kind are worked on at once, unless it is said otherwise.
const DEFAULT_CONCURRENCY: u16 = 10;

/// How often an object is looked at although nothing happened, unless it is said otherwise.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(3 * 3600);

/// For how long a token of a service account is good, unless it is said otherwise.
const DEFAULT_TOKEN_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);

/// What is the same for all tenants and clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenancySettings {
    /// What becomes of things outside of an object that does not say it.
    pub deletion_policy: DeletionPolicy,
    /// What becomes of a repository that is there already, if nobody says it.
    pub creation_policy: CreationPolicy,
    /// Whether objects are protected from deletion unless they say otherwise.
    pub protect: bool,
    /// Whether service accounts get a Secret with a token, as Kubernetes itself made them up to 1.23.
    pub token_secrets: bool,
    /// Whether the bootstrap token of a cluster is in a Secret, and its status has only the hash (B24).
    pub bootstrap_secrets: bool,
    /// For how long the tokens are good that are asked for where there are no such Secrets.
    pub token_life: Duration,
    /// Address of the global repository of tenants that name none.
    pub global_git_repo_url: Option<String>,
    /// Address of Lieutenant's API, for pipelines.
    pub api_url: String,
    /// How often an object is looked at although nothing happened.
    pub interval: Duration,
    /// Whether what was seen in Vault counts for that long, unless something changes that it depends on.
    pub remember: bool,
    /// How many of a kind are worked on at once.
    pub concurrency: u16,
    /// How long one call of the Kubernetes API may take.
    pub call_timeout: Duration,
}

impl Default for TenancySettings {
    fn default() -> Self {
        Self {
            deletion_policy: DeletionPolicy::Archive,
            creation_policy: CreationPolicy::Create,
            protect: false,
            token_secrets: false,
            bootstrap_secrets: false,
            token_life: DEFAULT_TOKEN_LIFE,
            global_git_repo_url: None,
            api_url: "localhost".to_owned(),
            interval: DEFAULT_INTERVAL,
            remember: true,
            concurrency: DEFAULT_CONCURRENCY,
            call_timeout: DEFAULT_CALL_TIMEOUT,
        }
    }
}

/// Conditions of tenants and clusters, by what they mean to people.
const VALIDATED: &str = "Validated";
const TEMPLATE_RENDERED: &str = "TemplateRendered";
const RBAC_READY: &str = "RbacReady";
const REPO_READY: &str = "RepoReady";
const VAULT_READY: &str = "VaultReady";
