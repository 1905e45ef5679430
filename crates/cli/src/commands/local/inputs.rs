//! What the components are made from: charts and values files of this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use async_trait::async_trait;
use bytes::Bytes;
use evenkeel_component::{Layer, Values};
use evenkeel_core::{ComponentName, ComponentSpec, Digest, Namespace, OnRemove, Sensitive, SourceRef};
use evenkeel_source::{Archives, Error};

use super::arguments::LocalComponent;
use crate::documents;

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

impl Inputs {
    /// The component as the graph of dependencies knows it.
    pub(crate) fn spec(&self) -> ComponentSpec {
        ComponentSpec {
            name: self.name.clone(),
            source: self.source.clone(),
            namespace: self.namespace.clone(),
            values: Vec::new(),
            depends_on: self.depends_on.clone(),
            on_remove: OnRemove::default(),
            force_namespace: false,
            adopt: false,
            timeout: None,
        }
    }
}

/// Reads what the arguments name. A chart directory is read later, by the pipeline, and so a wrong one fails its
/// component alone; what is only deleted reads nothing.
pub(super) fn read(
    components: Vec<LocalComponent>,
    only_deleted: bool,
) -> anyhow::Result<(Vec<Inputs>, LocalArchives)> {
    let mut archives = LocalArchives::default();
    let mut inputs = Vec::with_capacity(components.len());
    for component in components {
        let path = component.path.as_deref().map(expand).unwrap_or_default();
        let source = if path.is_file() && !only_deleted {
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
        inputs.push(Inputs {
            name: component.name,
            source,
            namespace: component.namespace,
            values: Values {
                layers,
                set: component.set,
                set_string: component.set_string,
            },
            depends_on: component.depends_on,
        });
    }
    Ok((inputs, archives))
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

/// Puts the home directory in place of a leading `~`, which shells leave alone behind a `=`.
pub(super) fn expand(path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_is_the_home_directory() {
        let home = std::env::home_dir().expect("tests have a home");
        assert_eq!(expand("~/charts/web"), home.join("charts/web"));
        assert_eq!(expand("~"), home);
        assert_eq!(expand("./~/web"), PathBuf::from("./~/web"));
        assert_eq!(expand("~other/web"), PathBuf::from("~other/web"));
    }
}
