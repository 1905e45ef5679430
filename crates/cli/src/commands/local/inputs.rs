//! What the components are made from: charts and values files of this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use async_trait::async_trait;
use bytes::Bytes;
use evenkeel_cluster::ReadinessRules;
use evenkeel_component::{Layer, Sibling, Values};
use evenkeel_core::{
    ComponentName, ComponentSpec, Digest, HookPolicy, Namespace, OnConflict, OnRemove, ReadinessRule,
    Sensitive, SourceRef, StuckFinalizers,
};
use evenkeel_goyaml::{Numbers, from_yaml};
use evenkeel_source::{Archives, Error};

use super::arguments::LocalComponent;
use crate::documents;
use crate::kubeconfig::expand;

/// The largest chart archive that is read, in bytes; the same bound as for one sent to a mothership.
const ARCHIVE_SIZE_MAX: u64 = 20 * 1024 * 1024;

/// One component, its values read.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    pub(crate) name: ComponentName,
    pub(crate) source: SourceRef,
    pub(crate) namespace: Namespace,
    pub(crate) values: Values,
    pub(crate) depends_on: Vec<ComponentName>,
    pub(crate) hooks: HookPolicy,
    pub(crate) readiness: ReadinessRules,
}

/// Chart archives of this machine, by content.
#[derive(Debug, Default)]
pub(super) struct LocalArchives(BTreeMap<Digest, Bytes>);

#[async_trait]
impl Archives for LocalArchives {
    async fn archive(&self, digest: &Digest) -> Result<Bytes, Error> {
        self.0.get(digest).cloned().ok_or(Error::NoSuchArchive(*digest))
    }
}

impl LocalArchives {
    /// Keeps a chart that was obtained from elsewhere.
    pub(super) fn keep(&mut self, archive: Bytes) -> Digest {
        let digest = Digest::of(&archive);
        self.0.insert(digest, archive);
        digest
    }
}

impl Inputs {
    /// The component as the others know it: by what it renders.
    pub(crate) fn sibling(&self) -> Sibling {
        Sibling {
            name: self.name.clone(),
            source: self.source.clone(),
            format: None,
            values: self.values.clone(),
            namespace: self.namespace.clone(),
            force_namespace: false,
        }
    }

    /// The component as the graph of dependencies knows it.
    pub(crate) fn spec(&self) -> ComponentSpec {
        ComponentSpec {
            name: self.name.clone(),
            source: self.source.clone(),
            format: None,
            namespace: self.namespace.clone(),
            values: Vec::new(),
            depends_on: self.depends_on.clone(),
            on_remove: OnRemove::default(),
            force_namespace: false,
            adopt: false,
            on_conflict: OnConflict::default(),
            timeout: None,
            readiness: Vec::new(),
            hooks: self.hooks,
            on_stuck_finalizers: StuckFinalizers::default(),
            proxies: None,
        }
    }
}

/// Reads what the arguments name. A chart directory is read later, by the pipeline, and so a wrong one fails its
/// component alone; what is only deleted reads nothing.
pub(super) fn read(
    components: Vec<LocalComponent>,
    mut archives: LocalArchives,
    fetched: &BTreeMap<ComponentName, Digest>,
    only_deleted: bool,
    hooks: HookPolicy,
) -> anyhow::Result<(Vec<Inputs>, LocalArchives)> {
    let mut inputs = Vec::with_capacity(components.len());
    for component in components {
        let path = component.path.as_deref().map(expand).unwrap_or_default();
        let source = if let Some(digest) = fetched.get(&component.name) {
            SourceRef::Archive { digest: *digest }
        } else if path.is_file() && !only_deleted {
            archive(&path, &mut archives)
                .with_context(|| format!("the chart of component {} cannot be read", component.name))?
        } else {
            SourceRef::Directory {
                path: path_text(&path, &component.name)?,
            }
        };
        let mut layers = Vec::with_capacity(component.files.len());
        for file in component.files.iter().filter(|_| !only_deleted) {
            let text = documents::text(&expand(file))
                .with_context(|| format!("the values of component {} cannot be read", component.name))?;
            layers.push(Layer::Text {
                name: file.display().to_string(),
                text: Sensitive::new(text),
            });
        }
        let readiness = readiness(&component.readiness, &component.name, only_deleted)?;
        inputs.push(Inputs {
            name: component.name,
            source,
            namespace: component.namespace,
            values: Values {
                layers,
                set: component.set,
                set_string: component.set_string,
                ..Values::default()
            },
            depends_on: component.depends_on,
            hooks,
            readiness,
        });
    }
    Ok((inputs, archives))
}

/// The readiness rules of a file: a list as `readiness` of a component's document is.
fn readiness(
    file: &Option<PathBuf>,
    component: &ComponentName,
    only_deleted: bool,
) -> anyhow::Result<ReadinessRules> {
    let Some(file) = file.as_ref().filter(|_| !only_deleted) else {
        return Ok(ReadinessRules::default());
    };
    let name = file.display();
    let text = documents::text(&expand(file))
        .with_context(|| format!("the readiness rules of component {component} cannot be read"))?;
    let value = from_yaml(text.as_bytes(), Numbers::Exact).with_context(|| name.to_string())?;
    let value = serde_json::Value::try_from(value).with_context(|| name.to_string())?;
    let rules: Vec<ReadinessRule> = serde_json::from_value(value)
        .with_context(|| format!("{name}: expected a list of rules with apiVersion, kind and ready"))?;
    ReadinessRules::compile(&rules).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{name}: {}", problems.join("; "))
    })
}

fn archive(path: &Path, archives: &mut LocalArchives) -> anyhow::Result<SourceRef> {
    let name = path.display();
    let length = std::fs::metadata(path)
        .with_context(|| format!("cannot read {name}"))?
        .len();
    if length > ARCHIVE_SIZE_MAX {
        bail!("{name} is larger than {ARCHIVE_SIZE_MAX} bytes");
    }
    let bytes = Bytes::from(std::fs::read(path).with_context(|| format!("cannot read {name}"))?);
    let digest = Digest::of(&bytes);
    archives.0.insert(digest, bytes);
    Ok(SourceRef::Archive { digest })
}

/// The path as the configuration holds it. An empty one, of a component that is only deleted, stands for itself.
fn path_text(path: &Path, component: &ComponentName) -> anyhow::Result<String> {
    if path.as_os_str().is_empty() {
        return Ok(".".to_owned());
    }
    let text = path.to_str().with_context(|| {
        format!(
            "the path of component {component} is not UTF-8: {}",
            path.display()
        )
    })?;
    Ok(text.to_owned())
}
