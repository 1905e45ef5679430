//! What a source stands for: asked for when it is due, remembered in between, and kept when the host is down.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_core::{Digest, OciReference};
use jiff::{SignedDuration, Timestamp};
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::{ARCHIVE_SIZE_MAX, Inner, RemoteSource, Wish};
use crate::Error;
use crate::registry::{ChartManifest, Layer, Place};
use crate::store::Note;
use crate::version::Pick;

/// How long a failure is told to all who ask, rather than asking the host again for each of them.
const FAILURE_KEPT: Duration = Duration::from_secs(2);
/// The same, while the last known resolution can be used.
const FAILURE_BRIDGED: Duration = Duration::from_secs(30);

/// What a source stood for when somebody asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Resolution {
    /// The digest of the archive.
    pub(crate) digest: Digest,
    /// The version chosen.
    pub(crate) version: String,
    /// When that was known to be so.
    pub(crate) checked_at: Timestamp,
    /// The manifest, of a chart in a registry.
    pub(super) manifest: Option<ChartManifest>,
    /// Where the archive can be downloaded. Not kept on disk: an address may hold a secret.
    #[serde(skip)]
    pub(super) places: Vec<Origin>,
}

/// Where an archive can be downloaded.
#[derive(Clone)]
pub(super) enum Origin {
    /// At an address that the index of a repository names.
    Address { url: Url, repository: Option<Url> },
    /// In a registry.
    Blob { reference: OciReference, layer: Layer },
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address { url, .. } => f.write_str(&crate::address::shown(url)),
            Self::Blob { reference, layer } => write!(f, "{reference}@{}", layer.digest),
        }
    }
}

/// What is remembered of a source.
#[derive(Debug)]
pub(super) struct Known {
    resolution: Option<Arc<Resolution>>,
    failure: Option<(Arc<Error>, Timestamp)>,
}

impl Inner {
    pub(super) async fn resolve(self: &Arc<Self>, source: &RemoteSource) -> Result<Arc<Resolution>, Error> {
        if let Some(known) = self.resolutions.get(&source.key) {
            if let Some(resolution) = &known.resolution
                && (source.is_immutable() || self.is_younger(resolution.checked_at, self.fresh_for))
            {
                return Ok(Arc::clone(resolution));
            }
            if let Some((failure, until)) = &known.failure
                && self.clock.now() < *until
            {
                return match &known.resolution {
                    Some(resolution) => Ok(Arc::clone(resolution)),
                    None => Err(Error::Shared(Arc::clone(failure))),
                };
            }
        }
        let (this, source) = (Arc::clone(self), source.clone());
        let resolution = self
            .resolution_flights
            .join(source.key, move || async move { this.refresh(&source).await })
            .await?;
        Ok(resolution)
    }

    /// Asks the host, and falls back to what it said last when it is down.
    async fn refresh(self: &Arc<Self>, source: &RemoteSource) -> Result<Arc<Resolution>, Error> {
        let last = match self
            .resolutions
            .get(&source.key)
            .and_then(|known| known.resolution.clone())
        {
            Some(last) => Some(last),
            None => self.resolution_on_disk(source).await,
        };
        match self.look(source, last.as_deref(), self.fresh_for).await {
            Ok(resolution) => Ok(self.remember(source, resolution).await),
            Err(error) if error.is_transient() && last.is_some() => {
                let pause = error.retry_after().unwrap_or_default().max(FAILURE_BRIDGED);
                if let Some(last) = &last {
                    tracing::warn!(
                        source = %source,
                        version = last.version,
                        known_since = %last.checked_at,
                        %error,
                        "the host of a chart is down: the version known last is used"
                    );
                }
                self.fail(source, last.clone(), error, pause);
                last.ok_or_else(|| Error::Cancelled(source.to_string()))
            }
            Err(error) => {
                let pause = error.retry_after().unwrap_or_default().max(FAILURE_KEPT);
                Err(Error::Shared(self.fail(source, None, error, pause)))
            }
        }
    }

    fn fail(
        &self,
        source: &RemoteSource,
        resolution: Option<Arc<Resolution>>,
        error: Error,
        pause: Duration,
    ) -> Arc<Error> {
        let error = Arc::new(error);
        let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::ZERO);
        let until = self.clock.now().saturating_add(pause).unwrap_or(Timestamp::MAX);
        self.replace(
            source,
            Known {
                resolution,
                failure: Some((Arc::clone(&error), until)),
            },
        );
        error
    }

    async fn remember(&self, source: &RemoteSource, resolution: Resolution) -> Arc<Resolution> {
        let resolution = Arc::new(resolution);
        self.replace(
            source,
            Known {
                resolution: Some(Arc::clone(&resolution)),
                failure: None,
            },
        );
        if let Some(store) = self.store.clone() {
            let (key, resolution) = (source.key, Arc::clone(&resolution));
            // What cannot be noted is asked for again.
            let _ = self
                .blocking(move || store.note(Note::Resolution, &key, &*resolution))
                .await;
        }
        resolution
    }

    fn replace(&self, source: &RemoteSource, known: Known) {
        self.resolutions.remove(&source.key);
        self.resolutions.insert(source.key, Arc::new(known));
    }

    /// What an earlier process learned; the host is asked all the same when it answers.
    async fn resolution_on_disk(&self, source: &RemoteSource) -> Option<Arc<Resolution>> {
        let (store, key) = (self.store.clone()?, source.key);
        let noted = self.blocking(move || {
            let resolution: Resolution = store.noted(Note::Resolution, &key)?;
            store.has(&resolution.digest).then_some(resolution)
        });
        noted.await.ok()?.map(Arc::new)
    }

    /// Asks the host.
    pub(super) async fn look(
        self: &Arc<Self>,
        source: &RemoteSource,
        last: Option<&Resolution>,
        max_age: Duration,
    ) -> Result<Resolution, Error> {
        match &source.wish {
            Wish::Repository {
                repository,
                chart,
                wanted,
            } => {
                let found = self
                    .find_in_repository(repository, chart, wanted, max_age)
                    .await?;
                let places: Vec<_> = found
                    .urls
                    .into_iter()
                    .map(|url| Origin::Address {
                        url,
                        repository: Some(repository.clone()),
                    })
                    .collect();
                let same = last.filter(|last| last.version == found.version);
                let digest = match (found.digest, same) {
                    (Some(digest), _) => digest,
                    // An index without digests: a version that is known is taken to be what it was.
                    (None, Some(last)) => last.digest,
                    (None, None) => {
                        let archive = self.download_from(&places, None).await?;
                        let digest = Digest::of(&archive);
                        self.put(digest, archive).await?;
                        digest
                    }
                };
                Ok(Resolution {
                    digest,
                    version: found.version,
                    checked_at: found.checked_at,
                    manifest: None,
                    places,
                })
            }
            Wish::Oci { reference, pick } => {
                let credentials = self.credentials();
                let place = Place::new(reference, &credentials)?;
                let checked_at = self.clock.now();
                let known = last.and_then(|last| last.manifest.as_ref());
                let pulled = self.registry.find(&place, &credentials, pick, known).await?;
                let layer = pulled.manifest.chart.clone();
                Ok(Resolution {
                    digest: layer.digest,
                    version: pulled.version,
                    checked_at,
                    places: vec![Origin::Blob {
                        reference: reference.clone(),
                        layer,
                    }],
                    manifest: Some(pulled.manifest),
                })
            }
        }
    }

    pub(super) async fn archive(
        self: &Arc<Self>,
        source: &RemoteSource,
        resolution: &Resolution,
    ) -> Result<Bytes, Error> {
        let digest = resolution.digest;
        if let Some(archive) = self.in_store(&digest).await? {
            return Ok(archive);
        }
        let (this, source, places) = (Arc::clone(self), source.clone(), resolution.places.clone());
        self.archive_flights
            .join(digest, move || async move {
                let places = if places.is_empty() {
                    // Known from an earlier process, which noted no addresses.
                    this.look(&source, None, this.fresh_for).await?.places
                } else {
                    places
                };
                this.obtain(digest, &places).await
            })
            .await
    }

    /// An archive that is downloaded only when no other process has done so.
    pub(super) async fn obtain(self: &Arc<Self>, digest: Digest, places: &[Origin]) -> Result<Bytes, Error> {
        let _exclusive = match &self.store {
            Some(store) => Some(store.exclusive(&digest).await),
            None => None,
        };
        if let Some(archive) = self.in_store(&digest).await? {
            return Ok(archive);
        }
        let archive = self.download_from(places, Some(digest)).await?;
        self.put(digest, archive.clone()).await?;
        Ok(archive)
    }

    /// Tries one place after the other; the first failure is the one that is told.
    pub(super) async fn download_from(
        self: &Arc<Self>,
        places: &[Origin],
        wanted: Option<Digest>,
    ) -> Result<Bytes, Error> {
        let mut first = None;
        for place in places {
            match self.download_one(place, wanted).await {
                Ok(archive) => return Ok(archive),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| Error::Cancelled("a chart".to_owned())))
    }

    async fn download_one(&self, place: &Origin, wanted: Option<Digest>) -> Result<Bytes, Error> {
        match place {
            Origin::Blob { reference, layer } => {
                let credentials = self.credentials();
                let place = Place::new(reference, &credentials)?;
                self.registry
                    .blob(&place, &credentials, layer, ARCHIVE_SIZE_MAX)
                    .await
            }
            Origin::Address { url, repository } => {
                let archive = match url.scheme() {
                    // Some repositories name charts of registries.
                    "oci" => self.pull_address(url).await?,
                    _ => self.download(url, repository.as_ref(), ARCHIVE_SIZE_MAX).await?,
                };
                let found = Digest::of(&archive);
                match wanted.filter(|wanted| *wanted != found) {
                    Some(wanted) => Err(Error::Mismatch {
                        url: crate::address::shown(url),
                        wanted,
                        found,
                    }),
                    None => Ok(archive),
                }
            }
        }
    }

    /// The archive at an `oci://HOST/PATH:TAG` address.
    async fn pull_address(&self, url: &Url) -> Result<Bytes, Error> {
        let (reference, version) = super::fetch::split_reference(url.as_str())?;
        let credentials = self.credentials();
        let place = Place::new(&reference, &credentials)?;
        let pick = Pick::parse(version.as_deref())?;
        let pulled = self.registry.find(&place, &credentials, &pick, None).await?;
        self.registry
            .blob(&place, &credentials, &pulled.manifest.chart, ARCHIVE_SIZE_MAX)
            .await
    }

    pub(super) async fn in_store(&self, digest: &Digest) -> Result<Option<Bytes>, Error> {
        let Some(store) = self.store.clone() else {
            return Ok(None);
        };
        let digest = *digest;
        self.blocking(move || store.get(&digest)).await
    }

    pub(super) async fn put(&self, digest: Digest, archive: Bytes) -> Result<(), Error> {
        match self.store.clone() {
            Some(store) => self.blocking(move || store.put(&digest, &archive)).await,
            None => Ok(()),
        }
    }
}

impl RemoteSource {
    /// Whether it can never stand for anything else.
    fn is_immutable(&self) -> bool {
        matches!(
            &self.wish,
            Wish::Oci {
                pick: Pick::Digest(_),
                ..
            }
        )
    }
}
