//! `/v2/clusters`.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use evenkeel_api::{
    Accepted, AcceptedChange, Cluster, ClusterDocument, ClusterPage, ClusterPlan, ClusterStatus, Code,
    Configuration, Deletion, ListClusters, Problem, Rollback,
};
use evenkeel_core::{ClusterName, ConfigurationVersion, Error, HumanDuration, KubeconfigFrom, Sensitive};
use serde::Deserialize;

use crate::extract::{Content, Document, Named, Query};
use crate::problem::Failure;
use crate::router::App;

/// The longest that a status call is held; below the timeout of every usual client.
const STATUS_WAIT_MAX: Duration = Duration::from_secs(30);

pub(crate) async fn list(
    State(app): State<App>,
    Query(list): Query<ListClusters>,
) -> Result<Json<ClusterPage>, Failure> {
    Ok(Json(app.fleet.clusters(&list).await?))
}

pub(crate) async fn get(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
) -> Result<Json<Cluster>, Failure> {
    Ok(Json(app.fleet.cluster(&name).await?))
}

pub(crate) async fn put(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
    Document(document): Document,
) -> Result<(StatusCode, Json<Accepted>), Failure> {
    let document = ClusterDocument::from_value(document).map_err(Problem::from)?;
    let accepted = app.fleet.put_cluster(&name, document).await?;
    let status = match accepted.change {
        AcceptedChange::Created => StatusCode::CREATED,
        AcceptedChange::Changed | AcceptedChange::Unchanged => StatusCode::OK,
    };
    Ok((status, Json(accepted)))
}

pub(crate) async fn put_kubeconfig(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
    Content(kubeconfig): Content,
) -> Result<Json<Accepted>, Failure> {
    let text = String::from_utf8(kubeconfig.into())
        .map_err(|_| Problem::new(Code::Syntax, "the kubeconfig is not UTF-8"))?;
    Ok(Json(
        app.fleet
            .put_kubeconfig(&name, Sensitive::new(text).into())
            .await?,
    ))
}

pub(crate) async fn put_kubeconfig_from(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
    document: Document,
) -> Result<Json<Accepted>, Failure> {
    let from: KubeconfigFrom = document.parse()?;
    let errors = from.field_errors("kubeconfigFrom");
    if !errors.is_empty() {
        return Err(Problem::from(Error::Spec(errors)).into());
    }
    Ok(Json(app.fleet.put_kubeconfig(&name, from.into()).await?))
}

pub(crate) async fn delete(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
    Query(deletion): Query<Deletion>,
) -> Result<(StatusCode, Json<Accepted>), Failure> {
    Ok((
        StatusCode::ACCEPTED,
        Json(app.fleet.delete_cluster(&name, deletion.mode).await?),
    ))
}

/// What a status call waits for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StatusQuery {
    /// Hold the call while the status is still this one.
    after: Option<String>,
    /// How long to hold it.
    wait: Option<HumanDuration>,
}

pub(crate) async fn status(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
    Query(query): Query<StatusQuery>,
) -> Result<Json<ClusterStatus>, Failure> {
    let status = match query.after {
        None => app.fleet.status(&name).await?,
        Some(known) => {
            let wait = query
                .wait
                .map_or(STATUS_WAIT_MAX, |wait| wait.0)
                .min(STATUS_WAIT_MAX);
            tokio::select! {
                status = app.fleet.status_after(&name, &known, wait) => status?,
                () = app.stop.cancelled() => app.fleet.status(&name).await?,
            }
        }
    };
    Ok(Json(status))
}

pub(crate) async fn plan(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
) -> Result<Json<ClusterPlan>, Failure> {
    Ok(Json(app.fleet.plan(&name).await?))
}

pub(crate) async fn confirm_identity(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
) -> Result<(StatusCode, Json<Accepted>), Failure> {
    app.fleet.confirm_identity(&name).await?;
    // Confirming makes it due; the answer is the same as to being asked for that alone.
    Ok((StatusCode::ACCEPTED, Json(app.fleet.reconcile(&name).await?)))
}

pub(crate) async fn rollback(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
    document: Document,
) -> Result<Json<Accepted>, Failure> {
    let rollback: Rollback = document.parse()?;
    Ok(Json(app.fleet.rollback(&name, &rollback).await?))
}

pub(crate) async fn configurations(
    State(app): State<App>,
    Named(name): Named<ClusterName>,
) -> Result<Json<Vec<Configuration>>, Failure> {
    Ok(Json(app.fleet.configurations(&name).await?))
}

pub(crate) async fn configuration(
    State(app): State<App>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<Configuration>, Failure> {
    let name: ClusterName = name.parse().map_err(Problem::from)?;
    let number = version
        .parse()
        .map_err(|_| Problem::new(Code::Parameter, format!("version {version:?} is not a number")))?;
    Ok(Json(
        app.fleet
            .configuration(&name, ConfigurationVersion(number))
            .await?,
    ))
}
