//! `/v2/instances`.

use axum::Json;
use axum::extract::State;
use evenkeel_api::Instance;

use crate::problem::Failure;
use crate::router::App;

pub(crate) async fn list(State(app): State<App>) -> Result<Json<Vec<Instance>>, Failure> {
    Ok(Json(app.fleet.instances().await?))
}
