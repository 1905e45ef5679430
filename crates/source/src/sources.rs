//! From a [`SourceRef`] to what it holds.

mod content;
mod signed;

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_chart::Chart;
use evenkeel_core::{Clock, Digest, SourceRef};
use evenkeel_telemetry::Tasks;

use crate::cache::Cache;
use crate::directory::{Listing, Selection, list};
use crate::remote::RemoteSource;
use crate::signatures::Keys;
use crate::{Archives, Error, Remote, Signatures};

pub use content::Content;
use content::Contents;
use signed::Signed;

/// How many parsed charts are kept.
const CHARTS_KEPT: usize = 256;
/// A file this young may be changed again without its time of change moving; its stamp is not trusted.
const STAMP_SETTLES: Duration = Duration::from_secs(2);

/// Which directories may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryPolicy {
    /// None: a mothership without `--source-root`.
    Refused,
    /// Those below this one, by relative path; a mothership with `--source-root`.
    Below(PathBuf),
    /// Any: `evenkeel local` works on its user's own files.
    Anywhere,
}

/// Obtains charts and shares the parsed ones.
pub struct Sources {
    directories: DirectoryPolicy,
    archives: Arc<dyn Archives>,
    remote: Option<Remote>,
    signed: Option<Signed>,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
    charts: Cache<Digest, Chart>,
    stamps: Cache<PathBuf, Stamped>,
    contents: Contents,
}

/// A directory as it was read last.
struct Stamped {
    stamp: Digest,
    chart: Arc<Chart>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources")
            .field("directories", &self.directories)
            .finish_non_exhaustive()
    }
}

impl Sources {
    /// Sources with the given policy and store of archives; reading and parsing runs on the blocking threads of `tasks`.
    pub fn new(
        directories: DirectoryPolicy,
        archives: Arc<dyn Archives>,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
    ) -> Self {
        Self {
            directories,
            archives,
            remote: None,
            signed: None,
            clock,
            tasks,
            charts: Cache::new(CHARTS_KEPT),
            stamps: Cache::new(CHARTS_KEPT),
            contents: Contents::new(),
        }
    }

    /// The same, and charts of repositories and registries as well.
    #[must_use]
    pub fn with_remote(self, remote: Remote) -> Self {
        Self {
            remote: Some(remote),
            ..self
        }
    }

    /// The same, and nothing that must be signed and is not.
    #[must_use]
    pub fn with_signatures(self, rules: Arc<Signatures>) -> Self {
        Self {
            signed: Some(Signed::new(rules)),
            ..self
        }
    }

    /// The chart that `source` names.
    ///
    /// # Errors
    /// Everything [`Error`] lists.
    pub async fn chart(self: &Arc<Self>, source: &SourceRef) -> Result<Arc<Chart>, Error> {
        let keys = self.keys(source)?;
        match source {
            SourceRef::Directory { path } => {
                let (this, path) = (Arc::clone(self), path.clone());
                self.blocking(path.clone(), move || this.directory(&path)).await
            }
            SourceRef::Archive { digest } => self.archive(digest).await,
            // Its future is large, and most sources need none of it.
            SourceRef::Repository { .. } | SourceRef::Oci { .. } => Box::pin(self.remote(source, keys)).await,
        }
    }

    /// Checks that `source` may be used, without reading the chart or asking a host: for refusing a configuration at
    /// once.
    ///
    /// # Errors
    /// [`Error::DirectoriesRefused`], [`Error::OutsideRoot`], [`Error::Read`], [`Error::NotADirectory`],
    /// [`Error::NoRemote`], [`Error::HostRefused`], [`Error::Range`], [`Error::Unsigned`].
    pub fn check(&self, source: &SourceRef) -> Result<(), Error> {
        self.keys(source)?;
        match source {
            SourceRef::Directory { path } => {
                let (directory, _) = self.locate(path)?;
                if directory.is_dir() {
                    Ok(())
                } else {
                    Err(Error::NotADirectory(directory))
                }
            }
            SourceRef::Archive { .. } => Ok(()),
            SourceRef::Repository { .. } | SourceRef::Oci { .. } => {
                let (remote, source) = self.remote_source(source)?;
                remote.check(&source)
            }
        }
    }

    /// Checks that `archive` holds something we know, and keeps it parsed: an upload is usually used soon.
    ///
    /// # Errors
    /// [`Error::Chart`], [`Error::Format`], [`Error::Kustomization`].
    pub async fn check_archive(&self, archive: Bytes) -> Result<Content, Error> {
        let digest = Digest::of(&archive);
        self.keep_archive(&digest, archive, None).await
    }

    fn directory(&self, path: &str) -> Result<Arc<Chart>, Error> {
        let (directory, within) = self.locate(path)?;
        let listing = list(&directory, within.as_deref(), Selection::Chart)?;
        let stamp = listing.stamp();
        if let Some(known) = self.stamps.get(&directory)
            && known.stamp == stamp
        {
            return Ok(Arc::clone(&known.chart));
        }
        let files = listing.read()?;
        let chart = Chart::from_files(files.into_iter().map(|file| (file.path, file.content)));
        let chart = chart.map_err(|source| Error::Chart {
            name: path.to_owned(),
            source: Box::new(source),
        })?;
        let chart = self.charts.insert(chart.digest(), Arc::new(chart));
        self.stamps.remove(&directory);
        if self.is_settled(&listing) {
            self.stamps.insert(
                directory,
                Arc::new(Stamped {
                    stamp,
                    chart: Arc::clone(&chart),
                }),
            );
        }
        Ok(chart)
    }

    async fn archive(&self, digest: &Digest) -> Result<Arc<Chart>, Error> {
        if let Some(chart) = self.charts.get(digest) {
            return Ok(chart);
        }
        let bytes = self.archives.archive(digest).await?;
        let found = Digest::of(&bytes);
        if found != *digest {
            return Err(Error::Damaged {
                wanted: *digest,
                found,
            });
        }
        // Kept under the archive's digest; one of the same files in a directory has the digest of its files.
        Ok(self
            .charts
            .insert(*digest, self.parse_archive(digest, bytes).await?))
    }

    /// A chart of a repository or registry. Costs no request while what the source stands for is known and the chart is
    /// in memory or on disk.
    async fn remote(&self, source: &SourceRef, keys: Option<Arc<Keys>>) -> Result<Arc<Chart>, Error> {
        let (remote, source) = self.remote_source(source)?;
        let resolution = remote.resolve(&source).await?;
        if let Some(keys) = keys {
            self.check_signature(remote, &source, &resolution, &keys).await?;
        }
        if let Some(chart) = self.charts.get(&resolution.digest) {
            return Ok(chart);
        }
        let archive = remote.archive(&source, &resolution).await?;
        let name = format!("{source} ({})", resolution.version);
        let chart = self.parse(name, archive).await?;
        Ok(self.charts.insert(resolution.digest, chart))
    }

    fn remote_source(&self, source: &SourceRef) -> Result<(&Remote, RemoteSource), Error> {
        let remote = self.remote.as_ref().ok_or(Error::NoRemote)?;
        let source = RemoteSource::of(source)?.ok_or(Error::NoRemote)?;
        Ok((remote, source))
    }

    async fn parse_archive(&self, digest: &Digest, archive: Bytes) -> Result<Arc<Chart>, Error> {
        self.parse(format!("archive {}", digest.short()), archive).await
    }

    async fn parse(&self, name: String, archive: Bytes) -> Result<Arc<Chart>, Error> {
        self.blocking(name.clone(), move || {
            let chart = Chart::from_archive(&archive);
            chart.map(Arc::new).map_err(|source| Error::Chart {
                name,
                source: Box::new(source),
            })
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        name: String,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.tasks
            .blocking("read a source", work)
            .await
            .unwrap_or(Err(Error::Cancelled(name)))
    }

    /// The directory itself and what its links may not leave.
    fn locate(&self, path: &str) -> Result<(PathBuf, Option<PathBuf>), Error> {
        let real = |path: &Path| {
            path.canonicalize().map_err(|source| Error::Read {
                path: path.to_owned(),
                source,
            })
        };
        match &self.directories {
            DirectoryPolicy::Refused => Err(Error::DirectoriesRefused(path.to_owned())),
            DirectoryPolicy::Anywhere => Ok((real(Path::new(path))?, None)),
            DirectoryPolicy::Below(root) => {
                let outside = || Error::OutsideRoot {
                    path: path.to_owned(),
                };
                let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
                if !Path::new(path).components().all(plain) {
                    return Err(outside());
                }
                let root = real(root)?;
                let directory = real(&root.join(path))?;
                if directory.starts_with(&root) {
                    Ok((directory, Some(root)))
                } else {
                    Err(outside())
                }
            }
        }
    }

    fn is_settled(&self, listing: &Listing) -> bool {
        let now = std::time::SystemTime::from(self.clock.now());
        listing
            .newest()
            .is_none_or(|newest| now.duration_since(newest).is_ok_and(|age| age > STAMP_SETTLES))
    }
}

#[cfg(test)]
mod tests;
