//! All routes in one place.

use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::from_fn;
use axum::routing::{get, post, put};
use evenkeel_api::{ARCHIVE_SIZE_MAX, Code, Problem};
use evenkeel_fleet::Fleet;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::TimeoutLayer;

use crate::problem::Failure;
use crate::{archives, clusters, health, loopback, reconciliations, request_id};

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
    let no_store = HeaderValue::from_static("no-store");
    let no_sniff = HeaderValue::from_static("nosniff");
    Router::new()
        .route("/v2/clusters", get(clusters::list))
        .route(
            "/v2/clusters/{name}",
            get(clusters::get).put(clusters::put).delete(clusters::delete),
        )
        .route("/v2/clusters/{name}/kubeconfig", put(clusters::put_kubeconfig))
        .route("/v2/clusters/{name}/status", get(clusters::status))
        .route("/v2/clusters/{name}/reconcile", post(clusters::reconcile))
        .route("/v2/clusters/{name}/rollback", post(clusters::rollback))
        .route(
            "/v2/clusters/{name}/configurations",
            get(clusters::configurations),
        )
        .route(
            "/v2/clusters/{name}/configurations/{version}",
            get(clusters::configuration),
        )
        .route("/v2/clusters/{name}/reconciliations", get(reconciliations::list))
        .route("/v2/reconciliations/{id}", get(reconciliations::get))
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
        .layer(TimeoutLayer::with_status_code(
            StatusCode::GATEWAY_TIMEOUT,
            REQUEST_TIMEOUT,
        ))
        .layer(CatchPanicLayer::custom(|_| {
            let problem = Problem::new(
                Code::Internal,
                "the request met a fault of ours; the log has more",
            );
            axum::response::IntoResponse::into_response(Failure::from(problem))
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
        .layer(from_fn(request_id::trace))
        .with_state(App { fleet, stop })
}

async fn no_route(uri: axum::http::Uri) -> Failure {
    Problem::new(Code::Route, format!("there is no path {}", uri.path())).into()
}

async fn no_method(method: axum::http::Method, uri: axum::http::Uri) -> Failure {
    Problem::new(Code::Method, format!("{method} is not allowed on {}", uri.path())).into()
}
