//! One resource of a stream and its annotations: `RNode` of `sigs.k8s.io/kustomize/kyaml` v0.21.2.

use std::collections::BTreeMap;

use evenkeel_goyaml::{Node, NodeContent, NodeDocument, NodeWriter, Numbers, ScalarStyle, Value, from_yaml};

const METADATA: &str = "metadata";
const ANNOTATIONS: &str = "annotations";

/// A resource, with the comments of its document.
#[derive(Clone, Debug)]
pub(super) struct Resource(NodeDocument);

/// What a resource says of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Meta {
    pub(super) kind: String,
    pub(super) annotations: BTreeMap<String, String>,
}

impl Resource {
    pub(super) fn of_document(document: NodeDocument) -> Self {
        Self(document)
    }

    pub(super) fn of_node(root: Node) -> Self {
        Self(NodeDocument {
            root,
            head: String::new(),
            foot: String::new(),
        })
    }

    pub(super) fn document(&self) -> &NodeDocument {
        &self.0
    }

    pub(super) fn root(&self) -> &Node {
        &self.0.root
    }

    pub(super) fn text(&self) -> String {
        let mut writer = NodeWriter::default();
        writer.write(&self.0);
        writer.finish()
    }

    /// What it says of itself; an error if that is nothing.
    pub(super) fn meta(&self) -> Result<Meta, String> {
        let root = self.root();
        let mut meta = Meta::default();
        if root.is_null() {
            return Ok(meta);
        }
        let filled = |node: &Node, field: &str| {
            let value = node.get(field).filter(|value| !is_empty(value));
            value.cloned()
        };
        let mut found = filled(root, "apiVersion").is_some();
        if let Some(kind) = filled(root, "kind") {
            kind.text().clone_into(&mut meta.kind);
            found = true;
        }
        if let Some(metadata) = filled(root, METADATA) {
            for field in ["name", "namespace", "labels"] {
                found |= filled(&metadata, field).is_some();
            }
            if let Some(annotations) = filled(&metadata, ANNOTATIONS) {
                found = true;
                for (key, value) in annotations.entries().unwrap_or_default() {
                    // Of equal keys the first counts; null is empty.
                    let text = |node: &Node| (!node.is_null()).then(|| node.text().to_owned());
                    meta.annotations
                        .entry(text(key).unwrap_or_default())
                        .or_insert_with(|| text(value).unwrap_or_default());
                }
            }
        }
        if found {
            Ok(meta)
        } else {
            Err("missing Resource metadata".to_owned())
        }
    }

    /// An annotation as it is written.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        let annotations = self.root().get(METADATA)?.get(ANNOTATIONS)?;
        annotations.get(key).map(Node::text)
    }

    /// Sets an annotation, between single quotes if it is new, in the old style if not; `metadata` and its
    /// `annotations` are made if need be.
    pub(super) fn set_annotation(&mut self, key: &str, value: &str) -> Result<(), String> {
        self.clear_empty_annotations()?;
        let root = &mut self.0.root;
        if root.is_null() {
            return Ok(());
        }
        let annotations = child(child(root, METADATA)?, ANNOTATIONS)?;
        if let Some(field) = annotations.get_mut(key) {
            replace(field, value);
            return Ok(());
        }
        entries(annotations)?.push((
            Node::scalar(key, ScalarStyle::Plain),
            Node::scalar(value, ScalarStyle::SingleQuoted),
        ));
        Ok(())
    }

    /// Removes an annotation; the empty `annotations` stay.
    pub(super) fn clear_annotation(&mut self, key: &str) -> Result<(), String> {
        let mut node = &mut self.0.root;
        for field in [METADATA, ANNOTATIONS] {
            if node.is_null() {
                return Ok(());
            }
            entries(node)?;
            match node.get_mut(field) {
                Some(next) => node = next,
                None => return Ok(()),
            }
        }
        if !node.is_null() {
            let entries = entries(node)?;
            if let Some(at) = entries.iter().position(|(name, _)| name.text() == key) {
                entries.remove(at);
            }
        }
        Ok(())
    }

    /// Removes `annotations` without entries, then `metadata` without entries.
    pub(super) fn clear_empty_annotations(&mut self) -> Result<(), String> {
        let root = &mut self.0.root;
        if root.is_null() {
            return Ok(());
        }
        let fields = entries(root)?;
        if let Some((_, metadata)) = fields.iter_mut().find(|(name, _)| name.text() == METADATA)
            && !metadata.is_null()
        {
            remove_without_entries(entries(metadata)?, ANNOTATIONS);
        }
        remove_without_entries(fields, METADATA);
        Ok(())
    }
}

/// Whether a node holds nothing: null, or no entries.
pub(super) fn is_empty(node: &Node) -> bool {
    node.is_null()
        || match &node.content {
            NodeContent::Sequence { items, .. } => items.is_empty(),
            NodeContent::Mapping { entries, .. } => entries.is_empty(),
            _ => false,
        }
}

/// Removes the first of these fields that has no entries, as a single value has none.
fn remove_without_entries(fields: &mut Vec<(Node, Node)>, name: &str) {
    let filled = |node: &Node| match &node.content {
        NodeContent::Sequence { items, .. } => !items.is_empty(),
        NodeContent::Mapping { entries, .. } => !entries.is_empty(),
        _ => false,
    };
    let at = fields
        .iter()
        .position(|(key, value)| key.text() == name && !filled(value));
    if let Some(at) = at {
        fields.remove(at);
    }
}

/// The field of a mapping; one that is not there is made, a mapping too.
fn child<'n>(node: &'n mut Node, name: &str) -> Result<&'n mut Node, String> {
    let fields = entries(node)?;
    let at = match fields.iter().position(|(key, _)| key.text() == name) {
        Some(at) => at,
        None => {
            let empty = NodeContent::Mapping {
                entries: Vec::new(),
                flow: false,
            };
            fields.push((Node::scalar(name, ScalarStyle::Plain), Node::new(empty)));
            fields.len() - 1
        }
    };
    let (_, value) = fields.get_mut(at).ok_or_else(|| format!("{name} is lost"))?;
    Ok(value)
}

/// The entries of a mapping; what is none is refused.
fn entries(node: &mut Node) -> Result<&mut Vec<(Node, Node)>, String> {
    let kind = match &node.content {
        NodeContent::Mapping { .. } => "",
        NodeContent::Scalar { .. } => "ScalarNode",
        NodeContent::Sequence { .. } => "SequenceNode",
        NodeContent::Alias(_) => "AliasNode",
    };
    if !kind.is_empty() {
        let mut writer = NodeWriter::default();
        writer.write_node(node);
        return Err(format!(
            "wrong node kind: expected MappingNode but got {kind}: node contents:\n{}",
            writer.finish()
        ));
    }
    match &mut node.content {
        NodeContent::Mapping { entries, .. } => Ok(entries),
        _ => Err("wrong node kind".to_owned()),
    }
}

/// Puts a text in the place of a node, in its style.
fn replace(field: &mut Node, value: &str) {
    let style = match &field.content {
        NodeContent::Scalar { style, .. } => *style,
        _ => ScalarStyle::Plain,
    };
    let plain = style == ScalarStyle::Plain;
    let means_text = || {
        let read = from_yaml(value.as_bytes(), Numbers::Exact);
        !value.is_empty() && matches!(read, Ok(Value::String(_)) | Err(_))
    };
    *field = Node {
        tag: field.tag.as_ref().map(|_| "!!str".to_owned()),
        ..Node::scalar(
            value,
            if plain && !means_text() {
                ScalarStyle::DoubleQuoted
            } else {
                style
            },
        )
    };
}
