//! From tokens to events, as go-yaml v2 parses: `parserc.go` of `go.yaml.in/yaml` v2.4.4, a port of libyaml.
//!
//! The grammar is LL(1); each state knows which production comes next, so that depth costs heap and not stack.

use std::borrow::Cow;

use crate::Error;
use crate::scanner::{Comments, Input, Mark, ScalarStyle, Scanner, Skipped, Token, TokenKind};

/// Tag handles that need no directive.
const DEFAULT_TAG_DIRECTIVES: [(&str, &[u8]); 2] = [("!", b"!"), ("!!", b"tag:yaml.org,2002:")];

/// One step through a document, with the comments that belong to it.
#[derive(Debug)]
pub(crate) enum Event<'a, T = ()> {
    StreamStart,
    StreamEnd,
    /// The line (from 0) where the document begins.
    DocumentStart {
        line: usize,
        comments: T,
    },
    DocumentEnd(T),
    Alias(&'a str, T),
    Scalar(Scalar<'a>, T),
    SequenceStart(Start<'a>, T),
    SequenceEnd(T),
    MappingStart(Start<'a>, T),
    MappingEnd(T),
}

/// The beginning of a collection.
#[derive(Debug, Default)]
pub(crate) struct Start<'a> {
    pub(crate) anchor: Option<&'a str>,
    /// The resolved tag; empty without one.
    pub(crate) tag: String,
    /// In brackets.
    pub(crate) flow: bool,
}

/// A scalar with what its tag and style say of its type.
#[derive(Debug, Default)]
pub(crate) struct Scalar<'a> {
    pub(crate) anchor: Option<&'a str>,
    /// The resolved tag; empty without one.
    pub(crate) tag: String,
    pub(crate) value: Cow<'a, str>,
    /// Plain and untagged (or tagged `!`): its text decides its type.
    pub(crate) implicit: bool,
    pub(crate) style: ScalarStyle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    StreamStart,
    ImplicitDocumentStart,
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    BlockNode,
    BlockSequenceFirstEntry,
    BlockSequenceEntry,
    IndentlessSequenceEntry,
    BlockMappingFirstKey,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequenceFirstEntry,
    FlowSequenceEntry,
    FlowSequenceEntryMappingKey,
    FlowSequenceEntryMappingValue,
    FlowSequenceEntryMappingEnd,
    FlowMappingFirstKey,
    FlowMappingKey,
    FlowMappingValue,
    FlowMappingEmptyValue,
    End,
}

/// Which nodes a place allows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Block,
    /// As the value of a mapping, where a sequence needs no indentation.
    BlockOrIndentless,
    Flow,
}

pub(crate) struct Parser<'a, C = Skipped> {
    scanner: Scanner<'a, C>,
    state: State,
    states: Vec<State>,
    /// Where the open collections began.
    marks: Vec<Mark>,
    tag_directives: Vec<(&'a str, Vec<u8>)>,
}

/// The next event, or why there is none.
type Step<'a, C> = Result<Event<'a, <C as Comments>::Attached>, Error>;

/// A problem of the grammar. Go names the line before the one it means, or the one where the collection began; v3
/// prefers the latter.
fn error<C: Comments>(problem: &str, at: Mark, context: Option<Mark>) -> Error {
    let marks = if C::KEPT {
        [context, Some(at)]
    } else {
        [Some(at), context]
    };
    let line = marks
        .into_iter()
        .flatten()
        .map(|mark| mark.line)
        .find(|line| *line != 0);
    Error::yaml(line, problem)
}

impl<'a, C: Comments> Parser<'a, C> {
    pub(crate) fn new(input: &'a Input<'_>) -> Self {
        Parser {
            scanner: Scanner::new(input),
            state: State::StreamStart,
            states: Vec::new(),
            marks: Vec::new(),
            tag_directives: Vec::new(),
        }
    }

    pub(crate) fn next_event(&mut self) -> Step<'a, C> {
        match self.state {
            State::StreamStart => self.stream_start(),
            State::ImplicitDocumentStart => self.document_start(true),
            State::DocumentStart => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(Place::Block),
            State::BlockSequenceFirstEntry => self.block_sequence_entry(true),
            State::BlockSequenceEntry => self.block_sequence_entry(false),
            State::IndentlessSequenceEntry => self.indentless_sequence_entry(),
            State::BlockMappingFirstKey => self.block_mapping_key(true),
            State::BlockMappingKey => self.block_mapping_key(false),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceFirstEntry => self.flow_sequence_entry(true),
            State::FlowSequenceEntry => self.flow_sequence_entry(false),
            State::FlowSequenceEntryMappingKey => self.flow_sequence_entry_mapping_key(),
            State::FlowSequenceEntryMappingValue => self.flow_sequence_entry_mapping_value(),
            State::FlowSequenceEntryMappingEnd => {
                self.scanner.peek()?;
                self.state = State::FlowSequenceEntry;
                Ok(Event::MappingEnd(C::Attached::default()))
            }
            State::FlowMappingFirstKey => self.flow_mapping_key(true),
            State::FlowMappingKey => self.flow_mapping_key(false),
            State::FlowMappingValue => self.flow_mapping_value(false),
            State::FlowMappingEmptyValue => self.flow_mapping_value(true),
            State::End => Ok(Event::StreamEnd),
        }
    }

    fn pop_state(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    /// Steps over a token and shows the next.
    fn advance(&mut self) -> Result<&Token<'a>, Error> {
        self.scanner.take()?;
        self.scanner.peek()
    }

    /// Steps over the `-` of an item and shows its first token.
    fn advance_to_item(&mut self) -> Result<&Token<'a>, Error> {
        let head_length = self.scanner.comments.head_length();
        self.scanner.take()?;
        if C::KEPT && head_length > 0 {
            let next = &self.scanner.peek()?.kind;
            if matches!(next, TokenKind::BlockSequenceStart | TokenKind::BlockMappingStart) {
                self.scanner.comments.split_stem(head_length);
            }
        }
        self.scanner.peek()
    }

    fn empty_scalar(&mut self, then: State) -> Step<'a, C> {
        self.state = then;
        let scalar = Scalar {
            implicit: true,
            ..Scalar::default()
        };
        Ok(Event::Scalar(scalar, C::Attached::default()))
    }

    fn child(&mut self, place: Place, then: State) -> Step<'a, C> {
        self.states.push(then);
        self.node(place)
    }

    fn open_collection(&mut self) -> Result<(), Error> {
        let token = self.scanner.take()?;
        self.marks.push(token.start);
        Ok(())
    }

    /// Steps over the end of a collection, and of its comments.
    fn close_collection(&mut self) -> Result<C::Attached, Error> {
        self.pop_state();
        self.marks.pop();
        let comments = self.scanner.comments.take();
        self.scanner.take()?;
        Ok(comments)
    }

    fn collection_error(&mut self, problem: &str, at: Mark) -> Error {
        error::<C>(problem, at, self.marks.pop())
    }

    fn stream_start(&mut self) -> Step<'a, C> {
        let token = self.scanner.take()?;
        if token.kind != TokenKind::StreamStart {
            return Err(error::<C>(
                "did not find expected <stream-start>",
                token.start,
                None,
            ));
        }
        self.state = State::ImplicitDocumentStart;
        Ok(Event::StreamStart)
    }

    fn document_start(&mut self, implicit: bool) -> Step<'a, C> {
        if !implicit {
            while self.scanner.peek()?.kind == TokenKind::DocumentEnd {
                self.scanner.take()?;
            }
        }
        let token = self.scanner.peek()?;
        let line = token.start.line;
        match token.kind {
            TokenKind::StreamEnd => {
                self.state = State::End;
                self.scanner.take()?;
                Ok(Event::StreamEnd)
            }
            TokenKind::VersionDirective(..) | TokenKind::TagDirective(..) | TokenKind::DocumentStart => {
                self.explicit_document_start(line)
            }
            _ if implicit => {
                self.process_directives()?;
                self.states.push(State::DocumentEnd);
                self.state = State::BlockNode;
                let comments = self.scanner.comments.take_document_head();
                Ok(Event::DocumentStart { line, comments })
            }
            _ => self.explicit_document_start(line),
        }
    }

    fn explicit_document_start(&mut self, line: usize) -> Step<'a, C> {
        self.process_directives()?;
        let token = self.scanner.peek()?;
        if token.kind != TokenKind::DocumentStart {
            return Err(error::<C>(
                "did not find expected <document start>",
                token.start,
                None,
            ));
        }
        self.scanner.take()?;
        self.states.push(State::DocumentEnd);
        self.state = State::DocumentContent;
        let comments = C::Attached::default();
        Ok(Event::DocumentStart { line, comments })
    }

    fn document_content(&mut self) -> Step<'a, C> {
        match self.scanner.peek()?.kind {
            TokenKind::VersionDirective(..)
            | TokenKind::TagDirective(..)
            | TokenKind::DocumentStart
            | TokenKind::DocumentEnd
            | TokenKind::StreamEnd => {
                let then = self.states.pop().unwrap_or(State::End);
                self.empty_scalar(then)
            }
            _ => self.node(Place::Block),
        }
    }

    fn document_end(&mut self) -> Step<'a, C> {
        if self.scanner.peek()?.kind == TokenKind::DocumentEnd {
            self.scanner.take()?;
        }
        self.tag_directives.clear();
        self.state = State::DocumentStart;
        Ok(Event::DocumentEnd(self.scanner.comments.take()))
    }

    fn process_directives(&mut self) -> Result<(), Error> {
        let mut version_seen = false;
        loop {
            let token = self.scanner.peek()?;
            let start = token.start;
            match &token.kind {
                TokenKind::VersionDirective(major, minor) => {
                    if version_seen {
                        return Err(error::<C>("found duplicate %YAML directive", start, None));
                    }
                    if (*major, *minor) != (1, 1) {
                        return Err(error::<C>("found incompatible YAML document", start, None));
                    }
                    version_seen = true;
                }
                TokenKind::TagDirective(handle, prefix) => {
                    let directive = (*handle, prefix.clone());
                    if self.tag_directives.iter().any(|(known, _)| *known == directive.0) {
                        return Err(error::<C>("found duplicate %TAG directive", start, None));
                    }
                    self.tag_directives.push(directive);
                }
                _ => break,
            }
            self.scanner.take()?;
        }
        for (handle, prefix) in DEFAULT_TAG_DIRECTIVES {
            if !self.tag_directives.iter().any(|(known, _)| *known == handle) {
                self.tag_directives.push((handle, prefix.to_vec()));
            }
        }
        Ok(())
    }

    /// Anchor and tag, in either order.
    fn properties(&mut self) -> Result<Properties<'a>, Error> {
        let start = self.scanner.peek()?.start;
        let mut found = Properties {
            start,
            anchor: None,
            tag: None,
        };
        loop {
            let token = self.scanner.peek()?;
            match &token.kind {
                TokenKind::Anchor(name) if found.anchor.is_none() => {
                    let name = *name;
                    found.anchor = Some(name);
                    self.scanner.take()?;
                }
                TokenKind::Tag(..) if found.tag.is_none() => {
                    let token = self.scanner.take()?;
                    if let TokenKind::Tag(handle, suffix) = token.kind {
                        found.tag = Some((handle, suffix, token.start));
                    }
                }
                _ => return Ok(found),
            }
        }
    }

    fn resolve_tag(&self, properties: &Properties<'a>) -> Result<String, Error> {
        let Some((handle, suffix, at)) = &properties.tag else {
            return Ok(String::new());
        };
        let bytes = if handle.is_empty() {
            suffix.clone()
        } else {
            let prefix = self.tag_directives.iter().find(|(known, _)| known == handle);
            let full = prefix.map(|(_, prefix)| [prefix.as_slice(), suffix.as_slice()].concat());
            full.filter(|tag| !tag.is_empty())
                .ok_or_else(|| error::<C>("found undefined tag handle", *at, Some(properties.start)))?
        };
        Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    fn node(&mut self, place: Place) -> Step<'a, C> {
        if let TokenKind::Alias(name) = self.scanner.peek()?.kind {
            self.pop_state();
            let comments = self.scanner.comments.take();
            self.scanner.take()?;
            return Ok(Event::Alias(name, comments));
        }
        let properties = self.properties()?;
        let tag = if properties.tag.is_some() {
            self.resolve_tag(&properties)?
        } else {
            String::new()
        };
        let anchor = properties.anchor;
        let token = self.scanner.peek()?;
        let at = token.start;
        let no_content = || error::<C>("did not find expected node content", at, Some(properties.start));
        let block = place != Place::Flow;
        let state = match &token.kind {
            TokenKind::BlockEntry if place == Place::BlockOrIndentless => State::IndentlessSequenceEntry,
            TokenKind::Scalar { .. } => {
                self.pop_state();
                let comments = self.scanner.comments.take();
                let TokenKind::Scalar { value, style } = self.scanner.take()?.kind else {
                    return Err(no_content());
                };
                let implicit = if tag.is_empty() {
                    style == ScalarStyle::Plain
                } else {
                    tag == "!"
                };
                let scalar = Scalar {
                    anchor,
                    tag,
                    value,
                    implicit,
                    style,
                };
                return Ok(Event::Scalar(scalar, comments));
            }
            TokenKind::FlowSequenceStart => State::FlowSequenceFirstEntry,
            TokenKind::FlowMappingStart => State::FlowMappingFirstKey,
            TokenKind::BlockSequenceStart if block => State::BlockSequenceFirstEntry,
            TokenKind::BlockMappingStart if block => State::BlockMappingFirstKey,
            _ if anchor.is_some() || !tag.is_empty() => {
                self.pop_state();
                let implicit = tag.is_empty();
                let scalar = Scalar {
                    anchor,
                    tag,
                    implicit,
                    ..Scalar::default()
                };
                return Ok(Event::Scalar(scalar, C::Attached::default()));
            }
            _ => return Err(no_content()),
        };
        self.state = state;
        let flow = matches!(state, State::FlowMappingFirstKey | State::FlowSequenceFirstEntry);
        let start = Start { anchor, tag, flow };
        let comments = match state {
            State::IndentlessSequenceEntry => C::Attached::default(),
            _ if flow => self.scanner.comments.take(),
            _ => self.scanner.comments.take_stem(),
        };
        Ok(match state {
            State::FlowMappingFirstKey | State::BlockMappingFirstKey => Event::MappingStart(start, comments),
            _ => Event::SequenceStart(start, comments),
        })
    }

    fn block_sequence_entry(&mut self, first: bool) -> Step<'a, C> {
        if first {
            self.open_collection()?;
        }
        let token = self.scanner.peek()?;
        match token.kind {
            TokenKind::BlockEntry => match self.advance_to_item()?.kind {
                TokenKind::BlockEntry | TokenKind::BlockEnd => self.empty_scalar(State::BlockSequenceEntry),
                _ => self.child(Place::Block, State::BlockSequenceEntry),
            },
            TokenKind::BlockEnd => {
                // Comments before the end are for what follows.
                self.pop_state();
                self.marks.pop();
                self.scanner.take()?;
                Ok(Event::SequenceEnd(C::Attached::default()))
            }
            _ => {
                let at = token.start;
                Err(self.collection_error("did not find expected '-' indicator", at))
            }
        }
    }

    fn indentless_sequence_entry(&mut self) -> Step<'a, C> {
        if self.scanner.peek()?.kind != TokenKind::BlockEntry {
            self.pop_state();
            return Ok(Event::SequenceEnd(C::Attached::default()));
        }
        match self.advance_to_item()?.kind {
            TokenKind::BlockEntry | TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                self.empty_scalar(State::IndentlessSequenceEntry)
            }
            _ => self.child(Place::Block, State::IndentlessSequenceEntry),
        }
    }

    fn block_mapping_key(&mut self, first: bool) -> Step<'a, C> {
        if first {
            self.open_collection()?;
        }
        let token = self.scanner.peek()?;
        match token.kind {
            TokenKind::Key => match self.advance()?.kind {
                TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                    self.empty_scalar(State::BlockMappingValue)
                }
                _ => self.child(Place::BlockOrIndentless, State::BlockMappingValue),
            },
            TokenKind::BlockEnd => self.close_collection().map(Event::MappingEnd),
            _ => {
                let at = token.start;
                Err(self.collection_error("did not find expected key", at))
            }
        }
    }

    fn block_mapping_value(&mut self) -> Step<'a, C> {
        if self.scanner.peek()?.kind != TokenKind::Value {
            return self.empty_scalar(State::BlockMappingKey);
        }
        match self.advance()?.kind {
            TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                self.empty_scalar(State::BlockMappingKey)
            }
            _ => self.child(Place::BlockOrIndentless, State::BlockMappingKey),
        }
    }

    fn flow_sequence_entry(&mut self, first: bool) -> Step<'a, C> {
        if first {
            self.open_collection()?;
        }
        if self.scanner.peek()?.kind != TokenKind::FlowSequenceEnd {
            if !first {
                self.flow_separator("did not find expected ',' or ']'")?;
            }
            match self.scanner.peek()?.kind {
                TokenKind::Key => {
                    self.state = State::FlowSequenceEntryMappingKey;
                    self.scanner.take()?;
                    let start = Start {
                        flow: true,
                        ..Start::default()
                    };
                    return Ok(Event::MappingStart(start, C::Attached::default()));
                }
                TokenKind::FlowSequenceEnd => {}
                _ => return self.child(Place::Flow, State::FlowSequenceEntry),
            }
        }
        self.close_collection().map(Event::SequenceEnd)
    }

    fn flow_separator(&mut self, problem: &str) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        if token.kind != TokenKind::FlowEntry {
            let at = token.start;
            return Err(self.collection_error(problem, at));
        }
        self.scanner.take()?;
        Ok(())
    }

    fn flow_sequence_entry_mapping_key(&mut self) -> Step<'a, C> {
        match self.scanner.peek()?.kind {
            TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowSequenceEnd => {
                // go-yaml steps over this token, whatever it is.
                self.scanner.take()?;
                self.empty_scalar(State::FlowSequenceEntryMappingValue)
            }
            _ => self.child(Place::Flow, State::FlowSequenceEntryMappingValue),
        }
    }

    fn flow_sequence_entry_mapping_value(&mut self) -> Step<'a, C> {
        if self.scanner.peek()?.kind == TokenKind::Value {
            let next = &self.advance()?.kind;
            if !matches!(next, TokenKind::FlowEntry | TokenKind::FlowSequenceEnd) {
                return self.child(Place::Flow, State::FlowSequenceEntryMappingEnd);
            }
        }
        self.empty_scalar(State::FlowSequenceEntryMappingEnd)
    }

    fn flow_mapping_key(&mut self, first: bool) -> Step<'a, C> {
        if first {
            self.open_collection()?;
        }
        if self.scanner.peek()?.kind != TokenKind::FlowMappingEnd {
            if !first {
                self.flow_separator("did not find expected ',' or '}'")?;
            }
            match self.scanner.peek()?.kind {
                TokenKind::Key => {
                    return match self.advance()?.kind {
                        TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowMappingEnd => {
                            self.empty_scalar(State::FlowMappingValue)
                        }
                        _ => self.child(Place::Flow, State::FlowMappingValue),
                    };
                }
                TokenKind::FlowMappingEnd => {}
                _ => return self.child(Place::Flow, State::FlowMappingEmptyValue),
            }
        }
        self.close_collection().map(Event::MappingEnd)
    }

    fn flow_mapping_value(&mut self, empty: bool) -> Step<'a, C> {
        let token = self.scanner.peek()?;
        if !empty && token.kind == TokenKind::Value {
            let next = &self.advance()?.kind;
            if !matches!(next, TokenKind::FlowEntry | TokenKind::FlowMappingEnd) {
                return self.child(Place::Flow, State::FlowMappingKey);
            }
        }
        self.empty_scalar(State::FlowMappingKey)
    }
}

/// What may stand before a node.
struct Properties<'a> {
    start: Mark,
    anchor: Option<&'a str>,
    /// Handle, suffix, place.
    tag: Option<(&'a str, Vec<u8>, Mark)>,
}
