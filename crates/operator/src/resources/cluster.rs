//! Cluster: one managed Kubernetes cluster.

use std::collections::BTreeMap;

use evenkeel_core::Digest;
use jiff::Timestamp;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::{Condition, by_type};
use super::git_repo::{CreationPolicy, DeletionPolicy, GitRepoTemplate, ObjectName};
use super::look::Look;
use super::plan::PlanStatus;
use super::time::date_time;
use super::token::TokenText;

/// What a cluster is to be like.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "syn.tools",
    version = "v1alpha1",
    kind = "Cluster",
    plural = "clusters",
    namespaced,
    status = "ClusterStatus",
    derive = "PartialEq",
    doc = "A managed Kubernetes cluster.",
    selectable = ".spec.tenantRef.name",
    printcolumn(name = "Display Name", type_ = "string", json_path = ".spec.displayName"),
    printcolumn(name = "Tenant", type_ = "string", json_path = ".spec.tenantRef.name"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new(
        "!has(oldSelf.spec.tenantRef) || oldSelf.spec.tenantRef.name == '' \
         || (has(self.spec.tenantRef) && self.spec.tenantRef.name == oldSelf.spec.tenantRef.name)"
    )
    .message("the tenant of a cluster cannot be changed: delete the cluster and create it for the other tenant")
    .field_path(".spec.tenantRef")
    .reason(Reason::FieldValueForbidden)
)]
pub struct ClusterSpec {
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Address of the catalog repository. The operator writes it, unless the repository is unmanaged.
    #[serde(rename = "gitRepoURL", default, skip_serializing_if = "Option::is_none")]
    pub git_repo_url: Option<String>,
    /// Keys of the Git host, as a `known_hosts` file has them. The operator writes them likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_host_keys: Option<String>,
    /// What the catalog repository is to be like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_repo_template: Option<GitRepoTemplate>,
    /// The tenant it belongs to, for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_ref: Option<ObjectName>,
    /// Branch, tag or commit of the tenant's repository, if not the tenant's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_git_repo_revision: Option<String>,
    /// Branch, tag or commit of the global repository, if not the tenant's choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_git_repo_revision: Option<String>,
    /// How long the bootstrap token is good, as a Go duration (`1h30m`). Absent means 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_life_time: Option<String>,
    /// What is known of the cluster and does not change by itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// What becomes of things outside when the object is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// What becomes of things outside that exist already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_policy: Option<CreationPolicy>,
    /// Whether changes of the tenant's repository compile this cluster's catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_compile_pipeline: Option<bool>,
}

/// How a cluster is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// The generation of the object that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The token by which the cluster's agent gets its first credentials, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_token: Option<BootstrapToken>,
    /// What the agent found out, each value in JSON.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// The last compilation of the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_meta: Option<CompileMeta>,
    /// What looks at other systems found, by their names: while nothing changes that they depend on, nobody looks again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub looks: BTreeMap<String, Look>,
    /// What would be changed, while the object is only observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// How it stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = by_type)]
    pub conditions: Vec<Condition>,
}

/// A token for one use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapToken {
    /// The token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenText>,
    /// SHA-256 of the token in hexadecimal digits, if the token itself is not here but in a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_hash: Option<String>,
    /// Until when it is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "date_time")]
    pub valid_until: Option<Timestamp>,
    /// Whether it was neither used nor found expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_valid: Option<bool>,
}

impl BootstrapToken {
    /// Key of the token in its Secret.
    pub const KEY: &str = "token";

    /// Name of the Secret with the token of a cluster, where it is not in the status.
    pub fn secret_name(cluster: &str) -> String {
        format!("{cluster}-bootstrap-token")
    }

    /// What a status says of a token that is in a Secret.
    pub fn hash(token: &str) -> String {
        Digest::of(token).hex()
    }
}

/// What a catalog was compiled of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompileMeta {
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "date_time")]
    pub last_compile: Option<Timestamp>,
    /// What the compiler says of itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commodore_build_info: BTreeMap<String, String>,
    /// The global configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<PackageVersion>,
    /// The tenant's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<PackageVersion>,
    /// Packages by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub packages: BTreeMap<String, PackageVersion>,
    /// Instances of components by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub instances: BTreeMap<String, InstanceVersion>,
}

/// Where a piece of configuration came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageVersion {
    /// Address of its repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_sha: Option<String>,
    /// Branch, tag or commit that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where in the repository it lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Where an instance of a component came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceVersion {
    /// The source.
    #[serde(flatten)]
    pub source: PackageVersion,
    /// The component it is an instance of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
}
