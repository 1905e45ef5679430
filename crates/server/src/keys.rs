//! `/v2/keys`.

use axum::Json;
use axum::extract::{Path, State};
use evenkeel_api::Keys;

use crate::problem::Failure;
use crate::router::App;

pub(crate) async fn list(State(app): State<App>) -> Result<Json<Keys>, Failure> {
    Ok(Json(app.fleet.keys().await?))
}

pub(crate) async fn remove(State(app): State<App>, Path(id): Path<String>) -> Result<Json<Keys>, Failure> {
    Ok(Json(app.fleet.remove_key(&id).await?))
}
