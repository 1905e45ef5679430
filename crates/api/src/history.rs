//! What a cluster was, and what was done to which object.

use evenkeel_core::{
    ClusterState, ComponentName, ConfigurationVersion, ObjectRef, OperationId, PlanAction, ReconciliationId,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Page;

/// A state that a cluster was in, or is in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastStatus {
    /// The state.
    pub state: ClusterState,
    /// The configuration version it was about.
    pub observed_version: ConfigurationVersion,
    /// Its last reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it began.
    pub since: Timestamp,
    /// When it ended.
    pub until: Timestamp,
    /// How long it lasted, in seconds.
    pub seconds: i64,
}

/// Some past states, newest first.
pub type HistoryPage = Page<PastStatus>;

/// Which page is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListHistory {
    /// The `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The most rows wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// One change of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedChange {
    /// When.
    pub at: Timestamp,
    /// What was done.
    pub action: PlanAction,
    /// The object.
    pub object: ObjectRef,
    /// The component whose object it is.
    pub component: ComponentName,
    /// The run.
    pub reconciliation: ReconciliationId,
    /// The operation.
    pub operation: OperationId,
    /// Which try of it.
    pub attempt: u32,
    /// The API call that set the run off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Some changes, newest run first; a page may hold little or nothing and still have a next one.
pub type ChangePage = Page<RecordedChange>;

/// Which changes are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListChanges {
    /// Only by this component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentName>,
    /// Only of objects of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only of objects in this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Only of objects of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Only from this moment on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Only before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The most changes wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}
