//! Where the chart lies: the flags that say so, and finding it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use evenkeel_chart::Chart;
use evenkeel_core::Sensitive;
use evenkeel_source::{ChartOptions, Helm, Located, Tls, io_cause};

use super::flags::Switch;
use crate::charts::{self, HelmFiles};

/// Where a chart comes from, and with which credentials.
#[derive(Debug, clap::Args)]
pub(super) struct Location {
    /// Version, or range of versions, of the chart; else the newest
    #[arg(long, value_name = "VERSION")]
    pub(super) version: Option<String>,
    /// Versions under development as well; --version comes before it
    #[arg(long)]
    pub(super) devel: Switch,
    /// Address of the repository that has the chart
    #[arg(long, value_name = "URL")]
    pub(super) repo: Option<String>,
    /// User name at the repository
    #[arg(long, value_name = "NAME")]
    pub(super) username: Option<String>,
    /// Password at the repository
    #[arg(long, value_name = "PASSWORD")]
    pub(super) password: Option<String>,
    /// Send user name and password to other hosts as well
    #[arg(long)]
    pub(super) pass_credentials: Switch,
    /// Certificate authorities that HTTPS servers are trusted by
    #[arg(long, value_name = "FILE")]
    pub(super) ca_file: Option<PathBuf>,
    /// Certificate to show to HTTPS servers
    #[arg(long, value_name = "FILE")]
    pub(super) cert_file: Option<PathBuf>,
    /// Key of that certificate
    #[arg(long, value_name = "FILE")]
    pub(super) key_file: Option<PathBuf>,
    /// Trust any HTTPS server that the chart comes from
    #[arg(long)]
    pub(super) insecure_skip_tls_verify: Switch,
    /// Speak HTTP with registries
    #[arg(long)]
    pub(super) plain_http: Switch,
    /// Check the chart's signature before using it
    #[arg(long)]
    pub(super) verify: Switch,
    /// Public keys for --verify
    #[arg(long, value_name = "FILE")]
    pub(super) keyring: Option<PathBuf>,
    /// Fetch dependencies that are missing
    #[arg(long)]
    pub(super) dependency_update: Switch,

    #[command(flatten)]
    pub(super) files: HelmFiles,
    /// Where fetched charts are kept
    #[arg(long, value_name = "DIRECTORY", env = "HELM_CONTENT_CACHE", hide_env = true)]
    pub(super) content_cache: Option<PathBuf>,
}

/// A chart that was found.
pub(super) enum Found {
    /// A directory or archive of this machine.
    Path(PathBuf),
    /// An archive from elsewhere, or one whose signature was checked.
    Fetched(Located),
}

impl Location {
    /// The directory or archive of the chart that was asked for by `chart`.
    pub(super) fn locate(&self, chart: &str) -> anyhow::Result<Found> {
        let helm = self.helm();
        match helm.path(chart)? {
            Some(path) => Ok(match helm.verified_archive(&path)? {
                Some(verified) => Found::Fetched(verified),
                None => Found::Path(path),
            }),
            None => charts::fetch(&helm, chart).map(Found::Fetched),
        }
    }

    /// Reads a chart; first gets what it depends on, when that is missing and was asked for.
    pub(super) fn read(&self, found: &Found) -> anyhow::Result<Chart> {
        let chart = found.read()?;
        match found {
            Found::Path(path) if self.dependency_update.0 && path.is_dir() => {
                if chart.check_dependencies().is_ok() {
                    return Ok(chart);
                }
                charts::update_dependencies(&self.helm(), path)?;
                found.read()
            }
            _ => Ok(chart),
        }
    }

    fn helm(&self) -> Helm {
        let cache = charts::cache(self.content_cache.as_deref());
        Helm::new(self.files.settings(), self.options(), cache)
    }

    fn options(&self) -> ChartOptions {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let path = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        ChartOptions {
            repo: given(&self.repo),
            version: given(&self.version),
            devel: self.devel.0,
            username: given(&self.username),
            password: given(&self.password).map(Sensitive::new),
            pass_credentials: self.pass_credentials.0,
            tls: Tls {
                ca_file: path(&self.ca_file),
                cert_file: path(&self.cert_file),
                key_file: path(&self.key_file),
                insecure: self.insecure_skip_tls_verify.0,
            },
            plain_http: self.plain_http.0,
            verify: self.verify.0,
            keyring: path(&self.keyring),
        }
    }
}

impl Found {
    /// Where it was found, for people.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Fetched(located) => located.place.clone(),
        }
    }

    /// Reads it.
    fn read(&self) -> anyhow::Result<Chart> {
        match self {
            Self::Path(path) => read_chart(path),
            Self::Fetched(located) => Ok(Chart::from_archive(&located.archive)?),
        }
    }

    /// What the user should hear of how it was found.
    pub(super) fn warnings(&self) -> &[String] {
        match self {
            Self::Path(_) => &[],
            Self::Fetched(located) => &located.warnings,
        }
    }
}

/// Tells who named another file than a chart, often its values, what was expected.
fn ensure_archive(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    const GZIP: &[u8] = b"\x1f\x8b\x08";
    if content.starts_with(GZIP) {
        return Ok(());
    }
    let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let shown = file.display();
    if file
        .extension()
        .is_some_and(|kind| kind == "yaml" || kind == "yml")
    {
        bail!("file '{shown}' seems to be a YAML file, but expected a gzipped archive");
    }
    bail!("file '{shown}' does not appear to be a gzipped archive");
}

/// Reads a chart's directory or archive.
fn read_chart(path: &Path) -> anyhow::Result<Chart> {
    if path.is_file() {
        let shown = path.display();
        let archive = fs::read(path).map_err(|error| anyhow!("open {shown}: {}", io_cause(&error)))?;
        ensure_archive(path, &archive)?;
        return Chart::from_archive(&archive)
            .with_context(|| format!("unable to load chart archive {shown}"));
    }
    let metadata = std::path::absolute(path)
        .unwrap_or_else(|_| path.to_owned())
        .join("Chart.yaml");
    if path.is_dir() && !metadata.exists() {
        let shown = metadata.display();
        bail!("unable to detect chart at {shown}: open {shown}: no such file or directory");
    }
    let files = evenkeel_source::read_directory(path, None)?;
    Ok(Chart::from_files(
        files.into_iter().map(|file| (file.path, file.content)),
    )?)
}
