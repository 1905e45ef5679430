//! Who we are at Vault: one token for all that call at the same time, renewed before it ends.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_core::Sensitive;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::time::Instant;

use crate::Error;
use crate::remote::{Answer, Call, Remote};

/// A token is renewed when less than this part of its life is left: one over so much.
const RENEWAL_PART: u32 = 3;

/// How a token is come by.
#[derive(Clone, Debug)]
pub enum Login {
    /// It is given. It is renewed as long as Vault lets it be, and there is no other.
    Token(Sensitive<String>),
    /// By the token of our service account, which is read anew at each login because it is replaced while we run.
    Kubernetes {
        /// Path of the login method, `kubernetes` by default.
        mount: String,
        /// The role to take.
        role: String,
        /// File with the service account's token.
        token_file: PathBuf,
    },
}

/// A token for a time.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) token: Sensitive<String>,
    renewable: bool,
    /// When it is to be replaced, and when it is as good as gone. A token without an end has neither.
    renew_at: Option<Instant>,
    ends_at: Option<Instant>,
    /// Its life when it was issued: a renewal that gives much less has met the end of all renewals.
    life: Duration,
}

type Flight = Shared<BoxFuture<'static, Result<Arc<Lease>, Error>>>;

/// The token in use, and the one call that gets the next.
#[derive(Clone, Debug)]
pub(super) struct Session(Arc<Inner>);

struct Inner {
    remote: Remote,
    namespace: Option<String>,
    login: Login,
    state: Mutex<State>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    lease: Option<Arc<Lease>>,
    flight: Option<Flight>,
}

impl Session {
    pub(super) fn new(remote: Remote, namespace: Option<String>, login: Login) -> Self {
        Self(Arc::new(Inner {
            remote,
            namespace,
            login,
            state: Mutex::default(),
        }))
    }

    /// The token to use now.
    pub(super) async fn lease(&self) -> Result<Arc<Lease>, Error> {
        self.obtain(None).await
    }

    /// Another token than `refused`, which Vault takes no more.
    pub(super) async fn replace(&self, refused: &Arc<Lease>) -> Result<Arc<Lease>, Error> {
        self.obtain(Some(refused)).await
    }

    /// Whether Vault knows a token at all: a refusal is about the path if it does, and about the token if not.
    pub(super) async fn is_known(&self, lease: &Lease) -> Result<bool, Error> {
        let doing = "look up our own token";
        let call = self.0.call(doing, Method::GET, &["auth", "token", "lookup-self"]);
        let answer = self.0.send(call, Some(&lease.token)).await?;
        Ok(answer.status != StatusCode::FORBIDDEN)
    }

    async fn obtain(&self, refused: Option<&Arc<Lease>>) -> Result<Arc<Lease>, Error> {
        let flight = {
            let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(flight) = &state.flight {
                flight.clone()
            } else {
                let refuses = |lease: &Arc<Lease>| refused.is_some_and(|refused| Arc::ptr_eq(refused, lease));
                let present = state.lease.clone().filter(|lease| !refuses(lease));
                match present {
                    Some(lease) if !lease.is_due(Instant::now()) => return Ok(lease),
                    present => {
                        let flight = Inner::refresh(Arc::clone(&self.0), present).boxed().shared();
                        state.flight = Some(flight.clone());
                        flight
                    }
                }
            }
        };
        flight.await
    }
}

impl Inner {
    /// Gets the next token, by renewal of the one at hand where that goes, and puts it in place.
    async fn refresh(self: Arc<Self>, present: Option<Arc<Lease>>) -> Result<Arc<Lease>, Error> {
        let result = self.next(present).await.map(Arc::new);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.flight = None;
        // After a failure nothing is known of the old one: the next call begins anew.
        state.lease = result.as_ref().ok().cloned();
        result
    }

    async fn next(&self, present: Option<Arc<Lease>>) -> Result<Lease, Error> {
        if let Some(present) = present
            && let Some(renewed) = self.renew(&present).await?
        {
            return Ok(renewed);
        }
        match &self.login {
            Login::Token(token) => self.adopt(token).await,
            Login::Kubernetes {
                mount,
                role,
                token_file,
            } => self.log_in(mount, role, token_file).await,
        }
    }

    /// The same token for longer; none if it has to be another. That Vault cannot be reached is no reason for another.
    async fn renew(&self, present: &Lease) -> Result<Option<Lease>, Error> {
        if !present.renewable || present.has_ended(Instant::now()) {
            return Ok(None);
        }
        let doing = "renew our own token";
        let mut call = self.call(doing, Method::POST, &["auth", "token", "renew-self"]);
        call.body = Some(json!({}));
        let answer = self.send(call, Some(&present.token)).await?;
        if !answer.status.is_success() {
            return Ok(None);
        }
        let mut renewed = self.issued(doing, &answer)?;
        // Vault cuts a renewal at the end of the longest life that it allows; nothing left is no life without an end.
        let is_cut = renewed.life <= present.life / RENEWAL_PART;
        if renewed.life.is_zero() || is_cut && matches!(self.login, Login::Kubernetes { .. }) {
            return Ok(None);
        }
        renewed.life = present.life;
        Ok(Some(renewed))
    }

    async fn log_in(&self, mount: &str, role: &str, token_file: &PathBuf) -> Result<Lease, Error> {
        let jwt = tokio::fs::read_to_string(token_file)
            .await
            .map_err(|error| Error::File {
                path: token_file.display().to_string(),
                problem: error.to_string(),
            })?;
        let doing = format!("log in as {role}");
        let path: Vec<&str> = ["auth"]
            .into_iter()
            .chain(mount.split('/'))
            .chain(["login"])
            .collect();
        let mut call = self.call(&doing, Method::POST, &path);
        call.body = Some(json!({ "role": role, "jwt": jwt.trim() }));
        let answer = self.send(call, None).await?;
        if !answer.status.is_success() {
            return Err(self.remote.refusal(&doing, &answer));
        }
        self.issued(&doing, &answer)
    }

    /// A given token: how long it is good.
    async fn adopt(&self, token: &Sensitive<String>) -> Result<Lease, Error> {
        let doing = "look up the token that was given";
        let call = self.call(doing, Method::GET, &["auth", "token", "lookup-self"]);
        let answer = self.send(call, Some(token)).await?;
        if answer.status == StatusCode::FORBIDDEN {
            return Err(Error::Forbidden {
                system: self.remote.system(),
                doing: doing.to_owned(),
                problem: "it is not known or has ended: give another".to_owned(),
            });
        }
        if !answer.status.is_success() {
            return Err(self.remote.refusal(doing, &answer));
        }
        let data = &answer.body["data"];
        let left = data["ttl"].as_u64().unwrap_or_default();
        let renewable = data["renewable"].as_bool().unwrap_or_default();
        Ok(Lease::new(token.clone(), renewable, Duration::from_secs(left)))
    }

    /// The token in an answer.
    fn issued(&self, doing: &str, answer: &Answer) -> Result<Lease, Error> {
        let auth = &answer.body["auth"];
        let token = auth["client_token"].as_str().unwrap_or_default();
        if token.is_empty() {
            return Err(self.remote.not_understood(doing, "it holds no token"));
        }
        let life = Duration::from_secs(auth["lease_duration"].as_u64().unwrap_or_default());
        let renewable = auth["renewable"].as_bool().unwrap_or_default();
        Ok(Lease::new(Sensitive::new(token.to_owned()), renewable, life))
    }

    fn call<'a>(&'a self, doing: &'a str, method: Method, path: &[&'a str]) -> Call<'a> {
        Call {
            doing,
            method,
            path: ["v1"].into_iter().chain(path.iter().copied()).collect(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            timeout: None,
        }
    }

    async fn send<'a>(
        &'a self,
        mut call: Call<'a>,
        token: Option<&'a Sensitive<String>>,
    ) -> Result<Answer, Error> {
        headers(&mut call, self.namespace.as_deref(), token);
        self.remote.call(call).await
    }
}

/// What every call to Vault carries.
pub(super) fn headers<'a>(
    call: &mut Call<'a>,
    namespace: Option<&'a str>,
    token: Option<&'a Sensitive<String>>,
) {
    // Vault's own guard against requests that somebody's browser was talked into.
    call.headers.push(("x-vault-request", "true"));
    call.headers
        .extend(namespace.map(|namespace| ("x-vault-namespace", namespace)));
    call.headers
        .extend(token.map(|token| ("x-vault-token", token.expose().as_str())));
}

impl Lease {
    fn new(token: Sensitive<String>, renewable: bool, life: Duration) -> Self {
        let now = Instant::now();
        let ends = !life.is_zero();
        Self {
            token,
            renewable,
            renew_at: ends.then(|| now + (life - life / RENEWAL_PART)),
            ends_at: ends.then(|| now + life),
            life,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.renew_at.is_some_and(|at| at <= now)
    }

    fn has_ended(&self, now: Instant) -> bool {
        self.ends_at.is_some_and(|at| at <= now)
    }
}
