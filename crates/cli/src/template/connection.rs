//! The cluster that `--dry-run=server` asks, and the namespace that the kubeconfig names.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use evenkeel_chart::{Capabilities, Rendered};
use evenkeel_cluster::Cluster;
use evenkeel_component::{LiveLookup, capabilities};
use evenkeel_core::{GroupVersionKind, Sensitive};
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::flags::Switch;
use crate::kubeconfig::{self, Overrides};

/// Where Kubernetes puts a pod's own namespace.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// The token beside it: whoever has one runs in a cluster.
const OWN_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// How the cluster is reached.
#[derive(Debug, clap::Args)]
pub(super) struct Connection {
    /// Namespace of the release
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        env = "HELM_NAMESPACE",
        hide_env = true
    )]
    namespace: Option<String>,
    /// Kubeconfig; else those that KUBECONFIG lists, else ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use instead of its current one
    #[arg(long, value_name = "NAME", env = "HELM_KUBECONTEXT", hide_env = true)]
    kube_context: Option<String>,
    /// Address of the API server
    #[arg(long, value_name = "URL", env = "HELM_KUBEAPISERVER", hide_env = true)]
    kube_apiserver: Option<String>,
    /// Token to show to the API server
    #[arg(long, value_name = "TOKEN", env = "HELM_KUBETOKEN", hide_env = true, value_parser = token)]
    kube_token: Option<Sensitive<String>>,
    /// User to act as
    #[arg(long, value_name = "NAME", env = "HELM_KUBEASUSER", hide_env = true)]
    kube_as_user: Option<String>,
    /// Group to act as; may be repeated
    #[arg(
        long,
        value_name = "NAME",
        env = "HELM_KUBEASGROUPS",
        hide_env = true,
        value_delimiter = ','
    )]
    kube_as_group: Vec<String>,
    /// Certificate authorities that the API server is trusted by
    #[arg(long, value_name = "FILE", env = "HELM_KUBECAFILE", hide_env = true)]
    kube_ca_file: Option<PathBuf>,
    /// Name that the API server's certificate must have
    #[arg(long, value_name = "NAME", env = "HELM_KUBETLS_SERVER_NAME", hide_env = true)]
    kube_tls_server_name: Option<String>,
    /// Trust any API server
    #[arg(long, env = "HELM_KUBEINSECURE_SKIP_TLS_VERIFY", hide_env = true)]
    kube_insecure_skip_tls_verify: Switch,
}

fn token(text: &str) -> Result<Sensitive<String>, std::convert::Infallible> {
    Ok(Sensitive::new(text.to_owned()))
}

fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

impl Connection {
    /// The namespace of the release: the one given, else that of the kubeconfig's context, else the pod's own, else
    /// `default`.
    pub(super) fn namespace(&self) -> String {
        let configured =
            || kubeconfig::namespace(self.kubeconfig.as_deref(), given(self.kube_context.as_ref()));
        given(self.namespace.as_ref())
            .map(str::to_owned)
            .or_else(configured)
            .or_else(namespace_of_pod)
            .unwrap_or_else(|| "default".to_owned())
    }

    /// Connects, and makes sure that somebody answers.
    pub(super) async fn connect(&self) -> anyhow::Result<Cluster> {
        let own = kubeconfig::read(self.kubeconfig.as_deref(), &self.overrides()?, true)?;
        let cluster = own.connect().await?;
        cluster
            .kubernetes_version()
            .await
            .context("cluster reachability check failed")?;
        Ok(cluster)
    }

    fn overrides(&self) -> anyhow::Result<Overrides> {
        let mut cluster = Map::new();
        if let Some(server) = given(self.kube_apiserver.as_ref()) {
            // As kubectl: without a scheme, plain HTTP.
            let has_scheme = server.contains("://");
            let server = if has_scheme {
                server.to_owned()
            } else {
                format!("http://{server}")
            };
            cluster.insert("server".to_owned(), server.into());
        }
        if let Some(file) = self
            .kube_ca_file
            .as_ref()
            .filter(|file| !file.as_os_str().is_empty())
        {
            let file = std::path::absolute(file).with_context(|| format!("open {}", file.display()))?;
            cluster.insert("certificate-authority".to_owned(), file.to_string_lossy().into());
            cluster.insert("certificate-authority-data".to_owned(), Value::Null);
        }
        if let Some(name) = given(self.kube_tls_server_name.as_ref()) {
            cluster.insert("tls-server-name".to_owned(), name.into());
        }
        if self.kube_insecure_skip_tls_verify.0 {
            cluster.insert("insecure-skip-tls-verify".to_owned(), true.into());
        }
        let mut user = Map::new();
        if let Some(name) = given(self.kube_as_user.as_ref()) {
            user.insert("as".to_owned(), name.into());
        }
        if !self.kube_as_group.is_empty() {
            user.insert("as-groups".to_owned(), self.kube_as_group.clone().into());
        }
        let token = self
            .kube_token
            .as_ref()
            .filter(|token| !token.expose().is_empty());
        Ok(Overrides {
            context: given(self.kube_context.as_ref()).map(str::to_owned),
            cluster,
            user,
            token: token.cloned(),
        })
    }
}

/// The namespace of the pod that this process runs in.
fn namespace_of_pod() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    set("KUBERNETES_SERVICE_HOST")?;
    set("KUBERNETES_SERVICE_PORT")?;
    if !Path::new(OWN_TOKEN).is_file() {
        return None;
    }
    let namespace = set("POD_NAMESPACE").or_else(|| std::fs::read_to_string(OWN_NAMESPACE).ok())?;
    Some(namespace.trim().to_owned()).filter(|namespace| !namespace.is_empty())
}

/// What templates can see of a cluster.
pub(super) struct Seen {
    pub(super) capabilities: Capabilities,
    pub(super) lookup: LiveLookup,
}

impl Seen {
    pub(super) async fn of(cluster: &Cluster) -> anyhow::Result<Self> {
        Ok(Self {
            capabilities: capabilities(cluster).await?,
            lookup: LiveLookup::new(cluster.clone(), Handle::current()),
        })
    }
}

/// Whose objects a render is about.
pub(super) struct Owner<'a> {
    pub(super) release: &'a str,
    pub(super) namespace: &'a str,
}

/// Refuses what could not be installed: kinds that the cluster does not have, and objects that are there and are not of
/// this release.
pub(super) async fn check(
    cluster: &Cluster,
    rendered: &Rendered,
    owner: &Owner<'_>,
    conflicts: bool,
) -> anyhow::Result<()> {
    for found in rendered.objects()?.iter().filter(|found| found.hook.is_none()) {
        let object = &found.object;
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let group_version_kind = GroupVersionKind::from_api_version(api_version, kind);
        let Some(resource) = cluster.resource(&group_version_kind).await? else {
            bail!(
                "unable to build kubernetes objects from release manifest: resource mapping not found for name: \
                 {name:?} namespace: {namespace:?}: no matches for kind {kind:?} in version {api_version:?}; \
                 ensure CRDs are installed first"
            );
        };
        if !conflicts {
            continue;
        }
        let namespace = match namespace {
            "" if resource.namespaced => owner.namespace,
            namespace => namespace,
        };
        let there = cluster.lookup(api_version, kind, namespace, name).await?;
        if let Some(there) = there.filter(|there| !owner.owns(there)) {
            let _ = there;
            bail!(
                "unable to continue with install: {kind} {name:?} in namespace {namespace:?} exists and cannot be \
                 imported into the current release: invalid ownership metadata; it must have the label \
                 app.kubernetes.io/managed-by: Helm and the annotations meta.helm.sh/release-name: {} and \
                 meta.helm.sh/release-namespace: {}",
                owner.release,
                owner.namespace
            );
        }
    }
    Ok(())
}

impl Owner<'_> {
    fn owns(&self, object: &Value) -> bool {
        let is =
            |pointer: &str, wanted: &str| object.pointer(pointer).and_then(Value::as_str) == Some(wanted);
        is("/metadata/labels/app.kubernetes.io~1managed-by", "Helm")
            && is("/metadata/annotations/meta.helm.sh~1release-name", self.release)
            && is(
                "/metadata/annotations/meta.helm.sh~1release-namespace",
                self.namespace,
            )
    }
}
