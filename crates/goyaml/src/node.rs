//! YAML as it is written: documents as trees that keep comments, styles, anchors and tags, so that one can be changed
//! and written again as go-yaml v3 (`go.yaml.in/yaml` v3.0.5, `yaml.Node`) does.
//!
//! ```
//! use evenkeel_goyaml::{NodeDocument, NodeWriter};
//!
//! let document = NodeDocument::read(b"# what\na:   [1, 'x'] # why\n")?.unwrap();
//! let mut writer = NodeWriter::default();
//! writer.write(&document);
//! assert_eq!(writer.finish(), "# what\na: [1, 'x'] # why\n");
//! # Ok::<(), evenkeel_goyaml::Error>(())
//! ```

pub use crate::scanner::ScalarStyle;
pub use emit::NodeWriter;

mod emit;
mod read;

/// One document and the comments that belong to none of its nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDocument {
    /// What the document holds.
    pub root: Node,
    /// The comment at its top, with an empty line behind it.
    pub head: String,
    /// The comment at its end.
    pub foot: String,
}

/// A node: a value, or a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is.
    pub content: NodeContent,
    /// A tag that is written with it (`!!str`, `!mine`), in the short or the long form; none where the text of the
    /// node says what it is.
    pub tag: Option<String>,
    /// The name that aliases refer to it by.
    pub anchor: Option<String>,
    /// The comments around it.
    pub comments: NodeComments,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeContent {
    /// A single value.
    Scalar {
        /// Its text, without quotes and escapes.
        value: String,
        /// How it is written, if the text allows.
        style: ScalarStyle,
    },
    /// A list.
    Sequence {
        /// Its items.
        items: Vec<Node>,
        /// Written in brackets.
        flow: bool,
    },
    /// Keys and values, in the order of the text; a key may occur more than once.
    Mapping {
        /// Its entries.
        entries: Vec<(Node, Node)>,
        /// Written in braces.
        flow: bool,
    },
    /// A reference to the node with this anchor.
    Alias(String),
}

/// The comments around a node, with their `#`, lines joined by line feeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeComments {
    /// Above it.
    pub head: String,
    /// Behind it on its line.
    pub line: String,
    /// Below it, before an empty line.
    pub foot: String,
}

impl Node {
    /// A node without tag, anchor and comments.
    pub fn new(content: NodeContent) -> Self {
        Self {
            content,
            tag: None,
            anchor: None,
            comments: NodeComments::default(),
        }
    }

    /// A scalar without tag, anchor and comments.
    pub fn scalar(value: impl Into<String>, style: ScalarStyle) -> Self {
        Self::new(NodeContent::Scalar {
            value: value.into(),
            style,
        })
    }

    /// Whether it is null, written as a word, as nothing, or with a tag.
    pub fn is_null(&self) -> bool {
        match (&self.tag, &self.content) {
            (Some(tag), _) => matches!(tag.as_str(), "tag:yaml.org,2002:null" | "!!null"),
            (
                None,
                NodeContent::Scalar {
                    value,
                    style: ScalarStyle::Plain,
                },
            ) => {
                matches!(value.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }

    /// Its entries, if it is a mapping.
    pub fn entries(&self) -> Option<&[(Node, Node)]> {
        match &self.content {
            NodeContent::Mapping { entries, .. } => Some(entries),
            _ => None,
        }
    }

    /// Its text, if it is a scalar, and the name it refers to, if it is an alias; else empty.
    pub fn text(&self) -> &str {
        match &self.content {
            NodeContent::Scalar { value, .. } | NodeContent::Alias(value) => value,
            _ => "",
        }
    }

    /// The value of the first entry with this key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let entry = self.entries()?.iter().find(|(name, _)| name.text() == key);
        entry.map(|(_, value)| value)
    }

    /// The value of the first entry with this key, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let NodeContent::Mapping { entries, .. } = &mut self.content else {
            return None;
        };
        let entry = entries.iter_mut().find(|(name, _)| name.text() == key);
        entry.map(|(_, value)| value)
    }
}
