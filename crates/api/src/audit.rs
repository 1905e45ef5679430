//! The audit log.

use evenkeel_core::Digest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Page;

/// One entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Its number, from 1, without gaps.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// Who; `anonymous` where nobody had to say so, `evenkeel` for what a process did by itself.
    pub actor: String,
    /// The API call that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What was done, like `cluster.put`.
    pub action: String,
    /// To what, like `cluster/prod-1`.
    pub target: String,
    /// Particulars.
    pub detail: Value,
    /// The digest of this entry and of all before it.
    pub digest: Digest,
}

/// Some entries, newest first.
pub type AuditPage = Page<AuditEntry>;

/// Which entries are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListAudit {
    /// Only of this target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Only by this actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Only from this moment on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Only before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The most entries wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A head of the chain that was written down earlier, and must still be a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnownHead {
    /// Its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// What a walk along the whole chain found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditVerdict {
    /// Whether nothing was changed, added or taken away.
    pub intact: bool,
    /// Entries that were looked at.
    pub entries: u64,
    /// The newest entry's number.
    pub head: u64,
    /// The newest entry's digest: written down elsewhere, it proves later that nothing was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The first fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}
