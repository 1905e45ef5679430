//! From what a user calls a chart to its archive.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use evenkeel_chart::Chart;
use evenkeel_core::{Clock, Digest, OciReference};
use evenkeel_telemetry::Tasks;
use reqwest::Url;

use super::repositories::{NamedRepository, Repositories};
use super::{Helm, provenance, registry_config};
use crate::address::{host, relative_to};
use crate::credentials::{Credentials, Entry, Scope, Secret, Tls};
use crate::hosts::HostPolicy;
use crate::index::{INDEX_SIZE_MAX, Index};
use crate::io_cause::io_cause;
use crate::remote::{Fetched, PROVENANCE_SIZE_MAX, split_reference};
use crate::version::Wanted;
use crate::{CacheOptions, CredentialsSource, Error, Remote, RemoteOptions};

/// Flags speak louder than files.
const FLAGS: u8 = 1;

/// A chart that was obtained.
#[derive(Clone, Debug)]
pub struct Located {
    /// The archive.
    pub archive: Bytes,
    /// Its digest.
    pub digest: Digest,
    /// Where it came from, without anything secret.
    pub place: String,
    /// What the user should hear.
    pub warnings: Vec<String>,
}

impl Helm {
    /// Obtains a chart that lies elsewhere; [`Helm::path`] says whether it does.
    ///
    /// # Errors
    /// [`Error::Helm`] in Helm's words, and everything that asking a host fails with.
    pub async fn fetch(&self, chart: &str, clock: Arc<dyn Clock>, tasks: Tasks) -> Result<Located, Error> {
        let chart = chart.trim();
        if let Some(repository) = &self.options.repo {
            return self.chart_of_repository(repository, chart, clock, tasks).await;
        }
        if chart.starts_with(OciReference::SCHEME) {
            return self.chart_of_registry(chart, clock, tasks).await;
        }
        let named = Repositories::read(&self.settings.repository_config)?;
        match Url::parse(chart) {
            Ok(url) if url.has_host() && url.path().len() > 1 => {
                self.chart_at_address(&url, &named, clock, tasks).await
            }
            _ => self.chart_by_name(chart, &named, clock, tasks).await,
        }
    }

    /// `--repo URL CHART`.
    async fn chart_of_repository(
        &self,
        repository: &str,
        chart: &str,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
    ) -> Result<Located, Error> {
        let invalid = |problem: String| {
            let shown = Url::parse(repository)
                .map_or_else(|_| repository.to_owned(), |url| crate::address::shown(&url));
            Error::Helm(format!(
                "looks like {shown:?} is not a valid chart repository or cannot be reached: {problem}"
            ))
        };
        let url: Url = repository.parse().map_err(|error| invalid(format!("{error}")))?;
        match url.scheme() {
            "http" | "https" => {}
            "oci" => {
                return Err(invalid(
                    "a registry has no index: name the chart oci://…".to_owned(),
                ));
            }
            other => {
                return Err(Error::Helm(format!(
                    "could not find protocol handler for: {other}"
                )));
            }
        }
        let flags = self.flags_entry(&url);
        let remote = self.remote(vec![flags], clock, tasks)?;
        let version = self.options.version();
        let wanted = Wanted::parse(version)?;
        let found = remote.find_in_repository(&url, chart, &wanted).await;
        let found = found.map_err(|error| match error {
            Error::NoVersion { hint, .. } => Error::Helm(format!(
                "{} not found in {} repository{hint}",
                wanted.of_chart(chart),
                crate::address::shown(&url)
            )),
            error if error.is_forbidden() => error,
            error => invalid(error.to_string()),
        })?;
        let fetched = remote.fetch_found(&found.urls, found.digest, Some(&url)).await?;
        self.verify_found(&remote, &fetched.archive, &found.urls, Some(&url))
            .await?;
        Ok(Located {
            archive: fetched.archive,
            digest: fetched.digest,
            place: fetched.place,
            warnings: found.warnings,
        })
    }

    /// `oci://HOST/PATH[:TAG][@DIGEST]`.
    async fn chart_of_registry(
        &self,
        chart: &str,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
    ) -> Result<Located, Error> {
        let (reference, own) = split_reference(chart)?;
        let version = self.options.version();
        let pick = match (own.as_deref(), version) {
            (None, version) => version,
            // What was named by its digest is what it is.
            (Some(own), _) if own.contains(':') => Some(own),
            (Some(own), Some(version)) if own != version && self.options.version.is_some() => {
                return Err(Error::Helm(format!(
                    "chart reference and version mismatch: {version} is not {own}"
                )));
            }
            (Some(own), _) => Some(own),
        };
        let entries = vec![self.registry_entry(&reference)?];
        let remote = self.remote(entries, clock, tasks)?;
        let fetched = remote.fetch_from_registry(&reference, pick).await?;
        self.verify_pulled(&remote, &reference, &fetched).await?;
        Ok(Located {
            archive: fetched.archive,
            digest: fetched.digest,
            place: fetched.place,
            warnings: Vec::new(),
        })
    }

    /// `https://HOST/PATH/CHART.tgz`.
    async fn chart_at_address(
        &self,
        url: &Url,
        named: &Repositories,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
    ) -> Result<Located, Error> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::Helm(format!("scheme {:?} not supported", url.scheme())));
        }
        let mut entries = vec![self.flags_entry(url)];
        if self.options.username.is_none() {
            // A repository with a name whose host this is.
            entries.pop();
            let known = named
                .repositories
                .iter()
                .filter_map(|repository| repository.entry().ok());
            entries.extend(known.map(|(_, entry)| entry));
        }
        let remote = self.remote(entries, clock, tasks)?;
        let urls = std::slice::from_ref(url);
        let fetched = remote.fetch_found(urls, None, None).await?;
        self.verify_found(&remote, &fetched.archive, urls, None).await?;
        Ok(Located {
            archive: fetched.archive,
            digest: fetched.digest,
            place: fetched.place,
            warnings: Vec::new(),
        })
    }

    /// `REPOSITORY/CHART`, by the index that Helm fetched.
    async fn chart_by_name(
        &self,
        chart: &str,
        named: &Repositories,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
    ) -> Result<Located, Error> {
        let (name, chart_name) = chart.split_once('/').ok_or_else(|| {
            Error::Helm(format!(
                "non-absolute URLs should be in form of repo_name/path_to_chart, got: {chart}"
            ))
        })?;
        let repository = named
            .named(name)
            .ok_or_else(|| Error::Helm(format!("repo {name} not found")))?;
        let (url, mut entry) = repository.entry()?;
        if self.options.username.is_some() {
            entry.secret = self.flags_secret();
        }
        let index = cached_index(&self.settings.repository_cache, repository)?;
        let wanted = Wanted::parse(self.options.version())?;
        let version = wanted.text.clone().unwrap_or_default();
        let found = index.choose(chart_name, &wanted).ok_or_else(|| {
            Error::Helm(format!(
                "chart {chart_name:?} matching {version} not found in {name} index. (try 'helm repo update'){}",
                index.hint(chart_name)
            ))
        })?;
        let urls: Vec<Url> = found
            .urls
            .iter()
            .filter_map(|text| relative_to(&url, text).ok())
            .collect();
        if urls.is_empty() {
            return Err(Error::Helm(format!("chart {chart:?} has no downloadable URLs")));
        }
        let mut entries = vec![entry];
        for registry in urls.iter().filter(|url| url.scheme() == "oci") {
            entries.push(self.registry_entry(&split_reference(registry.as_str())?.0)?);
        }
        let remote = self.remote(entries, clock, tasks)?;
        let fetched = remote.fetch_found(&urls, found.digest, Some(&url)).await?;
        self.verify_found(&remote, &fetched.archive, &urls, Some(&url))
            .await?;
        Ok(Located {
            archive: fetched.archive,
            digest: fetched.digest,
            place: fetched.place,
            warnings: index.warnings.clone(),
        })
    }

    /// Checks the signature of an archive of a Helm repository, if that was asked for. It lies beside the archive, and is
    /// obtained as the archive was: by the credentials of the repository.
    async fn verify_found(
        &self,
        remote: &Remote,
        archive: &Bytes,
        urls: &[Url],
        repository: Option<&Url>,
    ) -> Result<(), Error> {
        let Some(url) = urls.first().filter(|_| self.options.verify) else {
            return Ok(());
        };
        if url.scheme() == "oci" {
            let (reference, tag) = split_reference(url.as_str())?;
            let pulled = remote.fetch_from_registry(&reference, tag.as_deref()).await?;
            return self.verify_pulled(remote, &reference, &pulled).await;
        }
        let place = format!("{url}{}", provenance::EXTENSION);
        let fetched = match place.parse() {
            Ok(place) => remote.fetch_file(&place, repository, PROVENANCE_SIZE_MAX).await,
            Err(_) => Err(Error::NotFound { url: place.clone() }),
        };
        let shown = format!("{}{}", crate::address::shown(url), provenance::EXTENSION);
        let text = fetched.map_err(|error| no_provenance(&shown, &error))?;
        let name = url.path().rsplit('/').next().unwrap_or_default();
        self.verify_fetched(remote, archive.clone(), name.to_owned(), text)
            .await
    }

    /// The same for a chart of a registry, where the signature is a layer beside the archive.
    async fn verify_pulled(
        &self,
        remote: &Remote,
        reference: &OciReference,
        fetched: &Fetched,
    ) -> Result<(), Error> {
        if !self.options.verify {
            return Ok(());
        }
        let version = fetched.version.as_deref().unwrap_or_default();
        let name = reference.repository().rsplit('/').next().unwrap_or_default();
        // The signature is about a name; what was asked for by its digest says itself what that is.
        let file = if version.contains(':') {
            let chart = Chart::from_archive(&fetched.archive).map_err(|source| Error::Chart {
                name: reference.to_string(),
                source: Box::new(source),
            })?;
            format!("{}-{}.tgz", chart.metadata().name, chart.metadata().version)
        } else {
            format!("{name}-{version}.tgz")
        };
        let text = remote
            .fetch_provenance(reference, fetched)
            .await
            .map_err(|error| no_provenance(&format!("{reference}:{version}.prov"), &error))?;
        self.verify_fetched(remote, fetched.archive.clone(), file, text)
            .await
    }

    async fn verify_fetched(
        &self,
        remote: &Remote,
        archive: Bytes,
        name: String,
        text: Bytes,
    ) -> Result<(), Error> {
        let keyring = self.keyring().to_owned();
        let now = remote.inner().clock.now().as_second();
        let work = move || {
            let (_, keyring) = provenance::read_keyring(&keyring)?;
            provenance::verify(&archive, &name, &text, &keyring, now)
        };
        remote.inner().blocking(work).await?
    }

    /// A way to other hosts with these credentials; TLS flags hold everywhere, as in Helm.
    pub(crate) fn remote(
        &self,
        entries: Vec<Entry>,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
    ) -> Result<Remote, Error> {
        let everywhere = Entry {
            tls: self.options.tls.clone(),
            plain_http: self.options.plain_http,
            ..Entry::new(Scope::Host {
                host: String::new(),
                port: None,
            })
        };
        let entries = entries.into_iter().chain(self.known.entries());
        let options = RemoteOptions {
            cache: self.cache.clone().filter(CacheOptions::is_usable),
            hosts: HostPolicy::Anywhere,
            credentials: CredentialsSource::Fixed(Credentials::new(entries, Some(everywhere))),
            ..RemoteOptions::default()
        };
        Remote::new(options, clock, tasks)
    }

    fn flags_secret(&self) -> Option<Secret> {
        Some(Secret::Basic {
            username: self.options.username.clone()?,
            password: self
                .options
                .password
                .clone()
                .unwrap_or_else(|| evenkeel_core::Sensitive::new(String::new())),
        })
    }

    /// What the flags say, for the host of an address.
    fn flags_entry(&self, url: &Url) -> Entry {
        let known = self.known.listed(url);
        let mut origin = url.clone();
        origin.set_path("/");
        origin.set_query(None);
        let mut entry = Entry {
            secret: self.flags_secret(),
            tls: self.options.tls.clone(),
            plain_http: self.options.plain_http,
            pass_on: self.options.pass_credentials,
            rank: FLAGS,
            scope: Scope::Below(origin),
        };
        if let Some(known) = known.filter(|_| entry.secret.is_none()) {
            entry.secret.clone_from(&known.secret);
            entry.pass_on |= known.pass_on;
            if entry.tls == Tls::default() {
                entry.tls.clone_from(&known.tls);
            }
        }
        entry
    }

    /// What the flags say of a registry, or else the file of `helm registry login`.
    pub(crate) fn registry_entry(&self, reference: &OciReference) -> Result<Entry, Error> {
        let url: Url = reference
            .as_str()
            .parse()
            .map_err(|_| Error::Helm(format!("invalid chart URL format: {reference}")))?;
        let flags = self.flags_secret();
        let secret = match flags {
            Some(secret) => Some(secret),
            None => registry_config::secret(
                &host(&url),
                [
                    Some(self.settings.registry_config.as_path()),
                    self.settings.docker_config.as_deref(),
                ]
                .into_iter()
                .flatten(),
            )?,
        };
        let known = self.known.listed(&url);
        let mut origin = url;
        origin.set_path("/");
        let mut entry = Entry {
            secret,
            tls: self.options.tls.clone(),
            plain_http: self.options.plain_http,
            rank: FLAGS,
            ..Entry::new(Scope::Below(origin))
        };
        if let Some(known) = known {
            entry.secret = entry.secret.or_else(|| known.secret.clone());
            entry.plain_http |= known.is_plain();
            if entry.tls == Tls::default() {
                entry.tls.clone_from(&known.tls);
            }
        }
        Ok(entry)
    }
}

/// Helm's words, with the cause, which it does not tell.
fn no_provenance(place: &str, cause: &Error) -> Error {
    Error::Helm(format!("failed to fetch provenance {place:?}: {cause}"))
}

/// The index of a repository as Helm fetched it last.
pub(crate) fn cached_index(folder: &Path, repository: &NamedRepository) -> Result<Index, Error> {
    let file = folder.join(format!("{}-index.yaml", repository.name));
    let missing = |problem: String| {
        Error::Helm(format!(
            "no cached repo found. (try 'helm repo update'): {problem}"
        ))
    };
    let length = std::fs::metadata(&file)
        .map_err(|error| missing(format!("open {}: {}", file.display(), io_cause(&error))))?
        .len();
    if length > INDEX_SIZE_MAX {
        return Err(missing(format!(
            "{} is larger than {INDEX_SIZE_MAX} bytes",
            file.display()
        )));
    }
    let text = std::fs::read(&file)
        .map_err(|error| missing(format!("open {}: {}", file.display(), io_cause(&error))))?;
    Index::parse(&text).map_err(missing)
}
