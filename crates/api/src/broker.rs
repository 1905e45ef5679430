//! What sets the inventory apart from the environment broker's list.

use evenkeel_core::ClusterName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What was done about a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "outcome", content = "why")]
pub enum Outcome {
    /// It was found, and told.
    Told,
    /// It was repaired.
    Repaired,
    /// It could have been repaired and was left, for this reason.
    Left(String),
}

impl Outcome {
    /// Its name on the wire.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Told => "told",
            Self::Repaired => "repaired",
            Self::Left(_) => "left",
        }
    }
}

/// A runtime of the broker that the inventory does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Its id.
    pub runtime: String,
    /// Its shoot.
    pub shoot: String,
}

/// A cluster of the inventory whose runtime the broker does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra {
    /// The cluster.
    pub cluster: ClusterName,
    /// The runtime that it says to be.
    pub runtime: String,
    /// What was done.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// A cluster that is not as the broker says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differing {
    /// The cluster.
    pub cluster: ClusterName,
    /// Its runtime.
    pub runtime: String,
    /// In what.
    pub differences: Vec<Difference>,
    /// What was done.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The label, or `state`.
    pub what: String,
    /// As the inventory has it.
    pub ours: String,
    /// As the broker has it.
    pub brokers: String,
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncReport {
    /// When.
    pub at: Timestamp,
    /// How many runtimes the broker listed.
    pub runtimes: usize,
    /// How many clusters of the inventory are the broker's.
    pub clusters: usize,
    /// What the inventory does not have.
    pub missing: Vec<Missing>,
    /// What the broker does not have.
    pub extra: Vec<Extra>,
    /// What both have, and not alike.
    pub differing: Vec<Differing>,
    /// Why nothing was forgotten, where something might have been.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl SyncReport {
    /// Whether nothing sets the two apart.
    pub fn is_same(&self) -> bool {
        self.missing.is_empty() && self.extra.is_empty() && self.differing.is_empty()
    }
}
