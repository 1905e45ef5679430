//! From events to nodes: the parser of `decode.go`, go-yaml v3.0.5.

use std::collections::BTreeSet;

use super::{Node, NodeComments, NodeContent, NodeDocument, ScalarStyle};
use crate::Error;
use crate::decode::{MAX_DEPTH, TOO_DEEP};
use crate::parser::{self, Parser, Start};
use crate::scanner::{Input, Kept};

/// The tag that go-yaml gives to the plain key `<<`, and writes.
const MERGE_TAG: &str = "!!merge";

type Event<'a> = parser::Event<'a, NodeComments>;

impl NodeDocument {
    /// Reads the first document of a text; `None` when there is none. Later ones are not looked at.
    ///
    /// # Errors
    /// With the text of go-yaml: `yaml: line 3: did not find expected key`.
    pub fn read(text: &[u8]) -> Result<Option<Self>, Error> {
        let input = Input::new(text);
        let mut builder = Builder {
            parser: Parser::new(&input),
            anchors: BTreeSet::new(),
        };
        builder.document().map_err(Error::bare)
    }
}

struct Builder<'a> {
    parser: Parser<'a, Kept>,
    anchors: BTreeSet<String>,
}

impl<'a> Builder<'a> {
    fn document(&mut self) -> Result<Option<NodeDocument>, Error> {
        loop {
            match self.parser.next_event()? {
                Event::StreamStart => {}
                Event::DocumentStart { comments, .. } => {
                    let first = self.parser.next_event()?;
                    let root = self.node(first, 0)?;
                    let foot = match self.parser.next_event()? {
                        Event::DocumentEnd(comments) => {
                            // A head there is the head of nothing.
                            if comments.foot.is_empty() {
                                comments.head
                            } else {
                                comments.foot
                            }
                        }
                        _ => String::new(),
                    };
                    return Ok(Some(NodeDocument {
                        root,
                        head: comments.head,
                        foot,
                    }));
                }
                _ => return Ok(None),
            }
        }
    }

    /// The node that begins with this event.
    fn node(&mut self, event: Event<'a>, depth: usize) -> Result<Node, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::yaml(None, TOO_DEEP));
        }
        match event {
            Event::Scalar(scalar, comments) => {
                let tag = if scalar.tag.is_empty() || scalar.tag == "!" {
                    let merges = scalar.style == ScalarStyle::Plain && scalar.value == "<<";
                    merges.then(|| MERGE_TAG.to_owned())
                } else {
                    Some(scalar.tag)
                };
                Ok(Node {
                    content: NodeContent::Scalar {
                        value: scalar.value.into_owned(),
                        style: scalar.style,
                    },
                    tag,
                    anchor: self.anchor(scalar.anchor),
                    comments,
                })
            }
            Event::Alias(name, comments) => {
                if !self.anchors.contains(name) {
                    return Err(Error::yaml(None, format!("unknown anchor '{name}' referenced")));
                }
                let mut node = Node::new(NodeContent::Alias(name.to_owned()));
                node.comments = comments;
                Ok(node)
            }
            Event::SequenceStart(start, comments) => self.sequence(start, comments, depth),
            Event::MappingStart(start, comments) => self.mapping(start, comments, depth),
            // The parser gives none of the others here.
            _ => Err(Error::yaml(None, "did not find expected node content")),
        }
    }

    fn anchor(&mut self, name: Option<&str>) -> Option<String> {
        let name = name?.to_owned();
        self.anchors.insert(name.clone());
        Some(name)
    }

    fn sequence(&mut self, start: Start<'a>, begun: NodeComments, depth: usize) -> Result<Node, Error> {
        let anchor = self.anchor(start.anchor);
        let mut items = Vec::new();
        let ended = loop {
            match self.parser.next_event()? {
                Event::SequenceEnd(comments) => break comments,
                event => items.push(self.node(event, depth + 1)?),
            }
        };
        Ok(Node {
            content: NodeContent::Sequence {
                items,
                flow: start.flow,
            },
            tag: tag(start.tag),
            anchor,
            comments: NodeComments {
                head: begun.head,
                ..ended
            },
        })
    }

    fn mapping(&mut self, start: Start<'a>, begun: NodeComments, depth: usize) -> Result<Node, Error> {
        let anchor = self.anchor(start.anchor);
        let block = !start.flow;
        let mut entries: Vec<(Node, Node)> = Vec::new();
        let mut ended = loop {
            let event = match self.parser.next_event()? {
                Event::MappingEnd(comments) => break comments,
                event => event,
            };
            let mut key = self.node(event, depth + 1)?;
            if block
                && !key.comments.foot.is_empty()
                && let Some((before, _)) = entries.last_mut()
            {
                // At a smaller indentation it is the foot of the entry before.
                before.comments.foot = std::mem::take(&mut key.comments.foot);
            }
            let event = self.parser.next_event()?;
            let mut value = self.node(event, depth + 1)?;
            if key.comments.foot.is_empty() {
                key.comments.foot = std::mem::take(&mut value.comments.foot);
            }
            entries.push((key, value));
        };
        if block
            && !ended.foot.is_empty()
            && let Some((last, _)) = entries.last_mut()
        {
            last.comments.foot = std::mem::take(&mut ended.foot);
        }
        Ok(Node {
            content: NodeContent::Mapping {
                entries,
                flow: start.flow,
            },
            tag: tag(start.tag),
            anchor,
            comments: NodeComments {
                head: begun.head,
                ..ended
            },
        })
    }
}

/// A tag that says something.
fn tag(tag: String) -> Option<String> {
    (!tag.is_empty() && tag != "!").then_some(tag)
}
