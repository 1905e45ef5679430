//! Loopback is no protection against a browser: any page may send requests to it, and a name that someone else owns may
//! resolve to it. Requests that come from another site, or under another name, are refused.

use axum::extract::Request;
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use evenkeel_api::{Code, Problem};

use crate::problem::Failure;

/// Refuses what a browser sends for another site.
pub(crate) async fn guard(request: Request, next: Next) -> Response {
    match refusal(request.headers(), request.uri()) {
        None => next.run(request).await,
        Some(why) => Failure::from(Problem::new(Code::Elsewhere, why)).into_response(),
    }
}

fn refusal(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .or_else(|| uri.authority().map(|authority| authority.as_str()));
    if let Some(host) = host
        && !is_local(host)
    {
        return Some(format!(
            "host {host:?} is refused: expected a loopback address or localhost"
        ));
    }
    let origin = headers.get(header::ORIGIN)?.to_str().unwrap_or("(not readable)");
    let site = origin.split_once("://").map_or(origin, |(_, site)| site);
    (!is_local(site)).then(|| format!("requests of site {origin:?} are refused"))
}

fn is_local(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        // A colon inside brackets belongs to an IPv6 address.
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_under_its_own_names_only() {
        for good in [
            "127.0.0.1:8640",
            "localhost",
            "LOCALHOST:1",
            "[::1]:8640",
            "127.1.2.3",
        ] {
            assert!(is_local(good), "{good}");
        }
        for bad in [
            "evil.example",
            "10.0.0.1:8640",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
        ] {
            assert!(!is_local(bad), "{bad}");
        }
    }
}
