//! `--dependency-update`: a chart directory gets the charts that it declares, as by `helm dependency update`.

mod declared;
mod place;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenkeel_chart::Chart;
use evenkeel_core::{Clock, OciReference};
use evenkeel_telemetry::Tasks;
use reqwest::Url;

use super::Helm;
use super::repositories::{NamedRepository, Repositories};
use crate::address::shown;
use crate::credentials::{Entry, Scope};
use crate::version::{Wanted, tag};
use crate::{Error, Remote, read_directory};

use declared::{Declared, Locked, ManifestFile};

/// Where the charts lie that a chart depends on.
const CHARTS: &str = "charts";

/// Who hears what is being done, line by line, in Helm's words.
pub type Told<'t> = &'t (dyn Fn(&str) + Sync);

/// Where a dependency comes from.
#[derive(Clone, Debug)]
enum Origin {
    /// It is in `charts/` already.
    Present,
    /// A directory of this machine.
    Directory(PathBuf),
    /// A Helm repository; as it is written in the chart when Helm has no name for it.
    Repository { url: Url, written: Option<String> },
    /// A repository of a registry.
    Registry(OciReference),
}

/// A dependency whose version was chosen.
struct Resolved {
    locked: Locked,
    origin: Origin,
    /// Where its archive lies, for one of a Helm repository.
    urls: Vec<Url>,
    digest: Option<evenkeel_core::Digest>,
}

impl Helm {
    /// Obtains all that the chart in `directory` declares, and notes the versions chosen in `Chart.lock`.
    ///
    /// # Errors
    /// [`Error::Helm`] in Helm's words, and everything that obtaining a chart fails with. Nothing in `charts/` changes
    /// before all of them are there.
    pub async fn update_dependencies(
        &self,
        directory: &Path,
        told: Told<'_>,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
    ) -> Result<(), Error> {
        let file = ManifestFile::read(directory)?;
        let named = Repositories::read(&self.settings.repository_config)?;
        let (declared, origins) = origins(directory, &file.dependencies, &named)?;
        let remote = self.remote(self.entries(&origins, &named)?, Arc::clone(&clock), tasks)?;
        refresh(&remote, &origins, &named, told).await?;
        let mut resolved = Vec::with_capacity(declared.len());
        let mut missing = Vec::new();
        for (declared, origin) in declared.iter().zip(origins) {
            match resolve(&remote, directory, declared, origin).await? {
                Some(found) => resolved.push(found),
                None => missing.push(format!(
                    "{:?} (repository {:?}, version {:?})",
                    declared.name, declared.repository, declared.version
                )),
            }
        }
        if !missing.is_empty() {
            return Err(Error::Helm(format!(
                "can't get a valid version for {} subchart(s): {}. Make sure a matching chart version exists in the \
                 repo, or change the version constraint in Chart.yaml",
                missing.len(),
                missing.join(", ")
            )));
        }
        told(&format!("Saving {} charts", resolved.len()));
        let folder = tempfile::Builder::new()
            .prefix("tmpcharts-")
            .tempdir_in(directory)
            .map_err(|error| Error::write(directory, error))?;
        for one in &resolved {
            if let Err(error) = self.obtain_one(&remote, one, folder.path(), told).await {
                told(&format!("Save error occurred:  {error}"));
                return Err(error);
            }
        }
        told("Deleting outdated charts");
        let present: Vec<_> = resolved
            .iter()
            .filter(|one| matches!(one.origin, Origin::Present))
            .map(|one| one.locked.name.as_str())
            .collect();
        place::put(folder.path(), &directory.join(CHARTS), &present)?;
        let locked: Vec<_> = resolved.into_iter().map(|one| one.locked).collect();
        file.write_lock(directory, &declared, &locked, clock.now())
    }

    /// Who we are where the dependencies come from.
    fn entries(&self, origins: &[Origin], named: &Repositories) -> Result<Vec<Entry>, Error> {
        let mut entries: Vec<Entry> = named
            .repositories
            .iter()
            .filter_map(|repository| Some(repository.entry().ok()?.1))
            .collect();
        for origin in origins {
            match origin {
                Origin::Registry(reference) => entries.push(self.registry_entry(reference)?),
                Origin::Repository { url, .. } => entries.push(Entry {
                    tls: self.options.tls.clone(),
                    ..Entry::new(Scope::Below(url.clone()))
                }),
                Origin::Present | Origin::Directory(_) => {}
            }
        }
        // An entry that only repeats the flags must not hide one with a name and password.
        entries.sort_by_key(|entry| entry.secret.is_some());
        Ok(entries)
    }

    async fn obtain_one(
        &self,
        remote: &Remote,
        one: &Resolved,
        folder: &Path,
        told: Told<'_>,
    ) -> Result<(), Error> {
        let Locked { name, version, .. } = &one.locked;
        let usual = format!("{name}-{version}.tgz");
        let (file, archive) = match &one.origin {
            Origin::Present => {
                told(&format!(
                    "Dependency {name} did not declare a repository. Assuming it exists in the charts directory"
                ));
                return Ok(());
            }
            Origin::Directory(path) => (usual, place::pack(name, &read_directory(path, None)?)?.into()),
            Origin::Registry(reference) => {
                told(&format!("Downloading {name} from repo {}", one.locked.repository));
                let fetched = remote.fetch_from_registry(reference, Some(&tag(version))).await;
                let archive = fetched.map_err(|error| match error {
                    Error::NoVersion { .. } => Error::Helm(format!(
                        "could not download {reference}: could not locate a version matching provided version \
                         string {version}"
                    )),
                    error => failed(name, error),
                });
                (usual, archive?.archive)
            }
            Origin::Repository { url, .. } => {
                told(&format!("Downloading {name} from repo {}", one.locked.repository));
                let fetched = remote.fetch_found(&one.urls, one.digest, Some(url)).await;
                let own = one
                    .urls
                    .first()
                    .and_then(|url| url.path_segments()?.next_back().map(str::to_owned));
                let file = own.filter(|file| file.ends_with(".tgz")).unwrap_or(usual);
                (file, fetched.map_err(|error| failed(name, error))?.archive)
            }
        };
        // What is no chart is told before it lies among the others.
        Chart::from_archive(&archive).map_err(|source| Error::Chart {
            name: format!("dependency {name}"),
            source: Box::new(source),
        })?;
        let path = folder.join(&file);
        fs::write(&path, &archive).map_err(|error| Error::write(&path, error))
    }
}

fn failed(name: &str, error: Error) -> Error {
    if error.is_transient() || error.is_forbidden() {
        return error;
    }
    Error::Helm(format!("could not download {name}: {error}"))
}

/// Where each dependency comes from; names of repositories are replaced by their addresses.
fn origins(
    directory: &Path,
    declared: &[Declared],
    named: &Repositories,
) -> Result<(Vec<Declared>, Vec<Origin>), Error> {
    let mut declared = declared.to_vec();
    let mut origins = Vec::with_capacity(declared.len());
    let mut unknown = Vec::new();
    for one in &mut declared {
        let repository = one.repository.clone();
        let alias = repository
            .strip_prefix('@')
            .or_else(|| repository.strip_prefix("alias:"));
        let origin = if repository.is_empty() {
            let path = directory.join(CHARTS).join(&one.name);
            if !path.is_dir() {
                return Err(Error::Helm(format!("directory {} not found", path.display())));
            }
            Origin::Present
        } else if let Some(path) = repository.strip_prefix("file://") {
            let path = directory.join(path);
            if !path.is_dir() {
                return Err(Error::Helm(format!("directory {} not found", path.display())));
            }
            Origin::Directory(path)
        } else if repository.starts_with(OciReference::SCHEME) {
            let text = format!("{}/{}", repository.trim_end_matches('/'), one.name);
            let reference = OciReference::new(text).map_err(|error| Error::Helm(error.to_string()))?;
            Origin::Registry(reference)
        } else if let Some(alias) = alias {
            match named.named(alias) {
                Some(known) => {
                    one.repository.clone_from(&known.url);
                    known_repository(known)?
                }
                None => {
                    unknown.push(repository);
                    continue;
                }
            }
        } else if let Some(known) = named
            .repositories
            .iter()
            .find(|known| same_address(&known.url, &repository))
        {
            known_repository(known)?
        } else {
            match Url::parse(&repository) {
                Ok(url) if matches!(url.scheme(), "http" | "https") => Origin::Repository {
                    url,
                    written: Some(repository),
                },
                _ => {
                    unknown.push(repository);
                    continue;
                }
            }
        };
        origins.push(origin);
    }
    if unknown.is_empty() {
        return Ok((declared, origins));
    }
    let is_name =
        |text: &String| !text.contains("//") && !text.starts_with('@') && !text.starts_with("alias:");
    let note = if unknown.iter().any(is_name) {
        "\nNote that repositories must be URLs or aliases. For example, to refer to the \"example\"\nrepository, use \
         \"https://charts.example.com/\" or \"@example\" instead of\n\"example\". Don't forget to add the repo, too \
         ('helm repo add')."
    } else {
        ""
    };
    Err(Error::Helm(format!(
        "no repository definition for {}. Please add them via 'helm repo add'{note}",
        unknown.join(", ")
    )))
}

fn known_repository(known: &NamedRepository) -> Result<Origin, Error> {
    let (url, _) = known.entry()?;
    Ok(Origin::Repository { url, written: None })
}

fn same_address(a: &str, b: &str) -> bool {
    a.trim_end_matches('/') == b.trim_end_matches('/')
}

/// Asks for the indexes of all repositories, and says so as Helm does: those without a name that dependencies need,
/// and all that have one. One that does not answer is an error only if a dependency needs it.
async fn refresh(
    remote: &Remote,
    origins: &[Origin],
    named: &Repositories,
    told: Told<'_>,
) -> Result<(), Error> {
    let mut unmanaged: Vec<(String, Url)> = Vec::new();
    for origin in origins {
        if let Origin::Repository {
            url,
            written: Some(text),
        } = origin
            && !unmanaged.iter().any(|(known, _)| known == text)
        {
            unmanaged.push((text.clone(), url.clone()));
        }
    }
    if !unmanaged.is_empty() {
        told("Getting updates for unmanaged Helm repositories...");
        refresh_all(remote, &unmanaged, told).await;
    }
    if !named.repositories.is_empty() {
        told("Hang tight while we grab the latest from your chart repositories...");
        let mut managed = Vec::with_capacity(named.repositories.len());
        for known in &named.repositories {
            managed.push((known.name.clone(), known.entry()?.0));
        }
        refresh_all(remote, &managed, told).await;
        told("Update Complete. ⎈Happy Helming!⎈");
    }
    Ok(())
}

async fn refresh_all(remote: &Remote, repositories: &[(String, Url)], told: Told<'_>) {
    let asking = repositories.iter().map(|(_, url)| remote.refresh(url));
    let answers = futures::future::join_all(asking).await;
    for ((name, url), answer) in repositories.iter().zip(answers) {
        match answer {
            Ok(()) => told(&format!(
                "...Successfully got an update from the {name:?} chart repository"
            )),
            Err(error) => told(&format!(
                "...Unable to get an update from the {name:?} chart repository ({}):\n\t{error}",
                shown(url)
            )),
        }
    }
}

/// The version of a dependency; none when there is none that fits.
async fn resolve(
    remote: &Remote,
    directory: &Path,
    declared: &Declared,
    origin: Origin,
) -> Result<Option<Resolved>, Error> {
    let invalid = |error: Error| match error {
        Error::Range { problem, .. } => Error::Helm(format!(
            "dependency {:?} has an invalid version/constraint format: {problem}",
            declared.name
        )),
        other => other,
    };
    let locked = |version: &str| Locked {
        name: declared.name.clone(),
        repository: declared.repository.clone(),
        version: version.to_owned(),
    };
    let plain = |version: &str, origin: Origin| Resolved {
        locked: locked(version),
        origin,
        urls: Vec::new(),
        digest: None,
    };
    if let Origin::Present = origin {
        return Ok(Some(plain(&declared.version, origin)));
    }
    let wanted = Wanted::parse(Some(&declared.version)).map_err(invalid)?;
    match &origin {
        Origin::Present => Ok(None),
        Origin::Directory(path) => {
            let files = read_directory(path, None)?;
            let chart = Chart::from_files(files.into_iter().map(|file| (file.path, file.content)));
            let chart = chart.map_err(|source| Error::Chart {
                name: directory.join(path).display().to_string(),
                source: Box::new(source),
            })?;
            let versions = [chart.metadata().version.clone()];
            Ok(wanted
                .choose(&versions, |version| version)
                .map(|version| plain(version, origin.clone())))
        }
        Origin::Registry(reference) => {
            let version = remote
                .version_in_registry(reference, &declared.version, &wanted)
                .await?;
            // Of a registry Helm notices only when it downloads that nothing fits.
            let version = version.as_deref().unwrap_or(&declared.version);
            Ok(Some(plain(version, origin.clone())))
        }
        Origin::Repository { url, .. } => match remote.find_in_repository(url, &declared.name, &wanted).await
        {
            Ok(found) => Ok(Some(Resolved {
                urls: found.urls,
                digest: found.digest,
                ..plain(&found.version, origin.clone())
            })),
            Err(Error::NoVersion { hint, .. }) if hint.is_empty() => Err(Error::Helm(format!(
                "{} chart not found in repo {}",
                declared.name, declared.repository
            ))),
            Err(Error::NoVersion { .. }) => Ok(None),
            Err(error) => Err(error),
        },
    }
}
