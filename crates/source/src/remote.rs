//! Charts of Helm repositories and OCI registries: what a source stands for now, and its archive.
//!
//! ```text
//! source ─▶ resolution (digest, version)            ─▶ archive
//!           fresh in memory?            no request     in the store, whole?      no request
//!           older: index or manifest    one request    else downloaded once      one request
//!           host down: the last known one
//! ```

mod fetch;
mod resolution;
mod signature;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_core::{Clock, Digest, SourceRef};
use evenkeel_telemetry::Tasks;
use jiff::Timestamp;
use tokio::sync::Semaphore;

use crate::cache::Cache;
use crate::credentials::{Credentials, CredentialsFile};
use crate::flight::Flights;
use crate::hosts::HostPolicy;
use crate::http::Http;
use crate::registry::{Place, Registry};
use crate::repository::KnownIndex;
use crate::store::{CACHE_SIZE_MAX, Store};
use crate::version::{Pick, Wanted};
use crate::{Error, address};

pub(crate) use fetch::{Fetched, PROVENANCE_SIZE_MAX, split_reference};
use resolution::Known;
pub(crate) use resolution::Resolution;
pub(crate) use signature::Provenance;

/// The largest archive of a chart, in bytes; the same bound as for one that is uploaded.
pub const ARCHIVE_SIZE_MAX: u64 = 20 * 1024 * 1024;
/// How long a resolution counts as the newest unless told otherwise.
pub const FRESH_FOR: Duration = Duration::from_secs(5 * 60);
/// How many resolutions are kept in memory.
const RESOLUTIONS_KEPT: usize = 4096;
/// How many indexes are read at one time; each may be large.
const INDEXES_AT_ONCE: usize = 8;
/// How many parsed indexes are kept in memory.
const INDEXES_KEPT: usize = 32;

/// Obtains charts from other hosts. Cheap to clone; all clones are the same one.
#[derive(Clone, Debug)]
pub struct Remote(Arc<Inner>);

/// How charts are obtained from other hosts.
#[derive(Debug)]
pub struct RemoteOptions {
    /// Where downloads are kept; nowhere when there is none.
    pub cache: Option<CacheOptions>,
    /// How long what a range or tag stands for is not asked for again.
    pub fresh_for: Duration,
    /// Which hosts may be spoken to.
    pub hosts: HostPolicy,
    /// Who we are there.
    pub credentials: CredentialsSource,
}

/// Where downloads are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// The directory; any number of processes may share it.
    pub directory: PathBuf,
    /// The most bytes; what was not used for longest makes room.
    pub size_max: u64,
}

/// Where credentials come from.
#[derive(Debug, Default)]
pub enum CredentialsSource {
    /// There are none.
    #[default]
    None,
    /// These.
    Fixed(Credentials),
    /// A file, read again when it changes.
    File(CredentialsFile),
}

/// What all clones of a [`Remote`] share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) http: Arc<Http>,
    pub(crate) registry: Registry,
    pub(crate) store: Option<Store>,
    pub(crate) clock: Arc<ClockBox>,
    pub(crate) indexes: Cache<String, KnownIndex>,
    pub(crate) index_flights: Flights<String, Arc<KnownIndex>>,
    pub(crate) index_permits: Semaphore,
    credentials: CredentialsSource,
    fresh_for: Duration,
    tasks: Tasks,
    resolutions: Cache<Digest, Known>,
    resolution_flights: Flights<Digest, Arc<Resolution>>,
    archive_flights: Flights<Digest, Bytes>,
}

impl CacheOptions {
    /// A cache of the usual size.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            size_max: CACHE_SIZE_MAX,
        }
    }

    /// Whether it can be set up. Who works without one when it cannot, says so.
    pub(crate) fn is_usable(&self) -> bool {
        match Store::open(self.directory.clone(), self.size_max) {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(%error, "downloads are not kept");
                false
            }
        }
    }
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            cache: None,
            fresh_for: FRESH_FOR,
            hosts: HostPolicy::default(),
            credentials: CredentialsSource::None,
        }
    }
}

/// A chart elsewhere, as a configuration names it, and as it was read.
#[derive(Clone, Debug)]
pub(crate) struct RemoteSource {
    /// Names the source among all.
    key: Digest,
    wish: Wish,
}

#[derive(Clone, Debug)]
enum Wish {
    Repository {
        repository: reqwest::Url,
        chart: String,
        wanted: Wanted,
    },
    Oci {
        reference: evenkeel_core::OciReference,
        pick: Pick,
    },
}

impl RemoteSource {
    /// Reads a source; none for one that lies here.
    ///
    /// # Errors
    /// [`Error::Range`].
    pub(crate) fn of(source: &SourceRef) -> Result<Option<Self>, Error> {
        let (wish, texts) = match source {
            SourceRef::Repository {
                repository,
                chart,
                version,
            } => {
                let version = version.as_ref().map(|version| version.as_str());
                let url = repository.as_str().parse().map_err(|_| Error::Index {
                    repository: repository.to_string(),
                    problem: "it is no address".to_owned(),
                })?;
                let wish = Wish::Repository {
                    repository: url,
                    chart: chart.to_string(),
                    wanted: Wanted::parse(version)?,
                };
                (
                    wish,
                    [
                        "repository",
                        repository.as_str(),
                        chart.as_str(),
                        version.unwrap_or_default(),
                    ],
                )
            }
            SourceRef::Oci { reference, version } => {
                let version = version.as_ref().map(|version| version.as_str());
                let wish = Wish::Oci {
                    reference: reference.clone(),
                    pick: Pick::parse(version)?,
                };
                (wish, ["oci", reference.as_str(), "", version.unwrap_or_default()])
            }
            _ => return Ok(None),
        };
        Ok(Some(Self {
            key: Digest::of_parts(texts),
            wish,
        }))
    }

    /// Names the source among all.
    pub(crate) fn key(&self) -> &Digest {
        &self.key
    }
}

impl Remote {
    /// Charts from other hosts; what blocks runs on the threads of `tasks`.
    ///
    /// # Errors
    /// [`Error::Cache`] when the cache cannot be set up.
    pub fn new(options: RemoteOptions, clock: Arc<dyn Clock>, tasks: Tasks) -> Result<Self, Error> {
        let RemoteOptions {
            cache,
            fresh_for,
            hosts,
            credentials,
        } = options;
        let store = match cache {
            Some(CacheOptions { directory, size_max }) => Some(Store::open(directory, size_max)?),
            None => None,
        };
        let http = Arc::new(Http::new(hosts));
        Ok(Self(Arc::new(Inner {
            registry: Registry::new(Arc::clone(&http)),
            http,
            store,
            clock: Arc::new(ClockBox(clock)),
            indexes: Cache::new(INDEXES_KEPT),
            index_flights: Flights::new(),
            index_permits: Semaphore::new(INDEXES_AT_ONCE),
            credentials,
            fresh_for,
            tasks,
            resolutions: Cache::new(RESOLUTIONS_KEPT),
            resolution_flights: Flights::new(),
            archive_flights: Flights::new(),
        })))
    }

    /// Refuses what could never be obtained: a version that is none, a host that may not be spoken to.
    pub(crate) fn check(&self, source: &RemoteSource) -> Result<(), Error> {
        let credentials = self.0.credentials();
        match &source.wish {
            Wish::Repository { repository, .. } => self.0.http.check(repository, &credentials),
            Wish::Oci { reference, .. } => {
                let place = Place::new(reference, &credentials)?;
                place.check(&self.0.http, &credentials)
            }
        }
    }

    /// What a source stands for now.
    pub(crate) async fn resolve(&self, source: &RemoteSource) -> Result<Arc<Resolution>, Error> {
        self.0.resolve(source).await
    }

    /// The archive of a resolution.
    pub(crate) async fn archive(
        &self,
        source: &RemoteSource,
        resolution: &Resolution,
    ) -> Result<Bytes, Error> {
        self.0.archive(source, resolution).await
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }
}

impl Inner {
    pub(crate) fn credentials(&self) -> Credentials {
        match &self.credentials {
            CredentialsSource::None => Credentials::default(),
            CredentialsSource::Fixed(credentials) => credentials.clone(),
            CredentialsSource::File(file) => file.credentials(),
        }
    }

    /// Runs what blocks on a thread that may.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.tasks
            .blocking("read a download", work)
            .await
            .map_err(|_| Error::Cancelled("a download".to_owned()))
    }

    /// Whether something that was true at `moment` is younger than `age`.
    pub(crate) fn is_younger(&self, moment: Timestamp, age: Duration) -> bool {
        let passed = self.clock.now().duration_since(moment);
        // A clock that was set back must not keep anything for ever.
        Duration::try_from(passed).is_ok_and(|passed| passed < age)
    }
}

/// A clock that can be shown.
pub(crate) struct ClockBox(Arc<dyn Clock>);

impl std::fmt::Debug for ClockBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl ClockBox {
    pub(crate) fn now(&self) -> Timestamp {
        self.0.now()
    }
}

impl Place {
    /// Refuses a registry that may not be spoken to.
    fn check(&self, http: &Http, credentials: &Credentials) -> Result<(), Error> {
        if self.is_known() {
            return Ok(());
        }
        http.check(self.base(), credentials)
    }
}

impl std::fmt::Display for RemoteSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.wish {
            Wish::Repository {
                repository,
                chart,
                wanted,
            } => write!(
                f,
                "{} of repository {}",
                wanted.of_chart(chart),
                address::shown(repository)
            ),
            Wish::Oci { reference, .. } => write!(f, "{reference}"),
        }
    }
}
