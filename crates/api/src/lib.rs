//! The REST contract `/v2`: the types that server, CLI and tests share, and the client.
//!
//! Field names are camelCase on the wire, times are RFC 3339 in UTC, every error is an RFC 9457 [`Problem`].
//! Requests refuse unknown fields; answers may grow fields, so clients ignore what they do not know.

mod archive;
mod audit;
mod broker;
mod client;
mod cluster;
mod consent;
mod control;
mod error;
mod history;
mod instance;
mod key;
mod page;
mod plan;
mod problem;
mod reconciliation;
mod setting;

pub use archive::{ARCHIVE_SIZE_MAX, Archive};
pub use audit::{AuditEntry, AuditPage, AuditVerdict, KnownHead, ListAudit};
pub use broker::{Difference, Differing, Extra, Missing, Outcome, SyncReport};
pub use client::{Client, StatusWait};
pub use cluster::{
    Accepted, AcceptedChange, Cluster, ClusterDocument, ClusterPage, ClusterStatus, ClusterSummary,
    ComponentStatus, Configuration, Deletion, ListClusters, Rollback,
};
pub use consent::{Consent, GiveConsent};
pub use control::{Reconcile, Suspend, Suspension};
pub use error::Error;
pub use history::{ChangePage, HistoryPage, ListChanges, ListHistory, PastStatus, RecordedChange};
pub use instance::{Instance, InstanceState};
pub use key::{Key, KeyState, Keys};
pub use page::Page;
pub use plan::{ClusterPlan, ComponentPlan, PlannedWork};
pub use problem::{CONTENT_TYPE as PROBLEM_CONTENT_TYPE, Code, Problem, ProblemField};
pub use reconciliation::{Level, Operation, Reconciliation, ReconciliationSummary, TimelineEntry};
pub use setting::{PutSetting, Setting, SettingFor};
