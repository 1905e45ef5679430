//! A loaded chart: what its files say, and the digest that names it.

use std::sync::Arc;

use evenkeel_core::Digest;
use evenkeel_goyaml::{Map, Value};

use memchr::memmem;

use crate::Error;
use crate::load::{self, archive};
use crate::metadata::Metadata;
use crate::schema::Schema;
use crate::variant::VariantCache;

/// A chart with all its sub-charts, read and checked. Immutable and cheap to share: put it in an [`Arc`] and render
/// it from as many threads as you like; its templates are parsed once.
#[derive(Debug)]
pub struct Chart {
    pub(crate) root: Arc<LoadedChart>,
    pub(crate) variants: VariantCache,
    digest: Digest,
    asks_for_capabilities: bool,
    warnings: Vec<String>,
}

/// One chart of the tree as its files describe it, before conditions, tags and aliases.
#[derive(Debug)]
pub(crate) struct LoadedChart {
    pub(crate) metadata: Metadata,
    pub(crate) values: Arc<Map>,
    pub(crate) schema: Option<Schema>,
    pub(crate) templates: Vec<ChartFile>,
    pub(crate) files: Arc<Vec<ChartFile>>,
    pub(crate) dependencies: Vec<Arc<LoadedChart>>,
}

/// A file inside a chart.
#[derive(Clone, PartialEq, Eq)]
pub struct ChartFile {
    /// Its path inside the chart, with `/` between the parts.
    pub path: String,
    /// Its bytes, without a byte order mark. Shared by all renders, which never copy them.
    pub data: Arc<[u8]>,
}

impl std::fmt::Debug for ChartFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.path, self.data.len())
    }
}

impl Chart {
    /// Loads a chart from its files. Paths are relative to the chart (`Chart.yaml`, `templates/a.yaml`,
    /// `charts/sub/Chart.yaml`, `charts/other-1.0.0.tgz`); `.helmignore` has been applied by whoever read the
    /// directory, see [`crate::IgnoreRules`].
    pub fn from_files<P, D>(files: impl IntoIterator<Item = (P, D)>) -> Result<Self, Error>
    where
        P: Into<String>,
        D: Into<Vec<u8>>,
    {
        let mut files: Vec<ChartFile> = files
            .into_iter()
            .map(|(path, data)| {
                let mut data = data.into();
                load::strip_byte_order_mark(&mut data);
                ChartFile {
                    path: path.into(),
                    data: data.into(),
                }
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        if let Some([twice, _]) = files
            .windows(2)
            .find(|pair| matches!(pair, [a, b] if a.path == b.path))
        {
            return Err(Error::Archive(format!("{} is there twice", twice.path)));
        }
        let digest = Digest::of_parts(files.iter().flat_map(|file| [file.path.as_bytes(), &*file.data]));
        let mut warnings = Vec::new();
        let root = Arc::new(load::load(files, 0, &mut warnings)?);
        // Helm asks this of the top chart only.
        if !matches!(root.metadata.api_version.as_str(), "v1" | "v2") {
            return Err(Error::UnsupportedApiVersion(root.metadata.api_version.clone()));
        }
        Ok(Self {
            asks_for_capabilities: root.asks_for_capabilities(),
            root,
            digest,
            warnings,
            variants: VariantCache::default(),
        })
    }

    /// Loads a packaged chart (`.tgz`). Its one top directory may have any name.
    pub fn from_archive(archive: &[u8]) -> Result<Self, Error> {
        Self::from_files(archive::unpack(archive)?)
    }

    /// The digest of all files that make up the chart: the same for a directory and its archive.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether its templates may look at the cluster's version or kinds: only then does another version of Kubernetes, or
    /// a new kind, make another render. Values can hold templates too; ask [`mentions_capabilities`] about them.
    pub fn asks_for_capabilities(&self) -> bool {
        self.asks_for_capabilities
    }

    /// Whether it may render definitions of kinds: its files speak of them.
    pub fn may_define_kinds(&self) -> bool {
        self.root.speaks_of(b"CustomResourceDefinition")
    }

    /// What `Chart.yaml` says.
    pub fn metadata(&self) -> &Metadata {
        &self.root.metadata
    }

    /// The chart's own default values, without those of sub-charts.
    pub fn values(&self) -> Value {
        Value::Map((*self.root.values).clone())
    }

    /// Refuses a chart whose declared dependencies are not all in `charts/`, as rendering does.
    ///
    /// # Errors
    /// [`Error::MissingDependencies`].
    pub fn check_dependencies(&self) -> Result<(), Error> {
        crate::dependencies::check_present(&self.root)
    }

    /// What is odd about the chart's files, though not wrong.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Whether a template in this text may look at the cluster's version or kinds.
pub fn mentions_capabilities(text: &[u8]) -> bool {
    memmem::find(text, b"Capabilities").is_some()
}

impl LoadedChart {
    fn asks_for_capabilities(&self) -> bool {
        let own = self.templates.iter().chain(self.files.iter());
        own.into_iter().any(|file| mentions_capabilities(&file.data))
            || self
                .dependencies
                .iter()
                .any(|chart| chart.asks_for_capabilities())
    }

    fn speaks_of(&self, word: &[u8]) -> bool {
        let mut own = self.templates.iter().chain(self.files.iter());
        own.any(|file| memmem::find(&file.data, word).is_some())
            || self.dependencies.iter().any(|chart| chart.speaks_of(word))
    }

    pub(crate) fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The custom resource definitions of this chart alone: YAML and JSON files below `crds/`.
    pub(crate) fn crds(&self) -> impl Iterator<Item = &ChartFile> {
        self.files.iter().filter(|file| {
            let extension = file
                .path
                .rsplit_once('.')
                .map(|(_, extension)| extension.to_ascii_lowercase());
            file.path.starts_with("crds/") && matches!(extension.as_deref(), Some("yaml" | "yml" | "json"))
        })
    }
}
