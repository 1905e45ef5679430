//! From which clusters a mothership reads the kubeconfigs of others.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use evenkeel_cluster::Cluster;
use evenkeel_fleet::KubeconfigClusters;
use serde_json::json;

use crate::kubeconfig::{self, Overrides};

/// Where Kubernetes puts a pod's own credentials.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Where Kubernetes tells a pod the address of its API server.
const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";

#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// The kubeconfig of the mothership's own cluster, whose Secrets may hold kubeconfigs; a pod needs none
    #[arg(long, value_name = "FILE", env = "EVENKEEL_OWN_KUBECONFIG")]
    own_kubeconfig: Option<PathBuf>,
    /// The kubeconfig of the garden cluster, which issues credentials of Gardener shoots
    #[arg(long, value_name = "FILE", env = "EVENKEEL_GARDEN_KUBECONFIG")]
    garden_kubeconfig: Option<PathBuf>,
}

impl Arguments {
    /// Clients of the clusters that were named, or that this pod is in. Nobody is asked for anything yet.
    pub(crate) async fn clusters(&self) -> anyhow::Result<KubeconfigClusters> {
        let own = match &self.own_kubeconfig {
            Some(file) => Some(
                connect(file, &Overrides::default())
                    .await
                    .context("--own-kubeconfig")?,
            ),
            None => in_cluster().await?,
        };
        let garden = match &self.garden_kubeconfig {
            None => None,
            Some(file) => {
                let garden = connect(file, &Overrides::default()).await;
                Some(garden.context("--garden-kubeconfig")?)
            }
        };
        Ok(KubeconfigClusters { own, garden })
    }
}

async fn connect(file: &Path, overrides: &Overrides) -> anyhow::Result<Cluster> {
    kubeconfig::read(Some(file), overrides, false)?.connect().await
}

/// The cluster that this process is a pod of; its token is read again whenever Kubernetes replaces it.
async fn in_cluster() -> anyhow::Result<Option<Cluster>> {
    let (Ok(host), Ok(port)) = (std::env::var(HOST), std::env::var(PORT)) else {
        return Ok(None);
    };
    let account = Path::new(ACCOUNT);
    if !account.join("token").exists() {
        return Ok(None);
    }
    let config = pod_kubeconfig(&host, &port, account);
    let own = kubeconfig::given(config, "of this pod's service account");
    own.connect().await.map(Some)
}

/// A kubeconfig that says what a pod is told.
fn pod_kubeconfig(host: &str, port: &str, account: &Path) -> serde_json::Value {
    // An IPv6 address stands in brackets.
    let host = match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "own",
        "clusters": [{"name": "own", "cluster": {
            "server": format!("https://{host}:{port}"), "certificate-authority": account.join("ca.crt"),
        }}],
        "users": [{"name": "own", "user": {"tokenFile": account.join("token")}}],
        "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_told_the_address_of_its_cluster() {
        let config = pod_kubeconfig("fd00::1", "443", Path::new("/account"));
        let cluster = &config["clusters"][0]["cluster"];
        assert_eq!(cluster["server"], "https://[fd00::1]:443");
        assert_eq!(cluster["certificate-authority"], "/account/ca.crt");
        assert_eq!(config["users"][0]["user"]["tokenFile"], "/account/token");
        let config = pod_kubeconfig("10.0.0.1", "443", Path::new("/account"));
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://10.0.0.1:443");
    }
}
