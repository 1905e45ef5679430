//! Reading requests.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::{HeaderMap, HeaderValue, header, request::Parts};
use serde_json::Value;

use super::access::Access;
use super::failure::Failure;
use super::names::is_name;
use super::routes::App;

/// The largest body, in bytes. No object of an API server can be larger.
pub(super) const BODY_SIZE_MAX: usize = 1024 * 1024;
/// The longest token. Headers have their bound from the HTTP server; this is for what comes in a body.
pub(super) const TOKEN_LENGTH_MAX: usize = 16 * 1024;

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// The API server as the caller may use it.
#[derive(Debug)]
pub(super) struct Caller(pub(super) Access);

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failure> {
        let token = bearer(&parts.headers).ok_or(Failure::NoToken)?;
        let mut authorization =
            HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| Failure::NoToken)?;
        authorization.set_sensitive(true);
        Ok(Self(app.callers.with(authorization)))
    }
}

/// The token of `Authorization: Bearer`; the scheme's letters may be large or small (RFC 9110).
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else {
        return None;
    };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    (scheme.eq_ignore_ascii_case("bearer") && is_token).then_some(token)
}

/// Address under which this API is reached.
#[derive(Debug)]
pub(super) struct Base(pub(super) String);

impl FromRequestParts<Arc<App>> for Base {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failure> {
        if let Some(url) = &app.settings.api_url {
            return Ok(Self(url.clone()));
        }
        let header = |name: &str| parts.headers.get(name)?.to_str().ok();
        let host = header("host").or_else(|| parts.uri.authority().map(|authority| authority.as_str()));
        let host = host.filter(|host| host.parse::<http::uri::Authority>().is_ok());
        let scheme = match header("x-forwarded-proto") {
            Some("https") => "https",
            _ => "http",
        };
        Ok(Self(format!("{scheme}://{}", host.unwrap_or("localhost"))))
    }
}

/// The id in the path. One that no object can have is one that no object has.
#[derive(Debug)]
pub(super) struct Id(pub(super) String);

impl Id {
    /// The id, or the answer of the API server to a name that nothing has.
    pub(super) fn of_existing(self, plural: &str) -> Result<String, Failure> {
        if is_name(&self.0) {
            return Ok(self.0);
        }
        let message = format!("{plural}.syn.tools \"{}\" not found", self.0);
        let status = kube::core::Status::failure(&message, "NotFound").with_code(404);
        Err(Failure::ApiServer(status.boxed()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) => Ok(Self(id)),
            Err(rejection) => Err(Failure::Invalid(rejection.body_text())),
        }
    }
}

/// A body of JSON.
#[derive(Debug)]
pub(super) struct Body(pub(super) Value);

/// A merge patch.
#[derive(Debug)]
pub(super) struct MergePatch(pub(super) Value);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        read(request, JSON).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequest<S> for MergePatch {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        read(request, MERGE_PATCH).await.map(Self)
    }
}

async fn read(request: Request, media_type: &str) -> Result<Value, Failure> {
    let wrong = |text: String| Failure::Invalid(format!("request body has an error: {text}"));
    let given = request.headers().get(header::CONTENT_TYPE);
    let given = given.map_or("", |value| value.to_str().unwrap_or("(not readable)"));
    let essence = given.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case(media_type) {
        return Err(wrong(format!(
            "header Content-Type has unexpected value {given:?}"
        )));
    }
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > BODY_SIZE_MAX) {
        return Err(Failure::TooLarge(BODY_SIZE_MAX));
    }
    let bytes = to_bytes(request.into_body(), BODY_SIZE_MAX)
        .await
        .map_err(|error| match std::error::Error::source(&error) {
            Some(source) if source.is::<http_body_util::LengthLimitError>() => {
                Failure::TooLarge(BODY_SIZE_MAX)
            }
            _ => wrong("it broke off".to_owned()),
        })?;
    if bytes.is_empty() {
        return Err(wrong("value is required but missing".to_owned()));
    }
    let value: Value = serde_json::from_slice(&bytes)
        .map_err(|error| wrong(format!("failed to decode request body: {error}")))?;
    if value.is_object() {
        return Ok(value);
    }
    Err(wrong("value must be an object".to_owned()))
}
