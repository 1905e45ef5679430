//! What operations would delete only with consent, and giving it.

use evenkeel_core::{ComponentName, ConfigurationVersion, ConsentKind, Digest, ObjectRef, OperationId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One thing that consent is asked for: the answer of `GET /v2/clusters/{name}/consent` lists them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Consent {
    /// The configuration version it is about.
    pub version: ConfigurationVersion,
    /// The component.
    pub component: ComponentName,
    /// Why it is asked.
    pub kind: ConsentKind,
    /// Names the plan: what exactly would be deleted.
    pub plan_digest: Digest,
    /// The operation that waits, or failed waiting.
    pub operation: OperationId,
    /// How many objects would be deleted.
    pub deleted: u64,
    /// How many the component has.
    pub of: u64,
    /// What would be deleted; of very many the first.
    pub objects: Vec<ObjectRef>,
    /// When it was asked first.
    pub asked: Timestamp,
    /// When waiting ends. Consent that comes later counts for the next try.
    pub until: Timestamp,
    /// When consent was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Timestamp>,
}

/// The body of `POST /v2/clusters/{name}/consent`: names one [`Consent`] as it was shown. It is used once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GiveConsent {
    /// The configuration version.
    pub version: ConfigurationVersion,
    /// The component.
    pub component: ComponentName,
    /// Why it is asked.
    pub kind: ConsentKind,
    /// The plan.
    pub plan_digest: Digest,
}

impl From<&Consent> for GiveConsent {
    fn from(consent: &Consent) -> Self {
        Self {
            version: consent.version,
            component: consent.component.clone(),
            kind: consent.kind,
            plan_digest: consent.plan_digest,
        }
    }
}
