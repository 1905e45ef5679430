//! `/clusters`.

use std::cmp::Ordering;
use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use evenkeel_core::Sensitive;
use evenkeel_operator::resources::{BootstrapToken, Cluster, CompileMeta, Tenant};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use serde_json::Value;
use url::form_urlencoded;

use super::access::{Access, name_of};
use super::cluster_document::{ClusterDocument, PREFIX, complete, text_of, usable_token};
use super::document::{kept, parse};
use super::extract::{Base, Body, Caller, Id, MergePatch};
use super::failure::Failure;
use super::names::{GENERATE_TRIES, is_name};
use super::patch::{merged, update};
use super::routes::{App, PAGE};

const PLURAL: &str = "clusters";

/// Fact that names the installation a cluster was made by.
const INSTANCE_FACT: &str = "lieutenant-instance";

/// Characters that stand for themselves in a query; `=` cannot be taken for a separator in a value.
const PLAIN: &[u8] = b"-._~=";

/// What callers see of a cluster, with the address of its manifest while that can be had.
fn document(app: &App, base: &str, cluster: &Cluster) -> ClusterDocument {
    app.tokens.learn(cluster);
    let mut document = ClusterDocument::of(cluster);
    let token = usable_token(cluster, app.clock.now()).and_then(text_of);
    document.install_url = token.map(|token| install_url(base, token));
    document
}

fn install_url(base: &str, token: &str) -> String {
    let token: String = token
        .bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    format!("{base}/install/steward.json?token={token}")
}

/// The token of a cluster that is in a Secret, if the caller may read that (B24).
async fn hidden_token(app: &App, access: &Access, cluster: &Cluster) -> Option<Sensitive<String>> {
    let token = usable_token(cluster, app.clock.now())?;
    let hash = token.token_hash.as_ref().filter(|_| text_of(token).is_none())?;
    let name = BootstrapToken::secret_name(name_of(&cluster.metadata));
    let secret: Secret = access.get(&name).await.ok()?;
    let text = String::from_utf8(secret.data?.get(BootstrapToken::KEY)?.0.clone()).ok()?;
    // One of another time opens nothing.
    (BootstrapToken::hash(&text) == *hash).then(|| Sensitive::new(text))
}

/// How a list is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SortBy {
    #[default]
    Id,
    Tenant,
    DisplayName,
}

impl SortBy {
    fn parse(text: &str) -> Result<Self, Failure> {
        match text {
            "id" => Ok(Self::Id),
            "tenant" => Ok(Self::Tenant),
            "displayName" => Ok(Self::DisplayName),
            _ => Err(Failure::Invalid(
                "parameter \"sort_by\" in query has an error: value is not one of the allowed values \
                 [\"id\",\"tenant\",\"displayName\"]"
                    .to_owned(),
            )),
        }
    }

    fn compare(self, a: &ClusterDocument, b: &ClusterDocument) -> Ordering {
        let first = match self {
            Self::Id => Ordering::Equal,
            Self::Tenant => a.tenant.cmp(&b.tenant),
            Self::DisplayName => a.display_name.cmp(&b.display_name),
        };
        first.then_with(|| a.id.cmp(&b.id))
    }
}

/// All clusters, or those of a tenant.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Caller(access): Caller,
    Base(base): Base,
    RawQuery(query): RawQuery,
) -> Result<Json<Vec<ClusterDocument>>, Failure> {
    let (mut tenant, mut sort_by) = (None, SortBy::default());
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match name.as_ref() {
            "tenant" => tenant = Some(value.into_owned()).filter(|tenant| !tenant.is_empty()),
            "sort_by" => sort_by = SortBy::parse(&value)?,
            // As with Lieutenant's API: what proxies and browsers add does no harm.
            _ => {}
        }
    }
    let clusters: Vec<Cluster> = access.list(ListParams::default().limit(PAGE)).await?;
    let mut documents: Vec<ClusterDocument> = clusters
        .iter()
        .map(|cluster| document(&app, &base, cluster))
        // The label that says the same comes a little later.
        .filter(|document| tenant.as_ref().is_none_or(|tenant| document.tenant == *tenant))
        .collect();
    documents.sort_by(|a, b| sort_by.compare(a, b));
    Ok(Json(documents))
}

/// One cluster.
pub(super) async fn get(
    State(app): State<Arc<App>>,
    Caller(access): Caller,
    Base(base): Base,
    id: Id,
) -> Result<Json<ClusterDocument>, Failure> {
    let cluster: Cluster = access.get(&id.of_existing(PLURAL)?).await?;
    let mut document = document(&app, &base, &cluster);
    if let Some(token) = hidden_token(&app, &access, &cluster).await {
        document.install_url = Some(install_url(&base, token.expose()));
    }
    Ok(Json(document))
}

/// Makes a cluster; its id is completed, or generated where there is none.
pub(super) async fn post(
    State(app): State<Arc<App>>,
    Caller(access): Caller,
    Base(base): Base,
    Body(body): Body,
) -> Result<Response, Failure> {
    let wanted = read(body)?;
    if let Some(id) = &wanted.id {
        return create(&app, &access, &base, &wanted, &PREFIX.complete(id)?).await;
    }
    let mut tries = 1;
    loop {
        match create(&app, &access, &base, &wanted, &PREFIX.generate()).await {
            Err(failure) if failure.is_already_exists() && tries < GENERATE_TRIES => tries += 1,
            result => return result,
        }
    }
}

/// A whole cluster has a tenant.
fn read(body: Value) -> Result<ClusterDocument, Failure> {
    if body.get("tenant").is_none_or(Value::is_null) {
        return Err(Failure::Invalid(missing_tenant(&body)));
    }
    check_compile_meta(body.get("compileMeta"))?;
    let document: ClusterDocument = parse(body)?;
    if is_name(&document.tenant) {
        return Ok(document);
    }
    Err(Failure::Invalid(format!(
        "request body has an error: Error at \"/tenant\": '{}' is no id",
        document.tenant
    )))
}

/// The words of Lieutenant's API, schema and value in them.
fn missing_tenant(body: &Value) -> String {
    const SCHEMA: &str = r#"  {
    "properties": {
      "tenant": {
        "description": "Id of the tenant this cluster belongs to",
        "example": "multicorp",
        "type": "string"
      }
    },
    "required": [
      "tenant"
    ],
    "type": "object"
  }"#;
    let value = serde_json::to_string_pretty(body).unwrap_or_default();
    let value = value.replace('\n', "\n  ");
    format!("Error at \"/tenant\": property \"tenant\" is missing\nSchema:\n{SCHEMA}\n\nValue:\n  {value}\n")
}

/// Members that compile metadata does not have. Empty ones say nothing.
fn check_compile_meta(given: Option<&Value>) -> Result<(), Failure> {
    let Some(given) = given.filter(|given| !given.is_null()) else {
        return Ok(());
    };
    let known: CompileMeta = parse(given.clone())?;
    let known = serde_json::to_value(&known).unwrap_or_default();
    match unknown_member(given, &known) {
        None => Ok(()),
        Some(place) => Err(Failure::Invalid(format!(
            "request body has an error: Error at \"{place}\": there is no such member"
        ))),
    }
}

fn unknown_member(given: &Value, known: &Value) -> Option<String> {
    let members = given.as_object()?;
    members.iter().find_map(|(name, given)| {
        let is_empty =
            given.is_null() || given == "" || given.as_object().is_some_and(serde_json::Map::is_empty);
        match known.get(name) {
            Some(known) => unknown_member(given, known).map(|rest| format!("/{name}{rest}")),
            None => (!is_empty).then(|| format!("/{name}")),
        }
    })
}

async fn create(
    app: &App,
    access: &Access,
    base: &str,
    wanted: &ClusterDocument,
    name: &str,
) -> Result<Response, Failure> {
    let mut cluster = wanted.create(name)?;
    let status = cluster.status.take();
    if let Some(instance) = &app.settings.instance {
        let facts = &mut cluster.spec.facts;
        facts.insert(INSTANCE_FACT.to_owned(), instance.clone());
    }
    check_tenant(app, access, &cluster, &wanted.tenant).await?;
    let mut cluster = access.create(&cluster).await?;
    if let Some(status) = status {
        cluster = update(access, name, |cluster: &mut Cluster| {
            let current = cluster.status.get_or_insert_default();
            current.facts.clone_from(&status.facts);
            current.compile_meta.clone_from(&status.compile_meta);
            Ok(())
        })
        .await?;
    }
    let document = document(app, base, &cluster);
    Ok((StatusCode::CREATED, Json(document)).into_response())
}

/// Refuses a cluster whose tenant is not there. Only a caller who could make the cluster learns that.
async fn check_tenant(app: &App, access: &Access, cluster: &Cluster, tenant: &str) -> Result<(), Failure> {
    match app.own.get::<Tenant>(tenant).await {
        Err(failure) if failure.is_not_found() => {
            access.try_create(cluster).await?;
            Err(Failure::Invalid(format!(
                "the tenant '{tenant}' does not exist: create it first"
            )))
        }
        found => found.map(drop),
    }
}

/// Merges a patch into a cluster.
pub(super) async fn patch(
    State(app): State<Arc<App>>,
    Caller(access): Caller,
    Base(base): Base,
    id: Id,
    MergePatch(patch): MergePatch,
) -> Result<Json<ClusterDocument>, Failure> {
    let id = id.of_existing(PLURAL)?;
    let cluster = update(&access, &id, |cluster: &mut Cluster| {
        let old = ClusterDocument::of(cluster);
        let mut new: ClusterDocument = merged(&old, &patch)?;
        check_compile_meta(patch.get("compileMeta"))?;
        if (&new.id, &new.tenant) != (&old.id, &old.tenant) {
            return Err(Failure::Invalid(
                "request body has an error: id and tenant of a cluster cannot be changed".to_owned(),
            ));
        }
        // What the patch removed is gone, not left alone.
        let _ = new.dynamic_facts.get_or_insert_default();
        let _ = new.compile_meta.get_or_insert_default();
        new.write(&old, cluster)
    })
    .await?;
    Ok(Json(document(&app, &base, &cluster)))
}

/// Replaces what callers see of a cluster, or makes it. The id in the path is the one that counts.
pub(super) async fn put(
    State(app): State<Arc<App>>,
    Caller(access): Caller,
    Base(base): Base,
    Id(id): Id,
    Body(body): Body,
) -> Result<Response, Failure> {
    let wanted = read(body)?;
    let mut created_meanwhile = false;
    loop {
        match replace(&app, &access, &base, &id, &wanted).await {
            Err(failure) if failure.is_not_found() => {}
            result => return result.map(|document| Json(document).into_response()),
        }
        PREFIX.check(&id)?;
        match create(&app, &access, &base, &wanted, &id).await {
            Err(failure) if failure.is_already_exists() && !created_meanwhile => created_meanwhile = true,
            result => return result,
        }
    }
}

async fn replace(
    app: &App,
    access: &Access,
    base: &str,
    id: &str,
    wanted: &ClusterDocument,
) -> Result<ClusterDocument, Failure> {
    let id = Id(id.to_owned()).of_existing(PLURAL)?;
    let mut stays = Default::default();
    let cluster = update(access, &id, |cluster: &mut Cluster| {
        let old = ClusterDocument::of(cluster);
        let mut new = wanted.clone();
        stays = kept(&old.annotations, &new.annotations);
        new.annotations.extend(stays.clone());
        new.write(&old, cluster)
    })
    .await?;
    let mut answer = document(app, base, &cluster);
    // The caller is told what it put, not what stays beside it.
    answer.annotations.retain(|name, _| !stays.contains_key(name));
    Ok(answer)
}

/// Replaces the metadata of the last compilation.
pub(super) async fn compile_meta(
    Caller(access): Caller,
    id: Id,
    Body(body): Body,
) -> Result<StatusCode, Failure> {
    let id = id.of_existing(PLURAL)?;
    check_compile_meta(Some(&body))?;
    let meta: CompileMeta = parse(body)?;
    let meta = complete(meta);
    update(&access, &id, |cluster: &mut Cluster| {
        cluster.status.get_or_insert_default().compile_meta = Some(meta.clone());
        Ok(())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a cluster.
pub(super) async fn delete(Caller(access): Caller, id: Id) -> Result<StatusCode, Failure> {
    access.delete::<Cluster>(&id.of_existing(PLURAL)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
