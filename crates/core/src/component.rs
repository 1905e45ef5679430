//! One unit of a configuration: what to run, from where, where to, with which values.

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    ChartName, ChartVersion, ComponentName, Digest, Error, HookPolicy, HumanDuration, Namespace,
    OciReference, ReadinessRule, RepositoryUrl,
};

/// What a component is made from. A tagged union: `{directory: {path}}`, `{archive: {digest}}`,
/// `{repository: {repository, chart, version}}`, `{oci: {reference, version}}`; more kinds come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum SourceRef {
    /// A chart directory of the mothership's file system, below its source root.
    Directory {
        /// Path relative to the source root; `evenkeel local` takes any path.
        path: String,
    },
    /// A chart archive (`.tgz`) that was uploaded.
    Archive {
        /// The archive's content address.
        digest: Digest,
    },
    /// A chart of a Helm repository.
    Repository {
        /// The repository.
        repository: RepositoryUrl,
        /// The chart's name in it.
        chart: ChartName,
        /// A version or range; the newest release when left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<ChartVersion>,
    },
    /// A chart of an OCI registry.
    Oci {
        /// The chart.
        reference: OciReference,
        /// A tag, a range of them, or a digest; the newest release when left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<ChartVersion>,
    },
}

impl SourceRef {
    /// The name of the kind of source, as on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "directory",
            Self::Archive { .. } => "archive",
            Self::Repository { .. } => "repository",
            Self::Oci { .. } => "oci",
        }
    }
}

/// What a source holds, and so how objects are made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SourceFormat {
    /// A Helm chart, known by its `Chart.yaml`.
    Chart,
    /// A kustomization, known by its `kustomization.yaml`, `kustomization.yml` or `Kustomization`.
    Kustomization,
    /// Plain manifests: every `.yaml`, `.yml` and `.json` file below it.
    Manifests,
}

impl SourceFormat {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chart => "chart",
            Self::Kustomization => "kustomization",
            Self::Manifests => "manifests",
        }
    }

    /// Whether objects are made with values. A kustomization has its patches instead, plain manifests are as they are.
    pub fn takes_values(self) -> bool {
        matches!(self, Self::Chart)
    }
}

impl std::fmt::Display for SourceFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One key of a Secret or ConfigMap of the target cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DataRef {
    /// Namespace of the object; the component's when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// Name of the object.
    pub name: String,
    /// Key below its `data`; `values.yaml` when left out.
    #[serde(default = "default_values_key")]
    pub key: String,
    /// Whether the values are just left out when object or key do not exist.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

fn default_values_key() -> String {
    "values.yaml".to_owned()
}

/// Where values are read when the component is rendered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum ValuesFrom {
    /// A key of a Secret of the target cluster.
    Secret(DataRef),
    /// A key of a ConfigMap of the target cluster.
    ConfigMap(DataRef),
}

/// One layer of values; later layers win over earlier ones, as with several `helm -f`.
///
/// `Debug` shows no content: any value may hold a password.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum ValuesEntry {
    /// Values written in the configuration, shown again on GET.
    Inline(#[serde(deserialize_with = "values_map")] serde_json::Map<String, serde_json::Value>),
    /// Values written in the configuration, masked on GET.
    Secret(#[serde(deserialize_with = "values_map")] serde_json::Map<String, serde_json::Value>),
    /// Values kept in the target cluster.
    ValuesFrom(ValuesFrom),
}

impl std::fmt::Debug for ValuesEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inline(_) => f.write_str("Inline([redacted])"),
            Self::Secret(_) => f.write_str("Secret([redacted])"),
            Self::ValuesFrom(from) => f.debug_tuple("ValuesFrom").field(from).finish(),
        }
    }
}

/// Reads a map of values. Serde's own error would quote what stands in its place, and that may be a password.
fn values_map<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<serde_json::Map<String, serde_json::Value>, D::Error> {
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::Object(values) => Ok(values),
        _ => Err(serde::de::Error::custom("expected a map of values")),
    }
}

/// What happens to a component that a new configuration no longer lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnRemove {
    /// Its objects are deleted, by the rules of DESIGN §8.
    #[default]
    Delete,
    /// Its objects stay and are no longer ours.
    Orphan,
}

/// What happens to objects that finalizers still hold when the time of a deletion is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StuckFinalizers {
    /// They stay, and are named.
    #[default]
    Report,
    /// Those of kinds that the component itself defines lose their finalizers: their controller may have gone before them.
    /// Objects of other kinds never do.
    Strip,
}

impl StuckFinalizers {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The proxies that a component has injected into pods of others, as Istio does its sidecars. Workloads whose pods run
/// another one, or lack theirs, are restarted once the component was installed or upgraded, each once per image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InjectedProxies {
    /// The name of the proxy's container.
    #[serde(default = "default_proxy_container")]
    pub container: String,
    /// The image that new pods get; read from the component's ConfigMap `istio-sidecar-injector…` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

fn default_proxy_container() -> String {
    "istio-proxy".to_owned()
}

/// What is done about a field that another field manager has set to another value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnConflict {
    /// It becomes ours.
    #[default]
    Force,
    /// It stays theirs, and the rest of the object is applied.
    Leave,
    /// Nothing of the object is applied, and the component fails.
    #[serde(rename = "error")]
    Refuse,
}

impl OnConflict {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Force, Self::Leave, Self::Refuse];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Force => "force",
            Self::Leave => "leave",
            Self::Refuse => "error",
        }
    }

    /// Whether nothing else was asked for.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for OnConflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for OnConflict {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|policy| policy.as_str() == text);
        found.ok_or_else(|| Error::State {
            what: "conflict policy",
            value: text.to_owned(),
            allowed: Self::ALL.map(Self::as_str).join(", "),
        })
    }
}

/// One component of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ComponentSpec {
    /// Unique in the configuration; also the Helm release name.
    pub name: ComponentName,
    /// What it is made from.
    pub source: SourceRef,
    /// What the source holds; found by its files when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<SourceFormat>,
    /// The release namespace, created first when missing, and the default of objects without one.
    pub namespace: Namespace,
    /// Layers of values; later ones win.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValuesEntry>,
    /// Components that must have succeeded before this one starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<ComponentName>,
    /// What happens when a later configuration no longer lists it.
    #[serde(default)]
    pub on_remove: OnRemove,
    /// Whether [`ComponentSpec::namespace`] overrides even an object's explicit one (K28).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force_namespace: bool,
    /// Whether existing objects that carry no label of ours may be taken over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt: bool,
    /// What is done about fields of its objects that others own with other values; an object's annotation
    /// `evenkeel.dev/on-conflict` wins.
    #[serde(default, skip_serializing_if = "OnConflict::is_default")]
    pub on_conflict: OnConflict,
    /// How long its objects may take to become ready; the fleet's setting when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<HumanDuration>,
    /// When objects count as ready that the rules of their kinds do not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readiness: Vec<ReadinessRule>,
    /// Whether the hooks of its chart run.
    #[serde(default, skip_serializing_if = "HookPolicy::is_default")]
    pub hooks: HookPolicy,
    /// What happens to objects that finalizers hold when the component is deleted.
    #[serde(default, skip_serializing_if = "StuckFinalizers::is_default")]
    pub on_stuck_finalizers: StuckFinalizers,
    /// The proxies that it has injected into pods of others; none are restarted when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxies: Option<InjectedProxies>,
}
