//! Plain manifests: documents that nobody renders.

use evenkeel_goyaml::{Numbers, Value, from_json, from_yaml_documents};

use crate::Error;
use crate::manifest::{Head, Manifest, install_rank};
use crate::objects::{RenderedObject, of_manifest};

/// The objects of manifest files, given with their paths in the order in which they are read: several documents a file,
/// JSON where a file is called so, the items of a `List`. They come back in Helm's order of kinds and else as they were.
/// Hook annotations mean nothing here: these are no charts.
///
/// # Errors
/// [`Error::Manifest`] with file, document and line.
pub fn plain_objects<'f>(
    files: impl IntoIterator<Item = (&'f str, &'f [u8])>,
) -> Result<Vec<RenderedObject>, Error> {
    let mut objects = Vec::new();
    for (path, contents) in files {
        let documents = if path.ends_with(".json") {
            json(path, contents)?
        } else {
            yaml(path, contents)?
        };
        // Empty documents do not count: nobody sees them.
        let documents = documents
            .into_iter()
            .filter(|document| document.object != Value::Null);
        for (index, document) in documents.enumerate() {
            let manifest = Manifest {
                source: path.to_owned(),
                head: Head::default(),
                text: String::new(),
                object: document.object,
                hook: None,
            };
            of_manifest(&manifest, &mut objects)
                .map_err(|error| placed(error, index + 1, Some(document.line)))?;
        }
    }
    objects.sort_by(|a, b| install_rank(kind(a)).cmp(&install_rank(kind(b))));
    Ok(objects)
}

/// A document and the line of its file, from 1, in which it begins.
struct Document {
    object: Value,
    line: usize,
}

fn yaml(path: &str, contents: &[u8]) -> Result<Vec<Document>, Error> {
    let documents = from_yaml_documents(contents, Numbers::Exact).map_err(|problem| {
        let index = document_at(contents, problem.line().unwrap_or(1));
        // Go's text names the line already.
        placed(Error::manifest(path, &problem), index, None)
    })?;
    let document = |document: evenkeel_goyaml::YamlDocument| Document {
        object: document.value,
        line: document.line,
    };
    Ok(documents.into_iter().map(document).collect())
}

fn json(path: &str, contents: &[u8]) -> Result<Vec<Document>, Error> {
    let object = from_json(contents, Numbers::Exact).map_err(|problem| {
        // Go's text has no line.
        let line = serde_json::from_slice::<serde_json::Value>(contents)
            .err()
            .map(|error| error.line());
        placed(Error::manifest(path, &problem), 1, line)
    })?;
    Ok(vec![Document { object, line: 1 }])
}

/// The number of the document, from 1 and empty ones not counted, that holds a line.
fn document_at(contents: &[u8], line: usize) -> usize {
    let (mut number, mut is_empty) = (1, true);
    for text in contents.split(|byte| *byte == b'\n').take(line) {
        if text.starts_with(b"---") {
            number += usize::from(!is_empty);
            is_empty = true;
        }
        let text = text.strip_prefix(b"---").unwrap_or(text).trim_ascii();
        is_empty &= text.is_empty() || text.starts_with(b"#");
    }
    number
}

/// The error with the place inside its file.
fn placed(mut error: Error, document: usize, begins: Option<usize>) -> Error {
    if let Error::Manifest { problem, line, .. } = &mut error {
        *problem = match begins {
            Some(begins) => format!("document {document}, line {begins}: {problem}"),
            None => format!("document {document}: {problem}"),
        };
        *line = line.or(begins);
    }
    error
}

fn kind(object: &RenderedObject) -> &str {
    object.object["kind"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let files = files.iter().map(|(path, text)| (*path, text.as_bytes()));
        let objects = plain_objects(files).map_err(|error| error.to_string())?;
        let name = |object: RenderedObject| {
            let name = object.object["metadata"]["name"].as_str().unwrap_or_default();
            format!("{} {name} of {}", kind(&object), object.source)
        };
        Ok(objects.into_iter().map(name).collect())
    }

    fn map(name: &str) -> String {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
    }

    #[test]
    fn documents_json_and_lists_become_objects_in_order_of_kinds() {
        let several = format!("# a comment\n---\n{}---\n---\n{}", map("b"), map("a"));
        let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}]}"#;
        assert_eq!(
            read(&[("a.yaml", &several), ("sub/l.json", list)]).unwrap(),
            [
                "Namespace n of sub/l.json",
                "ConfigMap b of a.yaml",
                "ConfigMap a of a.yaml",
                "ConfigMap c of sub/l.json",
            ]
        );
    }

    #[test]
    fn a_hook_annotation_makes_no_hook_and_numbers_stay_whole() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {helm.sh/hook: nonsense}\ndata: {count: 12345678901234567}\n";
        let objects = plain_objects([("a.yaml", text.as_bytes())]).unwrap();
        assert!(objects[0].hook.is_none());
        assert_eq!(objects[0].object["data"]["count"], 12_345_678_901_234_567_u64);
    }

    #[test]
    fn a_fault_is_told_with_file_document_and_line() {
        let nameless = format!(
            "{}---\n\n---\n# the second\napiVersion: v1\nkind: Secret\n",
            map("a")
        );
        for (path, text, expected) in [
            (
                "a.yaml",
                nameless.as_str(),
                "YAML parse error on a.yaml: document 2, line 6: the Secret has no metadata.name",
            ),
            (
                "b.yml",
                &format!("---\n{}---\nkind: [\n", map("a")),
                "YAML parse error on b.yml: document 2: error converting YAML to JSON: yaml: line 6: \
                 did not find expected node content",
            ),
            (
                "c.json",
                "{\"kind\": \"ConfigMap\",\n \"x\": }",
                "YAML parse error on c.json: document 1, line 2: ",
            ),
            (
                "d.yaml",
                "- 1\n",
                "YAML parse error on d.yaml: document 1, line 1: a Kubernetes object is a mapping",
            ),
        ] {
            let error = read(&[(path, text)]).unwrap_err();
            assert!(error.starts_with(expected), "{path}: {error}");
        }
    }

    #[test]
    fn nothing_but_comments_is_nothing() {
        assert_eq!(
            read(&[("a.yaml", "# nothing\n---\n"), ("b.yaml", "")]).unwrap(),
            [""; 0]
        );
    }
}
