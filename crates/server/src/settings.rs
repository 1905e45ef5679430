//! `/v2/settings`.

use axum::Json;
use axum::extract::{Path, State};
use evenkeel_api::{PutSetting, Setting, SettingFor};

use crate::extract::{Document, Query};
use crate::problem::Failure;
use crate::router::App;

pub(crate) async fn list(
    State(app): State<App>,
    Query(of): Query<SettingFor>,
) -> Result<Json<Vec<Setting>>, Failure> {
    Ok(Json(app.fleet.all_settings(&of).await?))
}

pub(crate) async fn put(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(of): Query<SettingFor>,
    document: Document,
) -> Result<Json<Setting>, Failure> {
    let put: PutSetting = document.parse()?;
    Ok(Json(app.fleet.put_setting(&name, &of, Some(put.value)).await?))
}

pub(crate) async fn remove(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(of): Query<SettingFor>,
) -> Result<Json<Setting>, Failure> {
    Ok(Json(app.fleet.put_setting(&name, &of, None).await?))
}
