//! What needs no token: what this API is, whether it lives, how it is called.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use serde_json::{Value, json};

use super::extract::Caller;
use super::failure::Failure;
use super::routes::App;

/// The document of this API.
const OPENAPI: &str = include_str!("../../../../openapi/lieutenant.json");

/// What this API is, and where callers get their tokens.
pub(super) async fn metadata(State(app): State<Arc<App>>) -> Json<Value> {
    let settings = &app.settings;
    let mut metadata = json!({ "apiVersion": settings.version });
    if let Some(oidc) = &settings.oidc {
        metadata["oidc"] = json!({ "discoveryUrl": oidc.discovery_url, "clientId": oidc.client_id });
    }
    if let Some(vault) = &settings.vault {
        metadata["vault"] = json!({ "addr": vault.address });
        if let Some(method) = &vault.login_method {
            metadata["vault"]["loginMethod"] = method.as_str().into();
        }
    }
    Json(metadata)
}

/// Whether it lives.
pub(super) async fn healthz() -> Response {
    typed("text/plain; charset=UTF-8", "ok")
}

/// The document of this API.
pub(super) async fn openapi() -> Response {
    typed("application/json", OPENAPI)
}

/// A page for people.
pub(super) async fn docs() -> Html<&'static str> {
    Html(
        "<!doctype html><html lang=\"en\"><title>Lieutenant API</title>\
         <p>This API is described by its <a href=\"/openapi.json\">OpenAPI document</a>.</p></html>",
    )
}

/// Declared by Lieutenant's API, and never built there either.
pub(super) async fn inventory(_: Caller) -> Failure {
    Failure::NotImplemented
}

fn typed(media_type: &'static str, text: &'static str) -> Response {
    let mut response = text.into_response();
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}
