//! Newer credentials for a client that is in use: when the server does not accept the old ones any more, and before that.

use std::fmt;
use std::sync::{Arc, PoisonError};

use evenkeel_core::{Digest, Sensitive};
use futures::future::BoxFuture;
use jiff::Timestamp;

use super::transport::Transport;
use super::{KubeconfigPolicy, kubeconfig, plugin};
use crate::{Cluster, Error};

/// Where a newer kubeconfig comes from when the server does not accept the credentials any more.
pub trait KubeconfigSource: fmt::Debug + Send + Sync {
    /// The newest kubeconfig; none when there is none or it cannot be had.
    fn newest(&self) -> BoxFuture<'_, Option<Sensitive<String>>>;
}

/// What came of reading a client's kubeconfig again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// It is as it was.
    Same,
    /// Its credentials are newer, and used from now on.
    Renewed,
    /// It leads elsewhere: this client is of no use any more, and another must find out which cluster is there.
    Moved,
    /// It cannot be had, or not be used; the client goes on with what it has.
    Unavailable,
}

/// A kubeconfig that stays as it is while the plugin that it names gives newer credentials.
#[derive(Debug)]
pub(super) struct Unchanged(Sensitive<String>);

impl Unchanged {
    pub(super) fn source(kubeconfig: &Sensitive<String>) -> Arc<dyn KubeconfigSource> {
        Arc::new(Self(kubeconfig.clone()))
    }
}

impl KubeconfigSource for Unchanged {
    fn newest(&self) -> BoxFuture<'_, Option<Sensitive<String>>> {
        Box::pin(std::future::ready(Some(self.0.clone())))
    }
}

/// What a kubeconfig and the plugin that it may name make together.
pub(super) struct Login {
    pub(super) transport: Transport,
    /// When newer credentials are to be asked for; never where nothing tells when these expire.
    pub(super) renewal: Option<Timestamp>,
    /// Whether a plugin gave them, and would give newer ones.
    pub(super) has_plugin: bool,
}

impl Login {
    /// Runs the plugin if there is one; the cluster is not contacted.
    ///
    /// # Errors
    /// [`Error::Kubeconfig`] with the path of the wrong field; [`Error::Credentials`] when the plugin fails.
    pub(super) async fn new(
        kubeconfig: &Sensitive<String>,
        policy: &KubeconfigPolicy,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let mut config = kubeconfig::read(kubeconfig.expose(), policy).await?;
        let given = plugin::log_in(&mut config.auth_info).await?;
        let expires = given.as_ref().and_then(|given| given.expires);
        Ok(Self {
            transport: Transport::new(config)?,
            renewal: expires.map(|expires| plugin::renewal(expires, now)),
            has_plugin: given.is_some(),
        })
    }
}

/// Where newer credentials come from.
pub(super) struct Credentials {
    source: Arc<dyn KubeconfigSource>,
    policy: KubeconfigPolicy,
    /// Of the kubeconfig in use. Held while a newer one is fetched, so that many refused requests fetch one.
    known: tokio::sync::Mutex<Digest>,
}

impl Credentials {
    pub(super) fn new(
        source: Arc<dyn KubeconfigSource>,
        policy: KubeconfigPolicy,
        known: &Sensitive<String>,
    ) -> Self {
        Self {
            source,
            policy,
            known: tokio::sync::Mutex::new(Digest::of(known.expose())),
        }
    }
}

impl Cluster {
    /// Reads the kubeconfig again where it came from, and uses newer credentials. Requests under way are not disturbed.
    pub async fn refresh(&self) -> Refreshed {
        match &self.inner.credentials {
            None => Refreshed::Same,
            Some(credentials) => {
                let mut known = credentials.known.lock().await;
                self.take_newest(credentials, &mut known).await
            }
        }
    }

    /// Whether the cluster could not be reached just now, several times in a row.
    pub fn is_unreachable(&self) -> bool {
        self.inner.breaker.peek().is_err()
    }

    /// Takes newer credentials when there are some; `false` when the ones that were refused are the newest.
    pub(super) async fn renew(&self, refused: u64) -> bool {
        let Some(credentials) = &self.inner.credentials else {
            return false;
        };
        let mut known = credentials.known.lock().await;
        if self.client().1 != refused {
            // Somebody else was refused first, and has renewed them.
            return true;
        }
        self.take_newest(credentials, &mut known).await == Refreshed::Renewed
    }

    /// Takes newer credentials when those in use expire soon. When there are none the old ones serve on: they may be good still.
    pub(super) async fn renew_in_time(&self) {
        let Some(credentials) = &self.inner.credentials else {
            return;
        };
        if !self.is_renewal_due() {
            return;
        }
        let mut known = credentials.known.lock().await;
        if !self.is_renewal_due() {
            // Somebody else was here first.
            return;
        }
        if self.take_newest(credentials, &mut known).await != Refreshed::Renewed {
            let again = plugin::later(self.clock().now(), plugin::AGAIN_AFTER);
            let mut link = self.inner.link.write().unwrap_or_else(PoisonError::into_inner);
            link.renewal = Some(again);
        }
    }

    fn is_renewal_due(&self) -> bool {
        let link = self.inner.link.read().unwrap_or_else(PoisonError::into_inner);
        link.renewal.is_some_and(|renewal| renewal <= self.clock().now())
    }

    async fn take_newest(&self, credentials: &Credentials, known: &mut Digest) -> Refreshed {
        let Some(newest) = credentials.source.newest().await else {
            return Refreshed::Unavailable;
        };
        let digest = Digest::of(newest.expose());
        // The files and programs that a user's own kubeconfig names give something new while it stays as it is.
        let names_others = matches!(credentials.policy, KubeconfigPolicy::Own { .. });
        if digest == *known && !names_others {
            return Refreshed::Same;
        }
        let server = &self.inner.server;
        let renewed = async {
            let login = Login::new(&newest, &credentials.policy, self.clock().now()).await?;
            let client = login.transport.client(&self.inner.pool_limits())?;
            Ok::<_, Error>((login, client))
        };
        match renewed.await {
            // Another address may be another cluster: whoever keeps clients finds that out.
            Ok((login, _)) if login.transport.server() != *server => Refreshed::Moved,
            Ok((login, client)) => {
                *known = digest;
                let mut link = self.inner.link.write().unwrap_or_else(PoisonError::into_inner);
                link.transport = login.transport;
                link.client = client;
                link.number += 1;
                link.renewal = login.renewal;
                tracing::info!(server, "newer credentials are used");
                Refreshed::Renewed
            }
            Err(error) => {
                tracing::warn!(server, %error, "newer credentials cannot be used");
                Refreshed::Unavailable
            }
        }
    }
}
