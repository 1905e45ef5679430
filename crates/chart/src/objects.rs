//! Rendered documents as Kubernetes objects, for whoever applies them.

use evenkeel_goyaml::{Map, Numbers, Value, from_yaml};

use crate::Error;
use crate::chart::ChartFile;
use crate::manifest::{Hook, Manifest, split};

/// One object of a render.
#[derive(Clone, PartialEq)]
pub struct RenderedObject {
    /// The file it came from: `chart/templates/file.yaml` or `chart/crds/file.yaml`.
    pub source: String,
    /// The object; integers are integers.
    pub object: serde_json::Value,
    /// Set when it is a hook.
    pub hook: Option<Hook>,
}

impl std::fmt::Debug for RenderedObject {
    /// Without the contents: Secrets are objects too.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.object["kind"], self.source)
    }
}

/// Objects of a manifest. A `List` gives its items; a document of comments gives none.
pub(crate) fn of_manifest(manifest: &Manifest, into: &mut Vec<RenderedObject>) -> Result<(), Error> {
    add(
        &manifest.source,
        manifest.object.clone(),
        manifest.hook.as_ref(),
        into,
    )
}

/// Objects of a file below `crds/`, which is not a template.
pub(crate) fn of_crd(file: &ChartFile, into: &mut Vec<RenderedObject>) -> Result<(), Error> {
    for document in split(&file.data) {
        let object = from_yaml(document, Numbers::Exact).map_err(|e| Error::manifest(&file.path, &e))?;
        add(&file.path, object, None, into)?;
    }
    Ok(())
}

fn add(
    source: &str,
    object: Value,
    hook: Option<&Hook>,
    into: &mut Vec<RenderedObject>,
) -> Result<(), Error> {
    let refuse = |problem: String| {
        Err(Error::Manifest {
            file: source.to_owned(),
            problem,
            line: None,
            outputs: Vec::new(),
        })
    };
    let map = match object {
        Value::Null => return Ok(()),
        Value::Map(map) => map,
        _ => return refuse("a Kubernetes object is a mapping".to_owned()),
    };
    let text = |map: &Map, key: &str| match map.get(key) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    let (api_version, kind) = (text(&map, "apiVersion"), text(&map, "kind"));
    if api_version.is_empty() || kind.is_empty() {
        let missing = if kind.is_empty() { "kind" } else { "apiVersion" };
        return refuse(format!("the document has no {missing}"));
    }
    match map.get("items") {
        Some(Value::List(items)) if kind.ends_with("List") => {
            for item in items {
                add(source, item.clone(), hook, into)?;
            }
            return Ok(());
        }
        _ => {}
    }
    let name = match map.get("metadata") {
        Some(Value::Map(metadata)) => text(metadata, "name"),
        _ => String::new(),
    };
    if name.is_empty() {
        return refuse(format!("the {kind} has no metadata.name"));
    }
    let object = serde_json::Value::try_from(Value::Map(map)).map_err(|e| Error::Manifest {
        file: source.to_owned(),
        problem: e.to_string(),
        line: None,
        outputs: Vec::new(),
    })?;
    into.push(RenderedObject {
        source: source.to_owned(),
        object,
        hook: hook.cloned(),
    });
    Ok(())
}
