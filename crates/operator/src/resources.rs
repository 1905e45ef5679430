//! The custom resources `syn.tools/v1alpha1`: Tenant, Cluster, GitRepo, TenantTemplate.
//!
//! Fields, enums and printer columns are those of Project Syn's Lieutenant at 89518a6, so that what was written for it is
//! accepted, read and shown as before. Ours beside them: conditions and the observed generation in every status, and rules
//! that refuse what Lieutenant could never carry out.
//!
//! Two habits of its objects shape the types. A Go program leaves out what is empty, so absent and empty mean the same and
//! nothing is required but names of variables and keys. And the strings of a tenant's cluster template may be Go
//! templates, so no rule looks into a string there.
#![allow(
    unreachable_pub,
    reason = "the derive of schemas with rules makes a copy of each type inside a function"
)]
#![allow(
    clippy::duplicated_attributes,
    reason = "several columns of a kind have the same type"
)]

mod cluster;
mod condition;
mod definition;
mod git_repo;
mod look;
mod plan;
mod tenant;
mod time;
mod token;

pub use cluster::{
    BootstrapToken, Cluster, ClusterSpec, ClusterStatus, CompileMeta, InstanceVersion, PackageVersion,
};
pub use condition::{Condition, ConditionStatus};
pub use definition::{Definition, definitions};
pub use git_repo::{
    AccessToken, ApiSecretRef, CreationPolicy, DeletionPolicy, DeployKey, DeployKeyStatus, DeployKeyTemplate,
    EnvVar, EnvVarSource, GitLabOptions, GitRepo, GitRepoSpec, GitRepoStatus, GitRepoTemplate, ObjectName,
    RepoType, SecretKeyRef, TOMBSTONE,
};
pub use look::Look;
pub use plan::PlanStatus;
pub use tenant::{
    CompilePipelineSpec, CompilePipelineStatus, Tenant, TenantSpec, TenantStatus, TenantTemplate,
    TenantTemplateSpec, TenantTemplateStatus,
};
pub use token::TokenText;

/// API group of all kinds.
pub const GROUP: &str = "syn.tools";

/// The one version that is served and stored.
pub const VERSION: &str = "v1alpha1";
