//! `/v2/broker`.

use axum::Json;
use axum::extract::State;
use evenkeel_api::SyncReport;

use crate::problem::Failure;
use crate::router::App;

pub(crate) async fn sync(State(app): State<App>) -> Result<Json<SyncReport>, Failure> {
    Ok(Json(app.fleet.sync_broker().await?))
}
