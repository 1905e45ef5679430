//! The manifest of a cluster's agent, opened by a one-time token.
//!
//! The operator puts a token on a new cluster, callers who may see the cluster see the address with it, and whoever runs
//! `kubectl apply -f <address>` on the new cluster needs nothing else. So the token is all there is, and it must open
//! once:
//!
//! 1. The token is looked up by its fingerprint ([`super::tokens`]); one that is unknown or used ends here.
//! 2. The cluster is read, and the token, its mark and its time are judged on what was read.
//! 3. The agent's own token is read. If it is not there yet, nothing was used up.
//! 4. The mark is taken away, under the version that was read. Of any number of uses at once, in any number of
//!    processes, the API server lets one through.
//! 5. Only then is the manifest answered.
//!
//! An answer that gets lost after that has used the token up: remove `status.bootstrapToken`, and there will be a new one.
//! The token may stand in the query, as Lieutenant's API has it and `kubectl` needs it, in `Authorization: Bearer`, or
//! in the body of a POST. Logs have the path alone.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, Method};
use evenkeel_core::Sensitive;
use evenkeel_operator::resources::Cluster;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::Part;
use super::cluster_document::usable_token;
use super::document;
use super::extract::{Base, Body, TOKEN_LENGTH_MAX, bearer};
use super::failure::Failure;
use super::manifest::{Agent, manifest};
use super::patch::CONFLICT_TRIES;
use super::routes::App;
use super::tokens::{Fingerprint, Known};

const SPENT: Failure = Failure::Token("Token already used or expired");
const INVALID: Failure = Failure::Token("Invalid token");

/// Type of the Secrets that hold tokens of service accounts.
const ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";
/// Where such a Secret names its account.
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
/// How many Secrets are read at once.
const PAGE: u32 = 500;

/// A token in the query or a body.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Given {
    token: Option<Sensitive<String>>,
}

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Given([redacted])")
    }
}

/// `GET /install/steward.json`.
pub(super) async fn get(
    State(app): State<Arc<App>>,
    Base(base): Base,
    method: Method,
    headers: HeaderMap,
    given: Result<Query<Given>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Value>, Failure> {
    // Whoever wants only the head of an answer would use the token up and see nothing of it.
    if method == Method::HEAD {
        return Err(Failure::Method);
    }
    // The rejection quotes the query.
    let Query(given) = given.unwrap_or_default();
    let token = given
        .token
        .or_else(|| bearer(&headers).map(|token| Sensitive::new(token.to_owned())));
    open(&app, &base, token).await
}

/// `POST /install/steward.json`, with the token in the body.
pub(super) async fn post(
    State(app): State<Arc<App>>,
    Base(base): Base,
    Body(body): Body,
) -> Result<Json<Value>, Failure> {
    let given: Given = document::parse(body)?;
    open(&app, &base, given.token).await
}

async fn open(app: &App, base: &str, token: Option<Sensitive<String>>) -> Result<Json<Value>, Failure> {
    let token = token.filter(|token| (1..=TOKEN_LENGTH_MAX).contains(&token.expose().len()));
    let Some(token) = token else {
        return Err(Failure::Invalid("Missing or malformed token".to_owned()));
    };
    let opened = use_up(app, &Fingerprint::of(token.expose())).await;
    match opened {
        Ok((cluster, token)) => {
            tracing::info!(cluster, "the agent's manifest was handed out; its token is used");
            Ok(Json(manifest(&Agent {
                api_url: base,
                cluster: &cluster,
                image: &app.settings.steward_image,
                token: &token,
            })))
        }
        Err(Failure::Token(_)) if app.attempts.is_one_too_many(app.clock.now()) => Err(Failure::TooMany),
        Err(failure) => Err(failure),
    }
}

/// Takes the mark of a token away, if it has one. Gives back the cluster and its agent's own token.
async fn use_up(app: &App, token: &Fingerprint) -> Result<(String, Sensitive<String>), Failure> {
    if !app.tokens.are_known().await {
        return Err(Failure::NotReady("the clusters are not known yet: try again"));
    }
    let name = match app.tokens.look_up(token, app.clock.now()) {
        Known::Unknown => return Err(INVALID),
        Known::Spent => return Err(SPENT),
        Known::Usable(name) => name,
    };
    let mut agents = None;
    for _ in 0..CONFLICT_TRIES {
        let cluster: Cluster = match app.own.get(&name).await {
            Err(failure) if failure.is_not_found() => return Err(INVALID),
            cluster => cluster?,
        };
        let now = app.clock.now();
        let until = judge(&cluster, token, now)?;
        let agent = match agents.take() {
            Some(agent) => agent,
            None => account_token(app, &name).await?,
        };
        let patch = json!({
            "metadata": {"resourceVersion": cluster.metadata.resource_version},
            "status": {"bootstrapToken": {"tokenValid": false}},
        });
        match app.own.patch::<Cluster>(&name, Part::Status, &patch).await {
            Ok(_) => {
                app.tokens.spend(*token, until, now);
                return Ok((name, agent));
            }
            Err(failure) if failure.is_conflict() => agents = Some(agent),
            Err(failure) if failure.is_not_found() => return Err(INVALID),
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::NotReady(
        "the cluster is being changed all the time: try again",
    ))
}

/// Whether the cluster as it stands lets the token in, and until when it would.
fn judge(cluster: &Cluster, token: &Fingerprint, now: Timestamp) -> Result<Timestamp, Failure> {
    let stored = cluster
        .status
        .as_ref()
        .and_then(|status| status.bootstrap_token.as_ref());
    if !stored.is_some_and(|stored| token.matches(stored)) {
        return Err(INVALID);
    }
    let until = stored.and_then(|stored| stored.valid_until);
    match (usable_token(cluster, now), until) {
        (Some(_), Some(until)) => Ok(until),
        _ => Err(SPENT),
    }
}

/// The newest token of the cluster's service account, as it is written to Vault too.
async fn account_token(app: &App, account: &str) -> Result<Sensitive<String>, Failure> {
    let which = ListParams::default()
        .fields(&format!("type={ACCOUNT_TOKEN}"))
        .limit(PAGE);
    let secrets: Vec<Secret> = app.own.list(which).await?;
    let of_account = |secret: &Secret| {
        let named = secret.metadata.annotations.as_ref()?.get(ACCOUNT_NAME)?;
        let token = secret.data.as_ref()?.get("token")?;
        let token = String::from_utf8(token.0.clone()).ok()?;
        let made = secret.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let key = (made, secret.metadata.name.clone());
        (named == account && !token.is_empty()).then(|| (key, Sensitive::new(token)))
    };
    let newest = secrets.iter().filter_map(of_account).max_by(|a, b| a.0.cmp(&b.0));
    newest.map(|(_, token)| token).ok_or(Failure::NotReady(
        "Unable to find token for Cluster. This error might be transient, please try again.",
    ))
}
