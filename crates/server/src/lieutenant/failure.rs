//! Answers that are no success: `{"reason": …}`, as Lieutenant's API gives them.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use kube::core::Status;
use serde_json::json;

/// What a caller is told in place of what it wanted.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Failure {
    /// What the API server says to the caller's own request.
    #[error("{}", told(.0))]
    ApiServer(Box<Status>),
    /// The API server cannot be asked, or not by us; the log has more.
    #[error("the Kubernetes API server cannot be asked at present: try again")]
    Unavailable,
    /// The request cannot be carried out as it is.
    #[error("{0}")]
    Invalid(String),
    /// There is no usable bearer token.
    #[error("missing or malformed jwt")]
    NoToken,
    /// The bootstrap token opens nothing.
    #[error("{0}")]
    Token(&'static str),
    /// Something is not there yet.
    #[error("{0}")]
    NotReady(&'static str),
    /// Too many bootstrap tokens that open nothing.
    #[error("too many tokens that are not valid: try again later")]
    TooMany,
    /// The body is larger than any that is meant.
    #[error("request body has an error: it is larger than {0} bytes")]
    TooLarge(usize),
    /// No answer in time.
    #[error("no answer within {0} s")]
    Timeout(u64),
    /// There is no such path.
    #[error("no matching operation was found")]
    Route,
    /// The path has no such method.
    #[error("method not allowed")]
    Method,
    /// Declared, and never built.
    #[error("Not implemented")]
    NotImplemented,
    /// A fault of ours.
    #[error("the request met a fault of ours; the log has more")]
    Internal,
}

/// Words of the API server, quoted as Lieutenant's API quotes them.
fn told(status: &Status) -> String {
    match status.code {
        // "Unauthorized", it says.
        401 => "the server has asked for the client to provide credentials".to_owned(),
        _ => status.message.replace('"', "'"),
    }
}

impl Failure {
    /// Of a request made with the caller's token.
    pub(super) fn of_caller(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code >= 400 => Self::ApiServer(status),
            error => Self::of_ours(&error),
        }
    }

    /// Of a request made with our own rights: nothing of it is the caller's business.
    pub(super) fn of_ours(error: &kube::Error) -> Self {
        // Its words are those of the API server, or of the connection; never what was sent or read.
        tracing::warn!(error = %error, "the Kubernetes API server cannot be asked");
        Self::Unavailable
    }

    /// Whether somebody else wrote in between.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::ApiServer(status) if status.is_conflict())
    }

    /// Whether there is no such object.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::ApiServer(status) if status.is_not_found())
    }

    /// Whether there is such an object already.
    pub(super) fn is_already_exists(&self) -> bool {
        matches!(self, Self::ApiServer(status) if status.is_already_exists())
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::ApiServer(status) => {
                StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
            Self::Unavailable | Self::NotReady(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::NoToken | Self::Token(_) => StatusCode::UNAUTHORIZED,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Timeout(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Route => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotImplemented => StatusCode::NOT_IMPLEMENTED,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (status, Json(json!({ "reason": self.to_string() }))).into_response();
        let mut add = |name: HeaderName, value: &'static str| {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        };
        match status {
            StatusCode::UNAUTHORIZED => add(header::WWW_AUTHENTICATE, "Bearer"),
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                add(header::RETRY_AFTER, "1");
            }
            _ => {}
        }
        response
    }
}
