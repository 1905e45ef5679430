//! A component's revisions and kept renders, from the inventory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use evenkeel_cluster::{ComponentTarget, Record};
use evenkeel_component::{Considered, Error, Ledger, LedgerError, TargetLedger};
use evenkeel_core::{
    ClusterId, ComponentRevision, ConfigurationVersion, ConsentNeeded, LossLimit, Sensitive,
};
use evenkeel_inventory::Store;

/// The ledger of one component of one cluster.
pub(crate) struct StoredLedger {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) cluster: ClusterId,
    pub(crate) target: ComponentTarget,
    /// The configuration version of the operation.
    pub(crate) version: ConfigurationVersion,
    /// How much the operation may delete without consent.
    pub(crate) deletion_limit: LossLimit,
    /// Set once a person has agreed to what the operation deletes.
    pub(crate) agreed: Arc<AtomicBool>,
}

#[async_trait]
impl Ledger for StoredLedger {
    async fn revision(
        &self,
        inputs: &Considered,
        record: Option<&Record>,
    ) -> Result<ComponentRevision, Error> {
        let component = self.target.name();
        let known = self
            .store
            .resolve_revision(&self.cluster, component, &inputs.revision)
            .await
            .map_err(|error| failed(&error))?;
        match record.and_then(|record| record.revision) {
            // A database that was restored or made anew counts behind the target, which remembers the kept renders of
            // higher numbers: counting on from there keeps the passwords in them.
            Some(at_target) if at_target > known => {
                TargetLedger::new(self.target.clone())
                    .revision(inputs, record)
                    .await
            }
            _ => Ok(known),
        }
    }

    async fn render(&self, revision: ComponentRevision) -> Result<Option<Sensitive<Vec<u8>>>, Error> {
        let kept = self
            .store
            .render(&self.cluster, self.target.name(), revision)
            .await;
        Ok(kept.map_err(|error| failed(&error))?)
    }

    async fn keep(
        &self,
        revision: ComponentRevision,
        render: Sensitive<Vec<u8>>,
    ) -> Result<Sensitive<Vec<u8>>, Error> {
        let kept = self
            .store
            .put_render(&self.cluster, self.target.name(), revision, render)
            .await;
        Ok(kept.map_err(|error| failed(&error))?)
    }

    fn deletion_limit(&self) -> LossLimit {
        self.deletion_limit
    }

    async fn agrees(&self, needed: &ConsentNeeded) -> Result<bool, Error> {
        let consents = self.store.consents(&self.cluster).await;
        let consents = consents.map_err(|error| failed(&error))?;
        let agrees = consents
            .iter()
            .any(|consent| consent.covers(self.version, needed));
        if agrees {
            self.agreed.store(true, Ordering::Relaxed);
        }
        Ok(agrees)
    }
}

fn failed(error: &evenkeel_inventory::Error) -> LedgerError {
    LedgerError {
        problem: error.to_string(),
        transient: error.is_transient(),
    }
}
