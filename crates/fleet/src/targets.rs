//! One pooled client per cluster, made when it is first needed and kept as long as its kubeconfig.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use evenkeel_cluster::{Cluster, ConnectOptions, ErrorClass, KubeconfigPolicy, Limits, Refreshed};
use evenkeel_core::{Clock, ClusterId};
use evenkeel_inventory::{self as inventory, Identity, Store};

use crate::Settings;
use crate::kubeconfigs::{Kubeconfigs, Newest};

/// How many clients are kept: more than the clusters of a large fleet, since a client remembers what its cluster serves
/// and which objects it found good. Connections are fewer: idle ones are closed.
const CLIENTS_MAX: usize = 16_384;
/// Idle connections kept per cluster.
const IDLE_CONNECTIONS: usize = 1;

/// Why a cluster cannot be worked with. Each begins with the word people look for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// Nobody has said how to reach it.
    #[error("no kubeconfig is stored for it: send one")]
    NoKubeconfig,
    /// It is known where its kubeconfig is, and it cannot be had there.
    #[error("kubeconfig: {0}")]
    KubeconfigSource(String),
    /// Another cluster answers at its address, or the same one belongs to another record.
    #[error("identity: {0}")]
    Identity(String),
    /// It did not answer, or refused.
    #[error("{word}: {0}", word = word(.0))]
    Cluster(#[from] evenkeel_cluster::Error),
    /// Its components cannot be put in order: what reconcilers declare of them does not go together.
    #[error("the order of its components: {0}")]
    Order(evenkeel_core::Error),
    /// The whole look took too long.
    #[error("unreachable: looking at it was not done within {0:?}")]
    Slow(Duration),
    /// What is known of it cannot be read.
    #[error("the inventory failed: {0}")]
    Inventory(#[from] inventory::Error),
}

/// What the system's resolver says of a name that does not exist.
const UNKNOWN_HOST: [&str; 2] = ["Name or service not known", "No address associated with hostname"];

/// How a failure at a cluster is called in its status.
fn word(error: &evenkeel_cluster::Error) -> &'static str {
    match error.class() {
        ErrorClass::Unreachable => "unreachable",
        ErrorClass::Unauthorized => "unauthorized",
        ErrorClass::Forbidden => "forbidden",
        ErrorClass::RateLimited(_) => "busy",
        _ => "cannot be checked",
    }
}

impl Trouble {
    /// Whether waiting cannot help: only a person's change can.
    pub(crate) fn needs_change(&self) -> bool {
        matches!(self, Self::NoKubeconfig | Self::Order(_))
    }

    /// Whether the cluster was asked at all: one that could not be reached is left alone for a moment, and what was not
    /// tried has not failed.
    pub(crate) fn was_tried(&self) -> bool {
        !matches!(self, Self::Cluster(evenkeel_cluster::Error::NotTried { .. }))
    }

    /// Whether the name of its API server does not exist; a name that cannot be resolved just now is another thing.
    pub(crate) fn is_host_unknown(&self) -> bool {
        let Self::Cluster(error) = self else {
            return false;
        };
        let mut source: Option<&dyn std::error::Error> = Some(error);
        while let Some(cause) = source {
            let text = cause.to_string();
            if UNKNOWN_HOST.iter().any(|unknown| text.contains(unknown)) {
                return true;
            }
            source = cause.source();
        }
        false
    }

    /// How long the cluster asked, or is, to be left alone.
    pub(crate) fn asked_pause(&self) -> Option<Duration> {
        match self {
            Self::Cluster(evenkeel_cluster::Error::NotTried { retry_in, .. }) => Some(*retry_in),
            Self::Cluster(error) => match error.class() {
                ErrorClass::RateLimited(pause) => Some(pause),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The clients of a process.
pub(crate) struct Targets {
    store: Arc<dyn Store>,
    kubeconfigs: Arc<Kubeconfigs>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    pool: Mutex<Pool>,
}

/// Clients by cluster, and by when they were used last.
#[derive(Default)]
struct Pool {
    clients: HashMap<ClusterId, Pooled>,
    by_use: BTreeMap<u64, ClusterId>,
    uses: u64,
}

struct Pooled {
    kubeconfig: u64,
    client: Cluster,
    newest: Arc<Newest>,
    used: u64,
}

impl fmt::Debug for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Targets")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Targets {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        kubeconfigs: Arc<Kubeconfigs>,
        settings: &Settings,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let limits = Limits {
            write_timeout: settings.write_timeout,
            apply_concurrency: settings.parallel_objects,
            idle_connections: IDLE_CONNECTIONS,
            ..Limits::default()
        };
        Self {
            store,
            kubeconfigs,
            clock,
            limits,
            pool: Mutex::default(),
        }
    }

    /// The client of a cluster, made with kubeconfig number `kubeconfig` or a newer one. A new one first asks the cluster
    /// who it is.
    ///
    /// # Errors
    /// [`Trouble`].
    pub(crate) async fn cluster(&self, id: &ClusterId, kubeconfig: Option<u64>) -> Result<Cluster, Trouble> {
        let number = kubeconfig.ok_or(Trouble::NoKubeconfig)?;
        let pooled = self.pool().get(id, number);
        if let Some((client, newest)) = pooled
            && self.is_usable(&client, &newest).await
        {
            return Ok(client);
        }
        let (client, newest) = self.connect_to(id).await?;
        let uid = client.uid().await?;
        match self.store.record_identity(id, uid.as_str()).await? {
            Identity::New | Identity::Same => {}
            // Not kept: the next try asks again, since the right cluster may come back.
            Identity::Changed { recorded } => {
                return Err(Trouble::Identity(format!(
                    "another cluster answers at {}: its kube-system namespace has uid {uid}, recorded is {recorded}; \
                     correct the kubeconfig, or confirm the new identity",
                    client.server()
                )));
            }
            Identity::Taken { by } => {
                return Err(Trouble::Identity(format!(
                    "the cluster at {} (kube-system uid {uid}) is registered already, with id {by}: \
                     delete one of the two",
                    client.server()
                )));
            }
        }
        self.pool().put(id.clone(), number, client.clone(), newest);
        Ok(client)
    }

    /// Whether a client still leads to where its kubeconfig does. One whose credentials end soon, or whose kubeconfig was
    /// not read for long, reads it again first.
    async fn is_usable(&self, client: &Cluster, newest: &Newest) -> bool {
        if !newest.is_due(self.clock.now(), client.is_unreachable()) {
            return true;
        }
        let refreshed = client.refresh().await;
        newest.settle();
        match refreshed {
            Refreshed::Moved => {
                tracing::info!(server = client.server(), "the kubeconfig leads elsewhere now");
                false
            }
            // What cannot be had now may be good for some time yet.
            Refreshed::Same | Refreshed::Renewed | Refreshed::Unavailable => true,
        }
    }

    /// A new client, of no known identity.
    ///
    /// # Errors
    /// [`Trouble`].
    pub(crate) async fn connect(&self, id: &ClusterId) -> Result<Cluster, Trouble> {
        Ok(self.connect_to(id).await?.0)
    }

    async fn connect_to(&self, id: &ClusterId) -> Result<(Cluster, Arc<Newest>), Trouble> {
        let read = self.kubeconfigs.read(id).await?;
        let options = ConnectOptions {
            policy: KubeconfigPolicy::Registered,
            limits: self.limits,
            clock: Arc::clone(&self.clock),
        };
        let newest = Arc::new(Newest::new(
            Arc::clone(&self.kubeconfigs),
            Arc::clone(&self.clock),
            id.clone(),
            &read,
        ));
        let source: Arc<dyn evenkeel_cluster::KubeconfigSource> = newest.clone();
        let client = Cluster::connect_renewable(&read.content, options, source)
            .await
            .map_err(|error| read.refused(error))?;
        Ok((client, newest))
    }

    /// Forgets the client of a cluster.
    pub(crate) fn forget(&self, id: &ClusterId) {
        self.pool().remove(id);
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    fn get(&mut self, id: &ClusterId, kubeconfig: u64) -> Option<(Cluster, Arc<Newest>)> {
        let pooled = self.clients.get_mut(id)?;
        if pooled.kubeconfig < kubeconfig {
            self.remove(id);
            return None;
        }
        self.uses += 1;
        self.by_use.remove(&pooled.used);
        pooled.used = self.uses;
        self.by_use.insert(self.uses, id.clone());
        Some((pooled.client.clone(), Arc::clone(&pooled.newest)))
    }

    fn put(&mut self, id: ClusterId, kubeconfig: u64, client: Cluster, newest: Arc<Newest>) {
        self.remove(&id);
        self.uses += 1;
        let used = self.uses;
        self.by_use.insert(used, id.clone());
        self.clients.insert(
            id,
            Pooled {
                kubeconfig,
                client,
                newest,
                used,
            },
        );
        while self.clients.len() > CLIENTS_MAX {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                return;
            };
            self.clients.remove(&oldest);
        }
    }

    fn remove(&mut self, id: &ClusterId) {
        if let Some(pooled) = self.clients.remove(id) {
            self.by_use.remove(&pooled.used);
        }
    }
}
