//! Post-rendering: all documents go through somebody else's hands before they are sorted into manifests and hooks
//! (`annotateAndMerge` and `splitAndDeannotate` of Helm 4.3.1).
//!
//! The documents travel as one stream in which an annotation names the file of each; what comes back without it gets a
//! file name of its own. Both ways they are read and written by kustomize's rules, see [`stream`].

use std::collections::BTreeMap;

use crate::Error;
use crate::manifest::{split, trim_end, trim_start};

mod resource;
mod stream;

/// Where a document's file name travels.
const FILE_NAME: &str = "postrenderer.helm.sh/postrender-filename";

/// Changes the stream of all documents; an error is told as it is.
pub type PostRenderer = Box<dyn FnOnce(&[u8]) -> Result<Vec<u8>, String>>;

/// Sends rendered files, given by name and contents, through a post-renderer.
pub(crate) fn run<'f>(
    files: impl Iterator<Item = (&'f str, &'f [u8])>,
    renderer: PostRenderer,
) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let failed = |doing: &str| {
        let doing = doing.to_owned();
        move |problem: String| Error::PostRender(format!("{doing}: {problem}"))
    };
    let merged = annotate_and_merge(files).map_err(failed("error merging manifests"))?;
    let changed = renderer(merged.as_bytes()).map_err(failed("error while running post render on files"))?;
    split_and_deannotate(&changed).map_err(failed("error while parsing post rendered output"))
}

fn annotate_and_merge<'f>(files: impl Iterator<Item = (&'f str, &'f [u8])>) -> Result<String, String> {
    let mut resources = Vec::new();
    for (name, contents) in files.filter(|(name, _)| !is_partial(name)) {
        for document in split(contents) {
            let read = stream::read(document).map_err(|problem| format!("parsing {name}: {problem}"))?;
            for mut resource in read {
                resource
                    .set_annotation(FILE_NAME, name)
                    .map_err(|problem| format!("annotating {name}: {problem}"))?;
                resources.push(resource);
            }
        }
    }
    stream::write(resources).map_err(|problem| format!("writing merged docs: {problem}"))
}

fn split_and_deannotate(stream: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let read = stream::read(stream).map_err(|problem| format!("error parsing YAML: {problem}"))?;
    let mut by_file: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for (index, mut resource) in read.into_iter().enumerate() {
        let meta = resource
            .meta()
            .map_err(|problem| format!("getting metadata: {problem}"))?;
        let name = match meta.annotations.get(FILE_NAME) {
            Some(name) if !name.is_empty() => name.clone(),
            _ => format!("generated-by-postrender-{index}.yaml"),
        };
        resource
            .clear_annotation(FILE_NAME)
            .map_err(|problem| format!("clearing filename annotation: {problem}"))?;
        by_file.entry(name).or_default().push(resource);
    }
    let mut files = BTreeMap::new();
    for (name, resources) in by_file {
        let text = stream::write(resources).map_err(|problem| format!("re-writing {name}: {problem}"))?;
        // As of the files of a chart, partials and empty ones are left out.
        if !is_partial(&name) && !trim_start(trim_end(text.as_bytes())).is_empty() {
            files.insert(name, text.into_bytes());
        }
    }
    Ok(files)
}

/// Whether only other templates use this file.
fn is_partial(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|base| base.starts_with('_'))
}
