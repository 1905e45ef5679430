//! Who did what: a chain of entries in which none can be changed, added or taken away unnoticed.
//!
//! An entry is written by the transaction of what it tells of: one without the other cannot be. Its digest is keyed (by the
//! key of the content hashes, which is not in the database) and covers the digest before it. Retention takes whole
//! beginnings of the chain and leaves an anchor, also keyed. What is cut off at the end is noticed by whoever has written
//! down an earlier head.

use std::fmt;

use async_trait::async_trait;
use evenkeel_core::Digest;
use jiff::Timestamp;
use serde_json::Value;

use crate::{Error, Page, PageRequest};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditAction {
    /// A cluster was registered or got another configuration.
    PutCluster,
    /// A cluster got another kubeconfig.
    PutKubeconfig,
    /// A cluster was to be deleted.
    DeleteCluster,
    /// A cluster was suspended, or a suspension ended.
    SuspendCluster,
    /// A cluster was to be reconciled.
    Reconcile,
    /// A person took the cluster that answers for the one that is meant.
    ConfirmIdentity,
    /// An archive was uploaded.
    PutArchive,
    /// A setting was set or taken back.
    PutSetting,
    /// Another key encrypts.
    ActivateKey,
    /// A key was taken out of use.
    RemoveKey,
    /// Consent was given.
    Consent,
    /// The inventory was compared with the broker's list.
    SyncBroker,
    /// A call that would have changed something was refused.
    RefuseCall,
}

impl AuditAction {
    /// The name in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PutCluster => "cluster.put",
            Self::PutKubeconfig => "cluster.kubeconfig",
            Self::DeleteCluster => "cluster.delete",
            Self::SuspendCluster => "cluster.suspend",
            Self::Reconcile => "cluster.reconcile",
            Self::ConfirmIdentity => "cluster.confirm-identity",
            Self::PutArchive => "archive.put",
            Self::PutSetting => "setting.put",
            Self::ActivateKey => "key.activate",
            Self::RemoveKey => "key.remove",
            Self::Consent => "cluster.consent",
            Self::SyncBroker => "broker.sync",
            Self::RefuseCall => "call.refuse",
        }
    }
}

/// One entry of the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// Its number, from 1, without gaps.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// Who; `anonymous` where nobody had to say so, `evenkeel` for what a process did by itself.
    pub actor: String,
    /// The API call that asked for it.
    pub request_id: Option<String>,
    /// What was done, like `cluster.put`.
    pub action: String,
    /// To what, like `cluster/prod-1`.
    pub target: String,
    /// Particulars; no secret, and nothing from which one could be guessed.
    pub detail: Value,
    /// The digest of this entry and, by that, of all before it.
    pub digest: Digest,
}

/// Which entries are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only of this target.
    pub target: Option<String>,
    /// Only by this actor.
    pub actor: Option<String>,
    /// Only from this moment on.
    pub since: Option<Timestamp>,
    /// Only before this moment.
    pub until: Option<Timestamp>,
}

/// What a walk along the chain has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditVerdict {
    /// Entries that were looked at.
    pub entries: u64,
    /// The newest entry's number, 0 for an empty chain, and its digest: written down elsewhere, it proves later that
    /// nothing was cut off.
    pub head: (u64, Option<Digest>),
    /// The first fault.
    pub fault: Option<AuditFault>,
}

/// Where the chain is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFault {
    /// The number of the entry.
    pub number: u64,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for AuditFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {}: {}", self.number, self.problem)
    }
}

/// The audit log.
#[async_trait]
pub trait Audit: Send + Sync {
    /// A page of entries, newest first.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn audit_entries(
        &self,
        filter: &AuditFilter,
        page: &PageRequest,
    ) -> Result<Page<AuditEntry>, Error>;

    /// Writes down what no other transaction tells of: something that is done as a whole, or is not done.
    ///
    /// # Errors
    /// [`Error::NulCharacter`], [`Error::Database`].
    async fn note_done(&self, action: AuditAction, target: &str, detail: Value) -> Result<(), Error>;

    /// Walks along the whole chain. `known` is a head that was written down earlier: it must still be a part of it.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn verify_audit(&self, known: Option<(u64, Digest)>) -> Result<AuditVerdict, Error>;
}
