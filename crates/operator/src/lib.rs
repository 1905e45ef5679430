//! The operator: tenants, clusters and Git repositories as custom resources.
//!
//! Drop-in for the group `syn.tools/v1alpha1` of Project Syn's Lieutenant: objects made for it work here unchanged.
//!
//! * [`resources`]: the custom resources and their definitions, as `deploy/crds` holds them.
//! * [`git`]: where repositories live.
//! * [`vault`]: where secrets are kept.
//! * [`Tenants`], [`Clusters`], [`GitRepos`]: the controllers. All run their passes on the step engine, in one frame:
//!   docs/operator.md.
//! * [`Operator`]: the process of all three. [`Planner`]: what it would do.

mod controllers;
mod error;
mod frame;
mod gate;
pub mod git;
mod gitrepo;
mod leader;
mod planner;
mod probes;
mod process;
mod remote;
pub mod resources;
mod tenancy;
pub mod vault;

pub use controllers::{PipelineText, pipelines};
pub use error::Error;
pub use frame::{ChangePlan, Due, ObjectPlan, Passed, Scope, StepPlan};
pub use gitrepo::{GitRepoSettings, GitRepos};
pub use planner::{PlannedKind, Planner, Selection};
pub use process::{Addresses, LeaderSettings, Operator, OperatorSettings};
pub use tenancy::{Clusters, TenancySettings, Tenants};
