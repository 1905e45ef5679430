//! The Secret in which an access token for the repository is kept, as the predecessor writes it (§3.7).

use std::collections::BTreeMap;

use evenkeel_core::Sensitive;
use evenkeel_steps::Failure;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use serde_json::json;

use super::connection::text;
use super::state::RepoState;
use crate::frame::{owned_by, owner_of};

/// Annotation with the number of the token at its host.
const UID: &str = "lieutenant.syn.tools/accessTokenUID";

/// Annotation with the moment from which on it is good no more.
const EXPIRES_AT: &str = "lieutenant.syn.tools/accessTokenExpiresAt";

/// Annotation with the tokens before it, which are revoked when all had time to take the new one: numbers and moments, in JSON.
const SUPERSEDED: &str = "evenkeel.dev/superseded-tokens";

/// Key of the token.
const TOKEN: &str = "token";

/// What such a Secret says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The number of the token that it holds.
    pub(crate) id: Option<u64>,
    /// From when on it is good no more.
    pub(crate) expires_at: Option<Timestamp>,
    /// Older ones, and when they are to go.
    pub(crate) superseded: BTreeMap<u64, Timestamp>,
}

/// A token to keep.
pub(crate) struct Fresh {
    pub(crate) id: u64,
    pub(crate) expires_at: Timestamp,
    pub(crate) secret: Sensitive<String>,
}

impl Kept {
    /// What a Secret says; nothing if there is none.
    pub(crate) fn of(secret: Option<&Secret>) -> Self {
        let Some(secret) = secret else {
            return Self::default();
        };
        let annotation = |name: &str| secret.annotations().get(name);
        let has_token = text(secret, TOKEN).is_some_and(|token| !token.is_empty());
        Self {
            id: annotation(UID)
                .and_then(|text| text.parse().ok())
                .filter(|_| has_token),
            expires_at: annotation(EXPIRES_AT).and_then(|text| text.parse().ok()),
            superseded: annotation(SUPERSEDED)
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default(),
        }
    }
}

/// The Secret of that name, if it is ours to write.
pub(crate) fn own<'a>(state: &'a RepoState, name: &str) -> Result<Option<&'a Secret>, Failure> {
    let secret = state.secret(name)?;
    if secret.is_some_and(|secret| !owned_by(secret, &state.uid)) {
        return Err(Failure::invalid(format!(
            "the Secret {name} exists and is not of this object: delete it, or name another one in accessToken.secretRef"
        )));
    }
    Ok(secret)
}

/// Keeps a token, or only which older ones there are.
pub(crate) async fn store(
    state: &RepoState,
    name: &str,
    fresh: Option<&Fresh>,
    superseded: &BTreeMap<u64, Timestamp>,
) -> Result<(), Failure> {
    let access = &state.shared.access;
    let older = (!superseded.is_empty())
        .then(|| serde_json::to_string(superseded))
        .transpose()
        .map_err(|error| Failure::bug(error.to_string()))?;
    let data = fresh.map(|fresh| {
        let token = ByteString(fresh.secret.expose().clone().into_bytes());
        BTreeMap::from([(TOKEN.to_owned(), token)])
    });
    if state.secret(name)?.is_some() {
        let mut annotations = json!({ SUPERSEDED: older });
        let mut fields = json!({});
        if let (Some(fresh), Some(data)) = (fresh, &data) {
            annotations[UID] = json!(fresh.id.to_string());
            annotations[EXPIRES_AT] = json!(fresh.expires_at.to_string());
            fields["data"] = json!(data);
        }
        fields["metadata"] = json!({ "annotations": annotations });
        return access
            .merge::<Secret>(&state.namespace, name, &fields)
            .await
            .map(drop);
    }
    let Some(fresh) = fresh else {
        return Ok(());
    };
    let mut annotations = BTreeMap::from([
        (UID.to_owned(), fresh.id.to_string()),
        (EXPIRES_AT.to_owned(), fresh.expires_at.to_string()),
    ]);
    annotations.extend(older.map(|older| (SUPERSEDED.to_owned(), older)));
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(state.namespace.clone()),
            annotations: Some(annotations),
            owner_references: owner_of(&state.object).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data,
        ..Secret::default()
    };
    access.create(&state.namespace, &secret).await.map(drop)
}
