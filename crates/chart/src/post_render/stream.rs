//! Streams of resources as kustomize reads and writes them: `kio.ParseAll` and `kio.StringAll` of
//! `sigs.k8s.io/kustomize/kyaml` v0.21.2.

use evenkeel_goyaml::{JsonStyle, NodeContent, NodeDocument, NodeWriter, Numbers, from_yaml, try_to_json};

use super::resource::Resource;

/// Where kyaml notes the place of a resource in its stream while it is in memory.
const INDEX: &str = "internal.config.kubernetes.io/index";
/// The same under its old name.
const LEGACY_INDEX: &str = "config.kubernetes.io/index";
/// Asks for indented lists.
const LIST_INDENT: &str = "internal.config.kubernetes.io/seqindent";
/// Where the file of a resource is named.
const PATH: &str = "internal.config.kubernetes.io/path";
/// Annotations of which either name is made to follow the other: the old and the new name.
const RENAMED: [(&str, &str); 3] = [
    ("config.kubernetes.io/path", PATH),
    (LEGACY_INDEX, INDEX),
    ("config.k8s.io/id", "internal.config.kubernetes.io/id"),
];
/// A mapping that stands for the list below this key.
const BARE_LIST: &str = "bareSeqNodeWrappingKey";

/// Reads all resources of a stream; a single `List` gives its items, documents that hold nothing are left out.
pub(super) fn read(text: &[u8]) -> Result<Vec<Resource>, String> {
    let text = without_carriage_returns(text);
    let documents = split(&text)?;
    let single = documents.len() == 1;
    let mut resources: Vec<Resource> = Vec::new();
    for document in documents {
        let read = NodeDocument::read(&document).map_err(|error| format!("MalformedYAMLError: {error}"))?;
        let Some(document) = read.filter(|document| !document.root.is_null()) else {
            continue;
        };
        let mut resource = Resource::of_document(document);
        number(&mut resource, resources.len())?;
        let kind = resource.meta().map(|meta| meta.kind).unwrap_or_default();
        let root = resource.root();
        let wraps = root.get("items").is_some() || root.get("functionConfig").is_some();
        if single && matches!(kind.as_str(), "List" | "ResourceList") && wraps {
            return Ok(match root.get("items").map(|items| &items.content) {
                Some(NodeContent::Sequence { items, .. }) => {
                    items.iter().cloned().map(Resource::of_node).collect()
                }
                Some(NodeContent::Mapping { entries, .. }) => entries
                    .iter()
                    .flat_map(|(key, value)| [key.clone(), value.clone()])
                    .map(Resource::of_node)
                    .collect(),
                _ => Vec::new(),
            });
        }
        resources.push(resource);
    }
    Ok(resources)
}

/// Notes the place of a resource in its stream.
fn number(resource: &mut Resource, index: usize) -> Result<(), String> {
    if let Ok(meta) = resource.meta() {
        let value = |name: &str| meta.annotations.get(name).filter(|value| !value.is_empty());
        for (legacy, new) in RENAMED {
            match (value(legacy), value(new)) {
                (None, Some(value)) => resource.set_annotation(legacy, value)?,
                (Some(value), None) => resource.set_annotation(new, value)?,
                _ => {}
            }
        }
    }
    let index = index.to_string();
    resource.set_annotation(LEGACY_INDEX, &index)?;
    resource.set_annotation(INDEX, &index)
}

/// Writes resources behind each other, without the notes that reading left.
pub(super) fn write(resources: Vec<Resource>) -> Result<String, String> {
    let as_json = resources.len() == 1 && resources.iter().any(belongs_into_json);
    let mut writer = NodeWriter::default();
    for mut resource in resources {
        let wide = resource
            .annotation(LIST_INDENT)
            .is_some_and(|indent| indent == "wide");
        for note in [INDEX, LEGACY_INDEX, LIST_INDENT] {
            resource.clear_annotation(note)?;
        }
        resource.clear_empty_annotations()?;
        if as_json {
            return json(&resource);
        }
        match resource.root().get(BARE_LIST) {
            Some(list) if !super::resource::is_empty(list) => writer.write_node(list),
            _ if wide => writer.write_wide(resource.document()),
            _ => writer.write(resource.document()),
        }
    }
    Ok(writer.finish())
}

/// Whether the file that a resource names is one of JSON.
fn belongs_into_json(resource: &Resource) -> bool {
    let (legacy, new) = (RENAMED[0].0, PATH);
    let annotations = resource.meta().map(|meta| meta.annotations).unwrap_or_default();
    let path = annotations.get(new).or_else(|| annotations.get(legacy));
    path.is_some_and(|path| path.ends_with(".json"))
}

fn json(resource: &Resource) -> Result<String, String> {
    let text = resource.text();
    let value = from_yaml(text.as_bytes(), Numbers::Exact).map_err(|error| error.to_string())?;
    let json = try_to_json(&value, JsonStyle::Pretty).map_err(|error| error.to_string())?;
    Ok(json + "\n")
}

fn without_carriage_returns(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\r' || bytes.peek() != Some(&b'\n') {
            out.push(byte);
        }
    }
    out
}

/// Splits at every line that begins with `---` but the first; nothing but a comment may follow there.
fn split(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    const SEPARATOR: &[u8] = b"\n---";
    let mut documents = Vec::new();
    let mut rest = text;
    if text.is_empty() {
        return Ok(documents);
    }
    let mut from = 0;
    while let Some(at) = position(rest, SEPARATOR, from) {
        let line = rest.get(at + 1..).unwrap_or_default();
        // The last line needs a break behind it to count.
        let Some(length) = line.iter().position(|byte| *byte == b'\n') else {
            break;
        };
        let separator = line.get(..length).unwrap_or_default();
        let behind = separator.get(3..).unwrap_or_default().trim_ascii();
        if !behind.is_empty() && !behind.starts_with(b"#") {
            let line = String::from_utf8_lossy(separator);
            return Err(format!("invalid document separator: {}", line.trim()));
        }
        documents.push(rest.get(..=at).unwrap_or_default().to_vec());
        rest = line.get(length + 1..).unwrap_or_default();
        from = 0;
    }
    documents.push(rest.to_vec());
    Ok(documents)
}

fn position(text: &[u8], pattern: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let found = rest.windows(pattern.len()).position(|window| window == pattern)?;
    Some(from + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(text: &str) -> Result<String, String> {
        read(text.as_bytes()).and_then(write)
    }

    #[test]
    fn separators_may_carry_a_comment() {
        let two = "a: 1\n--- # b\nb: 2\n---\n# nothing\n";
        assert_eq!(through(two), Ok("a: 1\n---\nb: 2\n".to_owned()));
        assert_eq!(
            through("a: 1\n--- b\nb: 2\n"),
            Err("invalid document separator: --- b".to_owned())
        );
    }

    #[test]
    fn a_single_list_gives_its_items() {
        let list = "kind: List\nitems:\n- a: {x: 1} # one\n- b: 2\n";
        assert_eq!(through(list), Ok("a: {x: 1} # one\n---\nb: 2\n".to_owned()));
        let among_others = format!("{list}---\nc: 3\n");
        assert_eq!(through(&among_others), Ok(among_others));
    }

    #[test]
    fn what_is_no_mapping_is_refused() {
        assert_eq!(
            through("- a\n- b\n"),
            Err(
                "wrong node kind: expected MappingNode but got SequenceNode: node contents:\n- a\n- b\n"
                    .to_owned()
            )
        );
        assert_eq!(
            through("metadata: x\n"),
            Err("wrong node kind: expected MappingNode but got ScalarNode: node contents:\nx\n".to_owned())
        );
    }

    #[test]
    fn empty_metadata_goes() {
        let empty = "a: 1\nmetadata:\n  annotations: {}\n";
        assert_eq!(through(empty), Ok("a: 1\n".to_owned()));
        let wide = "a:\n- 1\nmetadata:\n  annotations:\n    internal.config.kubernetes.io/seqindent: wide\n";
        assert_eq!(through(wide), Ok("a:\n  - 1\n".to_owned()));
    }
}
