//! What a cluster was, and what was done to its objects.

use axum::Json;
use axum::extract::State;
use evenkeel_api::{ChangePage, HistoryPage, ListChanges, ListHistory};
use evenkeel_core::ClusterName;

use crate::extract::{Named, Query};
use crate::problem::Failure;
use crate::router::App;

pub(crate) async fn states(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
    Query(list): Query<ListHistory>,
) -> Result<Json<HistoryPage>, Failure> {
    Ok(Json(app.fleet.history(&name, &list).await?))
}

pub(crate) async fn changes(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
    Query(list): Query<ListChanges>,
) -> Result<Json<ChangePage>, Failure> {
    Ok(Json(app.fleet.changes(&name, &list).await?))
}
