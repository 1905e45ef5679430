//! One target cluster: connection, discovery, plan, apply, readiness, prune, delete, drift.
//!
//! ```text
//! kubeconfig ─▶ Cluster ─▶ ComponentTarget ─▶ desired ─▶ plan ─▶ Session ─▶ hooks, apply, wait, prune, record
//!                  │             └─▶ delete, orphan, kept renders
//!                  └─▶ check: which of a cluster's components differ, without writing
//!                        └─▶ watches: told at once when something departs from what the check found
//! ```
//!
//! Everything that speaks to a target cluster is here, and nothing here knows of charts, databases or queues. Each step
//! is a function of its own, so that a pipeline can show, time and interrupt them one by one.
//!
//! Two ideas carry the weight. Ownership is a Kubernetes ApplySet (KEP-3659) per component: a label on every object and
//! a parent Secret that remembers what was applied. And drift is read from the fields that the API server says are ours:
//! it takes a field from its owner when somebody else changes it, so that an unchanged component is recognised from
//! metadata alone, and defaults, quantities, webhooks and autoscalers are never mistaken for drift.

mod adopt;
mod apply;
mod applyset;
mod check;
mod concurrent;
mod connection;
mod delete;
mod discovery;
mod drift;
mod error;
mod fingerprint;
mod gardener;
mod guard;
mod hooks;
mod identity;
mod immutable;
mod live;
mod lookup;
mod manifest;
mod mark;
mod memory;
mod namespaces;
mod objects;
pub mod order;
mod plan;
mod progress;
mod proxies;
mod prune;
mod race;
pub mod readiness;
mod renders;
mod session;
mod siblings;
mod target;
mod values;
mod wait;
mod watches;

pub use applyset::{
    Contest, FIELD_MANAGER, FLEET_LABEL, HookState, IGNORE_READINESS, ON_CONFLICT, ON_IMMUTABLE_CHANGE,
    Owner, PART_OF, PROTECT, Record, RecordedHook, RecordedObject, SYSTEM_NAMESPACE, applyset_id,
    parent_name,
};
pub use check::{ClusterCheck, Difference, Expected, Verdict};
pub use connection::{
    Cluster, ConnectOptions, KubeconfigPolicy, KubeconfigSource, Limits, Refreshed, RequestCounts, Verb,
};
pub use delete::{DeleteOptions, Deletion};
pub use discovery::{Discovery, Resource};
pub use error::{
    Error, ErrorClass, FieldConflict, ForeignObject, ImmutableChange, ManifestProblem, ObjectError,
    RenderedTwice, Stop, StuckObject,
};
pub use fingerprint::Fingerprint;
pub use gardener::ShootKubeconfig;
pub use guard::{Attempt, Unguarded, WriteGuard};
pub use hooks::{HookDocument, HookFailure, HookRun, Hooks, Occasion};
pub use identity::ClusterUid;
pub use manifest::{Desired, DesiredObject, ManifestObject, Placement};
pub use plan::{ComponentPlan, PlanOptions, Secrets};
pub use progress::{Event, Observer, unobserved};
pub use proxies::{Proxies, ProxyRestarts, RESTARTED_FOR_PROXY};
pub use race::LostRace;
pub use readiness::{ObjectState, Patience, Readiness, ReadinessRules, RuleProblem};
pub use session::Session;
pub use siblings::{Rendering, SiblingUnknown, Siblings, Unknown, Wanted};
pub use target::{ComponentTarget, Inputs};
pub use values::DataKind;
pub use wait::WaitOptions;
pub use watches::{Alarm, Baseline, DriftWatch, TrackedSize, WATCHES_PER_CLUSTER_MAX, WatchOptions};
