//! Helm repositories: an index that is asked for only when it may have changed, and the archives it names.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_core::Digest;
use jiff::Timestamp;
use reqwest::header::{ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use reqwest::{StatusCode, Url};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::address::{relative_to, same_origin, shown};
use crate::credentials::Credentials;
use crate::http::{Authorization, Request, basic};
use crate::index::{INDEX_SIZE_MAX, Index};
use crate::remote::Inner;
use crate::store::Note;
use crate::version::Wanted;

/// The index's name below a repository.
const INDEX_FILE: &str = "index.yaml";

/// An index as it was known last.
#[derive(Debug)]
pub(crate) struct KnownIndex {
    pub(crate) index: Arc<Index>,
    seen: Seen,
}

/// What is remembered of an index, so that only a changed one is sent again.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Seen {
    body: Digest,
    etag: Option<String>,
    last_modified: Option<String>,
    checked_at: Timestamp,
}

/// A version of a chart in a repository.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) version: String,
    /// Where its archive lies; one is enough.
    pub(crate) urls: Vec<Url>,
    pub(crate) digest: Option<Digest>,
    /// When the index was known to be the newest.
    pub(crate) checked_at: Timestamp,
    /// What the index holds that makes no sense.
    pub(crate) warnings: Vec<String>,
}

impl Inner {
    /// The best version of a chart, by an index no older than `max_age`. An older one is asked for again, and so is
    /// one that does not have the version.
    pub(crate) async fn find_in_repository(
        self: &Arc<Self>,
        repository: &Url,
        chart: &str,
        wanted: &Wanted,
        max_age: Duration,
    ) -> Result<Found, Error> {
        let remembered = self.index_in_memory(repository, max_age);
        let is_remembered = remembered.is_some();
        let mut known = match remembered {
            Some(known) => known,
            None => self.index(repository).await?,
        };
        let mut entry = known.index.choose(chart, wanted);
        if entry.is_none() && is_remembered {
            known = self.index(repository).await?;
            entry = known.index.choose(chart, wanted);
        }
        let not_found = |hint: String| Error::NoVersion {
            wanted: wanted.of_chart(chart),
            place: format!("repository {}", shown(repository)),
            hint,
        };
        let entry = entry.ok_or_else(|| not_found(known.index.hint(chart)))?;
        let urls: Vec<Url> = entry
            .urls
            .iter()
            .filter_map(|url| relative_to(repository, url).ok())
            .collect();
        if urls.is_empty() {
            return Err(not_found(format!(
                ": version {} has no downloadable URLs",
                entry.version
            )));
        }
        Ok(Found {
            version: entry.version.to_string(),
            urls,
            digest: entry.digest,
            checked_at: known.seen.checked_at,
            warnings: known.index.warnings.clone(),
        })
    }

    /// The index of a repository, if it was asked for not long ago.
    fn index_in_memory(&self, repository: &Url, max_age: Duration) -> Option<Arc<KnownIndex>> {
        let known = self.indexes.get(&repository.to_string())?;
        self.is_younger(known.seen.checked_at, max_age).then_some(known)
    }

    /// The index of a repository as it is now.
    pub(crate) async fn index(self: &Arc<Self>, repository: &Url) -> Result<Arc<KnownIndex>, Error> {
        let (this, repository) = (Arc::clone(self), repository.clone());
        self.index_flights
            .join(repository.to_string(), move || async move {
                this.ask_for_index(&repository).await
            })
            .await
    }

    async fn ask_for_index(self: &Arc<Self>, repository: &Url) -> Result<Arc<KnownIndex>, Error> {
        let key = repository.to_string();
        let url = relative_to(repository, INDEX_FILE).map_err(|problem| Error::Index {
            repository: shown(repository),
            problem,
        })?;
        let permit = self.index_permits.acquire().await;
        let _permit = permit.map_err(|_| Error::Cancelled(shown(repository)))?;
        let credentials = self.credentials();
        let known = self.indexes.get(&key);
        let seen = match &known {
            Some(known) => Some(known.seen.clone()),
            None => self.seen_on_disk(&key).await,
        };
        let now = self.clock.now();
        let response = self
            .send_index(repository, url.clone(), &credentials, seen.as_ref())
            .await?;
        let mut response = response;
        if response.status == StatusCode::NOT_MODIFIED
            && let Some(seen) = seen
        {
            let seen = Seen {
                checked_at: now,
                ..seen
            };
            let index = match known {
                Some(known) => Some(Arc::clone(&known.index)),
                None => self.index_on_disk(&seen.body, repository).await,
            };
            if let Some(index) = index {
                return Ok(self.keep_index(key, index, seen).await);
            }
            // What was on disk is damaged.
            response = self.send_index(repository, url, &credentials, None).await?;
        }
        let response = response.succeeded()?;
        let header = |name| response.text(name).map(str::to_owned);
        let seen = Seen {
            body: Digest::of(&response.body),
            etag: header(ETAG),
            last_modified: header(LAST_MODIFIED),
            checked_at: now,
        };
        let same = self
            .indexes
            .get(&key)
            .filter(|known| known.seen.body == seen.body);
        let index = match same {
            Some(known) => Arc::clone(&known.index),
            None => self.parse_index(response.body.clone(), repository).await?,
        };
        if let Some(store) = self.store.clone() {
            let (digest, body) = (seen.body, response.body);
            self.blocking(move || store.put(&digest, &body)).await?;
        }
        Ok(self.keep_index(key, index, seen).await)
    }

    async fn send_index(
        &self,
        repository: &Url,
        url: Url,
        credentials: &Credentials,
        seen: Option<&Seen>,
    ) -> Result<crate::http::Response, Error> {
        let mut request = Request::get(url, credentials, INDEX_SIZE_MAX);
        request.entry = credentials.find(repository);
        if let Some(seen) = seen {
            if let Some(etag) = &seen.etag {
                request = request.header(IF_NONE_MATCH, etag);
            }
            if let Some(moment) = &seen.last_modified {
                request = request.header(IF_MODIFIED_SINCE, moment);
            }
        }
        self.http.send(&request).await
    }

    async fn parse_index(&self, body: Bytes, repository: &Url) -> Result<Arc<Index>, Error> {
        let parsed = self.blocking(move || Index::parse(&body)).await?;
        let index = parsed.map_err(|problem| Error::Index {
            repository: shown(repository),
            problem,
        })?;
        for warning in &index.warnings {
            tracing::debug!(repository = shown(repository), "{warning}");
        }
        Ok(Arc::new(index))
    }

    async fn keep_index(&self, key: String, index: Arc<Index>, seen: Seen) -> Arc<KnownIndex> {
        if let Some(store) = self.store.clone() {
            let (digest, seen) = (Digest::of(&key), seen.clone());
            // What cannot be noted is asked for again.
            let _ = self
                .blocking(move || store.note(Note::Index, &digest, &seen))
                .await;
        }
        self.indexes.remove(&key);
        self.indexes.insert(key, Arc::new(KnownIndex { index, seen }))
    }

    async fn seen_on_disk(&self, key: &str) -> Option<Seen> {
        let (store, digest) = (self.store.clone()?, Digest::of(key));
        let seen = self.blocking(move || {
            let seen: Seen = store.noted(Note::Index, &digest)?;
            store.has(&seen.body).then_some(seen)
        });
        seen.await.ok()?
    }

    async fn index_on_disk(&self, body: &Digest, repository: &Url) -> Option<Arc<Index>> {
        let (store, body) = (self.store.clone()?, *body);
        let body = self.blocking(move || store.get(&body)).await.ok()??;
        self.parse_index(body, repository).await.ok()
    }

    /// An archive, or what belongs to it, by its address. The credentials of the repository that named it come along to the same host, and to
    /// others only if they say so.
    pub(crate) async fn download(
        &self,
        url: &Url,
        repository: Option<&Url>,
        limit: u64,
    ) -> Result<Bytes, Error> {
        let credentials = self.credentials();
        let mut request = Request::get(url.clone(), &credentials, limit);
        let lender = repository.and_then(|repository| Some((repository, credentials.find(repository)?)));
        if let Some((repository, entry)) = lender {
            let own = request.entry.as_ref().is_some_and(|own| own.secret.is_some());
            if same_origin(repository, url) && !own {
                request.entry = Some(entry);
            } else if entry.pass_on
                && !own
                && let Some(value) = basic(&entry)
            {
                request.authorization = Authorization::Value(value);
            }
        }
        Ok(self.http.send(&request).await?.succeeded()?.body)
    }
}
