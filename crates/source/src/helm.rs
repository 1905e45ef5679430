//! Where Helm's users have their charts: the flags that say it, and the files that `helm repo add` and
//! `helm registry login` write. The rules and the words of errors are Helm's.

mod dependencies;
mod locate;
pub(crate) mod provenance;
mod registry_config;
mod remote_values;
mod repositories;

use std::path::{Path, PathBuf};

use evenkeel_core::{Digest, Sensitive};

use crate::credentials::{Credentials, CredentialsFile, Tls};
use crate::version::DEVELOPMENT;
use crate::{CacheOptions, Error};

pub use dependencies::Told;
pub use locate::Located;

/// Helm's own files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelmSettings {
    /// The repositories that `helm repo add` noted.
    pub repository_config: PathBuf,
    /// The indexes that `helm repo update` fetched.
    pub repository_cache: PathBuf,
    /// What `helm registry login` noted.
    pub registry_config: PathBuf,
    /// What `docker login` noted; Helm looks there as well.
    pub docker_config: Option<PathBuf>,
    /// The keys that charts may be signed with when none are named.
    pub keyring: PathBuf,
}

/// What the command line says about where a chart comes from; the names are those of Helm's flags.
#[derive(Clone, Debug, Default)]
pub struct ChartOptions {
    /// The repository to take the chart from.
    pub repo: Option<String>,
    /// A version or a range.
    pub version: Option<String>,
    /// Whether pre-releases count when there is no version.
    pub devel: bool,
    /// Who we are at the repository or registry.
    pub username: Option<String>,
    /// The password to that.
    pub password: Option<Sensitive<String>>,
    /// Whether they also go to other hosts that the repository names.
    pub pass_credentials: bool,
    /// How TLS is spoken.
    pub tls: Tls,
    /// Whether a registry is spoken to without TLS.
    pub plain_http: bool,
    /// Whether the chart's signature is checked.
    pub verify: bool,
    /// The keys that it may be signed with; else those of GnuPG.
    pub keyring: Option<PathBuf>,
}

/// Finds charts as Helm does.
#[derive(Clone, Debug)]
pub struct Helm {
    settings: HelmSettings,
    options: ChartOptions,
    cache: Option<CacheOptions>,
    /// What else is known about hosts.
    known: Credentials,
}

impl HelmSettings {
    /// The files that the environment names, or Helm's usual ones.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let path = |name: &str| variable(name).filter(|text| !text.is_empty()).map(PathBuf::from);
        let home = path("HOME").unwrap_or_default();
        let base = |own: &str, xdg: &str, usual: &str| {
            path(own).unwrap_or_else(|| path(xdg).unwrap_or_else(|| home.join(usual)).join("helm"))
        };
        let config = base("HELM_CONFIG_HOME", "XDG_CONFIG_HOME", ".config");
        let cache = base("HELM_CACHE_HOME", "XDG_CACHE_HOME", ".cache");
        Self {
            repository_config: path("HELM_REPOSITORY_CONFIG")
                .unwrap_or_else(|| config.join("repositories.yaml")),
            repository_cache: path("HELM_REPOSITORY_CACHE").unwrap_or_else(|| cache.join("repository")),
            registry_config: path("HELM_REGISTRY_CONFIG")
                .unwrap_or_else(|| config.join("registry").join("config.json")),
            docker_config: Some(
                path("DOCKER_CONFIG")
                    .unwrap_or_else(|| home.join(".docker"))
                    .join("config.json"),
            ),
            keyring: provenance::usual_keyring(variable),
        }
    }
}

impl ChartOptions {
    /// The version or range asked for.
    pub(crate) fn version(&self) -> Option<&str> {
        let version = self
            .version
            .as_deref()
            .map(str::trim)
            .filter(|text| !text.is_empty());
        version.or_else(|| self.devel.then_some(DEVELOPMENT))
    }
}

impl Helm {
    /// Charts by these settings; downloads are kept in `cache`.
    pub fn new(settings: HelmSettings, options: ChartOptions, cache: Option<CacheOptions>) -> Self {
        Self {
            settings,
            options,
            cache,
            known: Credentials::default(),
        }
    }

    /// The same, with what a file of credentials says; flags speak louder.
    #[must_use]
    pub fn with_credentials(self, file: &CredentialsFile) -> Self {
        Self {
            known: file.credentials(),
            ..self
        }
    }

    /// Whether a text that is no path names a chart elsewhere: an address, or a chart of a repository with a name.
    ///
    /// # Errors
    /// [`Error::Credentials`] when the file of repositories cannot be read.
    pub fn is_elsewhere(&self, chart: &str) -> Result<bool, Error> {
        if self.options.repo.is_some() || chart.contains("://") {
            return Ok(true);
        }
        let Some((repository, _)) = chart.split_once('/') else {
            return Ok(false);
        };
        let named = repositories::Repositories::read(&self.settings.repository_config)?;
        Ok(named.named(repository).is_some())
    }

    /// The chart's place on this machine; none when it has to be obtained from elsewhere.
    ///
    /// # Errors
    /// [`Error::Helm`] in Helm's words when it can only be a path and nothing is there.
    pub fn path(&self, chart: &str) -> Result<Option<PathBuf>, Error> {
        let chart = chart.trim();
        if self.options.repo.is_some() {
            return Ok(None);
        }
        let path = Path::new(chart);
        if path.exists() {
            return Ok(Some(path.to_owned()));
        }
        if path.is_absolute() || chart.starts_with('.') {
            return Err(Error::Helm(format!("path {chart:?} not found")));
        }
        Ok(None)
    }

    /// The archive at a place of this machine, its signature checked; none when none was asked for. What was checked is
    /// what is returned: the file may be another one by now.
    ///
    /// # Errors
    /// [`Error::Helm`] in Helm's words when the signature is not accepted.
    pub fn verified_archive(&self, path: &Path) -> Result<Option<Located>, Error> {
        if !self.options.verify {
            return Ok(None);
        }
        let now = evenkeel_telemetry::time::now().as_second();
        let archive = provenance::verify_local(path, self.keyring(), now)?;
        Ok(Some(Located {
            digest: Digest::of(&archive),
            archive: archive.into(),
            place: path.display().to_string(),
            warnings: Vec::new(),
        }))
    }

    /// The keys that charts may be signed with.
    fn keyring(&self) -> &Path {
        self.options.keyring.as_deref().unwrap_or(&self.settings.keyring)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> HelmSettings {
        HelmSettings::of_environment(|name| {
            let found = variables.iter().find(|(own, _)| *own == name)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn files_lie_where_helm_has_them() {
        let usual = settings(&[("HOME", "/home/me")]);
        assert_eq!(
            usual.repository_config,
            Path::new("/home/me/.config/helm/repositories.yaml")
        );
        assert_eq!(
            usual.repository_cache,
            Path::new("/home/me/.cache/helm/repository")
        );
        assert_eq!(
            usual.registry_config,
            Path::new("/home/me/.config/helm/registry/config.json")
        );
        let moved = settings(&[
            ("HOME", "/home/me"),
            ("XDG_CONFIG_HOME", "/x"),
            ("HELM_CACHE_HOME", "/c"),
            ("HELM_REGISTRY_CONFIG", "/r.json"),
        ]);
        assert_eq!(moved.repository_config, Path::new("/x/helm/repositories.yaml"));
        assert_eq!(moved.repository_cache, Path::new("/c/repository"));
        assert_eq!(moved.registry_config, Path::new("/r.json"));
    }

    #[test]
    fn what_can_only_be_a_path_is_one() {
        let helm = |options| Helm::new(settings(&[]), options, None);
        let plain = helm(ChartOptions::default());
        assert_eq!(
            plain.path("/does/not/exist").unwrap_err().to_string(),
            "path \"/does/not/exist\" not found"
        );
        assert!(plain.path("./nope").is_err());
        assert_eq!(plain.path("repo/chart").unwrap(), None);
        assert_eq!(plain.path(" /tmp ").unwrap(), Some(PathBuf::from("/tmp")));
        let verified = helm(ChartOptions {
            verify: true,
            ..ChartOptions::default()
        });
        assert!(plain.verified_archive(Path::new("/tmp")).unwrap().is_none());
        assert_eq!(
            verified
                .verified_archive(Path::new("/tmp"))
                .unwrap_err()
                .to_string(),
            "unpacked charts cannot be verified"
        );
    }
}
