//! Charts that lie elsewhere: the flags that say where, and obtaining one for a command that waits for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;
use etcetera::{BaseStrategy as _, choose_base_strategy};
use evenkeel_core::HumanDuration;
use evenkeel_source::{
    CacheOptions, CredentialsFile, CredentialsSource, FRESH_FOR, Helm, HelmSettings, HostPattern, HostPolicy,
    Located, Remote, RemoteOptions, Signatures,
};
use evenkeel_telemetry::{SystemClock, Tasks};

use crate::output;
use crate::process::{self, Usage};

/// Where downloads are kept, below the user's cache directory.
const CACHE: [&str; 2] = ["evenkeel", "sources"];

/// Which hosts a mothership takes charts from, and as whom.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Credentials and certificates for repositories and registries (YAML, see docs/clusters.md); read again when it
    /// changes
    #[arg(long, value_name = "FILE", env = "EVENKEEL_SOURCE_CREDENTIALS")]
    source_credentials: Option<PathBuf>,
    /// Which charts must be signed, and by whom (YAML, see docs/signed-charts.md); read again when it changes
    #[arg(long, value_name = "FILE", env = "EVENKEEL_SOURCE_SIGNATURES")]
    source_signatures: Option<PathBuf>,
    /// Hosts that charts may come from although they are not public or not https: HOST, HOST:PORT or *.DOMAIN
    #[arg(
        long,
        value_name = "HOSTS",
        env = "EVENKEEL_SOURCE_HOSTS",
        value_delimiter = ','
    )]
    source_hosts: Vec<HostPattern>,
    /// Where downloaded charts are kept; processes may share it [default: evenkeel/sources in the XDG cache directory]
    #[arg(long, value_name = "DIRECTORY", env = "EVENKEEL_SOURCE_CACHE")]
    source_cache: Option<PathBuf>,
    /// How long what a version range or tag stands for is not asked for again
    #[arg(long, value_name = "DURATION", default_value_t = HumanDuration(FRESH_FOR))]
    source_refresh: HumanDuration,
}

/// Helm's own files, by the names of Helm's flags.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HelmFiles {
    /// Credentials for registries
    #[arg(long, value_name = "FILE", env = "HELM_REGISTRY_CONFIG", hide_env = true)]
    pub(crate) registry_config: Option<PathBuf>,
    /// Names and addresses of repositories
    #[arg(long, value_name = "FILE", env = "HELM_REPOSITORY_CONFIG", hide_env = true)]
    pub(crate) repository_config: Option<PathBuf>,
    /// Where indexes of repositories are kept
    #[arg(
        long,
        value_name = "DIRECTORY",
        env = "HELM_REPOSITORY_CACHE",
        hide_env = true
    )]
    pub(crate) repository_cache: Option<PathBuf>,
}

impl Arguments {
    /// A way to repositories and registries for a mothership.
    pub(crate) fn remote(&self, tasks: &Tasks) -> anyhow::Result<Remote> {
        let credentials = match &self.source_credentials {
            Some(path) => {
                CredentialsSource::File(CredentialsFile::open(path).map_err(|error| Usage(error.into()))?)
            }
            None => CredentialsSource::None,
        };
        let hosts = if self.source_hosts.is_empty() {
            HostPolicy::Public
        } else {
            HostPolicy::PublicAnd(self.source_hosts.clone())
        };
        let directory = match &self.source_cache {
            Some(directory) => directory.clone(),
            None => usual_cache().context("the home directory is not known: use --source-cache")?,
        };
        let options = RemoteOptions {
            cache: Some(CacheOptions::at(directory)),
            fresh_for: self.source_refresh.0,
            hosts,
            credentials,
        };
        Remote::new(options, Arc::new(SystemClock), tasks.clone())
            .map_err(|error| Usage(anyhow!(error)).into())
    }
}

impl Arguments {
    /// Which charts must be signed.
    pub(crate) fn signatures(&self) -> anyhow::Result<Option<Arc<Signatures>>> {
        let rules = self.source_signatures.as_ref().map(Signatures::open);
        let rules = rules.transpose().map_err(|error| Usage(error.into()))?;
        Ok(rules.map(Arc::new))
    }
}

impl HelmFiles {
    /// Helm's files as the flags or the environment name them.
    pub(crate) fn settings(&self) -> HelmSettings {
        let mut settings = HelmSettings::of_environment(|name| std::env::var(name).ok());
        let given = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        if let Some(path) = given(&self.repository_config) {
            settings.repository_config = path;
        }
        if let Some(path) = given(&self.repository_cache) {
            settings.repository_cache = path;
        }
        if let Some(path) = given(&self.registry_config) {
            settings.registry_config = path;
        }
        settings
    }
}

/// Where this user's downloads are kept: below Helm's own cache of content when one is named.
pub(crate) fn cache(content_cache: Option<&Path>) -> Option<CacheOptions> {
    let own = content_cache.filter(|path| !path.as_os_str().is_empty());
    let directory = own.map(|path| path.join(CACHE[0])).or_else(usual_cache)?;
    Some(CacheOptions::at(directory))
}

fn usual_cache() -> Option<PathBuf> {
    let base = choose_base_strategy().ok()?.cache_dir();
    Some(CACHE.iter().fold(base, |path, part| path.join(part)))
}

/// Obtains a chart and waits for it.
pub(crate) fn fetch(helm: &Helm, chart: &str) -> anyhow::Result<Located> {
    wait(|tasks| async move { Ok(helm.fetch(chart, Arc::new(SystemClock), tasks).await?) })
}

/// Obtains values, or a schema, from an address and waits for them.
pub(crate) fn fetch_text(address: &str) -> anyhow::Result<Vec<u8>> {
    let text =
        wait(|tasks| async move { Ok(Helm::fetch_text(address, Arc::new(SystemClock), tasks).await?) });
    Ok(text?.into())
}

/// Runs work that the network may hold up, and ends it when the user does.
fn wait<T, W>(work: impl FnOnce(Tasks) -> W) -> anyhow::Result<T>
where
    W: Future<Output = anyhow::Result<T>>,
{
    let mut found = None;
    let slot = &mut found;
    process::run_to_end(|tasks| async move {
        let work = work(tasks.clone());
        *slot = Some(tokio::select! {
            found = work => found?,
            () = tasks.cancelled() => anyhow::bail!("interrupted"),
        });
        Ok(())
    })?;
    found.context("the work was cut off")
}

/// Gets what a chart directory depends on, and says so in Helm's words.
pub(crate) fn update_dependencies(helm: &Helm, directory: &Path) -> anyhow::Result<()> {
    process::run_to_end(|tasks| async move {
        let told = |line: &str| {
            // A closed output is noticed when the render is printed.
            let _ = output::line(line);
        };
        let updated = helm.update_dependencies(directory, &told, Arc::new(SystemClock), tasks.clone());
        tokio::select! {
            updated = updated => Ok(updated?),
            () = tasks.cancelled() => anyhow::bail!("interrupted"),
        }
    })
}
