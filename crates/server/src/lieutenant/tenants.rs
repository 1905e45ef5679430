//! `/tenants`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use evenkeel_operator::resources::Tenant;
use kube::api::ListParams;

use super::access::Access;
use super::document::{kept, parse};
use super::extract::{Body, Caller, Id, MergePatch};
use super::failure::Failure;
use super::names::GENERATE_TRIES;
use super::patch::{merged, update};
use super::routes::{App, PAGE};
use super::tenant_document::{PREFIX, TenantDocument};

const PLURAL: &str = "tenants";

/// All tenants.
pub(super) async fn list(Caller(access): Caller) -> Result<Json<Vec<TenantDocument>>, Failure> {
    let tenants: Vec<Tenant> = access.list(ListParams::default().limit(PAGE)).await?;
    Ok(Json(tenants.iter().map(TenantDocument::of).collect()))
}

/// One tenant.
pub(super) async fn get(Caller(access): Caller, id: Id) -> Result<Json<TenantDocument>, Failure> {
    let tenant: Tenant = access.get(&id.of_existing(PLURAL)?).await?;
    Ok(Json(TenantDocument::of(&tenant)))
}

/// Makes a tenant; its id is completed, or generated where there is none.
pub(super) async fn post(
    State(app): State<Arc<App>>,
    Caller(access): Caller,
    Body(body): Body,
) -> Result<Response, Failure> {
    let document: TenantDocument = parse(body)?;
    if let Some(id) = &document.id {
        return create(&app, &access, &document, &PREFIX.complete(id)?).await;
    }
    let mut tries = 1;
    loop {
        match create(&app, &access, &document, &PREFIX.generate()).await {
            Err(failure) if failure.is_already_exists() && tries < GENERATE_TRIES => tries += 1,
            result => return result,
        }
    }
}

async fn create(
    app: &App,
    access: &Access,
    document: &TenantDocument,
    name: &str,
) -> Result<Response, Failure> {
    let tenant = document.create(name, app.settings.default_api_secret.as_deref())?;
    let tenant = access.create(&tenant).await?;
    Ok((StatusCode::CREATED, Json(TenantDocument::of(&tenant))).into_response())
}

/// Merges a patch into a tenant.
pub(super) async fn patch(
    Caller(access): Caller,
    id: Id,
    MergePatch(patch): MergePatch,
) -> Result<Json<TenantDocument>, Failure> {
    let id = id.of_existing(PLURAL)?;
    let tenant = update(&access, &id, |tenant: &mut Tenant| {
        let old = TenantDocument::of(tenant);
        let new: TenantDocument = merged(&old, &patch)?;
        if new.id != old.id {
            return Err(Failure::Invalid(
                "request body has an error: Error at \"/id\": an id cannot be changed".to_owned(),
            ));
        }
        if old.git_repo.url.is_some() {
            new.check_repository()?;
        }
        new.write(&old, tenant)
    })
    .await?;
    Ok(Json(TenantDocument::of(&tenant)))
}

/// Replaces what callers see of a tenant, or makes it. The id in the path is the one that counts.
pub(super) async fn put(
    State(app): State<Arc<App>>,
    Caller(access): Caller,
    Id(id): Id,
    Body(body): Body,
) -> Result<Response, Failure> {
    let document: TenantDocument = parse(body)?;
    document.check_repository()?;
    let mut created_meanwhile = false;
    loop {
        match replace(&access, &id, &document).await {
            Err(failure) if failure.is_not_found() => {}
            result => return result.map(|document| Json(document).into_response()),
        }
        PREFIX.check(&id)?;
        match create(&app, &access, &document, &id).await {
            Err(failure) if failure.is_already_exists() && !created_meanwhile => created_meanwhile = true,
            result => return result,
        }
    }
}

async fn replace(access: &Access, id: &str, document: &TenantDocument) -> Result<TenantDocument, Failure> {
    let id = Id(id.to_owned()).of_existing(PLURAL)?;
    let mut stays = Default::default();
    let tenant = update(access, &id, |tenant: &mut Tenant| {
        let old = TenantDocument::of(tenant);
        let mut new = document.clone();
        stays = kept(&old.annotations, &new.annotations);
        new.annotations.extend(stays.clone());
        new.write(&old, tenant)
    })
    .await?;
    let mut answer = TenantDocument::of(&tenant);
    // The caller is told what it put, not what stays beside it.
    answer.annotations.retain(|name, _| !stays.contains_key(name));
    Ok(answer)
}

/// Deletes a tenant.
pub(super) async fn delete(Caller(access): Caller, id: Id) -> Result<StatusCode, Failure> {
    access.delete::<Tenant>(&id.of_existing(PLURAL)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
