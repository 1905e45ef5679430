//! A double of the one part of Gardener's API that issues credentials of shoots: no real Gardener can be had in a test.
//!
//! It enforces what Gardener documents of `shoots/adminkubeconfig` (`docs/usage/shoot/shoot_access.md` and the API
//! `authentication.gardener.cloud/v1alpha1`): POST alone, `AdminKubeconfigRequest`, `spec.expirationSeconds` of at least 600,
//! one hour when left out; it answers 201 with `status.kubeconfig` in base64 and `status.expirationTimestamp`.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::double::Double;

/// What a garden's clients must show.
const TOKEN: &str = "garden-token";
/// The shortest time that credentials are issued for.
const LIFETIME_MIN: u64 = 600;
/// What is issued when nothing is said.
const LIFETIME_DEFAULT: u64 = 3_600;

/// Makes a kubeconfig that is good for the time given.
type Issue = dyn Fn(Duration) -> String + Send + Sync;

/// A garden cluster on the loopback interface, without TLS; ends when dropped.
#[derive(Debug)]
pub struct Garden {
    double: Double,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    shoots: Mutex<HashMap<(String, String), Arc<Issue>>>,
    /// The longest time that is issued, as `--shoot-admin-kubeconfig-max-expiration` says.
    longest: Mutex<Option<Duration>>,
    issued: AtomicUsize,
    down: AtomicBool,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("issued", &self.issued)
            .finish_non_exhaustive()
    }
}

impl Garden {
    /// Starts one without shoots, on the calling runtime.
    ///
    /// # Panics
    /// When no port can be had.
    pub async fn start() -> Self {
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let answering = move |request| {
            let state = Arc::clone(&shared);
            async move { answer(&state, request).await }
        };
        Self {
            double: Double::start("the garden", answering).await,
            state,
        }
    }

    /// A kubeconfig that leads to it.
    pub fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters: [{{name: g, cluster: {{server: 'http://{}'}}}}]\n\
             users: [{{name: u, user: {{token: {TOKEN}}}}}]\ncontexts: [{{name: g, context: {{cluster: g, user: u}}}}]\n\
             current-context: g\n",
            self.double.address()
        )
    }

    /// Adds a shoot; `issue` makes a kubeconfig of it.
    pub fn add_shoot(
        &self,
        namespace: &str,
        name: &str,
        issue: impl Fn(Duration) -> String + Send + Sync + 'static,
    ) {
        let mut shoots = self.state.shoots.lock().unwrap_or_else(PoisonError::into_inner);
        shoots.insert((namespace.to_owned(), name.to_owned()), Arc::new(issue));
    }

    /// Issues nothing for longer than this, whatever is asked for.
    pub fn issue_at_most(&self, longest: Duration) {
        *self.state.longest.lock().unwrap_or_else(PoisonError::into_inner) = Some(longest);
    }

    /// Answers everything with 503 from now on, or as usual again.
    pub fn break_down(&self, down: bool) {
        self.state.down.store(down, Ordering::SeqCst);
    }

    /// How many kubeconfigs were issued so far.
    pub fn issued(&self) -> usize {
        self.state.issued.load(Ordering::SeqCst)
    }
}

async fn answer(state: &State, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let authorization = parts
        .headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let refused = |status: StatusCode, reason: &str, message: &str| {
        let body = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure",
            "code": status.as_u16(), "reason": reason, "message": message,
        });
        respond(status, &body)
    };
    if state.down.load(Ordering::SeqCst) {
        return refused(
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            "the garden is down",
        );
    }
    if authorization.and_then(|text| text.strip_prefix("Bearer ")) != Some(TOKEN) {
        return refused(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized");
    }
    let path = parts.uri.path();
    let shoot = path
        .strip_prefix("/apis/core.gardener.cloud/v1beta1/namespaces/")
        .and_then(|rest| rest.strip_suffix("/adminkubeconfig"))
        .and_then(|rest| rest.split_once("/shoots/"));
    let Some((namespace, name)) = shoot else {
        return refused(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
        );
    };
    if parts.method != Method::POST {
        return refused(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the method is not supported",
        );
    }
    let key = (namespace.to_owned(), name.to_owned());
    let issue = state
        .shoots
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&key)
        .cloned();
    let Some(issue) = issue else {
        let message = format!("shoots.core.gardener.cloud {name:?} not found");
        return refused(StatusCode::NOT_FOUND, "NotFound", &message);
    };
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    if asked["apiVersion"] != "authentication.gardener.cloud/v1alpha1"
        || asked["kind"] != "AdminKubeconfigRequest"
    {
        return refused(
            StatusCode::BAD_REQUEST,
            "BadRequest",
            "expected an AdminKubeconfigRequest",
        );
    }
    let seconds = match &asked["spec"]["expirationSeconds"] {
        Value::Null => LIFETIME_DEFAULT,
        seconds => seconds.as_u64().unwrap_or_default(),
    };
    if seconds < LIFETIME_MIN {
        let message =
            "spec.expirationSeconds: Invalid value: may not specify a duration shorter than 10 minutes";
        return refused(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
    }
    let longest = *state.longest.lock().unwrap_or_else(PoisonError::into_inner);
    let lifetime = Duration::from_secs(seconds);
    let lifetime = longest.map_or(lifetime, |longest| longest.min(lifetime));
    let expires = now() + SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::ZERO);
    state.issued.fetch_add(1, Ordering::SeqCst);
    let kubeconfig = base64::engine::general_purpose::STANDARD.encode(issue(lifetime));
    let body = json!({
        "apiVersion": asked["apiVersion"], "kind": asked["kind"], "spec": {"expirationSeconds": seconds},
        "status": {"kubeconfig": kubeconfig, "expirationTimestamp": expires.to_string()},
    });
    respond(StatusCode::CREATED, &body)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the clock of another's server, which nobody here sets"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

fn respond(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
