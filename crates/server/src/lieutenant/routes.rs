//! All routes in one place.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Uri, header, uri::PathAndQuery};
use axum::middleware::{Next, from_fn, map_request};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use evenkeel_core::Clock;
use evenkeel_operator::resources::Cluster;
use evenkeel_telemetry::{OnCancel, OnError, Tasks};
use kube::{Api, Config};
use tower::Layer as _;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use super::access::{Access, with_credentials, without_credentials};
use super::attempts::Attempts;
use super::failure::Failure;
use super::tokens::Tokens;
use super::{Error, Settings, bootstrap, clusters, pages, tenants};
use crate::request_id;

/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How many objects are asked for at once.
pub(super) const PAGE: u32 = 500;

/// What handlers share.
#[derive(Debug)]
pub(super) struct App {
    pub(super) settings: Settings,
    /// For callers, each with its token.
    pub(super) callers: Access,
    /// With our own rights: for the manifest, and to see whether a tenant is there.
    pub(super) own: Access,
    pub(super) tokens: Arc<Tokens>,
    pub(super) attempts: Attempts,
    pub(super) clock: Arc<dyn Clock>,
}

/// The whole API, over the API server of `config`. With the rights that `config` has, clusters are watched by one of
/// `tasks`, read and marked, tenants are read, and Secrets of service accounts are listed; all else is done with the
/// token of the caller.
///
/// # Errors
/// [`Error::Client`].
pub fn router(
    settings: Settings,
    config: &Config,
    clock: Arc<dyn Clock>,
    tasks: &Tasks,
) -> Result<Router, Error> {
    let own = with_credentials(config).map_err(Error::Client)?;
    let callers = without_credentials(config).map_err(Error::Client)?;
    let tokens = Arc::new(Tokens::default());
    let watched: Api<Cluster> = Api::namespaced(own.clone(), &settings.namespace);
    let following = Arc::clone(&tokens);
    drop(tasks.spawn(
        "bootstrap tokens",
        OnError::Log,
        OnCancel::Abort,
        move |_| async move { following.follow(watched).await },
    ));
    let app = Arc::new(App {
        callers: Access::new(callers, &settings.namespace),
        own: Access::new(own, &settings.namespace),
        settings,
        tokens,
        attempts: Attempts::default(),
        clock,
    });
    // Before the routes are looked at.
    Ok(Router::new().fallback_service(map_request(without_trailing_slash).layer(routes(app))))
}

fn routes(app: Arc<App>) -> Router {
    let no_store = HeaderValue::from_static("no-store");
    let no_sniff = HeaderValue::from_static("nosniff");
    Router::new()
        .route("/", get(pages::metadata))
        .route("/healthz", get(pages::healthz))
        .route("/docs", get(pages::docs))
        .route("/openapi.json", get(pages::openapi))
        .route("/tenants", get(tenants::list).post(tenants::post))
        .route(
            "/tenants/{id}",
            get(tenants::get)
                .patch(tenants::patch)
                .put(tenants::put)
                .delete(tenants::delete),
        )
        .route("/clusters", get(clusters::list).post(clusters::post))
        .route(
            "/clusters/{id}",
            get(clusters::get)
                .patch(clusters::patch)
                .put(clusters::put)
                .delete(clusters::delete),
        )
        .route("/clusters/{id}/compileMeta", post(clusters::compile_meta))
        .route("/install/steward.json", get(bootstrap::get).post(bootstrap::post))
        .route("/inventory", get(pages::inventory).post(pages::inventory))
        .fallback(async || Failure::Route)
        .method_not_allowed_fallback(async || Failure::Method)
        .layer(from_fn(limit_time))
        .layer(CatchPanicLayer::custom(|_| Failure::Internal.into_response()))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::CACHE_CONTROL,
            no_store,
        ))
        .layer(SetResponseHeaderLayer::if_not_present(
            HeaderName::from_static("x-content-type-options"),
            no_sniff,
        ))
        .layer(from_fn(request_id::trace))
        .with_state(app)
}

async fn limit_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Failure::Timeout(REQUEST_TIMEOUT.as_secs()).into_response(),
    }
}

/// `/tenants/` is `/tenants`.
async fn without_trailing_slash(mut request: Request) -> Request {
    let uri = request.uri();
    let path = uri.path().trim_end_matches('/');
    if path.len() == uri.path().len() || path.is_empty() {
        return request;
    }
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(path) = PathAndQuery::try_from(format!("{path}{query}")) {
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(path);
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
    request
}
