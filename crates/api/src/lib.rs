//! The REST contract `/v2`: the types that server, CLI and tests share, and the client.
//!
//! Field names are camelCase on the wire, times are RFC 3339 in UTC, every error is an RFC 9457 [`Problem`].
//! Requests refuse unknown fields; answers may grow fields, so clients ignore what they do not know.

mod archive;
mod client;
mod cluster;
mod error;
mod problem;
mod reconciliation;

pub use archive::{ARCHIVE_SIZE_MAX, Archive};
pub use client::{Client, StatusWait};
pub use cluster::{
    Accepted, AcceptedChange, Cluster, ClusterDocument, ClusterPage, ClusterStatus, ClusterSummary,
    ComponentStatus, Configuration, Deletion, ListClusters, Rollback,
};
pub use error::Error;
pub use problem::{CONTENT_TYPE as PROBLEM_CONTENT_TYPE, Code, Problem, ProblemField};
pub use reconciliation::{Level, Operation, Reconciliation, ReconciliationSummary, TimelineEntry};
