//! Questions that operations ask before they delete much, and the consent that people give.
//!
//! ```text
//! operation: "I would delete these" ──▶ question, open until its deadline ──▶ consent given ──▶ used
//!            waits ◀──────────────────────────────────────────── goes on ◀───────┘
//! ```
//! A question is about one plan, named by its digest: other objects make another question. Asked again, it keeps its
//! deadline. Consent holds for one version of one cluster and is used once.

use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ComponentName, ConfigurationVersion, ConsentKind, ConsentNeeded, Digest, Doomed, OperationId,
};
use jiff::Timestamp;

use crate::Error;

/// The most objects of one question that are kept, in order; what is left of a plan with more is asked about anew.
pub const DELETIONS_KEPT: usize = 5_000;

/// What an operation asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The operation, which waits for the answer.
    pub operation: OperationId,
    /// The configuration version it is about.
    pub version: ConfigurationVersion,
    /// What it would delete.
    pub needed: ConsentNeeded,
    /// How long it waits for an answer, from when that was asked first.
    pub within: Duration,
}

/// Names a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentKey {
    /// The configuration version.
    pub version: ConfigurationVersion,
    /// The component.
    pub component: ComponentName,
    /// Why it is asked.
    pub kind: ConsentKind,
    /// The plan.
    pub plan: Digest,
}

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// What it is about.
    pub key: ConsentKey,
    /// The operation that asked last.
    pub operation: OperationId,
    /// What would be deleted, the first [`DELETIONS_KEPT`] of it.
    pub deletions: Vec<Doomed>,
    /// How many objects would be deleted.
    pub deleted: u64,
    /// How many the component has.
    pub of: u64,
    /// When it was asked first.
    pub asked_at: Timestamp,
    /// When waiting ends.
    pub until: Timestamp,
    /// When consent was given.
    pub given_at: Option<Timestamp>,
    /// The API call that gave it.
    pub request_id: Option<String>,
}

impl Consent {
    /// Whether it allows a plan of `version`: given, for the same component and kind, and everything that would be deleted
    /// is among what was asked about. So it covers what is left of a plan that was broken off.
    pub fn covers(&self, version: ConfigurationVersion, needed: &ConsentNeeded) -> bool {
        self.given_at.is_some()
            && self.key.version == version
            && self.key.component == needed.component
            && self.key.kind == needed.kind
            && (self.key.plan == needed.digest() || needed.is_within(&self.deletions))
    }
}

/// Questions and consents.
#[async_trait]
pub trait Consents: Send + Sync {
    /// Notes a question, or finds it asked before. Open questions about the component's other plans, and all about older
    /// versions, go.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a cluster that does not exist.
    async fn ask_consent(&self, question: &Question) -> Result<Consent, Error>;

    /// The questions about a cluster's newest version, or of operations that are still open, whose consent was not given, or
    /// was not used; by component.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Database`]; [`Error::Unreadable`] when one of them cannot be read.
    async fn consents(&self, cluster: &ClusterId) -> Result<Vec<Consent>, Error>;

    /// Gives consent, once: the second time changes nothing. An operation that waits for it returns to the queue, and its
    /// run has until `run_deadline` at least. The audit log tells of it.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such question, or nobody needs an answer any more.
    async fn give_consent(
        &self,
        cluster: &ClusterId,
        key: &ConsentKey,
        run_deadline: Timestamp,
    ) -> Result<Consent, Error>;

    /// Uses up what was given for a component: it was done. Answers how many consents there were.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn use_consents(&self, cluster: &ClusterId, component: &ComponentName) -> Result<u64, Error>;

    /// Returns operations to the queue that wait though their consent was given: it came just before they began to wait.
    /// Answers how many; at most `limit`.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn resume_consented(&self, limit: u32, run_deadline: Timestamp) -> Result<u32, Error>;
}
