//! Every request has an id: the caller's, when it is usable, or a new one. It stands in the answer, in every log line of
//! the request and of the work that it sets off, and in every problem.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use evenkeel_telemetry::request;
use tracing::Instrument;
use uuid::Uuid;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id that is taken from a caller.
const LENGTH_MAX: usize = 128;

/// Gives the request its id, its span and one log line.
pub(crate) async fn trace(request: Request, next: Next) -> Response {
    let given = request
        .headers()
        .get(HEADER)
        .and_then(|value| value.to_str().ok())
        .filter(|text| is_usable(text));
    let id = given.map_or_else(|| Uuid::now_v7().to_string(), ToOwned::to_owned);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let span = tracing::info_span!("request", request_id = id.as_str());
    let header = HeaderValue::from_str(&id).ok();
    let answer = async {
        let mut response = next.run(request).await;
        let status = response.status().as_u16();
        if method == axum::http::Method::GET {
            tracing::debug!(%method, path, status, "answered");
        } else {
            tracing::info!(%method, path, status, "answered");
        }
        if let Some(header) = header {
            response.headers_mut().insert(HEADER, header);
        }
        response
    };
    request::scope(id, answer.instrument(span)).await
}

/// What goes into logs must not be able to forge them.
fn is_usable(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
    !text.is_empty() && text.len() <= LENGTH_MAX && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_ids_are_not_taken() {
        assert!(is_usable("0192f0c1-2d3e-7f00-8000-000000000001"));
        for odd in ["", "a b", "a\nlevel=error", "\"x\"", &"x".repeat(129)] {
            assert!(!is_usable(odd), "{odd}");
        }
    }
}
