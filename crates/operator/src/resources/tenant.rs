//! Tenant, and the template that fills in what tenants leave out.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::ClusterSpec;
use super::condition::{Condition, by_type};
use super::git_repo::{CreationPolicy, DeletionPolicy, GitRepoTemplate};
use super::plan::PlanStatus;

/// What a tenant is to be like.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "syn.tools",
    version = "v1alpha1",
    kind = "Tenant",
    plural = "tenants",
    namespaced,
    status = "TenantStatus",
    derive = "PartialEq",
    doc = "An owner of clusters.",
    printcolumn(name = "Display Name", type_ = "string", json_path = ".spec.displayName"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct TenantSpec {
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Address of the tenant's repository. The operator writes it, unless the repository is unmanaged.
    #[serde(rename = "gitRepoURL", default, skip_serializing_if = "Option::is_none")]
    pub git_repo_url: Option<String>,
    /// Branch, tag or commit of the tenant's repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_repo_revision: Option<String>,
    /// Address of the global repository.
    #[serde(rename = "globalGitRepoURL", default, skip_serializing_if = "Option::is_none")]
    pub global_git_repo_url: Option<String>,
    /// Branch, tag or commit of the global repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_git_repo_revision: Option<String>,
    /// What the tenant's repository is to be like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_repo_template: Option<GitRepoTemplate>,
    /// What becomes of things outside when the object is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// What becomes of things outside that exist already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_policy: Option<CreationPolicy>,
    /// What the tenant's clusters are like where they do not say it themselves. Strings are Go templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_template: Option<ClusterSpec>,
    /// The pipelines that compile the catalogs of the tenant's clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_pipeline: Option<CompilePipelineSpec>,
}

/// Pipelines that compile catalogs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompilePipelineSpec {
    /// Whether there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Files that define them, by path in the tenant's repository.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pipeline_files: BTreeMap<String, String>,
}

/// How a tenant is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantStatus {
    /// The generation of the object that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The pipelines that compile catalogs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_pipeline: Option<CompilePipelineStatus>,
    /// What would be changed, while the object is only observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// How it stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = by_type)]
    pub conditions: Vec<Condition>,
}

/// How the pipelines are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompilePipelineStatus {
    /// Names of the clusters that they compile, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
}

/// What tenants are like where they do not say it themselves.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "syn.tools",
    version = "v1alpha1",
    kind = "TenantTemplate",
    plural = "tenanttemplates",
    namespaced,
    status = "TenantTemplateStatus",
    derive = "PartialEq",
    doc = "What the tenants of a namespace are like where they do not say it themselves. Only the one called `default` \
           is looked at.",
    printcolumn(name = "Display Name", type_ = "string", json_path = ".spec.displayName"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct TenantTemplateSpec {
    /// What fills in the gaps.
    #[serde(flatten)]
    pub tenant: TenantSpec,
}

/// How a template is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantTemplateStatus {
    /// The generation of the object that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How it stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = by_type)]
    pub conditions: Vec<Condition>,
}
