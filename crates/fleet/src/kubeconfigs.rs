//! Where the kubeconfigs of clusters come from (K3): the inventory, a Secret in the mothership's own cluster, or Gardener.
//!
//! The inventory holds the source, never what is read there. It is read when a client is made, again when the cluster
//! does not accept the credentials any more or cannot be reached, before short-lived ones end, and from time to time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_cluster::{Cluster, DataKind, KubeconfigSource};
use evenkeel_core::{
    Clock, ClusterId, FieldError, GardenerShoot, Kubeconfig, KubeconfigFrom, KubeconfigSecret, Namespace,
    Sensitive,
};
use evenkeel_inventory::{self as inventory, Store};
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

use crate::targets::Trouble;
use crate::tuning::Tuning;

/// How long what was read is believed while the cluster accepts it; it may have been replaced by what works as well.
const BELIEVED: SignedDuration = SignedDuration::from_mins(30);
/// The pause before it is read again after a look that was to give something newer.
const READ_AGAIN: SignedDuration = SignedDuration::from_secs(15);
/// Of the lifetime of short-lived credentials, the part after which they are renewed: two thirds.
const RENEWED_AFTER: (i32, i32) = (2, 3);

/// The clusters that kubeconfigs are read from.
#[derive(Clone, Debug, Default)]
pub struct KubeconfigClusters {
    /// The mothership's own, for Secrets; none when it runs in no cluster.
    pub own: Option<Cluster>,
    /// The one that serves Gardener's API; none when there is none.
    pub garden: Option<Cluster>,
}

/// A kubeconfig that was read.
pub(crate) struct ReadKubeconfig {
    pub(crate) content: Sensitive<String>,
    /// When its credentials end, where that is known.
    expires: Option<Timestamp>,
    /// Where it was read, if not in the inventory.
    origin: Option<String>,
}

impl ReadKubeconfig {
    /// What is wrong with it, and where it came from.
    pub(crate) fn refused(&self, error: evenkeel_cluster::Error) -> Trouble {
        match &self.origin {
            Some(origin) => Trouble::KubeconfigSource(format!("{origin}: {error}")),
            None => error.into(),
        }
    }
}

/// Reads kubeconfigs, wherever they are.
pub(crate) struct Kubeconfigs {
    store: Arc<dyn Store>,
    clusters: KubeconfigClusters,
    tuning: Arc<Tuning>,
}

impl fmt::Debug for Kubeconfigs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubeconfigs")
            .field("clusters", &self.clusters)
            .finish_non_exhaustive()
    }
}

impl Kubeconfigs {
    pub(crate) fn new(store: Arc<dyn Store>, clusters: KubeconfigClusters, tuning: Arc<Tuning>) -> Self {
        Self {
            store,
            clusters,
            tuning,
        }
    }

    /// Refuses at once what this mothership could never read. Whether it is there is found out later: it may come.
    ///
    /// # Errors
    /// The field, and what is missing.
    pub(crate) fn check(&self, from: &KubeconfigFrom) -> Result<(), FieldError> {
        let missing = |field, what: &str| Err(FieldError::new(format!("kubeconfigFrom.{field}"), what));
        match from {
            KubeconfigFrom::Secret(_) if self.clusters.own.is_none() => missing("secret", NO_OWN_CLUSTER),
            KubeconfigFrom::GardenerShoot(_) if self.clusters.garden.is_none() => {
                missing("gardenerShoot", NO_GARDEN)
            }
            _ => Ok(()),
        }
    }

    /// Reads the kubeconfig of a cluster.
    ///
    /// # Errors
    /// [`Trouble::NoKubeconfig`]; [`Trouble::KubeconfigSource`], which says what was looked for and where.
    pub(crate) async fn read(&self, id: &ClusterId) -> Result<ReadKubeconfig, Trouble> {
        let stored = match self.store.kubeconfig(id).await {
            Err(inventory::Error::NotFound { .. }) => return Err(Trouble::NoKubeconfig),
            stored => stored?,
        };
        match stored {
            Kubeconfig::Inline(content) => Ok(ReadKubeconfig {
                content,
                expires: None,
                origin: None,
            }),
            Kubeconfig::From(KubeconfigFrom::Secret(secret)) => self.of_secret(id, &secret).await,
            Kubeconfig::From(KubeconfigFrom::GardenerShoot(shoot)) => self.of_shoot(&shoot).await,
        }
    }

    async fn of_secret(&self, id: &ClusterId, secret: &KubeconfigSecret) -> Result<ReadKubeconfig, Trouble> {
        let settings = self.tuning.of_id(&*self.store, id).await?;
        let (name, key) = (secret.name_for(id), secret.key.as_str());
        let namespace = secret
            .namespace
            .as_ref()
            .map_or(settings.kubeconfig_namespace.as_str(), Namespace::as_str);
        let Some(own) = &self.clusters.own else {
            return Err(Trouble::KubeconfigSource(format!(
                "Secret {namespace}/{name} cannot be read: {NO_OWN_CLUSTER}"
            )));
        };
        let origin = format!(
            "Secret {namespace}/{name}, key {key:?}, in the mothership's own cluster ({})",
            own.server()
        );
        let trouble = |problem: String| Trouble::KubeconfigSource(format!("{origin}: {problem}"));
        let data = own.read_data(DataKind::Secret, namespace, &name, key).await;
        let bytes = data
            .map_err(|error| trouble(error.to_string()))?
            .ok_or_else(|| trouble("there is no such Secret".to_owned()))?;
        let content = std::str::from_utf8(bytes.expose()).map_err(|_| trouble("it is no text".to_owned()))?;
        Ok(ReadKubeconfig {
            content: Sensitive::new(content.to_owned()),
            expires: None,
            origin: Some(origin),
        })
    }

    async fn of_shoot(&self, shoot: &GardenerShoot) -> Result<ReadKubeconfig, Trouble> {
        let GardenerShoot {
            namespace,
            name,
            lifetime,
        } = shoot;
        let Some(garden) = &self.clusters.garden else {
            return Err(Trouble::KubeconfigSource(format!(
                "credentials of Gardener shoot {namespace}/{name} cannot be asked for: {NO_GARDEN}"
            )));
        };
        let issued = garden
            .shoot_kubeconfig(namespace.as_str(), name, lifetime.0)
            .await
            .map_err(|error| {
                Trouble::KubeconfigSource(format!(
                    "Gardener at {} gives no credentials of shoot {namespace}/{name}: {error}",
                    garden.server()
                ))
            })?;
        Ok(ReadKubeconfig {
            content: issued.content,
            expires: Some(issued.expires),
            origin: Some(format!(
                "credentials of shoot {namespace}/{name} from Gardener at {}",
                garden.server()
            )),
        })
    }
}

const NO_OWN_CLUSTER: &str = "this mothership knows no cluster of its own: run it as a pod, or name one with \
     --own-kubeconfig";
const NO_GARDEN: &str = "this mothership knows no Gardener: name its kubeconfig with --garden-kubeconfig";

/// The newest kubeconfig of a client, and when it is to be read again.
pub(crate) struct Newest {
    kubeconfigs: Arc<Kubeconfigs>,
    clock: Arc<dyn Clock>,
    id: ClusterId,
    reading: Mutex<Reading>,
}

/// What is known of the last reading.
struct Reading {
    at: Timestamp,
    expires: Option<Timestamp>,
    elsewhere: bool,
    /// Whether the client read it by itself, because its credentials were refused; it may lead elsewhere now.
    refused: bool,
}

impl Reading {
    fn of(read: &ReadKubeconfig, now: Timestamp) -> Self {
        Self {
            at: now,
            expires: read.expires,
            elsewhere: read.origin.is_some(),
            refused: false,
        }
    }

    /// When it is read again although nothing is wrong.
    fn again(&self) -> Timestamp {
        let (part, whole) = RENEWED_AFTER;
        let after = match self.expires {
            Some(expires) => expires.duration_since(self.at) / whole * part,
            None => BELIEVED,
        };
        self.at.saturating_add(after).unwrap_or(Timestamp::MAX)
    }
}

impl fmt::Debug for Newest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Newest")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Newest {
    pub(crate) fn new(
        kubeconfigs: Arc<Kubeconfigs>,
        clock: Arc<dyn Clock>,
        id: ClusterId,
        read: &ReadKubeconfig,
    ) -> Self {
        let reading = Mutex::new(Reading::of(read, clock.now()));
        Self {
            kubeconfigs,
            clock,
            id,
            reading,
        }
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is to be read now; then the caller is the one who does. One of the inventory itself never is: a newer
    /// one has another number.
    pub(crate) fn is_due(&self, now: Timestamp, unreachable: bool) -> bool {
        let mut reading = self.reading();
        if !reading.elsewhere {
            return false;
        }
        let wanted = if std::mem::take(&mut reading.refused) {
            reading.at
        } else if unreachable {
            reading.at.saturating_add(READ_AGAIN).unwrap_or(Timestamp::MAX)
        } else {
            reading.again()
        };
        if now < wanted {
            return false;
        }
        // Others go on with what there is meanwhile; when this fails, the next try is a moment later.
        reading.at = now;
        reading.expires = reading
            .expires
            .map(|_| now.saturating_add(READ_AGAIN).unwrap_or(now));
        true
    }

    /// What the last reading led to is known.
    pub(crate) fn settle(&self) {
        self.reading().refused = false;
    }

    async fn read(&self) -> Option<Sensitive<String>> {
        match self.kubeconfigs.read(&self.id).await {
            Ok(read) => {
                *self.reading() = Reading::of(&read, self.clock.now());
                Some(read.content)
            }
            Err(trouble) => {
                tracing::warn!(cluster_id = self.id.as_str(), %trouble, "no newer kubeconfig");
                None
            }
        }
    }
}

impl KubeconfigSource for Newest {
    fn newest(&self) -> BoxFuture<'_, Option<Sensitive<String>>> {
        Box::pin(async {
            let read = self.read().await;
            self.reading().refused = true;
            read
        })
    }
}
