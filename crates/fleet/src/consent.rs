//! What is done only with consent: a change that loses components, and an operation that would delete much.

use std::collections::BTreeSet;

use evenkeel_api as api;
use evenkeel_core::{ChangeConsent, ClusterName, ClusterSpec, ConsentNeeded, DueReason, OperationState};
use evenkeel_inventory::{self as inventory, ClaimedOperation, Consent, ConsentKey, Question};

use crate::fleet::Inner;
use crate::{Error, Fleet, Settings, pause};

/// How many operations are returned to the queue at a time whose consent came just before they began to wait.
const RESUMED_TOGETHER: u32 = 100;

impl Fleet {
    /// What of a cluster waits for consent, and what was consented to and is not done yet.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn consents(&self, name: &ClusterName) -> Result<Vec<api::Consent>, Error> {
        let cluster = self.store().cluster_by_name(name).await?;
        let consents = self.store().consents(&cluster.id).await?;
        Ok(consents.into_iter().map(view).collect())
    }

    /// Gives consent to one plan. The operation that waits for it goes on; where none waits any more, the cluster is due.
    ///
    /// # Errors
    /// [`Error::NoQuestion`] when nothing asks for just that; what the inventory answers.
    pub async fn give_consent(
        &self,
        name: &ClusterName,
        give: api::GiveConsent,
    ) -> Result<api::Consent, Error> {
        let cluster = self.store().cluster_by_name(name).await?;
        let key = ConsentKey {
            version: give.version,
            component: give.component,
            kind: give.kind,
            plan: give.plan_digest,
        };
        let now = self.clock().now();
        let deadline = pause::after(now, self.inner().settings_of(&cluster).deadline);
        let given = match self.store().give_consent(&cluster.id, &key, deadline).await {
            Err(inventory::Error::NotFound { .. }) => {
                let open = self.store().consents(&cluster.id).await?;
                return Err(Error::NoQuestion {
                    cluster: name.clone(),
                    problem: asked_instead(&open, &key),
                });
            }
            given => given?,
        };
        tracing::info!(
            cluster = name.as_str(),
            component = given.key.component.as_str(),
            version = given.key.version.0,
            kind = given.key.kind.as_str(),
            plan = %given.key.plan,
            deleted = given.deleted,
            "consent was given"
        );
        if self.store().running_reconciliation(&cluster.id).await?.is_none() {
            self.store().make_due(&cluster.id, now, DueReason::Change).await?;
        }
        Ok(view(given))
    }
}

fn asked_instead(open: &[Consent], key: &ConsentKey) -> String {
    let same = open
        .iter()
        .find(|consent| consent.key.component == key.component && consent.given_at.is_none());
    match same {
        Some(consent) => format!(
            "component {} asks about another plan, of version {}: {} {}; look at it first",
            key.component, consent.key.version, consent.key.kind, consent.key.plan
        ),
        None => format!("component {} asks for none", key.component),
    }
}

fn view(consent: Consent) -> api::Consent {
    api::Consent {
        version: consent.key.version,
        component: consent.key.component,
        kind: consent.key.kind,
        plan_digest: consent.key.plan,
        operation: consent.operation,
        deleted: consent.deleted,
        of: consent.of,
        objects: consent
            .deletions
            .into_iter()
            .map(|doomed| doomed.object)
            .collect(),
        asked: consent.asked_at,
        until: consent.until,
        given: consent.given_at,
    }
}

/// Refuses a change that loses more than its sender says.
///
/// # Errors
/// [`Error::Consent`] with everything that is missing.
pub(crate) fn check_change(
    settings: &Settings,
    cluster: &ClusterName,
    before: &ClusterSpec,
    after: &ClusterSpec,
    given: &BTreeSet<ChangeConsent>,
) -> Result<(), Error> {
    let mut losses = after.losses(before, settings.component_losses);
    losses.retain(|loss| !given.contains(&loss.consent));
    if losses.is_empty() {
        return Ok(());
    }
    Err(Error::Consent {
        cluster: cluster.clone(),
        losses,
    })
}

/// Asks for consent to what an operation would delete. Answers the state that it is in until somebody has answered.
///
/// # Errors
/// What the inventory fails with.
pub(crate) async fn ask(
    inner: &Inner,
    operation: &ClaimedOperation,
    needed: &ConsentNeeded,
) -> Result<OperationState, inventory::Error> {
    let cluster = inner.store.cluster(&operation.cluster).await?;
    let question = Question {
        operation: operation.id.clone(),
        version: operation.version,
        needed: needed.clone(),
        within: inner.settings_of(&cluster).consent_within,
    };
    let asked = inner.store.ask_consent(&question).await?;
    let how = format!(
        "`evenkeel cluster consent {}` shows it and gives it",
        cluster.name
    );
    Ok(match asked.given_at {
        // Given since the plan was made.
        Some(_) => OperationState::Pending,
        None if asked.until <= inner.clock.now() => OperationState::Failed {
            reason: format!("{needed}; consent was not given until {:.0}: {how}", asked.until),
        },
        None => OperationState::Waiting {
            reason: format!("consent, for {needed}; {how}"),
            deadline: asked.until,
        },
    })
}

/// Lets operations go on that wait though their consent was given.
///
/// # Errors
/// What the inventory fails with.
pub(crate) async fn resume(inner: &Inner) -> Result<(), inventory::Error> {
    let deadline = pause::after(inner.clock.now(), inner.settings.deadline);
    let resumed = inner.store.resume_consented(RESUMED_TOGETHER, deadline).await?;
    if resumed > 0 {
        tracing::info!(resumed, "operations go on whose consent came before they waited");
    }
    Ok(())
}
