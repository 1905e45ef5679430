//! `/v2/clusters/{name}/reconcile`, `suspend` and `resume`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use evenkeel_api::{Accepted, Reconcile, Suspend, Suspension};
use evenkeel_core::ClusterName;

use crate::extract::{Document, Named, Query};
use crate::problem::Failure;
use crate::router::App;

pub(crate) async fn reconcile(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
    Query(asked): Query<Reconcile>,
) -> Result<(StatusCode, Json<Accepted>), Failure> {
    Ok((
        StatusCode::ACCEPTED,
        Json(app.fleet.reconcile_for(&name, &asked).await?),
    ))
}

pub(crate) async fn suspend(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
    document: Document,
) -> Result<Json<Suspension>, Failure> {
    let suspend: Suspend = document.parse()?;
    Ok(Json(app.fleet.suspend(&name, suspend).await?))
}

pub(crate) async fn resume(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
) -> Result<(StatusCode, Json<Accepted>), Failure> {
    Ok((StatusCode::ACCEPTED, Json(app.fleet.resume(&name).await?)))
}
