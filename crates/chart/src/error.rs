//! The one error of this crate. Where Helm has a text for a fault, ours is the same.

use evenkeel_goyaml as goyaml;

use crate::chart::ChartFile;

/// Why a chart could not be loaded or rendered. `Display` is Helm 4.3.1's text where Helm has one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file set has no `Chart.yaml` at its top.
    #[error("Chart.yaml file is missing")]
    NoChartFile,
    /// A file that describes the chart (`Chart.yaml`, `values.yaml`, …) cannot be read.
    #[error("cannot load {file}: {problem}")]
    ChartFile {
        /// The file's path inside the chart.
        file: String,
        /// What is wrong, with the line where known.
        problem: String,
    },
    /// `Chart.yaml` was read, but says something it must not.
    #[error("validation: {0}")]
    Validation(String),
    /// The chart has an API version that Helm 4.3.1 does not render.
    #[error("unsupported chart version {0:?}: apiVersion must be v1 or v2")]
    UnsupportedApiVersion(String),
    /// A chart below `charts/` cannot be loaded.
    #[error("error unpacking subchart {name} in {parent}: {problem}")]
    Subchart {
        /// The entry below `charts/`.
        name: String,
        /// Name of the chart that holds it.
        parent: String,
        /// What is wrong with it.
        problem: Box<Error>,
    },
    /// A chart archive is broken, too large, or tries to reach outside its own directory.
    #[error("chart archive refused: {0}")]
    Archive(String),
    /// A line of `.helmignore` is not understood.
    #[error(".helmignore: {0}")]
    Ignore(String),
    /// A values file cannot be read.
    #[error("failed to parse {file}: {problem}")]
    ValuesFile {
        /// The name it was given under.
        file: String,
        /// What is wrong, with the line where known.
        problem: String,
    },
    /// A `--set…` argument cannot be read.
    #[error("failed parsing {flag} data: {problem}")]
    Set {
        /// The flag it came from, such as `--set`.
        flag: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The user's values are not a mapping.
    #[error("the values must be a mapping")]
    ValuesNotAMapping,
    /// A library chart cannot be installed by itself.
    #[error("{0} charts are not installable")]
    NotInstallable(String),
    /// Declared dependencies that are not in `charts/`.
    #[error(
        "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to \
         fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {}",
        .0.join(", ")
    )]
    MissingDependencies(Vec<String>),
    /// Values for a sub-chart are not a mapping.
    #[error("type mismatch on {0}: the values of a sub-chart must be a mapping")]
    SubchartValues(String),
    /// Values that keep the dependencies from being chosen.
    #[error("chart dependencies processing failed: {0}")]
    Dependencies(Box<Error>),
    /// A release name that cannot be part of object names.
    #[error(
        "release name check failed: release name {0:?}: invalid release name, must match regex \
         ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than 53"
    )]
    ReleaseName(String),
    /// The chart does not run on this Kubernetes version.
    #[error("chart requires kubeVersion: {constraint} which is incompatible with Kubernetes {version}")]
    KubeVersion {
        /// The chart's constraint.
        constraint: String,
        /// The version it was rendered for.
        version: String,
    },
    /// A text that should be a Kubernetes version is none.
    #[error("invalid kube version '{version}': {problem}")]
    BadKubeVersion {
        /// The text.
        version: String,
        /// What is wrong.
        problem: String,
    },
    /// The values break the chart's `values.schema.json`.
    #[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
    Schema(String),
    /// A template cannot be parsed.
    #[error("{message}")]
    TemplateParse {
        /// Helm's text.
        message: String,
        /// `chart/templates/file.yaml`.
        file: String,
    },
    /// A template failed while it ran.
    #[error("{message}")]
    TemplateExecution {
        /// Helm's text, with file, line and column.
        message: String,
        /// `chart/templates/file.yaml`, the file that Helm was rendering.
        file: String,
    },
    /// A render went past one of its limits.
    #[error("render stopped: {0}")]
    Limit(String),
    /// A rendered document is not a Kubernetes object's YAML.
    #[error("YAML parse error on {file}: {problem}")]
    Manifest {
        /// `chart/templates/file.yaml`.
        file: String,
        /// What is wrong.
        problem: String,
        /// The line (from 1) inside the document, where known.
        line: Option<usize>,
        /// What every template printed, for whoever looks for the fault; it may hold secrets. Empty when only one
        /// document was looked at.
        outputs: Vec<ChartFile>,
    },
    /// The post-renderer failed, or what it is given or gives is not a stream of Kubernetes objects.
    #[error("{0}")]
    PostRender(String),
    /// `--show-only` names a file that rendered nothing.
    #[error("could not find template {0} in chart")]
    NoSuchTemplate(String),
    /// A fault of this program; please report it.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Error {
    pub(crate) fn chart_file(file: &str, problem: impl ToString) -> Self {
        Error::ChartFile {
            file: file.to_owned(),
            problem: problem.to_string(),
        }
    }

    pub(crate) fn manifest(file: &str, problem: &goyaml::Error) -> Self {
        Error::Manifest {
            file: file.to_owned(),
            line: problem.line(),
            problem: problem.to_string(),
            outputs: Vec::new(),
        }
    }
}
