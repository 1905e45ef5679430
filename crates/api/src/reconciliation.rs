//! Runs over a cluster, their operations and what happened in each.

use evenkeel_core::{
    ComponentName, ConfigurationVersion, DueReason, ObjectChange, OperationId, OperationState,
    ReconciliationId, ReconciliationState, Strategy,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One run over one cluster, in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReconciliationSummary {
    /// Its id.
    pub id: ReconciliationId,
    /// The configuration it brings about.
    pub version: ConfigurationVersion,
    /// What it is for.
    pub strategy: Strategy,
    /// Why it was started.
    pub cause: DueReason,
    /// How it is.
    pub state: ReconciliationState,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Timestamp>,
}

/// One run over one cluster, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reconciliation {
    /// The run itself.
    #[serde(flatten)]
    pub summary: ReconciliationSummary,
    /// Its operations, in the order of their dependencies.
    pub operations: Vec<Operation>,
}

/// One component inside a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Its id.
    pub id: OperationId,
    /// The component.
    pub component: ComponentName,
    /// How it is, with its reason.
    #[serde(flatten)]
    pub state: OperationState,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was first claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Timestamp>,
    /// Every step of the last try.
    #[serde(default)]
    pub timeline: Vec<TimelineEntry>,
    /// Every object it touched.
    #[serde(default)]
    pub changes: Vec<ObjectChange>,
}

/// One step of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// The step's name.
    pub step: String,
    /// When it began.
    pub started: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// How it ended: done, changed, skipped, failed and so on.
    pub outcome: String,
    /// Why, or what it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
