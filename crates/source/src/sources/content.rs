//! What a source holds, whatever its format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use evenkeel_chart::{Chart, archive_files};
use evenkeel_core::{Digest, SourceFormat, SourceRef};

use super::{CHARTS_KEPT, Sources};
use crate::cache::Cache;
use crate::directory::{File, Selection, list};
use crate::kustomization::{Kustomization, gather, stamp, stamp_of};
use crate::manifests::Manifests;
use crate::{Error, format};

/// What a source holds. Cheap to clone; shared by all who use it.
#[derive(Clone, Debug)]
pub enum Content {
    /// A chart.
    Chart(Arc<Chart>),
    /// A kustomization.
    Kustomization(Arc<Kustomization>),
    /// Plain manifests.
    Manifests(Arc<Manifests>),
}

impl Content {
    /// Its format.
    pub fn format(&self) -> SourceFormat {
        match self {
            Self::Chart(_) => SourceFormat::Chart,
            Self::Kustomization(_) => SourceFormat::Kustomization,
            Self::Manifests(_) => SourceFormat::Manifests,
        }
    }

    /// The digest of its files.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Chart(chart) => chart.digest(),
            Self::Kustomization(kustomization) => kustomization.digest(),
            Self::Manifests(manifests) => manifests.digest(),
        }
    }
}

/// What is not a chart, kept like charts.
#[derive(Debug)]
pub(super) struct Contents {
    /// By the digest of the files.
    shared: Cache<Digest, Content>,
    /// By the archive's digest and the format asked for.
    archives: Cache<(Digest, SourceFormat), Content>,
    /// Directories as they were read last.
    stamps: Cache<(PathBuf, SourceFormat), Stamped>,
}

#[derive(Debug)]
struct Stamped {
    stamp: Digest,
    folders: Vec<PathBuf>,
    content: Content,
}

impl Contents {
    pub(super) fn new() -> Self {
        Self {
            shared: Cache::new(CHARTS_KEPT),
            archives: Cache::new(CHARTS_KEPT),
            stamps: Cache::new(CHARTS_KEPT),
        }
    }

    /// The content itself, or an equal one that is in use already.
    fn share(&self, content: Content) -> Content {
        let digest = Digest::of_parts([content.format().as_str().as_bytes(), content.digest().as_bytes()]);
        Content::clone(&self.shared.insert(digest, Arc::new(content)))
    }
}

impl Sources {
    /// What `source` holds; as `format`, or as its files say.
    ///
    /// # Errors
    /// Everything [`Error`] lists.
    pub async fn content(
        self: &Arc<Self>,
        source: &SourceRef,
        format: Option<SourceFormat>,
    ) -> Result<Content, Error> {
        self.keys(source)?;
        match source {
            SourceRef::Directory { path } => {
                let (this, path) = (Arc::clone(self), path.clone());
                self.blocking(path.clone(), move || this.directory_content(&path, format))
                    .await
            }
            SourceRef::Archive { digest } => self.archive_content(digest, format).await,
            SourceRef::Repository { .. } | SourceRef::Oci { .. } => {
                self.chart(source).await.map(Content::Chart)
            }
        }
    }

    /// What the archive holds, kept for those who use it soon.
    pub(super) async fn keep_archive(
        &self,
        digest: &Digest,
        archive: Bytes,
        format: Option<SourceFormat>,
    ) -> Result<Content, Error> {
        let name = format!("archive {}", digest.short());
        let content = self
            .blocking(name.clone(), move || read_archive(&name, &archive, format))
            .await?;
        Ok(match content {
            Content::Chart(chart) => Content::Chart(self.charts.insert(*digest, chart)),
            content => {
                let content = self.contents.share(content);
                let key = (*digest, content.format());
                Content::clone(&self.contents.archives.insert(key, Arc::new(content)))
            }
        })
    }

    async fn archive_content(&self, digest: &Digest, format: Option<SourceFormat>) -> Result<Content, Error> {
        let wants = |other| format.is_none_or(|format| format == other);
        if wants(SourceFormat::Chart)
            && let Some(chart) = self.charts.get(digest)
        {
            return Ok(Content::Chart(chart));
        }
        for other in [SourceFormat::Kustomization, SourceFormat::Manifests] {
            // One that was read as something else on demand says nothing of what it is by itself.
            if format == Some(other)
                && let Some(content) = self.contents.archives.get(&(*digest, other))
            {
                return Ok(Content::clone(&content));
            }
        }
        let archive = self.archives.archive(digest).await?;
        let found = Digest::of(&archive);
        if found != *digest {
            return Err(Error::Damaged {
                wanted: *digest,
                found,
            });
        }
        self.keep_archive(digest, archive, format).await
    }

    fn directory_content(&self, path: &str, format: Option<SourceFormat>) -> Result<Content, Error> {
        let (directory, within) = self.locate(path)?;
        let within = within.as_deref();
        let format = match format {
            Some(format) => format,
            None => format_of(&directory)?.unwrap_or(SourceFormat::Manifests),
        };
        match format {
            SourceFormat::Chart => self.directory(path).map(Content::Chart),
            SourceFormat::Kustomization => self.kustomization(path, directory, within),
            SourceFormat::Manifests => self.manifests(path, directory, within),
        }
    }

    fn manifests(&self, name: &str, directory: PathBuf, within: Option<&Path>) -> Result<Content, Error> {
        let listing = list(&directory, within, Selection::Manifests)?;
        if listing.is_empty() {
            return Err(format::unknown(name));
        }
        let (stamp, key) = (listing.stamp(), (directory, SourceFormat::Manifests));
        if let Some(known) = self.contents.stamps.get(&key)
            && known.stamp == stamp
        {
            return Ok(known.content.clone());
        }
        let manifests = Manifests::parse(name, listing.read()?)?;
        let content = self.contents.share(Content::Manifests(Arc::new(manifests)));
        self.contents.stamps.remove(&key);
        if self.is_settled(&listing) {
            self.contents.stamps.insert(
                key,
                Arc::new(Stamped {
                    stamp,
                    folders: Vec::new(),
                    content: content.clone(),
                }),
            );
        }
        Ok(content)
    }

    fn kustomization(&self, name: &str, directory: PathBuf, within: Option<&Path>) -> Result<Content, Error> {
        let key = (directory.clone(), SourceFormat::Kustomization);
        // A folder that is gone since is told by reading everything again.
        if let Some(known) = self.contents.stamps.get(&key)
            && stamp(&known.folders, within).is_ok_and(|stamp| stamp == known.stamp)
        {
            return Ok(known.content.clone());
        }
        let gathered = gather(name, &directory, within)?;
        let stamp = stamp_of(&gathered.listings);
        let content = self
            .contents
            .share(Content::Kustomization(Arc::new(gathered.kustomization)));
        self.contents.stamps.remove(&key);
        let is_settled = gathered.listings.iter().all(|listing| self.is_settled(listing));
        if is_settled && gathered.is_complete {
            self.contents.stamps.insert(
                key,
                Arc::new(Stamped {
                    stamp,
                    folders: gathered.folders,
                    content: content.clone(),
                }),
            );
        }
        Ok(content)
    }
}

/// What the files at the top of a directory say.
fn format_of(directory: &Path) -> Result<Option<SourceFormat>, Error> {
    let failed = |source| Error::Read {
        path: directory.to_owned(),
        source,
    };
    if !directory.is_dir() {
        return Err(Error::NotADirectory(directory.to_owned()));
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        // A name that is not UTF-8 is none of those looked for.
        names.extend(entry.map_err(failed)?.file_name().into_string());
    }
    Ok(format::of_top(names.iter().map(String::as_str)))
}

fn read_archive(name: &str, archive: &[u8], format: Option<SourceFormat>) -> Result<Content, Error> {
    let failed = |source| Error::Chart {
        name: name.to_owned(),
        source: Box::new(source),
    };
    if format == Some(SourceFormat::Chart) {
        return Chart::from_archive(archive)
            .map(|chart| Content::Chart(Arc::new(chart)))
            .map_err(failed);
    }
    let files = archive_files(archive).map_err(failed)?;
    let files = without_top(
        files
            .into_iter()
            .map(|(path, content)| File { path, content })
            .collect(),
    );
    let format = format.or_else(|| format::of_top(files.iter().map(|file| file.path.as_str())));
    match format.unwrap_or(SourceFormat::Manifests) {
        // By Helm's own rules, which are stricter than those for other archives.
        SourceFormat::Chart => read_archive(name, archive, Some(SourceFormat::Chart)),
        SourceFormat::Kustomization => {
            Kustomization::from_files(name, files).map(|content| Content::Kustomization(Arc::new(content)))
        }
        SourceFormat::Manifests => {
            Manifests::parse(name, files).map(|content| Content::Manifests(Arc::new(content)))
        }
    }
}

/// The files without the one folder around all of them, if there is one.
fn without_top(mut files: Vec<File>) -> Vec<File> {
    let top = |file: &File| file.path.split_once('/').map(|(top, _)| format!("{top}/"));
    if let Some(first) = files.first().and_then(top)
        && files.iter().all(|file| file.path.starts_with(&first))
    {
        for file in &mut files {
            file.path.drain(..first.len());
        }
    }
    files
}

#[cfg(test)]
mod tests;
