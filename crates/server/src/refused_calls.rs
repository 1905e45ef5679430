//! Notes calls that would have changed something and were refused.

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use evenkeel_api::Code;

use crate::problem::Answered;
use crate::router::App;

/// The longest path that is written down, in bytes; what is longer is cut.
const PATH_MAX: usize = 256;

/// Has a refused change written to the audit log before it is answered.
pub(crate) async fn note(State(app): State<App>, request: Request, next: Next) -> Response {
    let (method, mut path) = (request.method().clone(), request.uri().path().to_owned());
    if !is_change(&method, &path) {
        return next.run(request).await;
    }
    let response = next.run(request).await;
    if let Some(Answered(code)) = response.extensions().get().copied()
        && is_refusal(code)
    {
        // The path of a request is ASCII.
        path.truncate(PATH_MAX);
        let target = target(&path);
        app.fleet
            .note_refused_call(format!("{method} {path}"), target, code.as_str())
            .await;
    }
    response
}

/// Whether a call changes something when it is not refused.
fn is_change(method: &Method, path: &str) -> bool {
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
    // `POST /v2/clusters/{name}/plan` only asks.
    !reads && path.split('/').nth(4) != Some("plan")
}

/// Whether the caller was refused, other than for asking what nobody offers or for a reason of ours.
fn is_refusal(code: Code) -> bool {
    (400..500).contains(&code.status()) && !matches!(code, Code::Route | Code::Method)
}

/// What a call is about, in the words of the audit log.
fn target(path: &str) -> String {
    let mut parts = path.trim_start_matches("/v2/").split('/');
    match (parts.next(), parts.next()) {
        (Some("clusters"), Some(name)) => format!("cluster/{name}"),
        (Some("settings"), Some(name)) => format!("setting/{name}"),
        (Some("keys"), Some(id)) => format!("key/{id}"),
        (Some("archives"), _) => "archive".to_owned(),
        (Some("broker"), _) => "broker".to_owned(),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_about_what_their_path_names() {
        for (path, expected) in [
            ("/v2/clusters/c1/kubeconfig", "cluster/c1"),
            ("/v2/settings/failures-max", "setting/failures-max"),
            ("/v2/keys/0000abcd", "key/0000abcd"),
            ("/v2/archives", "archive"),
            ("/else", "/else"),
        ] {
            assert_eq!(target(path), expected);
        }
    }

    #[test]
    fn only_changes_count() {
        assert!(is_change(&Method::PUT, "/v2/clusters/c1"));
        assert!(is_change(&Method::DELETE, "/v2/clusters/plan"));
        assert!(!is_change(&Method::POST, "/v2/clusters/c1/plan"));
        assert!(!is_change(&Method::GET, "/v2/clusters/c1"));
    }
}
