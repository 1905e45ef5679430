//! Which bootstrap token belongs to which cluster, so that a token that opens nothing costs the API server nothing.
//!
//! Only hints are kept, by SHA-256 of the token: the token itself is in no map, so no comparison of its characters can be
//! timed, and what decides is the object as the API server has it at that moment.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use evenkeel_core::Digest;
use evenkeel_operator::resources::{BootstrapToken, Cluster};
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::watch;

use super::access::name_of;
use super::cluster_document::{text_of, usable_token};

/// How long a call waits until the clusters have been listed once.
const LISTED_WITHIN: Duration = Duration::from_secs(5);

/// SHA-256 of a token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint([u8; SHA256_OUTPUT_LEN]);

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Fingerprint {
    /// Of a token.
    pub(super) fn of(token: &str) -> Self {
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(bytes)
    }

    /// Of the token that a status has, or of which it has the hash.
    fn of_stored(token: &BootstrapToken) -> Option<Self> {
        if let Some(text) = text_of(token) {
            return Some(Self::of(text));
        }
        let hash: Digest = format!("sha256:{}", token.token_hash.as_ref()?).parse().ok()?;
        Some(Self(*hash.as_bytes()))
    }

    /// Whether the token of a status is the one that this was made of.
    pub(super) fn matches(&self, token: &BootstrapToken) -> bool {
        Self::of_stored(token).is_some_and(|stored| verify_slices_are_equal(&self.0, &stored.0).is_ok())
    }
}

/// What is known of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// No cluster has it.
    Unknown,
    /// It was used, or its time is over.
    Spent,
    /// It may open the manifest of this cluster.
    Usable(String),
}

/// What is known of all tokens.
#[derive(Debug)]
pub(super) struct Tokens {
    index: Mutex<Index>,
    listed: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Index {
    by_token: HashMap<Fingerprint, Entry>,
    by_cluster: HashMap<String, Fingerprint>,
    /// Tokens that were used here, until they are over anyway. Nobody can make them good again by writing an older status.
    used: HashMap<Fingerprint, Timestamp>,
    /// Names seen since a list began; what is not among them at its end is gone.
    listing: Option<Vec<String>>,
}

#[derive(Debug)]
struct Entry {
    cluster: String,
    /// None where it is said to be used.
    until: Option<Timestamp>,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            index: Mutex::default(),
            listed: watch::Sender::new(false),
        }
    }
}

impl Tokens {
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the clusters for as long as it is polled.
    pub(super) async fn follow(&self, clusters: Api<Cluster>) -> Result<(), Infallible> {
        let mut events = pin!(watcher(clusters, watcher::Config::default()).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.hear(event),
                Err(error) => tracing::warn!(
                    error = %kind_of(&error),
                    "the clusters cannot be watched; it is tried again"
                ),
            }
        }
        Ok(())
    }

    fn hear(&self, event: Event<Cluster>) {
        match event {
            Event::Init => self.index().listing = Some(Vec::new()),
            Event::InitApply(cluster) => {
                let mut index = self.index();
                if let Some(listing) = &mut index.listing {
                    listing.push(name_of(&cluster.metadata).to_owned());
                }
                index.learn(&cluster);
            }
            Event::InitDone => {
                self.index().end_listing();
                self.listed.send_replace(true);
            }
            Event::Apply(cluster) => self.index().learn(&cluster),
            Event::Delete(cluster) => self.index().forget(name_of(&cluster.metadata)),
        }
    }

    /// Takes over what a cluster that was just read says: a caller that is given an address can use it at once.
    pub(super) fn learn(&self, cluster: &Cluster) {
        self.index().learn(cluster);
    }

    /// Whether all clusters have been seen once, or are within a short time.
    pub(super) async fn are_known(&self) -> bool {
        let mut listed = self.listed.subscribe();
        let seen = listed.wait_for(|listed| *listed);
        tokio::time::timeout(LISTED_WITHIN, seen)
            .await
            .is_ok_and(|seen| seen.is_ok())
    }

    /// What is known of a token.
    pub(super) fn look_up(&self, token: &Fingerprint, now: Timestamp) -> Known {
        let index = self.index();
        match index.by_token.get(token) {
            _ if index.used.contains_key(token) => Known::Spent,
            Some(entry) if entry.until.is_some_and(|until| now < until) => {
                Known::Usable(entry.cluster.clone())
            }
            Some(_) => Known::Spent,
            None => Known::Unknown,
        }
    }

    /// Notes that a token was used; by itself it is over at `until`.
    pub(super) fn spend(&self, token: Fingerprint, until: Timestamp, now: Timestamp) {
        let mut index = self.index();
        index.used.retain(|_, until| now < *until);
        index.used.insert(token, until);
    }
}

impl Index {
    fn learn(&mut self, cluster: &Cluster) {
        let name = name_of(&cluster.metadata);
        let status = cluster.status.as_ref();
        let token = status.and_then(|status| status.bootstrap_token.as_ref());
        let Some(fingerprint) = token.and_then(Fingerprint::of_stored) else {
            self.forget(name);
            return;
        };
        let until = usable_token(cluster, Timestamp::MIN).and_then(|token| token.valid_until);
        if let Some(old) = self.by_cluster.insert(name.to_owned(), fingerprint)
            && old != fingerprint
        {
            self.by_token.remove(&old);
        }
        let cluster = name.to_owned();
        self.by_token.insert(fingerprint, Entry { cluster, until });
    }

    fn forget(&mut self, name: &str) {
        if let Some(token) = self.by_cluster.remove(name) {
            self.by_token.remove(&token);
        }
    }

    fn end_listing(&mut self) {
        let Some(mut listing) = self.listing.take() else {
            return;
        };
        listing.sort_unstable();
        let is_gone = |name: &&String| listing.binary_search(name).is_err();
        let gone: Vec<String> = self.by_cluster.keys().filter(is_gone).cloned().collect();
        for name in gone {
            self.forget(&name);
        }
    }
}

/// What kind of error it is. Its own words may quote what was read.
fn kind_of(error: &watcher::Error) -> String {
    let (doing, cause) = match error {
        watcher::Error::InitialListFailed(cause) => ("list", cause),
        watcher::Error::WatchStartFailed(cause) => ("start to watch", cause),
        watcher::Error::WatchFailed(cause) => ("watch", cause),
        watcher::Error::WatchError(status) => return format!("watch: {}", status.message),
        watcher::Error::NoResourceVersion => return "a list without a version".to_owned(),
    };
    match cause {
        kube::Error::Api(status) => format!("{doing}: {}", status.message),
        kube::Error::SerdeError(_) => format!("{doing}: an answer that is not understood"),
        cause => format!("{doing}: {cause}"),
    }
}
