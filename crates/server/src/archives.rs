//! Uploaded chart archives.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use evenkeel_api::Archive;

use crate::extract::Content;
use crate::problem::Failure;
use crate::router::App;

pub(crate) async fn put(
    State(app): State<App>,
    Content(archive): Content,
) -> Result<(StatusCode, Json<Archive>), Failure> {
    Ok((StatusCode::CREATED, Json(app.fleet.put_archive(archive).await?)))
}
