//! From nodes to text: `emitterc.go` and the `node` of `encode.go`, go-yaml v3.0.5, as kustomize's kyaml sets it up:
//! indentation 2, lines of any length.
//!
//! go-yaml is a state machine over events. Here it is a recursion, in which each node is written in two steps, since
//! whatever follows the *beginning* of a collection (its comments above all) is written before its entries.

use super::{Node, NodeComments, NodeContent, NodeDocument};
use cursor::Cursor;
use scalar::Analysis;

mod cursor;
mod scalar;

/// Step of indentation.
const INDENT: isize = 2;

/// Longest key, in bytes, that is written without `? `.
const MAX_SIMPLE_KEY: usize = 128;

const LONG_PREFIX: &str = "tag:yaml.org,2002:";

/// Writes documents one after the other.
#[derive(Debug, Default)]
pub struct NodeWriter {
    emitter: Emitter,
    begun: bool,
}

impl NodeWriter {
    /// Writes a document, behind `---` if it is not the first; lists in mappings are not indented.
    pub fn write(&mut self, document: &NodeDocument) {
        self.emitter.compact = true;
        self.emitter
            .document(&document.root, &document.head, &document.foot, !self.begun);
        self.begun = true;
    }

    /// Writes a document with indented lists.
    pub fn write_wide(&mut self, document: &NodeDocument) {
        self.emitter.compact = false;
        self.emitter
            .document(&document.root, &document.head, &document.foot, !self.begun);
        self.begun = true;
    }

    /// Writes a node as a document of its own.
    pub fn write_node(&mut self, node: &Node) {
        self.emitter.compact = true;
        self.emitter.document(node, "", "", !self.begun);
        self.begun = true;
    }

    /// What was written.
    pub fn finish(self) -> String {
        self.emitter.cursor.out
    }
}

/// Comments that are still to be written; each waits for the place where it may stand.
#[derive(Debug, Default)]
struct Pending {
    head: String,
    line: String,
    foot: String,
    /// The foot of the entry before.
    tail: String,
    /// The line comment of a key, for its value.
    key_line: String,
}

impl Pending {
    /// Takes over what an event carries.
    fn note(&mut self, comments: &NodeComments, tail: &str) {
        for (new, old) in [
            (comments.head.as_str(), &mut self.head),
            (&comments.line, &mut self.line),
            (&comments.foot, &mut self.foot),
            (tail, &mut self.tail),
        ] {
            if !new.is_empty() {
                new.clone_into(old);
            }
        }
    }

    /// Whether a line break must come before the next entry of a collection in brackets.
    fn breaks_line(&self) -> bool {
        !(self.line.is_empty() && self.foot.is_empty() && self.tail.is_empty())
    }
}

/// What the place of a node says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Root,
    /// An item behind `- `.
    BlockItem,
    FlowItem,
    /// A key that stands before its `:` in one line.
    SimpleKey,
    /// A key after `? `, or a value.
    Entry,
}

#[derive(Debug, Default)]
struct Emitter {
    cursor: Cursor,
    pending: Pending,
    /// `- ` counts as indentation of lists in mappings.
    compact: bool,
    flow_level: usize,
}

impl Emitter {
    fn document(&mut self, root: &Node, head: &str, foot: &str, first: bool) {
        let comments = |head: &str, foot: &str| NodeComments {
            head: head.to_owned(),
            foot: foot.to_owned(),
            ..NodeComments::default()
        };
        self.pending.note(&comments(head, ""), "");
        if !first {
            self.cursor.write_indent();
            self.cursor.indicator("---", true, false, false);
            self.cursor.write_indent();
        }
        if !self.pending.head.is_empty() {
            self.write_head();
            self.cursor.put_break();
        }
        self.begin(root, "");
        self.write_head();
        self.node(root, Place::Root);
        self.pending.note(&comments("", foot), "");
        // The comment at the end stands apart.
        self.cursor.foot_indent = Some(0);
        self.write_foot();
        self.cursor.foot_indent = None;
        self.cursor.write_indent();
    }

    /// Takes over the comments that come with the beginning of a node.
    fn begin(&mut self, node: &Node, tail: &str) {
        let comments = &node.comments;
        match node.content {
            NodeContent::Scalar { .. } => self.pending.note(comments, tail),
            NodeContent::Alias(_) => self.pending.note(comments, ""),
            // Line and foot come with the end.
            NodeContent::Mapping { .. } => {
                self.pending.note(&head_only(comments), tail);
            }
            NodeContent::Sequence { .. } => self.pending.note(&head_only(comments), ""),
        }
    }

    /// Takes over the comments that come with the end of a collection.
    fn end(&mut self, comments: &NodeComments, tail: &str) {
        let ended = NodeComments {
            head: String::new(),
            ..comments.clone()
        };
        self.pending.note(&ended, tail);
    }

    /// A node that is no key, with the comments behind its beginning.
    fn node(&mut self, node: &Node, place: Place) {
        self.node_start(node, place);
        self.write_line_comment(false);
        self.write_foot();
        self.entries(node, place);
    }

    /// A scalar or an alias, or what stands before the entries of a collection.
    fn node_start(&mut self, node: &Node, place: Place) {
        if let NodeContent::Alias(name) = &node.content {
            self.write_anchor('*', name);
            return;
        }
        let scalar = match &node.content {
            NodeContent::Scalar { value, style } => {
                let analysis = Analysis::of(value);
                let multiline = value.contains('\n');
                let in_flow = self.flow_level > 0;
                Some((value, analysis.style(*style, value, multiline, in_flow, place)))
            }
            _ => None,
        };
        if let Some(anchor) = &node.anchor {
            self.write_anchor('&', anchor);
        }
        if let Some(tag) = self.written_tag(node) {
            self.write_tag(&tag);
        }
        if let Some((value, style)) = scalar {
            let indent = self.cursor.indent;
            self.increase_indent(true, false, place);
            self.write_scalar(value, style);
            self.cursor.indent = indent;
        }
    }

    /// The long form of the tag that is written.
    fn written_tag(&self, node: &Node) -> Option<String> {
        let tag = node.tag.as_deref()?;
        Some(match tag.strip_prefix("!!") {
            Some(short) => format!("{LONG_PREFIX}{short}"),
            None => tag.to_owned(),
        })
    }

    fn write_anchor(&mut self, sign: char, name: &str) {
        self.cursor
            .indicator(sign.encode_utf8(&mut [0; 4]), true, false, false);
        self.cursor.text(name);
    }

    fn write_tag(&mut self, tag: &str) {
        let (handle, suffix) = split_tag(tag);
        match handle {
            Some(handle) => {
                self.cursor.space();
                self.cursor.text(handle);
                self.cursor.tag_content(suffix);
            }
            None => {
                self.cursor.indicator("!<", true, false, false);
                self.cursor.tag_content(suffix);
                self.cursor.indicator(">", false, false, false);
            }
        }
    }

    /// Indentation of what is inside a node at this place.
    fn increase_indent(&mut self, flow: bool, compact: bool, place: Place) {
        let indent = &mut self.cursor.indent;
        *indent = if *indent < 0 {
            if flow { INDENT } else { 0 }
        } else if place == Place::BlockItem {
            *indent + INDENT
        } else {
            INDENT * ((*indent + INDENT) / INDENT) - if compact { 2 } else { 0 }
        };
    }

    fn is_flow(&self, node: &Node) -> bool {
        match &node.content {
            NodeContent::Sequence { items, flow } => self.flow_level > 0 || *flow || items.is_empty(),
            NodeContent::Mapping { entries, flow } => self.flow_level > 0 || *flow || entries.is_empty(),
            _ => false,
        }
    }

    /// What is inside a collection, and its end.
    fn entries(&mut self, node: &Node, place: Place) {
        let indent = self.cursor.indent;
        let flow = self.is_flow(node);
        match &node.content {
            NodeContent::Sequence { items, .. } if flow => self.flow_sequence(node, items, place),
            NodeContent::Sequence { items, .. } => self.block_sequence(node, items, place),
            NodeContent::Mapping { entries, .. } if flow => self.flow_mapping(node, entries, place),
            NodeContent::Mapping { entries, .. } => self.block_mapping(node, entries, place),
            _ => {}
        }
        self.cursor.indent = indent;
    }

    fn block_sequence(&mut self, node: &Node, items: &[Node], place: Place) {
        let in_mapping = matches!(place, Place::Entry | Place::SimpleKey);
        let new_line = self.cursor.column == 0 || !self.cursor.indention;
        self.increase_indent(false, in_mapping && new_line && self.compact, place);
        for item in items {
            self.begin(item, "");
            self.write_head();
            self.cursor.write_indent();
            self.cursor.indicator("-", true, false, true);
            self.node(item, Place::BlockItem);
        }
        self.end(&node.comments, "");
    }

    fn block_mapping(&mut self, node: &Node, entries: &[(Node, Node)], place: Place) {
        self.increase_indent(false, false, place);
        let mut tail = "";
        for (key, value) in entries {
            self.begin(&footless(key), tail);
            self.write_head();
            self.cursor.write_indent();
            if !self.pending.line.is_empty() {
                self.pending.key_line = std::mem::take(&mut self.pending.line);
            }
            let simple = is_simple_key(key);
            if simple {
                self.node_start(key, Place::SimpleKey);
                self.entries(&footless(key), Place::SimpleKey);
            } else {
                self.cursor.indicator("?", true, false, true);
                self.node_start(key, Place::Entry);
                self.entries(&footless(key), Place::Entry);
            }
            tail = &key.comments.foot;
            self.begin(value, "");
            if simple {
                self.cursor.indicator(":", false, false, false);
            } else {
                self.cursor.write_indent();
                self.cursor.indicator(":", true, false, true);
            }
            self.hand_over_key_line(value);
            self.node(value, Place::Entry);
        }
        self.end(&node.comments, tail);
        self.write_head();
    }

    /// A line comment of a key has no place but behind its value, or before a block.
    fn hand_over_key_line(&mut self, value: &Node) {
        if self.pending.key_line.is_empty() {
            return;
        }
        match &value.content {
            // Of two comments that of the value stays.
            NodeContent::Scalar { .. } if self.pending.line.is_empty() => {
                self.pending.line = std::mem::take(&mut self.pending.key_line);
            }
            NodeContent::Sequence { flow: false, .. } | NodeContent::Mapping { flow: false, .. } => {
                std::mem::swap(&mut self.pending.line, &mut self.pending.key_line);
                self.write_line_comment(false);
                std::mem::swap(&mut self.pending.line, &mut self.pending.key_line);
            }
            _ => {}
        }
    }

    fn flow_sequence(&mut self, node: &Node, items: &[Node], place: Place) {
        let outer = self.cursor.indent;
        self.cursor.indicator("[", true, true, false);
        self.increase_indent(true, false, place);
        self.flow_level += 1;
        // Whether a comma is written already.
        let mut separated = true;
        for item in items {
            self.begin(item, "");
            if !separated {
                self.cursor.indicator(",", false, false, false);
            }
            self.write_head();
            if self.cursor.column == 0 {
                self.cursor.write_indent();
            }
            separated = self.flow_value(item, Place::FlowItem);
        }
        self.end(&node.comments, "");
        self.flow_level -= 1;
        self.cursor.indent = outer;
        if self.cursor.column == 0 {
            self.cursor.write_indent();
        }
        self.cursor.indicator("]", false, false, false);
        self.write_line_comment(false);
        self.write_foot();
    }

    /// An item or value in brackets; before comments the comma comes at once. Tells whether it came.
    fn flow_value(&mut self, node: &Node, place: Place) -> bool {
        let separated = self.pending.breaks_line();
        self.node_start(node, place);
        if self.pending.breaks_line() {
            self.cursor.indicator(",", false, false, false);
        }
        self.write_line_comment(false);
        self.write_foot();
        self.entries(node, place);
        separated
    }

    fn flow_mapping(&mut self, node: &Node, entries: &[(Node, Node)], place: Place) {
        let outer = self.cursor.indent;
        self.cursor.indicator("{", true, true, false);
        self.increase_indent(true, false, place);
        self.flow_level += 1;
        let mut separated = true;
        let mut tail = "";
        for (key, value) in entries {
            self.begin(&footless(key), tail);
            if !separated {
                self.cursor.indicator(",", false, false, false);
            }
            self.write_head();
            if self.cursor.column == 0 {
                self.cursor.write_indent();
            }
            let simple = is_simple_key(key);
            if simple {
                self.node_start(key, Place::SimpleKey);
                self.entries(&footless(key), Place::SimpleKey);
            } else {
                self.cursor.indicator("?", true, false, false);
                self.node_start(key, Place::Entry);
                self.entries(&footless(key), Place::Entry);
            }
            tail = &key.comments.foot;
            self.begin(value, "");
            self.cursor.indicator(":", !simple, false, false);
            separated = self.flow_value(value, Place::Entry);
        }
        self.end(&node.comments, tail);
        let pending = &self.pending;
        let commented = !(pending.head.is_empty() && pending.foot.is_empty() && pending.tail.is_empty());
        if commented && !separated {
            self.cursor.indicator(",", false, false, false);
        }
        self.write_head();
        self.flow_level -= 1;
        self.cursor.indent = outer;
        self.cursor.indicator("}", false, false, false);
        self.write_line_comment(false);
        self.write_foot();
    }

    fn write_head(&mut self) {
        if !self.pending.tail.is_empty() {
            let tail = std::mem::take(&mut self.pending.tail);
            self.write_foot_text(&tail);
        }
        if !self.pending.head.is_empty() {
            let head = std::mem::take(&mut self.pending.head);
            self.cursor.write_indent();
            self.cursor.comment(&head);
        }
    }

    /// The comment behind a node; `break_without` ends the line even without one.
    fn write_line_comment(&mut self, break_without: bool) {
        if self.pending.line.is_empty() {
            if break_without {
                self.cursor.put_break();
            }
            return;
        }
        let line = std::mem::take(&mut self.pending.line);
        self.cursor.space();
        self.cursor.comment(&line);
    }

    fn write_foot(&mut self) {
        if !self.pending.foot.is_empty() {
            let foot = std::mem::take(&mut self.pending.foot);
            self.write_foot_text(&foot);
        }
    }

    /// An empty line follows it, unless what follows is at another indentation.
    fn write_foot_text(&mut self, foot: &str) {
        self.cursor.write_indent();
        self.cursor.comment(foot);
        self.cursor.foot_indent = Some(self.cursor.indent.max(0));
    }
}

fn head_only(comments: &NodeComments) -> NodeComments {
    NodeComments {
        head: comments.head.clone(),
        ..NodeComments::default()
    }
}

/// A key without its foot, which is written when its value has been.
fn footless(key: &Node) -> std::borrow::Cow<'_, Node> {
    if key.comments.foot.is_empty() {
        return std::borrow::Cow::Borrowed(key);
    }
    let mut key = key.clone();
    key.comments.foot.clear();
    std::borrow::Cow::Owned(key)
}

/// Whether a key can stand before its `:` in one line.
fn is_simple_key(key: &Node) -> bool {
    let anchor = key.anchor.as_ref().map_or(0, String::len);
    let tag = key.tag.as_deref().map_or(0, |tag| {
        let long = match tag.strip_prefix("!!") {
            Some(short) => format!("{LONG_PREFIX}{short}"),
            None => tag.to_owned(),
        };
        let (handle, suffix) = split_tag(&long);
        handle.map_or(0, str::len) + suffix.len()
    });
    let length = match &key.content {
        NodeContent::Alias(name) => name.len(),
        NodeContent::Scalar { value, .. } if !scalar::has_break(value) => anchor + tag + value.len(),
        NodeContent::Sequence { items, .. } if items.is_empty() => anchor + tag,
        NodeContent::Mapping { entries, .. } if entries.is_empty() => anchor + tag,
        _ => return false,
    };
    length <= MAX_SIMPLE_KEY
}

/// The handle that stands for the beginning of a tag, and the rest.
fn split_tag(tag: &str) -> (Option<&'static str>, &str) {
    if let Some(rest) = tag.strip_prefix('!') {
        (Some("!"), rest)
    } else if let Some(rest) = tag.strip_prefix(LONG_PREFIX) {
        (Some("!!"), rest)
    } else {
        (None, tag)
    }
}
