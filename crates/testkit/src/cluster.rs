//! Named clusters, shared by the tests of one process.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use evenkeel_realparts::{AuditMark, AuditedRequest, Cluster, Error};
use http::HeaderValue;
use http::header::USER_AGENT;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::{Once, control_plane, eventually, install_crypto_provider};

/// How many clusters one test process may have: each takes some 400 MB and two seconds of processor time.
pub const MAX_CLUSTERS: usize = 3;

/// Time limits of the clients given to tests. A watch may be silent longer, so it has none to read.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A real cluster, shared by the tests of one process.
#[derive(Debug)]
pub struct TestCluster {
    cluster: Cluster,
    namespaces: AtomicUsize,
}

/// The cluster of that name, started when first asked for.
///
/// # Panics
/// When it cannot be started, or the process has [`MAX_CLUSTERS`] others.
pub fn cluster(name: &str) -> &'static TestCluster {
    static SHARED: Mutex<BTreeMap<String, &'static Once<TestCluster>>> = Mutex::new(BTreeMap::new());
    let once: &'static Once<TestCluster> = {
        // Not held while the cluster starts: others may start meanwhile.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if !shared.contains_key(name) && shared.len() == MAX_CLUSTERS {
            let names: Vec<&String> = shared.keys().collect();
            panic!(
                "cluster {name:?} would be one more than {MAX_CLUSTERS} in this process: use one of {names:?}"
            );
        }
        shared
            .entry(name.to_owned())
            .or_insert_with(|| Box::leak(Box::new(Once::new())))
    };
    once.get_or_start(&format!("cluster {name:?}"), || {
        let cluster = control_plane().start_cluster(name)?;
        Ok::<_, Error>(TestCluster {
            cluster,
            namespaces: AtomicUsize::new(0),
        })
    })
}

impl Deref for TestCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl TestCluster {
    /// A client with an administrator's rights, for the calling runtime. Make one per test: its connections belong to
    /// the runtime that made it.
    ///
    /// # Panics
    /// When it cannot be made.
    pub async fn client(&self) -> Client {
        self.client_as("evenkeel-test").await
    }

    /// A client that calls itself `user_agent`, by which its requests can be counted.
    ///
    /// # Panics
    /// When it cannot be made.
    pub async fn client_as(&self, user_agent: &str) -> Client {
        install_crypto_provider();
        match build_client(self.kubeconfig(), user_agent).await {
            Ok(client) => client,
            Err(error) => panic!("cannot make a client for cluster {:?}: {error}", self.name()),
        }
    }

    /// Makes a namespace that no other test has, and waits until Pods can be created in it. Its name starts with
    /// `prefix`.
    ///
    /// Deleting a namespace takes its time: Kubernetes starts to empty it after 5 seconds, and if Pods have the default
    /// `terminationGracePeriodSeconds` of 30, looks again only after 16 more. Give those Pods 1.
    ///
    /// # Panics
    /// When it cannot be made.
    pub async fn namespace(&self, prefix: &str) -> String {
        let name = self.unused_namespace(prefix);
        let client = self.client().await;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let object: Namespace = Namespace {
            metadata: kube::api::ObjectMeta {
                name: Some(name.clone()),
                ..kube::api::ObjectMeta::default()
            },
            ..Namespace::default()
        };
        if let Err(error) = namespaces.create(&PostParams::default(), &object).await {
            panic!("cannot create namespace {name:?}: {error}");
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(client, &name);
        eventually("the default service account of a new namespace", async || {
            accounts.get("default").await
        })
        .await;
        name
    }

    /// A name for a namespace that no other test has. The namespace is not made.
    pub fn unused_namespace(&self, prefix: &str) -> String {
        let number = self.namespaces.fetch_add(1, Ordering::Relaxed);
        format!("{prefix}-{number}")
    }

    /// A mark in the audit log, from which [`Self::requests_of`] counts.
    ///
    /// # Panics
    /// When the log cannot be read.
    pub fn mark(&self) -> AuditMark {
        match self.audit().mark() {
            Ok(mark) => mark,
            Err(error) => panic!("{error}"),
        }
    }

    /// What the API server was asked since `mark` by clients whose user agent starts with `user_agent`. Exact for
    /// every request that has been answered.
    ///
    /// # Panics
    /// When the log cannot be read.
    pub fn requests_of(&self, user_agent: &str, mark: AuditMark) -> Vec<AuditedRequest> {
        match self.audit().since(mark) {
            Ok(mut requests) => {
                requests.retain(|request| request.user_agent.starts_with(user_agent));
                requests
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// The real kubectl with an administrator's kubeconfig.
    ///
    /// # Panics
    /// When it is not in the cache.
    pub fn kubectl(&self) -> Command {
        self.command(evenkeel_realparts::kubectl())
    }

    /// The real Helm with an administrator's kubeconfig.
    ///
    /// # Panics
    /// When it is not in the cache.
    pub fn helm(&self) -> Command {
        self.command(evenkeel_realparts::helm())
    }

    fn command(&self, program: Result<std::path::PathBuf, Error>) -> Command {
        match program {
            Ok(program) => {
                let mut command = Command::new(program);
                command.env("KUBECONFIG", self.kubeconfig_file());
                command
            }
            Err(error) => panic!("{error}"),
        }
    }
}

async fn build_client(kubeconfig: &str, user_agent: &str) -> Result<Client, kube::Error> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let user_agent =
        HeaderValue::from_str(user_agent).map_err(|error| kube::Error::HttpError(error.into()))?;
    config.headers.push((USER_AGENT, user_agent));
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.default_retry = false;
    Client::try_from(config)
}
