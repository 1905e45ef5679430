//! Where a component's revision and kept renders come from.

use async_trait::async_trait;
use evenkeel_cluster::{ComponentTarget, Record};
use evenkeel_core::{ComponentRevision, ConsentNeeded, LossLimit, Sensitive};

use crate::inputs::Considered;
use crate::{Agreement, Error, kept};

/// Why a ledger failed.
#[derive(Debug, thiserror::Error)]
#[error("the ledger of revisions and renders failed: {problem}")]
pub struct LedgerError {
    /// What went wrong; no content.
    pub problem: String,
    /// Whether the same call may succeed later.
    pub transient: bool,
}

/// Remembers revisions and renders beside what the target itself holds.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// The revision for these inputs: the present one when they are the present inputs, else a higher one. `record` is
    /// what the target remembers.
    ///
    /// # Errors
    /// [`LedgerError`], or what the target answers.
    async fn revision(
        &self,
        inputs: &Considered,
        record: Option<&Record>,
    ) -> Result<ComponentRevision, Error>;

    /// The kept render of a revision.
    ///
    /// # Errors
    /// [`LedgerError`].
    async fn render(&self, revision: ComponentRevision) -> Result<Option<Sensitive<Vec<u8>>>, Error>;

    /// Keeps a render and answers the one that counts: the first kept wins.
    ///
    /// # Errors
    /// [`LedgerError`].
    async fn keep(
        &self,
        revision: ComponentRevision,
        render: Sensitive<Vec<u8>>,
    ) -> Result<Sensitive<Vec<u8>>, Error>;

    /// How much a plan may delete without anybody having agreed.
    fn deletion_limit(&self) -> LossLimit {
        LossLimit::OBJECTS
    }

    /// Whether somebody has agreed to what a plan deletes. Asked only where that is needed.
    ///
    /// # Errors
    /// [`LedgerError`].
    async fn agrees(&self, needed: &ConsentNeeded) -> Result<bool, Error>;
}

/// Remembers nothing beside the target: for `evenkeel local`.
#[derive(Clone, Debug)]
pub struct TargetLedger {
    target: ComponentTarget,
    agreement: Agreement,
}

impl TargetLedger {
    /// The ledger of this component.
    pub fn new(target: ComponentTarget) -> Self {
        Self {
            target,
            agreement: Agreement::Nothing,
        }
    }

    /// The same, of somebody who has agreed to something.
    #[must_use]
    pub fn with_agreement(mut self, agreement: Agreement) -> Self {
        self.agreement = agreement;
        self
    }

    /// Whether the render kept at the target for `revision` was made from these inputs.
    async fn is_kept_for(&self, revision: ComponentRevision, inputs: &Considered) -> Result<bool, Error> {
        let kept = self.target.load_render(revision).await?;
        Ok(kept.is_some_and(|render| kept::read(&render, inputs.revision).is_some()))
    }
}

#[async_trait]
impl Ledger for TargetLedger {
    async fn revision(
        &self,
        inputs: &Considered,
        record: Option<&Record>,
    ) -> Result<ComponentRevision, Error> {
        let Some(recorded) = record.and_then(|record| record.revision) else {
            return Ok(ComponentRevision(1));
        };
        // The same chart and values on another version of Kubernetes are the same revision; the record says so, or a kept
        // render.
        let same = record.is_some_and(|record| {
            record.inputs == Some(inputs.all) || record.source == Some(inputs.revision)
        });
        let may_be_kept = record.is_some_and(|record| !record.keeps_no_render(recorded));
        if same || may_be_kept && self.is_kept_for(recorded, inputs).await? {
            Ok(recorded)
        } else {
            Ok(recorded.next())
        }
    }

    async fn render(&self, _revision: ComponentRevision) -> Result<Option<Sensitive<Vec<u8>>>, Error> {
        Ok(None)
    }

    async fn keep(
        &self,
        _revision: ComponentRevision,
        render: Sensitive<Vec<u8>>,
    ) -> Result<Sensitive<Vec<u8>>, Error> {
        Ok(render)
    }

    async fn agrees(&self, needed: &ConsentNeeded) -> Result<bool, Error> {
        Ok(self.agreement.covers(needed))
    }
}
