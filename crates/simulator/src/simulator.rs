//! The simulator: one listener, many clusters.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use evenkeel_core::Clock;
use evenkeel_telemetry::{OnCancel, OnError, SystemClock, Tasks};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use uuid::Uuid;

use crate::behaviours::{self, Runner};
use crate::cluster::{Cluster, ClusterState};
use crate::counters::Counts;
use crate::environment::{Environment, Timing};
use crate::error::Error;
use crate::server::{self, Clusters};
use crate::tls;

/// Writes that each cluster remembers for watches, when nothing else is said.
const DEFAULT_HISTORY: usize = 1000;
/// How long connections have to go away when the simulator stops.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// Settings of a simulator.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// Writes that each cluster remembers: a watch from an older resource version gets 410 Gone.
    pub history: usize,
    /// Nodes of each cluster.
    pub nodes: u32,
    /// How long simulated things take.
    pub timing: Timing,
    /// The time that objects carry.
    pub clock: Arc<dyn Clock>,
    /// Whether controllers, scheduler and kubelets run. Without them objects stay as clients write them: pods are not
    /// made, namespaces not emptied, garbage not collected. Custom kinds are served all the same.
    pub controllers: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            history: DEFAULT_HISTORY,
            nodes: 1,
            timing: Timing::default(),
            clock: Arc::new(SystemClock),
            controllers: true,
        }
    }
}

/// A running simulator. [`stop`](Self::stop) ends it cleanly; dropping it ends its tasks where they stand.
#[derive(Debug)]
pub struct Simulator {
    address: SocketAddr,
    environment: Arc<Environment>,
    clusters: Arc<Clusters>,
    runner: Arc<Runner>,
    tasks: Tasks,
}

impl Simulator {
    /// Starts listening. Clusters are added afterwards.
    ///
    /// # Errors
    /// The address cannot be listened on, or no certificate can be made.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let bind = |source| Error::Bind {
            address: options.address,
            source,
        };
        let listener = TcpListener::bind(options.address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let identity = tls::make(address.ip())?;
        let environment = Arc::new(Environment::new(&options, identity.ca_certificate));
        let clusters = Arc::new(Clusters::default());
        let runner = Arc::new(Runner::default());
        let tasks = Tasks::new();
        let acceptor = TlsAcceptor::from(identity.server);
        let (served, supervisor) = (clusters.clone(), tasks.clone());
        drop(
            tasks.spawn("simulator-listener", OnError::Log, OnCancel::Wait, move |token| {
                server::serve(listener, acceptor, address, served, supervisor, token)
            }),
        );
        let run = runner.clone();
        drop(tasks.spawn(
            "simulator-controllers",
            OnError::Log,
            OnCancel::Wait,
            move |token| behaviours::run(run, token),
        ));
        Ok(Self {
            address,
            environment,
            clusters,
            runner,
            tasks,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server URL of a cluster, whether or not there is one of that name.
    pub fn url(&self, name: &str) -> String {
        format!("https://{}/clusters/{name}", self.address)
    }

    /// The certificate of the simulator's authority, in PEM.
    pub fn ca_certificate(&self) -> &str {
        &self.environment.ca_certificate
    }

    /// Adds a cluster. It is empty but for what every cluster has; its `kube-system` namespace has the same uid each
    /// time a cluster of this name is added.
    ///
    /// # Errors
    /// The name is no DNS label, or taken.
    pub fn add_cluster(&self, name: &str) -> Result<Cluster, Error> {
        let label = !name.is_empty()
            && name.len() <= 63
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !name.starts_with('-')
            && !name.ends_with('-');
        if !label {
            return Err(Error::Name(name.to_owned()));
        }
        let token = Uuid::new_v4().simple().to_string();
        let inner = Arc::new(ClusterState::new(
            name,
            token,
            self.environment.clone(),
            self.runner.clone(),
        ));
        if !self.clusters.add(inner.clone()) {
            return Err(Error::Exists(name.to_owned()));
        }
        Ok(self.handle(inner))
    }

    fn handle(&self, inner: Arc<ClusterState>) -> Cluster {
        let kubeconfig = self.render_kubeconfig(&inner).into();
        Cluster { inner, kubeconfig }
    }

    /// A cluster by name.
    pub fn cluster(&self, name: &str) -> Option<Cluster> {
        self.clusters.get(name).map(|inner| self.handle(inner))
    }

    /// Names of all clusters, sorted.
    pub fn clusters(&self) -> Vec<String> {
        self.clusters.names()
    }

    /// Removes a cluster with all it holds; its watches end.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn remove_cluster(&self, name: &str) -> Result<(), Error> {
        let cluster = self
            .clusters
            .remove(name)
            .ok_or_else(|| Error::NoCluster(name.to_owned()))?;
        cluster.close();
        Ok(())
    }

    /// The content of a kubeconfig for a cluster.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn kubeconfig(&self, name: &str) -> Result<String, Error> {
        let cluster = self
            .clusters
            .get(name)
            .ok_or_else(|| Error::NoCluster(name.to_owned()))?;
        Ok(self.render_kubeconfig(&cluster))
    }

    /// What each cluster was asked.
    pub fn counters(&self) -> BTreeMap<String, Counts> {
        let names = self.clusters.names().into_iter();
        names
            .filter_map(|name| Some((self.clusters.get(&name)?.counters.snapshot(), name)))
            .map(|(c, n)| (n, c))
            .collect()
    }

    fn render_kubeconfig(&self, cluster: &ClusterState) -> String {
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.environment.ca_certificate);
        let (name, url, token) = (&cluster.name, self.url(&cluster.name), &cluster.token);
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: {name}\n  cluster:\n    server: {url}\n    \
             certificate-authority-data: {authority}\nusers:\n- name: evenkeel\n  user:\n    token: {token}\ncontexts:\n\
             - name: {name}\n  context:\n    cluster: {name}\n    user: evenkeel\ncurrent-context: {name}\n"
        )
    }

    /// Stops listening, ends all watches and connections, and waits for that.
    pub async fn stop(self) {
        for cluster in self.clusters.drain() {
            cluster.close();
        }
        let stopped = self.tasks.shutdown(STOP_DEADLINE).await;
        if !stopped.aborted.is_empty() {
            tracing::warn!(tasks = ?stopped.aborted, "simulator tasks had to be aborted");
        }
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}
