//! All routes in one place.

use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use evenkeel_api::{ARCHIVE_SIZE_MAX, Code, Problem};
use evenkeel_fleet::Fleet;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::problem::Failure;
use crate::{
    archives, audit, broker, clusters, consent, control, health, history, instances, keys, loopback,
    reconciliations, refused_calls, request_id, settings,
};

/// The largest document, in bytes: a thousand components with generous values.
const DOCUMENT_SIZE_MAX: usize = 4 * 1024 * 1024;
/// How long one request may take, a held status call included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// What handlers share.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) fleet: Fleet,
    /// Cancelled when the process stops: held calls answer at once.
    pub(crate) stop: CancellationToken,
}

/// The whole API.
pub fn router(fleet: Fleet, stop: CancellationToken) -> Router {
    let app = App { fleet, stop };
    let no_store = HeaderValue::from_static("no-store");
    let no_sniff = HeaderValue::from_static("nosniff");
    Router::new()
        .route("/v2/clusters", get(clusters::list))
        .route(
            "/v2/clusters/{name}",
            get(clusters::get).put(clusters::put).delete(clusters::delete),
        )
        .route("/v2/clusters/{name}/kubeconfig", put(clusters::put_kubeconfig))
        .route(
            "/v2/clusters/{name}/kubeconfig-from",
            put(clusters::put_kubeconfig_from),
        )
        .route("/v2/clusters/{name}/status", get(clusters::status))
        .route("/v2/clusters/{name}/reconcile", post(control::reconcile))
        .route("/v2/clusters/{name}/plan", post(clusters::plan))
        .route("/v2/clusters/{name}/suspend", post(control::suspend))
        .route("/v2/clusters/{name}/resume", post(control::resume))
        .route(
            "/v2/clusters/{name}/confirm-identity",
            post(clusters::confirm_identity),
        )
        .route("/v2/clusters/{name}/rollback", post(clusters::rollback))
        .route(
            "/v2/clusters/{name}/consent",
            get(consent::list).post(consent::give),
        )
        .route(
            "/v2/clusters/{name}/configurations",
            get(clusters::configurations),
        )
        .route(
            "/v2/clusters/{name}/configurations/{version}",
            get(clusters::configuration),
        )
        .route("/v2/clusters/{name}/reconciliations", get(reconciliations::list))
        .route("/v2/clusters/{name}/history", get(history::states))
        .route("/v2/clusters/{name}/changes", get(history::changes))
        .route("/v2/reconciliations/{id}", get(reconciliations::get))
        .route("/v2/settings", get(settings::list))
        .route("/v2/settings/{name}", put(settings::put).delete(settings::remove))
        .route("/v2/audit", get(audit::list))
        .route("/v2/audit/verify", get(audit::verify))
        .route("/v2/broker/sync", post(broker::sync))
        .route("/v2/instances", get(instances::list))
        .route("/v2/keys", get(keys::list))
        .route("/v2/keys/{id}", delete(keys::remove))
        .layer(DefaultBodyLimit::max(DOCUMENT_SIZE_MAX))
        .route(
            "/v2/archives",
            post(archives::put).layer(DefaultBodyLimit::max(ARCHIVE_SIZE_MAX)),
        )
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn(|request, next| {
            limit_time(REQUEST_TIMEOUT, request, next)
        }))
        .layer(CatchPanicLayer::custom(|_| {
            let problem = Problem::new(
                Code::Internal,
                "the request met a fault of ours; the log has more",
            );
            Failure::from(problem).into_response()
        }))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::CACHE_CONTROL,
            no_store,
        ))
        .layer(SetResponseHeaderLayer::if_not_present(
            HeaderName::from_static("x-content-type-options"),
            no_sniff,
        ))
        .layer(from_fn(loopback::guard))
        .layer(from_fn_with_state(app.clone(), refused_calls::note))
        .layer(from_fn(request_id::trace))
        .with_state(app)
}

/// Ends a request that takes too long, also one whose body never comes.
async fn limit_time(limit: Duration, request: Request, next: Next) -> Response {
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            Failure::from(Problem::new(Code::Timeout, format!("no answer within {limit:?}"))).into_response()
        }
    }
}

async fn no_route(uri: axum::http::Uri) -> Failure {
    Problem::new(Code::Route, format!("there is no path {}", uri.path())).into()
}

async fn no_method(method: axum::http::Method, uri: axum::http::Uri) -> Failure {
    Problem::new(Code::Method, format!("{method} is not allowed on {}", uri.path())).into()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::StatusCode;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn what_takes_too_long_is_a_problem() {
        let short = Duration::from_millis(20);
        let router: Router = Router::new()
            .route("/", get(std::future::pending::<()>))
            .layer(from_fn(move |request, next| limit_time(short, request, next)));
        let response = router
            .oneshot(Request::new(Body::empty()))
            .await
            .expect("no error is possible");
        assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(
            response.headers()[header::CONTENT_TYPE],
            evenkeel_api::PROBLEM_CONTENT_TYPE
        );
    }
}
