//! Calls of the Kubernetes API, and what their errors mean to a step.

use std::time::Duration;

use evenkeel_core::Sensitive;
use evenkeel_steps::{Failure, FailureClass};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::permission::ask;

/// How long one call may take, unless a setting says otherwise.
pub(crate) const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// How long to wait after a refusal for too many requests that names no time.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);

/// What can be read and written in a namespace.
pub(crate) trait Readable:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + DeserializeOwned
    + Serialize
    + std::fmt::Debug
{
}

impl<K> Readable for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Serialize
        + std::fmt::Debug
{
}

/// The Kubernetes API as one controller uses it: every write names its field manager.
#[derive(Clone)]
pub(crate) struct Access {
    client: Client,
    manager: &'static str,
    timeout: Duration,
}

impl Access {
    pub(crate) fn new(client: Client, manager: &'static str, timeout: Duration) -> Self {
        Self {
            client,
            manager,
            timeout,
        }
    }

    /// A call, with an end: the client sets none, because of its watches.
    async fn in_time<T>(
        &self,
        doing: impl FnOnce() -> String,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(self.timeout, call).await {
            Ok(answered) => answered.map_err(|error| failure(&error, &doing())),
            Err(_) => Err(Failure::transient(format!(
                "cannot {}: the Kubernetes API: no answer within {:?}",
                doing(),
                self.timeout
            ))),
        }
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    fn api<K: Readable>(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// An object as it is now, or that there is none.
    pub(crate) async fn find<K: Readable>(&self, namespace: &str, name: &str) -> Result<Option<K>, Failure> {
        ask::<K>("get", "")?;
        let doing = || format!("read {} {namespace}/{name}", kind::<K>());
        let api = self.api::<K>(namespace);
        self.in_time(doing, api.get_opt(name)).await
    }

    /// Creates an object. One that is there already is a conflict.
    pub(crate) async fn create<K: Readable>(&self, namespace: &str, object: &K) -> Result<K, Failure> {
        ask::<K>("create", "")?;
        let params = PostParams {
            field_manager: Some(self.manager.to_owned()),
            ..PostParams::default()
        };
        let doing = || format!("create {} {namespace}/{}", kind::<K>(), object.name_any());
        let api = self.api::<K>(namespace);
        self.in_time(doing, api.create(&params, object)).await
    }

    /// Applies our fields of an object: those that we had and leave out now are removed.
    pub(crate) async fn apply<K: Readable>(
        &self,
        namespace: &str,
        name: &str,
        fields: &Value,
    ) -> Result<K, Failure> {
        ask::<K>("patch", "")?;
        let params = PatchParams::apply(self.manager).force();
        let doing = || format!("apply {} {namespace}/{name}", kind::<K>());
        let (api, patch) = (self.api::<K>(namespace), Patch::Apply(fields));
        self.in_time(doing, api.patch(name, &params, &patch)).await
    }

    /// Applies our fields of a status.
    pub(crate) async fn apply_status<K: Readable>(
        &self,
        namespace: &str,
        name: &str,
        fields: &Value,
    ) -> Result<K, Failure> {
        ask::<K>("patch", "status")?;
        let params = PatchParams::apply(self.manager).force();
        let doing = || format!("write the status of {} {namespace}/{name}", kind::<K>());
        let (api, patch) = (self.api::<K>(namespace), Patch::Apply(fields));
        self.in_time(doing, api.patch_status(name, &params, &patch)).await
    }

    /// A token of a service account for that long, or less if the API server gives no longer ones.
    pub(crate) async fn issue_token(
        &self,
        namespace: &str,
        account: &str,
        life: Duration,
    ) -> Result<Sensitive<String>, Failure> {
        ask::<ServiceAccount>("create", "token")?;
        let doing = format!("issue a token of ServiceAccount {namespace}/{account}");
        let request = TokenRequest {
            // For the audiences of the API server itself.
            spec: Some(TokenRequestSpec {
                expiration_seconds: i64::try_from(life.as_secs()).ok(),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let issued = self
            .api::<ServiceAccount>(namespace)
            .create_token_request(account, &PostParams::default(), &request)
            .await
            .map_err(|error| failure(&error, &doing))?;
        let token = issued.status.and_then(|status| status.token);
        token
            .filter(|token| !token.is_empty())
            .map(Sensitive::new)
            .ok_or_else(|| Failure::transient(format!("cannot {doing}: the answer holds none")))
    }

    /// Merges fields into a status: what is null goes, whoever wrote it.
    pub(crate) async fn merge_status<K: Readable>(
        &self,
        namespace: &str,
        name: &str,
        fields: &Value,
    ) -> Result<(), Failure> {
        ask::<K>("patch", "status")?;
        let params = PatchParams {
            field_manager: Some(self.manager.to_owned()),
            ..PatchParams::default()
        };
        let doing = || format!("write the status of {} {namespace}/{name}", kind::<K>());
        let (api, patch) = (self.api::<K>(namespace), Patch::Merge(fields));
        let merged = api.patch_status(name, &params, &patch);
        self.in_time(doing, merged).await.map(drop)
    }

    /// Merges fields into an object. With a `resourceVersion` among them it is refused when somebody else wrote since.
    pub(crate) async fn merge<K: Readable>(
        &self,
        namespace: &str,
        name: &str,
        fields: &Value,
    ) -> Result<K, Failure> {
        ask::<K>("patch", "")?;
        let params = PatchParams {
            field_manager: Some(self.manager.to_owned()),
            ..PatchParams::default()
        };
        let doing = || format!("change {} {namespace}/{name}", kind::<K>());
        let (api, patch) = (self.api::<K>(namespace), Patch::Merge(fields));
        self.in_time(doing, api.patch(name, &params, &patch)).await
    }

    /// Deletes the object that was read, and no other of its name. What is gone is as good.
    pub(crate) async fn delete<K: Readable>(&self, object: &K) -> Result<(), Failure> {
        ask::<K>("delete", "")?;
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: object.uid(),
                resource_version: object.resource_version(),
            }),
            ..DeleteParams::default()
        };
        let doing = || format!("delete {} {namespace}/{name}", kind::<K>());
        let api = self.api::<K>(&namespace);
        let deleted = async {
            match api.delete(&name, &params).await {
                Err(error) if is_missing(&error) => Ok(()),
                deleted => deleted.map(drop),
            }
        };
        self.in_time(doing, deleted).await
    }

    /// The objects of a kind in a namespace whose field has that value.
    pub(crate) async fn list_by<K: Readable>(
        &self,
        namespace: &str,
        field: &str,
        value: &str,
    ) -> Result<Vec<K>, Failure> {
        ask::<K>("list", "")?;
        let params = ListParams::default().fields(&format!("{field}={value}"));
        let doing = || format!("list {}s of {namespace}", kind::<K>());
        let api = self.api::<K>(namespace);
        let list = self.in_time(doing, api.list(&params)).await;
        list.map(|list| list.items)
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("manager", &self.manager)
            .finish_non_exhaustive()
    }
}

fn kind<K: Readable>() -> String {
    K::kind(&()).into_owned()
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// What a failed call means to a step.
pub(crate) fn failure(error: &kube::Error, doing: &str) -> Failure {
    let kube::Error::Api(status) = error else {
        // Without the error's own text, which may quote what was sent.
        let problem = match error {
            kube::Error::Service(_) | kube::Error::HyperError(_) => "no answer, or half of one",
            kube::Error::SerdeError(_) => "the answer is not understood",
            _ => "the call cannot be made",
        };
        return Failure::transient(format!("cannot {doing}: the Kubernetes API: {problem}"));
    };
    let message = format!("cannot {doing}: {}", status.message);
    let class = match status.code {
        409 => FailureClass::Conflict,
        401 | 403 => FailureClass::Forbidden,
        429 => {
            let seconds = status
                .details
                .as_ref()
                .map_or(0, |details| details.retry_after_seconds);
            let pause = Duration::from_secs(u64::from(seconds)).max(DEFAULT_PAUSE);
            FailureClass::RateLimited { until: pause.into() }
        }
        400 | 404 | 405 | 413 | 415 | 422 => FailureClass::Invalid,
        _ => FailureClass::Transient,
    };
    Failure::new(class, message)
}

/// A reference that makes `owner` the one controller of what carries it. Who deletes the owner in the foreground waits for that.
pub(crate) fn owner_of<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    let reference = owner.controller_owner_ref(&())?;
    Some(OwnerReference {
        block_owner_deletion: Some(true),
        ..reference
    })
}

/// Which version of which object this is.
pub(crate) fn version(object: &impl Resource) -> String {
    let metadata = object.meta();
    let of = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}/{}", of(&metadata.uid), of(&metadata.resource_version))
}

/// Whether the controller of a Secret is the object of that uid.
pub(crate) fn owned_by(secret: &Secret, uid: &str) -> bool {
    secret
        .owner_references()
        .iter()
        .any(|owner| owner.controller == Some(true) && owner.uid == uid)
}
