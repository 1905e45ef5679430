//! Answers: their bodies within bounds, and what went wrong with them.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::RETRY_AFTER;
use reqwest::{StatusCode, Url};

use super::Response;
use crate::Error;
use crate::address::{host, shown};
use crate::hosts::NotPublic;

/// The most memory that is set aside for a body because its header says so.
const CAPACITY_MAX: u64 = 1024 * 1024;
/// The longest pause that a server may ask for; a longer one is cut.
const PAUSE_MAX: Duration = Duration::from_secs(60 * 60);

/// Reads a body of at most `limit` bytes.
pub(super) async fn read(mut response: reqwest::Response, url: &Url, limit: u64) -> Result<Bytes, Error> {
    let oversized = || Error::Oversized {
        url: shown(url),
        limit,
    };
    let expected = response.content_length().unwrap_or_default();
    // The length of what a HEAD is about is no length of its answer.
    if expected > limit && response.status().is_success() {
        return Err(oversized());
    }
    let capacity = usize::try_from(expected.min(CAPACITY_MAX)).unwrap_or_default();
    let mut body = BytesMut::with_capacity(capacity);
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(url, error))? {
        if (body.len() + chunk.len()) as u64 > limit {
            // An error's page is cut rather than being one more error.
            if response.status().is_success() {
                return Err(oversized());
            }
            break;
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// Why a request got no answer.
pub(super) fn unreachable(url: &Url, error: reqwest::Error) -> Error {
    let error = error.without_url();
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(one) = cause {
        if one.is::<NotPublic>() {
            return Error::HostRefused {
                url: shown(url),
                reason: NotPublic.to_string(),
            };
        }
        cause = one.source();
    }
    let mut problem = evenkeel_telemetry::chain(&error).to_string();
    if problem.contains("UnknownIssuer") {
        problem.push_str(
            " (a private certificate authority has to be given: caFile in the credentials, or --ca-file)",
        );
    }
    Error::Unreachable {
        url: shown(url),
        problem,
    }
}

/// What an answer that is no success means.
pub(super) fn status_error(response: &Response) -> Error {
    let url = shown(&response.url);
    let status = response.status;
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::Unauthorized {
            url,
            host: host(&response.url),
            problem: format!("it answers {status}"),
        },
        StatusCode::NOT_FOUND | StatusCode::GONE => Error::NotFound { url },
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => busy(response, url),
        status if status.is_server_error() => busy(response, url),
        status => Error::Status {
            url,
            status: status.to_string(),
        },
    }
}

fn busy(response: &Response, url: String) -> Error {
    Error::Busy {
        url,
        status: response.status.to_string(),
        retry_after: response.text(RETRY_AFTER).and_then(pause),
    }
}

/// How long a server asks to be left alone: seconds, or a moment (RFC 9110).
fn pause(text: &str) -> Option<Duration> {
    let pause = match text.trim().parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let moment = jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp();
            let left = moment.duration_since(evenkeel_telemetry::time::now());
            Duration::try_from(left).unwrap_or_default()
        }
    };
    Some(pause.min(PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_seconds_or_moments() {
        assert_eq!(pause("7"), Some(Duration::from_secs(7)));
        assert_eq!(pause("99999999"), Some(PAUSE_MAX));
        assert_eq!(pause("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(pause("Fri, 21 Oct 2416 07:28:00 GMT"), Some(PAUSE_MAX));
        assert_eq!(pause("soon"), None);
    }
}
