//! Cluster documents from files: YAML or JSON, several in one file, errors with file and line.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use evenkeel_api::ClusterDocument;
use evenkeel_core::Sensitive;
use evenkeel_goyaml::{Numbers, from_yaml_documents};

/// The largest file that is read, in bytes; a kubeconfig and a thousand components fit many times over.
const FILE_SIZE_MAX: u64 = 16 * 1024 * 1024;
/// The path that means standard input.
const STANDARD_INPUT: &str = "-";

/// All documents of `path`, in order.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<ClusterDocument>> {
    let mut documents = Vec::new();
    for (place, value) in trees(path)? {
        documents.push(ClusterDocument::from_value(value).context(place)?);
    }
    if documents.is_empty() {
        let name = name(path);
        bail!("{name} holds no cluster document: expected at least `name` and `components`");
    }
    Ok(documents)
}

/// All documents of `path` as trees, each with where it begins; empty ones are left out.
pub(crate) fn trees(path: &Path) -> anyhow::Result<Vec<(String, serde_json::Value)>> {
    let name = name(path);
    let text = text(path)?;
    let mut trees = Vec::new();
    for document in from_yaml_documents(text.as_bytes(), Numbers::Exact).with_context(|| name.clone())? {
        if matches!(document.value, evenkeel_goyaml::Value::Null) {
            continue;
        }
        let place = format!("{name}, document at line {}", document.line);
        let value = serde_json::Value::try_from(document.value).with_context(|| place.clone())?;
        trees.push((place, value));
    }
    Ok(trees)
}

/// A kubeconfig's content, for sending to the mothership.
pub(crate) fn kubeconfig(path: &Path) -> anyhow::Result<Sensitive<String>> {
    text(path).map(Sensitive::new)
}

/// The text of a file, or of standard input when `path` is `-`.
pub(crate) fn text(path: &Path) -> anyhow::Result<String> {
    let name = name(path);
    let mut text = String::new();
    let read = if path.as_os_str() == STANDARD_INPUT {
        std::io::stdin()
            .lock()
            .take(FILE_SIZE_MAX + 1)
            .read_to_string(&mut text)
    } else {
        let file = std::fs::File::open(path).with_context(|| format!("cannot open {name}"))?;
        file.take(FILE_SIZE_MAX + 1).read_to_string(&mut text)
    };
    let read = read.with_context(|| format!("cannot read {name}"))?;
    if read as u64 > FILE_SIZE_MAX {
        bail!("{name} is larger than {FILE_SIZE_MAX} bytes");
    }
    Ok(text)
}

/// What a path is called in messages.
fn name(path: &Path) -> String {
    if path.as_os_str() == STANDARD_INPUT {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}
