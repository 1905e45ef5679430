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
    /// Why, where there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
    /// The run that has carried it over from this one: it does the same there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_to: Option<ReconciliationId>,
    /// The component.
    pub component: ComponentName,
    /// What it does with the component.
    pub strategy: Strategy,
    /// Why it exists: what a check found.
    pub cause: String,
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
    /// What its attempts said, oldest first.
    #[serde(default)]
    pub timeline: Vec<TimelineEntry>,
    /// Every object it touched.
    #[serde(default)]
    pub changes: Vec<ObjectChange>,
}

/// One line of what an operation said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// When.
    pub at: Timestamp,
    /// How serious: `info`, `warning` or `error`.
    pub level: Level,
    /// The step that said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The words.
    pub message: String,
}

/// How serious a [`TimelineEntry`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// What goes on.
    Info,
    /// Worth a look.
    Warning,
    /// What failed.
    Error,
}

impl Level {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}
