//! The frame: how a pass over one object runs on the step engine against the Kubernetes API.
//!
//! ```text
//! read the object → (pipeline, or its teardown) gather → guard → run → publish
//!                                                        │                └ status by server-side apply, own fields,
//!                                                        │                  only when they differ; events on transitions
//!                                                        └ a protected object is not torn down
//! ```
//!
//! A kind says what it gathers, which steps it has and what its status is: [`Kind`]. All else is here, once for all kinds.

mod access;
mod child;
mod condition;
mod event;
mod every_kind;
pub(crate) mod fields;
mod finalizer;
mod kind;
mod ledger;
mod looker;
mod looks;
mod named;
mod pass;
pub(crate) mod permission;
mod plan;
pub(crate) mod policy;
mod sources;
mod status;
mod watch;

pub(crate) use access::{Access, DEFAULT_CALL_TIMEOUT, Readable, failure, owned_by, owner_of, version};
pub(crate) use child::{Upkeep, child};
pub(crate) use every_kind::{CLAIM, Claimable, EveryKind};
pub(crate) use finalizer::{Claim, claim, release};
pub(crate) use kind::{Identity, Kind, Managed, Snapshot};
pub(crate) use ledger::{Key, Mark};
pub(crate) use looker::Looker;
pub(crate) use looks::{Input, Looks};
pub(crate) use named::Named;
pub use pass::{Due, Passed};
pub(crate) use pass::{Passes, RELEASE};
pub use plan::{ChangePlan, ObjectPlan, StepPlan};
pub(crate) use sources::Sources;
pub use watch::Scope;
use watch::run;

/// Label of all objects that belong to a tenant.
pub(crate) const TENANT_LABEL: &str = "syn.tools/tenant";

/// Annotation that keeps an object from being deleted, unless it says `false`.
pub(crate) const PROTECTION: &str = "syn.tools/protected-delete";

/// Annotation that lets a deleted object go although what is outside cannot be looked after: it stays as it is.
pub(crate) const ORPHAN: &str = "evenkeel.dev/orphan";

/// Annotation that lets passes plan and not act.
pub(crate) const OBSERVE_ONLY: &str = "evenkeel.dev/observe-only";

/// Annotation with the digest of a plan that is carried out although passes may only plan: it alone, and only as it was shown.
pub(crate) const APPROVED_PLAN: &str = "evenkeel.dev/approved-plan";

/// Whether the annotation lets what is outside be left behind.
pub(crate) fn is_orphaned<K: kube::Resource>(object: &K) -> bool {
    let annotations = object.meta().annotations.as_ref();
    annotations
        .and_then(|annotations| annotations.get(ORPHAN))
        .is_some_and(|value| value == "true")
}

/// The second finalizer of clusters, as the predecessor has it.
pub(crate) const PIPELINES_FINALIZER: &str = "cluster.lieutenant.syn.tools/pipelines";

/// Finalizer of clusters and repositories, as the predecessor calls it.
pub(crate) const FINALIZER: &str = "cluster.lieutenant.syn.tools";
