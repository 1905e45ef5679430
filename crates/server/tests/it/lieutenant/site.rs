//! The API in a namespace of its own, and callers of it.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use evenkeel_core::ManualClock;
use evenkeel_operator::resources::{Cluster, Tenant};
use evenkeel_server::lieutenant::{self, Settings};
use evenkeel_telemetry::Tasks;
use evenkeel_testkit::{FaultProxy, TestCluster, cluster, eventually};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// The largest answer that a test reads.
const ANSWER_SIZE_MAX: usize = 64 * 1024 * 1024;
/// Where clusters reach the API.
pub(super) const API_URL: &str = "https://api.example.org";
/// When the tests take place.
pub(super) const NOW: &str = "2026-08-25T12:00:00Z";
/// When tokens end.
pub(super) const TOMORROW: &str = "2026-08-26T12:00:00Z";
/// When they have ended.
pub(super) const YESTERDAY: &str = "2026-08-24T12:00:00Z";

/// The API in one namespace.
pub(super) struct Site {
    pub(super) cluster: &'static TestCluster,
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) clock: Arc<ManualClock>,
    pub(super) router: Router,
    /// Of a caller who may do everything in the namespace.
    pub(super) token: String,
    tasks: Tasks,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

/// An answer, read whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(super) fn reason(&self) -> String {
        let json = self.json();
        let reason = json["reason"].as_str();
        reason.unwrap_or_else(|| panic!("no reason: {self:?}")).to_owned()
    }

    #[track_caller]
    pub(super) fn assert(&self, status: u16) -> &Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }
}

/// The cluster, with the definitions as they are shipped.
fn server() -> &'static TestCluster {
    static READY: OnceLock<()> = OnceLock::new();
    let cluster = cluster("lieutenant");
    READY.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
        for arguments in [
            vec!["apply", "--server-side", "-f", folder.to_str().unwrap()],
            vec![
                "wait",
                "--for=condition=Established",
                "--timeout=60s",
                "crd",
                "--all",
            ],
        ] {
            let output = cluster.kubectl().args(arguments).output().unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    });
    cluster
}

/// Settings of the recorded installation.
pub(super) fn settings(namespace: &str) -> Settings {
    Settings {
        namespace: namespace.to_owned(),
        api_url: Some(API_URL.to_owned()),
        instance: Some("inst1".to_owned()),
        default_api_secret: Some("git".to_owned()),
        ..Settings::default()
    }
}

/// How the API speaks to the server: with a client certificate that may do everything.
pub(super) async fn config(kubeconfig: &str) -> Config {
    evenkeel_testkit::install_crypto_provider();
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap()
}

fn from<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

impl Site {
    /// In a new namespace.
    pub(super) async fn new(prefix: &str) -> Self {
        let namespace = server().unused_namespace(prefix);
        let settings = settings(&namespace);
        Self::with(settings, server().kubeconfig()).await
    }

    /// In a new namespace, with the API server behind a proxy. All requests from now on are those of calls.
    pub(super) async fn behind(prefix: &str, proxy: &FaultProxy) -> Self {
        let namespace = server().unused_namespace(prefix);
        let site = Self::with(settings(&namespace), &proxy.kubeconfig()).await;
        eventually("the clusters are listed and watched", async || {
            match proxy.requests() {
                2.. => Ok(()),
                requests => Err(requests),
            }
        })
        .await;
        site
    }

    /// In the new namespace of `settings`.
    pub(super) async fn with(settings: Settings, kubeconfig: &str) -> Self {
        let client = server().client().await;
        let namespace = settings.namespace.clone();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let object = from(json!({"metadata": {"name": namespace}}));
        namespaces.create(&PostParams::default(), &object).await.unwrap();
        let tasks = Tasks::new();
        let clock = Arc::new(ManualClock::new(NOW.parse().unwrap()));
        let config = config(kubeconfig).await;
        let router = lieutenant::router(settings, &config, Arc::clone(&clock) as _, &tasks).unwrap();
        let mut site = Self {
            cluster: server(),
            client,
            namespace,
            clock,
            router,
            token: String::new(),
            tasks,
        };
        let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        site.token = site.caller("admin", everything).await;
        site
    }

    /// Another process that serves the same.
    pub(super) async fn replica(&self) -> Router {
        let config = config(self.cluster.kubeconfig()).await;
        let clock = Arc::clone(&self.clock) as _;
        lieutenant::router(settings(&self.namespace), &config, clock, &self.tasks).unwrap()
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The token of a new service account with `rules` in the namespace.
    pub(super) async fn caller(&self, name: &str, rules: Value) -> String {
        let how = PostParams::default();
        let accounts: Api<ServiceAccount> = self.api();
        let account = from(json!({"metadata": {"name": name}}));
        accounts.create(&how, &account).await.unwrap();
        let role = from(json!({"metadata": {"name": name}, "rules": rules}));
        self.api::<Role>().create(&how, &role).await.unwrap();
        let binding = from(json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}],
        }));
        self.api::<RoleBinding>().create(&how, &binding).await.unwrap();
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(3600),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let token = accounts.create_token_request(name, &how, &request).await.unwrap();
        token.status.unwrap().token.unwrap()
    }

    /// A service account with a token in a Secret, as the operator makes it for a cluster. Gives back the token.
    pub(super) async fn account(&self, name: &str) -> String {
        let how = PostParams::default();
        let account = from(json!({"metadata": {"name": name}}));
        self.api::<ServiceAccount>().create(&how, &account).await.unwrap();
        self.account_token(name, name).await
    }

    /// One more token of the account.
    pub(super) async fn account_token(&self, account: &str, secret: &str) -> String {
        let secrets: Api<Secret> = self.api();
        let object = from(json!({
            "metadata": {"name": secret, "annotations": {"kubernetes.io/service-account.name": account}},
            "type": "kubernetes.io/service-account-token",
        }));
        secrets.create(&PostParams::default(), &object).await.unwrap();
        eventually("the token of a service account", async || {
            let secret = secrets.get(secret).await.unwrap();
            let token = secret.data.unwrap_or_default().remove("token");
            let token = token.ok_or("no token yet")?;
            Ok::<_, &str>(String::from_utf8(token.0).unwrap())
        })
        .await
    }

    /// Makes an object with its status, past the API.
    pub(super) async fn seed_cluster(&self, name: &str, spec: Value, status: Value) -> Cluster {
        let object = from(json!({
            "apiVersion": "syn.tools/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": name},
            "spec": spec,
        }));
        self.api::<Cluster>()
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        self.patch_status(name, status).await
    }

    /// Makes a tenant past the API.
    pub(super) async fn seed_tenant(&self, name: &str, spec: Value) -> Tenant {
        let object = from(json!({
            "apiVersion": "syn.tools/v1alpha1",
            "kind": "Tenant",
            "metadata": {"name": name},
            "spec": spec,
        }));
        let tenants = self.api::<Tenant>();
        tenants.create(&PostParams::default(), &object).await.unwrap()
    }

    pub(super) async fn patch_status(&self, name: &str, status: Value) -> Cluster {
        let patch = json!({"status": status});
        self.api()
            .patch_status(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap()
    }

    pub(super) async fn patch<K>(&self, name: &str, patch: Value) -> K
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let how = PatchParams::default();
        self.api().patch(name, &how, &Patch::Merge(&patch)).await.unwrap()
    }

    /// A call of the caller who may do everything.
    pub(super) async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let media_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = body.map(|body| (media_type, body.to_string()));
        let token = Some(self.token.as_str());
        send(&self.router, method, path, token, body).await
    }

    /// A call of somebody.
    pub(super) async fn call_as(&self, token: Option<&str>, method: &str, path: &str) -> Answer {
        send(&self.router, method, path, token, None).await
    }

    /// The use of a bootstrap token in the query.
    pub(super) async fn install(&self, token: &str) -> Answer {
        self.call_as(None, "GET", &format!("/install/steward.json?token={token}"))
            .await
    }
}

/// Sends one request.
pub(super) async fn send(
    router: &Router,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: Option<(&str, String)>,
) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let body = match body {
        None => Body::empty(),
        Some((media_type, body)) => {
            request = request.header(header::CONTENT_TYPE, media_type);
            Body::from(body)
        }
    };
    exchange(router, request.body(body).unwrap()).await
}

/// Sends a request that a test has made itself.
pub(super) async fn exchange(router: &Router, request: Request<Body>) -> Answer {
    let response = router.clone().oneshot(request).await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = to_bytes(response.into_body(), ANSWER_SIZE_MAX).await.unwrap();
    Answer {
        status,
        headers,
        text: String::from_utf8(bytes.to_vec()).unwrap(),
    }
}

/// A token that can be used.
pub(super) fn bootstrap_token(token: &str) -> Value {
    json!({"bootstrapToken": {"token": token, "validUntil": TOMORROW, "tokenValid": true}})
}
