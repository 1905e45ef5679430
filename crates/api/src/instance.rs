//! The processes of an installation.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InstanceState {
    /// It works.
    Running,
    /// It ends: what it works on is finished or given back, and nothing new is taken.
    Draining,
    /// It was not heard of for longer than a lease: the others do its work.
    Silent,
}

impl InstanceState {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Silent => "silent",
        }
    }
}

/// One process that works on the inventory. One that ended in peace is not told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// Its id, new at each start.
    pub id: String,
    /// Where it runs: the machine's or pod's name and the process id.
    pub host: String,
    /// The version of its binary.
    pub version: String,
    /// What it does: `all`, `control` or `worker`.
    pub role: String,
    /// How it is.
    pub state: InstanceState,
    /// When it began.
    pub started: Timestamp,
    /// When it was heard of last.
    pub last_seen: Timestamp,
}
