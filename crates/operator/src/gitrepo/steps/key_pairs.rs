//! Makes the key pairs that the specification asks for, each in a Secret (§3.4c, B18).

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_steps::{Change, Decision, Failure, Outcome, Slot, Step};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use serde_json::json;

use super::DEPLOY_KEYS_SYNCED;
use crate::frame::{CLAIM, owned_by, owner_of, permission};
use crate::git::PublicKey;
use crate::gitrepo::connection::text;
use crate::gitrepo::key_pair::{Algorithm, KeyPair};
use crate::gitrepo::state::{RepoState, managed, pair_secret};
use crate::resources::{DeployKeyStatus, DeployKeyTemplate, GitRepo, ObjectName};

/// Key of the public half, as a line of `authorized_keys`.
const PUBLIC: &str = "publicKey";

/// Key of the private half, in PEM.
const PRIVATE: &str = "privateKey";

/// The pairs, by the title that their public keys get at the host.
pub(crate) const PAIRS: Slot<BTreeMap<String, DeployKeyStatus>> = Slot::new("key-pairs");

/// What becomes of one pair.
enum Work {
    /// It is missing.
    Create,
    /// Its Secret is there, with a key of another kind or none.
    Replace,
}

pub(super) fn step() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("key-pairs")
        .condition(DEPLOY_KEYS_SYNCED)
        .provides(PAIRS)
        .after(CLAIM)
        .when(managed())
        .may(permission::keep::<Secret>())
        .may([permission::delete::<Secret>(), permission::own::<GitRepo>()])
        .decide(|cx, ()| async move {
            let state = cx.shared_state();
            let mut pairs = BTreeMap::new();
            let mut work = Vec::new();
            let mut plan = Vec::new();
            for (name, template) in &state.template().generated_deploy_keys {
                let secret = pair_secret(&state.name, name);
                let algorithm = Algorithm::parse(template.kind.as_deref())?;
                let present = state.secret(&secret)?;
                if let Some(present) = present
                    && !owned_by(present, &state.uid)
                {
                    return Err(Failure::invalid(format!(
                        "the Secret {secret} exists and is not of this object: delete it, or rename the key {name}"
                    )));
                }
                let known = present
                    .and_then(|present| PublicKey::parse(&text(present, PUBLIC)?).ok())
                    .filter(|key| key.to_string().starts_with(algorithm.as_str()));
                match known {
                    Some(key) => {
                        pairs.insert(title(name), status(template, algorithm, &key, &secret));
                    }
                    None => {
                        plan.push(Change::new("create", format!("key pair in Secret {secret}")));
                        let task = if present.is_some() { Work::Replace } else { Work::Create };
                        work.push((name.clone(), template.clone(), algorithm, secret, task));
                    }
                }
            }
            let stale = stale(&state)?;
            plan.extend(stale.iter().map(|secret| {
                Change::new(
                    "delete",
                    format!("Secret {}", secret.metadata.name.as_deref().unwrap_or_default()),
                )
            }));
            if plan.is_empty() {
                return Ok(Decision::End(Outcome::Done(pairs)));
            }
            Ok(Decision::act(plan, async move {
                for (name, template, algorithm, secret, task) in work {
                    let pair = generate(&state, algorithm).await?;
                    let key = pair.public.clone();
                    store(&state, &secret, &pair, task).await?;
                    pairs.insert(title(&name), status(&template, algorithm, &key, &secret));
                }
                for secret in &stale {
                    state.shared.access.delete(secret).await?;
                }
                Ok(Outcome::changed_with(pairs, "key pairs made"))
            }))
        })
}

/// The title of the public key at the host.
fn title(name: &str) -> String {
    format!("generated-{name}")
}

fn status(
    template: &DeployKeyTemplate,
    algorithm: Algorithm,
    key: &PublicKey,
    secret: &str,
) -> DeployKeyStatus {
    let line = key.to_string();
    let base64 = line.split_once(' ').map(|(_, key)| key.to_owned());
    DeployKeyStatus {
        kind: Some(algorithm.as_str().to_owned()),
        key: base64,
        write_access: template.write_access.filter(|may| *may),
        secret_ref: Some(ObjectName {
            name: secret.to_owned(),
        }),
    }
}

/// Secrets of pairs that are wanted no more. One that is gone already is as good.
fn stale(state: &RepoState) -> Result<Vec<Secret>, Failure> {
    let Some(status) = &state.object.status else {
        return Ok(Vec::new());
    };
    let wanted = &state.template().generated_deploy_keys;
    let mut stale = Vec::new();
    for (title_of, key) in &status.generated_deploy_keys {
        let is_wanted = wanted.keys().any(|name| title(name) == *title_of);
        let Some(reference) = key.secret_ref.as_ref().filter(|_| !is_wanted) else {
            continue;
        };
        if let Some(secret) = state.secret(&reference.name)?
            && owned_by(secret, &state.uid)
        {
            stale.push(secret.clone());
        }
    }
    Ok(stale)
}

async fn generate(state: &Arc<RepoState>, algorithm: Algorithm) -> Result<KeyPair, Failure> {
    let made = state
        .shared
        .tasks
        .blocking("key pair", move || algorithm.generate())
        .await;
    made.map_err(|error| Failure::transient(error.to_string()))?
}

async fn store(state: &RepoState, name: &str, pair: &KeyPair, task: Work) -> Result<(), Failure> {
    let access = &state.shared.access;
    let public = pair.public.to_string();
    let data = BTreeMap::from([
        (PUBLIC.to_owned(), ByteString(public.into_bytes())),
        (
            PRIVATE.to_owned(),
            ByteString(pair.private.expose().clone().into_bytes()),
        ),
    ]);
    match task {
        Work::Create => {
            let secret = Secret {
                metadata: ObjectMeta {
                    name: Some(name.to_owned()),
                    namespace: Some(state.namespace.clone()),
                    owner_references: owner_of(&state.object).map(|owner| vec![owner]),
                    ..ObjectMeta::default()
                },
                data: Some(data),
                ..Secret::default()
            };
            access.create(&state.namespace, &secret).await.map(drop)
        }
        Work::Replace => access
            .merge::<Secret>(&state.namespace, name, &json!({ "data": data }))
            .await
            .map(drop),
    }
}
