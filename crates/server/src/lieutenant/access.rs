//! The Kubernetes API server, spoken to with a caller's token or with our own rights.
//!
//! All callers share the connections of one client that has no credentials; each request carries its caller's token. So
//! no token outlives its request, and none can ever ride on rights of ours: a client certificate would be believed
//! before any token.

use std::sync::Arc;

use axum::http::{HeaderValue, Request, header};
use kube::api::{DeleteParams, GetParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::AuthInfo;
use kube::core::object::ObjectList;
use kube::core::request::Error as RequestError;
use kube::{Client, Config, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failure::Failure;

/// Who writes, in `managedFields`.
const FIELD_MANAGER: &str = "evenkeel-lieutenant-api";

/// A kind that is spoken of: namespaced, known when compiled.
pub(super) trait Kind:
    Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Send + Sync
{
}

impl<K> Kind for K where K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Send + Sync {}

/// What part of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All but the status.
    Object,
    /// The status.
    Status,
}

/// The API server for one caller.
#[derive(Clone, Debug)]
pub(super) struct Access {
    client: Connections,
    namespace: Arc<str>,
    /// The caller's; none for ourselves, whose client has its own.
    authorization: Option<HeaderValue>,
}

/// Shared connections.
#[derive(Clone)]
struct Connections(Client);

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connections")
    }
}

/// A client with the credentials of `config`. It tries nothing again by itself: what may be repeated, and when, is known
/// where it is asked for.
pub(super) fn with_credentials(config: &Config) -> Result<Client, kube::Error> {
    let mut config = config.clone();
    config.default_retry = false;
    Client::try_from(config)
}

/// The same without any credentials.
pub(super) fn without_credentials(config: &Config) -> Result<Client, kube::Error> {
    let mut config = config.clone();
    config.auth_info = AuthInfo::default();
    with_credentials(&config)
}

impl Access {
    /// With the rights that `client` has.
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self {
            client: Connections(client),
            namespace: namespace.into(),
            authorization: None,
        }
    }

    /// With the rights of whoever sends `authorization`.
    pub(super) fn with(&self, authorization: HeaderValue) -> Self {
        Self {
            authorization: Some(authorization),
            ..self.clone()
        }
    }

    fn requests<K: Kind>(&self) -> kube::core::Request {
        kube::core::Request::new(K::url_path(&(), Some(&self.namespace)))
    }

    async fn send<T: DeserializeOwned>(
        &self,
        request: Result<Request<Vec<u8>>, RequestError>,
    ) -> Result<T, Failure> {
        let mut request = request.map_err(|error| Failure::of_ours(&kube::Error::BuildRequest(error)))?;
        if let Some(authorization) = &self.authorization {
            request
                .headers_mut()
                .insert(header::AUTHORIZATION, authorization.clone());
        }
        // Read here and not by the client, which would log an answer that it cannot read, tokens and all.
        let text = match (self.client.0.request_text(request).await, &self.authorization) {
            (Ok(text), _) => text,
            (Err(error), Some(_)) => return Err(Failure::of_caller(error)),
            (Err(kube::Error::Api(status)), None) if status.is_conflict() || status.is_not_found() => {
                return Err(Failure::ApiServer(status));
            }
            (Err(error), None) => return Err(Failure::of_ours(&error)),
        };
        serde_json::from_str(&text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            tracing::error!(
                line,
                column,
                "an answer of the Kubernetes API server is not understood"
            );
            Failure::Internal
        })
    }

    /// One object.
    pub(super) async fn get<K: Kind>(&self, name: &str) -> Result<K, Failure> {
        self.send(self.requests::<K>().get(name, &GetParams::default()))
            .await
    }

    /// All objects that `which` wants, page by page.
    pub(super) async fn list<K: Kind>(&self, mut which: ListParams) -> Result<Vec<K>, Failure> {
        let mut items = Vec::new();
        loop {
            let mut page: ObjectList<K> = self.send(self.requests::<K>().list(&which)).await?;
            items.append(&mut page.items);
            which.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if which.continue_token.is_none() {
                return Ok(items);
            }
        }
    }

    /// Makes a new object.
    pub(super) async fn create<K: Kind>(&self, object: &K) -> Result<K, Failure> {
        self.create_with(object, false).await
    }

    /// Whether the object could be made.
    pub(super) async fn try_create<K: Kind>(&self, object: &K) -> Result<(), Failure> {
        self.create_with(object, true).await.map(drop)
    }

    async fn create_with<K: Kind>(&self, object: &K, dry_run: bool) -> Result<K, Failure> {
        let how = PostParams {
            dry_run,
            field_manager: Some(FIELD_MANAGER.to_owned()),
        };
        let body =
            serde_json::to_vec(object).map_err(|error| Failure::of_ours(&kube::Error::SerdeError(error)))?;
        self.send(self.requests::<K>().create(&how, body)).await
    }

    /// Merges `patch` into one object (RFC 7396).
    pub(super) async fn patch<K: Kind>(&self, name: &str, part: Part, patch: &Value) -> Result<K, Failure> {
        let how = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(patch);
        let requests = self.requests::<K>();
        let request = match part {
            Part::Object => requests.patch(name, &how, &patch),
            Part::Status => requests.patch_subresource("status", name, &how, &patch),
        };
        self.send(request).await
    }

    /// Deletes one object.
    pub(super) async fn delete<K: Kind>(&self, name: &str) -> Result<(), Failure> {
        let request = self.requests::<K>().delete(name, &DeleteParams::default());
        self.send::<Value>(request).await.map(drop)
    }
}

/// Name of an object that was read.
pub(super) fn name_of(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}
