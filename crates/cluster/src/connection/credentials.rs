//! Newer credentials for a client that is in use: when the server does not accept the old ones any more, and before that.

use std::fmt;
use std::sync::{Arc, PoisonError};

use evenkeel_core::{Digest, Sensitive};
use futures::future::BoxFuture;

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
            let read = kubeconfig::read(newest.expose(), &credentials.policy).await?;
            let transport = Transport::new(read.config)?;
            let client = transport.client(&self.inner.pool_limits())?;
            Ok::<_, Error>((transport, client, read.expires))
        };
        match renewed.await {
            // Another address may be another cluster: whoever keeps clients finds that out.
            Ok((transport, ..)) if transport.server() != *server => Refreshed::Moved,
            Ok((transport, client, expires)) => {
                *known = digest;
                let now = self.clock().now();
                let mut link = self.inner.link.write().unwrap_or_else(PoisonError::into_inner);
                link.transport = transport;
                link.client = client;
                link.number += 1;
                link.renewal = expires.map(|expires| plugin::renewal(expires, now));
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
