//! Runs over clusters.

use axum::Json;
use axum::extract::State;
use evenkeel_api::{Reconciliation, ReconciliationSummary};
use evenkeel_core::{ClusterName, ReconciliationId};

use crate::extract::Named;
use crate::problem::Failure;
use crate::router::App;

pub(crate) async fn list(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
) -> Result<Json<Vec<ReconciliationSummary>>, Failure> {
    Ok(Json(app.fleet.reconciliations(&name).await?))
}

pub(crate) async fn get(
    State(app): State<App>,
    Named(id): Named<ReconciliationId>,
) -> Result<Json<Reconciliation>, Failure> {
    Ok(Json(app.fleet.reconciliation(&id).await?))
}
