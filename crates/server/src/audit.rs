//! `/v2/audit`.

use axum::Json;
use axum::extract::State;
use evenkeel_api::{AuditPage, AuditVerdict, KnownHead, ListAudit};

use crate::extract::Query;
use crate::problem::Failure;
use crate::router::App;

pub(crate) async fn list(
    State(app): State<App>,
    Query(list): Query<ListAudit>,
) -> Result<Json<AuditPage>, Failure> {
    Ok(Json(app.fleet.audit(&list).await?))
}

pub(crate) async fn verify(
    State(app): State<App>,
    Query(known): Query<KnownHead>,
) -> Result<Json<AuditVerdict>, Failure> {
    Ok(Json(app.fleet.verify_audit(&known).await?))
}
