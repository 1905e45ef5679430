//! From events to the nodes of one document, kept flat: a node's children follow it directly, so that neither building
//! nor dropping a deep document needs stack.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::Error;
use crate::parser::{Event, Parser};

/// Index of a node in its [`Document`].
pub(crate) type NodeId = usize;

/// The nodes of one document in the order of the text. The root is node 0.
#[derive(Debug, Default)]
pub(crate) struct Document<'a> {
    pub(crate) nodes: Vec<Node<'a>>,
    /// The line (from 0) where the document begins.
    pub(crate) line: usize,
}

#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) kind: NodeKind<'a>,
    /// The node after this one and all its children.
    pub(crate) end: NodeId,
}

#[derive(Debug)]
pub(crate) enum NodeKind<'a> {
    /// An empty tag is none; `implicit` lets the text decide the type.
    Scalar {
        value: Cow<'a, str>,
        tag: String,
        implicit: bool,
    },
    Sequence,
    /// Keys and values in turn.
    Mapping,
    Alias {
        name: &'a str,
        target: NodeId,
    },
}

impl<'a> Document<'a> {
    /// Reads the next document of the stream; `None` at its end.
    pub(crate) fn read(parser: &mut Parser<'a>) -> Result<Option<Self>, Error> {
        let mut document = Document::default();
        let mut anchors: HashMap<&'a str, NodeId> = HashMap::new();
        let mut open: Vec<NodeId> = Vec::new();
        loop {
            let id = document.nodes.len();
            let (kind, anchor) = match parser.next_event()? {
                Event::StreamStart => continue,
                Event::StreamEnd => return Ok(None),
                Event::DocumentStart { line, comments: () } => {
                    document.line = line;
                    continue;
                }
                Event::DocumentEnd(()) => return Ok(Some(document)),
                Event::SequenceEnd(()) | Event::MappingEnd(()) => {
                    if let Some(node) = open.pop().and_then(|start| document.nodes.get_mut(start)) {
                        node.end = id;
                    }
                    continue;
                }
                Event::Alias(name, ()) => {
                    let target = *anchors
                        .get(name)
                        .ok_or_else(|| Error::yaml(None, format!("unknown anchor '{name}' referenced")))?;
                    (NodeKind::Alias { name, target }, None)
                }
                Event::Scalar(scalar, ()) => {
                    let (value, tag, implicit) = (scalar.value, scalar.tag, scalar.implicit);
                    (NodeKind::Scalar { value, tag, implicit }, scalar.anchor)
                }
                Event::SequenceStart(start, ()) => {
                    open.push(id);
                    (NodeKind::Sequence, start.anchor)
                }
                Event::MappingStart(start, ()) => {
                    open.push(id);
                    (NodeKind::Mapping, start.anchor)
                }
            };
            if let Some(name) = anchor {
                anchors.insert(name, id);
            }
            document.nodes.push(Node { kind, end: id + 1 });
        }
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<&Node<'a>> {
        self.nodes.get(id)
    }

    /// The direct children of a collection.
    pub(crate) fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let end = self.get(id).map_or(0, |node| node.end);
        let mut next = id + 1;
        std::iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let current = next;
            next = self.get(current).map_or(end, |node| node.end);
            Some(current)
        })
    }
}
