//! What crosses rooms: ids, names, specifications, states and their transitions, the component graph, plans,
//! leases, the clock and secret types. No I/O, no async; time is passed in.
//!
//! Every other crate may depend on this one and none of its types knows how it is stored, sent or shown.

mod clock;
mod component;
mod consent;
mod contract;
mod diff;
mod digest;
mod duration;
mod error;
mod graph;
mod hook;
mod id;
mod kubeconfig;
mod lease;
mod mask;
mod name;
mod object;
mod plan;
mod readiness;
mod remote;
mod schedule;
mod secret;
mod spec;
mod state;
mod strategy;

pub use clock::{Clock, ManualClock};
pub use component::{
    ComponentSpec, DataRef, InjectedProxies, OnConflict, OnRemove, SourceFormat, SourceRef, StuckFinalizers,
    ValuesEntry, ValuesFrom,
};
pub use consent::{ChangeConsent, ChangeLoss, ConsentKind, ConsentNeeded, Doomed, LossLimit};
pub use contract::{BrokerOperationState, BrokerStatus, ClusterFacts, OperationFacts, Reports};
pub use diff::{FieldDiff, ObjectDiff};
pub use digest::Digest;
pub use duration::HumanDuration;
pub use error::{Error, FieldError};
pub use graph::{ComponentGraph, DeclaredDependency};
pub use hook::{HookDeletePolicy, HookEvent, HookPolicy, PlannedHook};
pub use id::{ClusterId, ComponentRevision, ConfigurationVersion, Fence, OperationId, ReconciliationId};
pub use kubeconfig::{GardenerShoot, Kubeconfig, KubeconfigFrom, KubeconfigSecret};
pub use lease::Lease;
pub use mask::MASK;
pub use name::{ClusterName, ComponentName, NAME_MAX, Namespace};
pub use object::{GroupKind, GroupVersionKind, ObjectRef};
pub use plan::{ObjectChange, Plan, PlanAction, PlannedChange, SkippedObject};
pub use readiness::ReadinessRule;
pub use remote::{ChartName, ChartVersion, OciReference, RepositoryUrl};
pub use schedule::{Day, MaintenanceWindow, ReconcileOn, Schedule};
pub use secret::Sensitive;
pub use spec::{ClusterSpec, DeleteKind, DeleteMode};
pub use state::{
    ClusterState, DueReason, OperationState, OperationStateKind, ReconciliationState, Transition,
};
pub use strategy::{Found, Order, Prunes, Strategy, StrategySteps};
