//! A namespace with a Git host, a Vault and the three controllers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel_core::{Clock as _, ManualClock};
use evenkeel_operator::git::{GitHost, Project, RepoPath};
use evenkeel_operator::resources::{Cluster, Condition, ConditionStatus, GitRepo, Tenant, TenantTemplate};
use evenkeel_operator::vault::{Engine, SecretStore, Vault};
use evenkeel_operator::{Clusters, GitRepoSettings, GitRepos, Scope, TenancySettings, Tenants};
use evenkeel_simulator::Cluster as Simulated;
use evenkeel_steps::Conclusion;
use evenkeel_telemetry::{OnCancel, OnError, SystemClock, Tasks};
use evenkeel_testkit::{FaultProxy, eventually};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::NamespaceResourceScope;
use kube::{Client, Config, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::admission::server;
use crate::git::Site;
use crate::rights::operator_of;
use crate::vault::{engine, path, root, server as vault_server, settings as vault_settings};

/// Rounds over all objects until nothing changes.
const ROUNDS_MAX: usize = 10;

/// Where the objects are.
pub(crate) enum Kubernetes {
    /// At a real API server with controllers.
    Real,
    /// At a simulated one, which takes any number of namespaces and puts no tokens into Secrets.
    Simulated(Simulated),
}

pub(crate) struct Land {
    simulated: Option<Simulated>,
    /// Before the Git host; on the way to it in simulated lands only.
    pub(crate) git: FaultProxy,
    pub(crate) site: Site,
    pub(crate) group: String,
    pub(crate) namespace: String,
    pub(crate) client: Client,
    pub(crate) kubernetes: FaultProxy,
    /// Before Vault.
    pub(crate) vault_proxy: FaultProxy,
    pub(crate) mount: String,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) tenants: Tenants,
    pub(crate) clusters: Clusters,
    pub(crate) repos: GitRepos,
}

impl Land {
    pub(crate) async fn new() -> Self {
        Self::with(TenancySettings::default()).await
    }

    pub(crate) async fn with(settings: TenancySettings) -> Self {
        Self::at(Kubernetes::Real, settings).await
    }

    pub(crate) async fn at(kubernetes: Kubernetes, settings: TenancySettings) -> Self {
        let settings = TenancySettings {
            token_secrets: true,
            // Tests change what is outside, and look at once.
            remember: false,
            ..settings
        };
        Self::exactly(kubernetes, settings).await
    }

    /// One whose controllers remember what they saw outside.
    pub(crate) async fn remembering() -> Self {
        let settings = TenancySettings {
            token_secrets: true,
            ..TenancySettings::default()
        };
        Self::exactly(Kubernetes::Real, settings).await
    }

    /// One that asks for tokens of service accounts.
    pub(crate) async fn without_token_secrets() -> Self {
        let settings = TenancySettings {
            remember: false,
            ..TenancySettings::default()
        };
        Self::exactly(Kubernetes::Real, settings).await
    }

    async fn exactly(kubernetes: Kubernetes, settings: TenancySettings) -> Self {
        let settings = TenancySettings {
            api_url: "https://api.example.org".to_owned(),
            ..settings
        };
        let site = Site::gitlab().await;
        let (client, namespace, upstream, simulated) = match kubernetes {
            Kubernetes::Real => {
                let namespace = server().namespace("land").await;
                let upstream = operator_of(&namespace).await;
                (server().client().await, namespace, upstream, None)
            }
            Kubernetes::Simulated(simulated) => {
                let (client, namespace) = enter(&simulated).await;
                (client.clone(), namespace, client, Some(simulated))
            }
        };
        let kubernetes = FaultProxy::start(upstream).await;
        let git = FaultProxy::before(&site.url()).await;
        let mut config = Config::new(kubernetes.url().parse().unwrap());
        config.default_retry = false;
        let ours = Client::try_from(config).unwrap();
        let mount = engine(Engine::V2);
        let vault_proxy = FaultProxy::before(&vault_server().url()).await;
        let mut at_vault = vault_settings(&mount, Engine::V2, root());
        at_vault.address = vault_proxy.url().parse().unwrap();
        let vault: Arc<dyn SecretStore> = Arc::new(Vault::new(&at_vault).unwrap());
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let of_repos = GitRepoSettings {
            protect: settings.protect,
            call_timeout: settings.call_timeout,
            remember: settings.remember,
            ..GitRepoSettings::default()
        };
        let endpoint = if simulated.is_some() {
            git.url()
        } else {
            site.url()
        };
        let land = Self {
            simulated,
            git,
            group: site.new_group().await,
            tenants: Tenants::new(ours.clone(), settings.clone(), Arc::clone(&clock) as _).unwrap(),
            clusters: Clusters::new(ours.clone(), settings, Some(vault), Arc::clone(&clock) as _).unwrap(),
            repos: GitRepos::new(ours, of_repos, Arc::clone(&clock) as _, Tasks::new()).unwrap(),
            site,
            namespace,
            client,
            kubernetes,
            vault_proxy,
            mount,
            clock,
        };
        let data = json!({
            "endpoint": endpoint, "token": land.site.token(), "hostKeys": "git.example.org ssh-ed25519 KEY",
        });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "git" }, "stringData": data,
        });
        let params = PatchParams::apply("test");
        land.api::<Secret>()
            .patch("git", &params, &Patch::Apply(&secret))
            .await
            .unwrap();
        land
    }

    /// Lets all controllers run, until the tasks are told to end.
    pub(crate) fn run(&self, tasks: &Tasks) {
        let scope = || Scope::Namespace(self.namespace.clone());
        let (tenants, of_tenants) = (self.tenants.clone(), scope());
        drop(
            tasks.spawn("tenants", OnError::Log, OnCancel::Wait, |token| async move {
                tenants.run(of_tenants, token).await;
                Ok::<(), std::io::Error>(())
            }),
        );
        let (clusters, of_clusters) = (self.clusters.clone(), scope());
        drop(
            tasks.spawn("clusters", OnError::Log, OnCancel::Wait, |token| async move {
                clusters.run(of_clusters, token).await;
                Ok::<(), std::io::Error>(())
            }),
        );
        let (repos, of_repos) = (self.repos.clone(), scope());
        drop(
            tasks.spawn("gitrepos", OnError::Log, OnCancel::Wait, |token| async move {
                repos.run(of_repos, token).await;
                Ok::<(), std::io::Error>(())
            }),
        );
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn write<K>(&self, name: &str, spec: Value)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let object = json!({
            "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": { "name": name }, "spec": spec,
        });
        let params = PatchParams::apply("test").force();
        self.api::<K>()
            .patch(name, &params, &Patch::Apply(&object))
            .await
            .unwrap();
    }

    /// Writes a tenant with a repository and a template for its clusters, and these fields.
    pub(crate) async fn tenant(&self, name: &str, more: Value) {
        let mut spec = json!({
            "displayName": "One Corp.",
            "gitRepoTemplate": { "path": self.group, "repoName": name, "apiSecretRef": { "name": "git" } },
            "clusterTemplate": {
                "facts": { "from": "template", "created": "{{ .CreationTimestamp }}" },
                "gitRepoTemplate": {
                    "path": self.group, "repoName": "{{ .Name }}", "apiSecretRef": { "name": "git" },
                },
            },
        });
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        self.write::<Tenant>(name, spec).await;
    }

    /// Writes a cluster of tenant `t-one`, with these fields.
    pub(crate) async fn cluster(&self, name: &str, more: Value) {
        let mut spec = json!({ "displayName": "A Cluster", "tenantRef": { "name": "t-one" }, "facts": { "cloud": "exo" } });
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        self.write::<Cluster>(name, spec).await;
    }

    pub(crate) async fn template(&self, spec: Value) {
        self.write::<TenantTemplate>("default", spec).await;
    }

    /// Runs passes over everything until none changes anything; Kubernetes fills in tokens meanwhile.
    pub(crate) async fn settle(&self) {
        let mut seen = String::new();
        for _ in 0..ROUNDS_MAX {
            self.tokens().await;
            let (writes, timelines) = self.round().await;
            if writes.is_empty() {
                return;
            }
            seen = format!("{writes:#?}\n{timelines}");
        }
        panic!("not settled after {ROUNDS_MAX} rounds: {seen}");
    }

    /// Lets the longest pause pass for which a host is left alone.
    pub(crate) fn rest(&self) {
        self.clock.advance(SignedDuration::from_secs(5 * 60 + 1));
    }

    /// One pass over every object, whatever goes wrong, after whatever pause a host asked for.
    pub(crate) async fn stumble(&self) {
        self.rest();
        self.tokens().await;
        for name in names(&self.api::<Tenant>()).await {
            let _ = self.tenants.pass(&self.namespace, &name).await;
        }
        for name in names(&self.api::<Cluster>()).await {
            let _ = self.clusters.pass(&self.namespace, &name).await;
        }
        for name in names(&self.api::<GitRepo>()).await {
            let _ = self.repos.pass(&self.namespace, &name).await;
        }
    }

    /// One pass over every object: what was written, and the timelines.
    pub(crate) async fn round(&self) -> (Vec<String>, String) {
        let before = self.kubernetes.requests();
        let mut timelines = String::new();
        for name in names(&self.api::<Tenant>()).await {
            timelines += &self.tenants.pass(&self.namespace, &name).await.unwrap().timeline;
        }
        for name in names(&self.api::<Cluster>()).await {
            timelines += &self.clusters.pass(&self.namespace, &name).await.unwrap().timeline;
        }
        for name in names(&self.api::<GitRepo>()).await {
            let passed = self.repos.pass(&self.namespace, &name).await.unwrap();
            timelines += &passed.timeline;
            if passed.conclusion == Some(Conclusion::Changed) {
                timelines += "(changed)\n";
            }
        }
        let passed = self.kubernetes.passed();
        let writes = passed[before..].iter().filter(|call| !call.starts_with("GET "));
        (writes.cloned().collect(), timelines)
    }

    /// Waits until Kubernetes has put tokens into the Secrets of service accounts.
    async fn tokens(&self) {
        if let Some(simulated) = &self.simulated {
            return issue(simulated, &self.namespace);
        }
        eventually("tokens of service accounts", async || {
            let secrets = self
                .api::<Secret>()
                .list(&Default::default())
                .await
                .unwrap()
                .items;
            let waiting = secrets.iter().find(|secret| {
                secret.type_.as_deref() == Some("kubernetes.io/service-account-token")
                    && !secret
                        .data
                        .as_ref()
                        .is_some_and(|data| data.contains_key("token"))
            });
            waiting.map_or(Ok(()), |secret| Err(secret.name_any()))
        })
        .await;
    }

    pub(crate) async fn get<K>(&self, name: &str) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        self.api::<K>().get(name).await.unwrap()
    }

    pub(crate) async fn delete<K>(&self, name: &str)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        self.api::<K>().delete(name, &Default::default()).await.unwrap();
    }

    pub(crate) async fn annotate<K>(&self, name: &str, annotation: &str, value: &str)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let fields = json!({ "metadata": { "annotations": { annotation: value } } });
        let params = PatchParams::default();
        self.api::<K>()
            .patch(name, &params, &Patch::Merge(&fields))
            .await
            .unwrap();
    }

    pub(crate) async fn project(&self, name: &str) -> Option<Project> {
        let path = RepoPath::new(&self.group, name).unwrap();
        self.site.host().find(&path).await.unwrap()
    }

    pub(crate) fn host(&self) -> Arc<dyn GitHost> {
        self.site.host()
    }

    /// What Vault has below a cluster's path.
    pub(crate) async fn secret(&self, tenant: &str, cluster: &str) -> Option<String> {
        let store = crate::vault::store(&self.mount, Engine::V2);
        let reading = store
            .read(&path(&format!("{tenant}/{cluster}/steward")))
            .await
            .unwrap();
        reading.data?.get("token").map(str::to_owned)
    }
}

/// A namespace of its own in a simulated cluster.
async fn enter(simulated: &Simulated) -> (Client, String) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let namespace = format!("land-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    simulated.create("test", object).unwrap();
    evenkeel_testkit::install_crypto_provider();
    let kubeconfig = Kubeconfig::from_yaml(simulated.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    (Client::try_from(config).unwrap(), namespace)
}

/// Puts tokens into the Secrets of service accounts, as Kubernetes does.
fn issue(simulated: &Simulated, namespace: &str) {
    for secret in simulated.list("v1", "Secret", namespace).unwrap() {
        if secret["type"] == "kubernetes.io/service-account-token" && secret["data"]["token"].is_null() {
            let name = secret["metadata"]["name"].as_str().unwrap();
            let patch = json!({ "data": { "token": "dG9rZW4tb2YtdGhlLWFjY291bnQ=" } });
            simulated
                .patch("kubernetes", "v1", "Secret", namespace, name, patch)
                .unwrap();
        }
    }
}

async fn names<K>(api: &Api<K>) -> Vec<String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let list = api.list(&Default::default()).await.unwrap();
    list.items.iter().map(kube::ResourceExt::name_any).collect()
}

pub(crate) fn assert_condition(conditions: &[Condition], kind: &str, status: ConditionStatus, says: &str) {
    let found = conditions.iter().find(|condition| condition.kind == kind);
    let is_so = found.is_some_and(|found| found.status == status && found.message.contains(says));
    assert!(
        is_so,
        "{kind} should be {status:?} and say {says:?}: {conditions:#?}"
    );
}
