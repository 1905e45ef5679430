//! `/v2/clusters/{name}/consent`.

use axum::Json;
use axum::extract::State;
use evenkeel_api::{Consent, GiveConsent};
use evenkeel_core::ClusterName;

use crate::extract::{Document, Named};
use crate::problem::Failure;
use crate::router::App;

pub(crate) async fn list(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
) -> Result<Json<Vec<Consent>>, Failure> {
    Ok(Json(app.fleet.consents(&name).await?))
}

pub(crate) async fn give(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
    document: Document,
) -> Result<Json<Consent>, Failure> {
    let give: GiveConsent = document.parse()?;
    Ok(Json(app.fleet.give_consent(&name, give).await?))
}
