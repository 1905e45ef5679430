//! What others ask the process over HTTP: its metrics, whether it lives, whether it is ready.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::get;
use evenkeel_telemetry::metrics::CONTENT_TYPE;
use evenkeel_telemetry::{CancellationToken, Metrics};
use tokio::net::TcpListener;

use crate::Error;

/// Whether the process has begun: it waits for the Lease, or it works.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readiness(Arc<AtomicBool>);

impl Readiness {
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Listens; port 0 takes one that is free.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|error| Error::Start {
        what: format!("listen on {address}"),
        problem: error.to_string(),
    })
}

/// Shows metrics, and behind them what `more` says in the same format.
pub(crate) fn metrics<F>(metrics: Metrics, more: F) -> Router
where
    F: Fn() -> String + Clone + Send + Sync + 'static,
{
    Router::new().route(
        "/metrics",
        get(move || {
            let (metrics, more) = (metrics.clone(), more.clone());
            async move {
                match metrics.scrape().await {
                    Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text + &more()).into_response(),
                    Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
                }
            }
        }),
    )
}

pub(crate) fn health(readiness: Readiness) -> Router {
    let ready = move || {
        let readiness = readiness.clone();
        async move {
            if readiness.has_begun() {
                (StatusCode::OK, "ok")
            } else {
                (StatusCode::SERVICE_UNAVAILABLE, "starting")
            }
        }
    };
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(ready))
}

/// Serves until `token` is cancelled.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    token: CancellationToken,
) -> std::io::Result<()> {
    axum::serve(listener, router)
        .with_graceful_shutdown(token.cancelled_owned())
        .await
}
