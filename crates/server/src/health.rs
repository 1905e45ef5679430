//! What probes and Prometheus ask for.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::problem::Failure;
use crate::router::App;

/// The process answers.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// The process can do its work: it is not stopping and its database answers.
pub(crate) async fn readyz(State(app): State<App>) -> Response {
    if app.stop.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    match app.fleet.cluster_counts().await {
        Ok(_) => "ok\n".into_response(),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n").into_response()
        }
    }
}

/// Metrics computed from the database at each scrape, so that every replica says the same (K1).
pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, Failure> {
    let text = app.fleet.metrics().await?;
    Ok((
        [(header::CONTENT_TYPE, evenkeel_fleet::METRICS_CONTENT_TYPE)],
        text,
    )
        .into_response())
}
