//! From text to tokens, as go-yaml v2 scans: `scannerc.go` of `go.yaml.in/yaml` v2.4.4, a port of libyaml.
//!
//! The clever part is "simple keys": a scalar is a key only if `:` follows on the same line within 1024 characters, so
//! that a KEY token (and maybe a BLOCK-MAPPING-START) is inserted before tokens already queued.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::Error;
pub(crate) use comments::{Comments, Kept, Skipped};
pub(crate) use reader::Input;
use reader::Reader;

mod comments;
mod directive;
mod reader;
mod scalar;

/// Deepest nesting of flow collections; `max_flow_level` of go-yaml.
const MAX_FLOW_LEVEL: usize = 10_000;

/// Deepest nesting of block collections; `max_indents` of go-yaml.
const MAX_INDENTS: usize = 10_000;

/// How many characters a simple key may span.
const MAX_SIMPLE_KEY: usize = 1024;

/// A place in the text: all counts from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Characters before this place.
    pub(crate) index: usize,
    pub(crate) line: usize,
    /// Characters before this place in its line.
    pub(crate) column: usize,
}

/// One token and where it starts.
#[derive(Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind<'a>,
    pub(crate) start: Mark,
}

#[derive(Debug, PartialEq)]
pub(crate) enum TokenKind<'a> {
    StreamStart,
    StreamEnd,
    /// `%YAML major.minor`
    VersionDirective(u8, u8),
    /// `%TAG handle prefix`
    TagDirective(&'a str, Vec<u8>),
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    /// Handle and suffix. The suffix may hold escaped bytes of any value.
    Tag(&'a str, Vec<u8>),
    Scalar {
        value: Cow<'a, str>,
        style: ScalarStyle,
    },
}

/// How a scalar stands in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScalarStyle {
    /// Without quotes.
    #[default]
    Plain,
    /// Between `'`.
    SingleQuoted,
    /// Between `"`, with escapes.
    DoubleQuoted,
    /// A block after `|`.
    Literal,
    /// A block after `>`.
    Folded,
}

/// A place where a simple key may have begun, one for each flow level.
#[derive(Clone, Copy, Debug, Default)]
struct SimpleKey {
    possible: bool,
    /// Without a `:` this place is an error.
    required: bool,
    token_number: usize,
    mark: Mark,
}

pub(crate) struct Scanner<'a, C = Skipped> {
    reader: Reader<'a>,
    pub(crate) comments: C,
    tokens: VecDeque<Token<'a>>,
    /// Tokens handed out so far; the number of the token at the head of the queue.
    tokens_parsed: usize,
    /// Whether the head of the queue is settled: no key can be inserted before it any more.
    token_available: bool,
    stream_start_produced: bool,
    stream_end_produced: bool,
    flow_level: usize,
    indent: isize,
    indents: Vec<isize>,
    simple_key_allowed: bool,
    simple_keys: Vec<SimpleKey>,
    /// Token number and index into `simple_keys` of each place that may turn out a key, numbers ascending.
    simple_keys_by_token: VecDeque<(usize, usize)>,
}

impl<'a, C: Comments> Scanner<'a, C> {
    pub(crate) fn new(input: &'a Input<'_>) -> Self {
        Scanner {
            reader: Reader::new(input),
            comments: C::default(),
            tokens: VecDeque::new(),
            tokens_parsed: 0,
            token_available: false,
            stream_start_produced: false,
            stream_end_produced: false,
            flow_level: 0,
            indent: -1,
            indents: Vec::new(),
            simple_key_allowed: false,
            simple_keys: Vec::new(),
            simple_keys_by_token: VecDeque::new(),
        }
    }

    /// The next token, which stays in the queue.
    pub(crate) fn peek(&mut self) -> Result<&Token<'a>, Error> {
        self.settle_head()?;
        self.tokens.front().ok_or_else(end_of_tokens)
    }

    /// Takes the token that [`Scanner::peek`] showed.
    pub(crate) fn take(&mut self) -> Result<Token<'a>, Error> {
        self.settle_head()?;
        let token = self.tokens.pop_front().ok_or_else(end_of_tokens)?;
        self.token_available = false;
        self.tokens_parsed += 1;
        self.stream_end_produced = token.kind == TokenKind::StreamEnd;
        Ok(token)
    }

    /// Makes sure that the token at the head of the queue stays there.
    fn settle_head(&mut self) -> Result<(), Error> {
        if !self.token_available {
            self.fetch_more_tokens()?;
        }
        if let Some(head) = self.tokens.front() {
            self.comments.unfold(head);
        }
        Ok(())
    }

    /// A problem at the current place, in something that began at `start`. Go counts the line from 1 but names no
    /// first line; v3 names the line of the beginning, v2 that of the problem.
    fn error(&self, start: Mark, problem: impl Into<String>) -> Error {
        let here = self.reader.mark.line;
        let line = if C::KEPT && start.line != 0 {
            start.line
        } else {
            here
        };
        Error::yaml((line != 0).then_some(line + 1), problem)
    }

    /// A problem of what stands right here.
    fn error_here(&self, problem: impl Into<String>) -> Error {
        self.error(self.reader.mark, problem)
    }

    fn push(&mut self, kind: TokenKind<'a>, start: Mark) {
        self.tokens.push_back(Token { kind, start });
    }

    /// Inserts a token at the place of the token with the given number; one that was handed out already puts it last.
    fn insert(&mut self, number: usize, kind: TokenKind<'a>, mark: Mark) {
        let token = Token { kind, start: mark };
        match number.checked_sub(self.tokens_parsed) {
            Some(at) if at < self.tokens.len() => self.tokens.insert(at, token),
            _ => self.tokens.push_back(token),
        }
    }

    fn fetch_more_tokens(&mut self) -> Result<(), Error> {
        loop {
            if self.tokens.len() >= C::LOOKAHEAD {
                // The head of the queue may still turn out to be a simple key.
                let Some(index) = self.key_of_head() else { break };
                if !self.simple_key_is_valid(index)? {
                    break;
                }
            } else if self.tokens.is_empty() && self.stream_end_produced {
                return Err(end_of_tokens());
            }
            self.fetch_next_token()?;
        }
        self.token_available = true;
        Ok(())
    }

    fn key_of_head(&mut self) -> Option<usize> {
        while let Some((number, index)) = self.simple_keys_by_token.front().copied() {
            if number == self.tokens_parsed {
                return Some(index);
            }
            if number > self.tokens_parsed {
                return None;
            }
            self.simple_keys_by_token.pop_front();
        }
        None
    }

    fn forget_key(&mut self, token_number: usize) {
        if let Some(at) = self
            .simple_keys_by_token
            .iter()
            .rposition(|(number, _)| *number == token_number)
        {
            self.simple_keys_by_token.remove(at);
        }
    }

    fn fetch_next_token(&mut self) -> Result<(), Error> {
        self.reader.cache(1)?;
        if !self.stream_start_produced {
            self.fetch_stream_start();
            return Ok(());
        }
        let scan_mark = self.reader.mark;
        self.scan_to_next_token()?;
        self.unroll_indent(column(self.reader.mark), scan_mark);
        // The longest indicators are `--- ` and `... `.
        self.reader.cache(4)?;

        let in_flow = self.flow_level > 0;
        let first = self.reader.byte(0);
        if first == 0 {
            return self.fetch_stream_end();
        }
        if self.reader.mark.column == 0 {
            if first == b'%' {
                return self.fetch_directive();
            }
            if let Some(kind) = self.reader.document_indicator() {
                return self.fetch_document_indicator(kind);
            }
        }
        if !C::KEPT {
            return self.fetch_content(first);
        }
        // A comment behind `:` and `,` belongs to what stands before them.
        let comment_mark = match (first, self.tokens.back()) {
            (b':', Some(last)) if !in_flow => last.start,
            (b',', Some(last)) if in_flow => last.start,
            _ => self.reader.mark,
        };
        self.fetch_content(first)?;
        if self
            .tokens
            .back()
            .is_none_or(|last| last.kind != TokenKind::BlockEntry)
        {
            C::scan_line(self, comment_mark)?;
        }
        Ok(())
    }

    /// The token that begins with this byte, neither a directive nor a document indicator.
    #[inline]
    fn fetch_content(&mut self, first: u8) -> Result<(), Error> {
        let in_flow = self.flow_level > 0;
        match first {
            b'[' => self.fetch_flow_start(TokenKind::FlowSequenceStart),
            b'{' => self.fetch_flow_start(TokenKind::FlowMappingStart),
            b']' => self.fetch_flow_end(TokenKind::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(TokenKind::FlowMappingEnd),
            b',' => self.fetch_flow_entry(),
            b'-' if self.reader.is_blankz(1) => self.fetch_block_entry(),
            b'?' if in_flow || self.reader.is_blankz(1) => self.fetch_key(),
            b':' if in_flow || self.reader.is_blankz(1) => self.fetch_value(),
            b'*' | b'&' => self.fetch_anchor(first == b'*'),
            b'!' => self.fetch_tag(),
            b'|' if !in_flow => self.fetch_block_scalar(true),
            b'>' if !in_flow => self.fetch_block_scalar(false),
            b'\'' => self.fetch_flow_scalar(true),
            b'"' => self.fetch_flow_scalar(false),
            _ if self.may_start_plain(first) => self.fetch_plain_scalar(),
            _ => Err(self.error_here("found character that cannot start any token")),
        }
    }

    fn may_start_plain(&self, first: u8) -> bool {
        match first {
            b'-' => !matches!(self.reader.byte(1), b' ' | b'\t'),
            b'?' | b':' => self.flow_level == 0 && !self.reader.is_blankz(1),
            b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\'' | b'"'
            | b'%' | b'@' | b'`' => false,
            _ => !self.reader.is_blankz(0),
        }
    }

    fn simple_key_is_valid(&mut self, index: usize) -> Result<bool, Error> {
        let here = self.reader.mark;
        let Some(key) = self.simple_keys.get_mut(index) else {
            return Ok(false);
        };
        if !key.possible {
            return Ok(false);
        }
        if key.mark.line < here.line || key.mark.index + MAX_SIMPLE_KEY < here.index {
            if key.required {
                let start = key.mark;
                return Err(self.error(start, "could not find expected ':'"));
            }
            key.possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    /// Notes that a simple key may begin here.
    fn save_simple_key(&mut self) -> Result<(), Error> {
        if !self.simple_key_allowed {
            return Ok(());
        }
        let required = self.flow_level == 0 && self.indent == column(self.reader.mark);
        let key = SimpleKey {
            possible: true,
            required,
            token_number: self.tokens_parsed + self.tokens.len(),
            mark: self.reader.mark,
        };
        self.remove_simple_key()?;
        let index = self.simple_keys.len().saturating_sub(1);
        if let Some(last) = self.simple_keys.last_mut() {
            *last = key;
            self.simple_keys_by_token.push_back((key.token_number, index));
        }
        Ok(())
    }

    /// Gives up the possible simple key of the current flow level.
    fn remove_simple_key(&mut self) -> Result<(), Error> {
        let Some(key) = self.simple_keys.last_mut() else {
            return Ok(());
        };
        if !key.possible {
            return Ok(());
        }
        if key.required {
            let start = key.mark;
            return Err(self.error(start, "could not find expected ':'"));
        }
        key.possible = false;
        let number = key.token_number;
        self.forget_key(number);
        Ok(())
    }

    fn roll_indent(
        &mut self,
        to: isize,
        number: Option<usize>,
        kind: TokenKind<'a>,
        mark: Mark,
    ) -> Result<(), Error> {
        if self.flow_level > 0 || self.indent >= to {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = to;
        if self.indents.len() > MAX_INDENTS {
            let start = self.simple_keys.last().map_or(mark, |key| key.mark);
            return Err(self.error(start, format!("exceeded max depth of {MAX_INDENTS}")));
        }
        self.insert(number.unwrap_or(usize::MAX), kind, mark);
        Ok(())
    }

    /// Closes the blocks that end before column `to`; white space and comments since `scan_mark` are read.
    fn unroll_indent(&mut self, to: isize, scan_mark: Mark) {
        if self.flow_level > 0 {
            return;
        }
        let mut mark = if C::KEPT { scan_mark } else { self.reader.mark };
        if C::KEPT {
            mark.index = mark.index.saturating_sub(1);
        }
        while self.indent > to {
            self.comments.block_end(&mut mark, self.indent);
            self.push(TokenKind::BlockEnd, mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn fetch_stream_start(&mut self) {
        self.simple_keys.push(SimpleKey::default());
        self.simple_key_allowed = true;
        self.stream_start_produced = true;
        let mark = self.reader.mark;
        self.push(TokenKind::StreamStart, mark);
    }

    fn fetch_stream_end(&mut self) -> Result<(), Error> {
        // Force a new line.
        let mark = &mut self.reader.mark;
        if mark.column != 0 {
            mark.column = 0;
            mark.line += 1;
        }
        let mark = *mark;
        self.unroll_indent(-1, mark);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        self.push(TokenKind::StreamEnd, mark);
        Ok(())
    }

    fn fetch_directive(&mut self) -> Result<(), Error> {
        self.unroll_indent(-1, self.reader.mark);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.reader.mark;
        let kind = self.scan_directive(start)?;
        self.push(kind, start);
        Ok(())
    }

    fn fetch_document_indicator(&mut self, kind: TokenKind<'a>) -> Result<(), Error> {
        self.unroll_indent(-1, self.reader.mark);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        self.push_indicator(kind, 3);
        Ok(())
    }

    /// Consumes an indicator of `width` one-byte characters and queues its token.
    fn push_indicator(&mut self, kind: TokenKind<'a>, width: usize) {
        let start = self.reader.mark;
        for _ in 0..width {
            self.reader.skip();
        }
        self.push(kind, start);
    }

    fn fetch_flow_start(&mut self, kind: TokenKind<'a>) -> Result<(), Error> {
        // `[` and `{` may start a simple key.
        self.save_simple_key()?;
        self.simple_keys.push(SimpleKey {
            token_number: self.tokens_parsed + self.tokens.len(),
            mark: self.reader.mark,
            ..SimpleKey::default()
        });
        self.flow_level += 1;
        if self.flow_level > MAX_FLOW_LEVEL {
            return Err(self.error_here(format!("exceeded max depth of {MAX_FLOW_LEVEL}")));
        }
        self.simple_key_allowed = true;
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: TokenKind<'a>) -> Result<(), Error> {
        self.remove_simple_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            if let Some(key) = self.simple_keys.pop() {
                self.forget_key(key.token_number);
            }
        }
        self.simple_key_allowed = false;
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn fetch_flow_entry(&mut self) -> Result<(), Error> {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.push_indicator(TokenKind::FlowEntry, 1);
        Ok(())
    }

    /// In the block context `-`, `?` and a `:` after a complex key open their collection and need a fresh place.
    fn open_block(&mut self, kind: TokenKind<'a>, problem: &str) -> Result<(), Error> {
        if self.flow_level > 0 {
            return Ok(());
        }
        if !self.simple_key_allowed {
            return Err(self.error_here(problem));
        }
        let mark = self.reader.mark;
        self.roll_indent(column(mark), None, kind, mark)
    }

    fn fetch_block_entry(&mut self) -> Result<(), Error> {
        self.open_block(
            TokenKind::BlockSequenceStart,
            "block sequence entries are not allowed in this context",
        )?;
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.push_indicator(TokenKind::BlockEntry, 1);
        Ok(())
    }

    fn fetch_key(&mut self) -> Result<(), Error> {
        self.open_block(
            TokenKind::BlockMappingStart,
            "mapping keys are not allowed in this context",
        )?;
        self.remove_simple_key()?;
        self.simple_key_allowed = self.flow_level == 0;
        self.push_indicator(TokenKind::Key, 1);
        Ok(())
    }

    fn fetch_value(&mut self) -> Result<(), Error> {
        let index = self.simple_keys.len().saturating_sub(1);
        if self.simple_key_is_valid(index)? {
            let key = self.simple_keys.get(index).copied().unwrap_or_default();
            self.insert(key.token_number, TokenKind::Key, key.mark);
            // In the block context the mapping may begin with this key.
            self.roll_indent(
                column(key.mark),
                Some(key.token_number),
                TokenKind::BlockMappingStart,
                key.mark,
            )?;
            if let Some(key) = self.simple_keys.get_mut(index) {
                key.possible = false;
            }
            self.forget_key(key.token_number);
            self.simple_key_allowed = false;
        } else {
            self.open_block(
                TokenKind::BlockMappingStart,
                "mapping values are not allowed in this context",
            )?;
            self.simple_key_allowed = self.flow_level == 0;
        }
        self.push_indicator(TokenKind::Value, 1);
        Ok(())
    }

    fn fetch_anchor(&mut self, alias: bool) -> Result<(), Error> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.reader.mark;
        let name = self.scan_anchor(start)?;
        self.push(
            if alias {
                TokenKind::Alias(name)
            } else {
                TokenKind::Anchor(name)
            },
            start,
        );
        Ok(())
    }

    fn fetch_tag(&mut self) -> Result<(), Error> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.reader.mark;
        let kind = self.scan_tag(start)?;
        self.push(kind, start);
        Ok(())
    }

    fn fetch_block_scalar(&mut self, literal: bool) -> Result<(), Error> {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        let start = self.reader.mark;
        let value = Cow::Owned(self.scan_block_scalar(start, literal)?);
        let style = if literal {
            ScalarStyle::Literal
        } else {
            ScalarStyle::Folded
        };
        self.push(TokenKind::Scalar { value, style }, start);
        Ok(())
    }

    fn fetch_flow_scalar(&mut self, single: bool) -> Result<(), Error> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.reader.mark;
        let value = self.scan_flow_scalar(start, single)?;
        let style = if single {
            ScalarStyle::SingleQuoted
        } else {
            ScalarStyle::DoubleQuoted
        };
        self.push(TokenKind::Scalar { value, style }, start);
        Ok(())
    }

    fn fetch_plain_scalar(&mut self) -> Result<(), Error> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.reader.mark;
        let value = self.scan_plain_scalar(start)?;
        let style = ScalarStyle::Plain;
        self.push(TokenKind::Scalar { value, style }, start);
        Ok(())
    }

    /// Eats white space and comments.
    fn scan_to_next_token(&mut self) -> Result<(), Error> {
        let scan_mark = self.reader.mark;
        loop {
            self.reader.cache(1)?;
            if self.reader.mark.column == 0 && self.reader.buffer_starts_with_bom() {
                self.reader.skip();
            }
            self.reader.cache(1)?;
            self.reader.skip_spaces();
            // Tabs may not begin a line in the block context, nor follow `-`, `?` or a `:` after a complex key.
            while self.reader.byte(0) == b' '
                || ((self.flow_level > 0 || !self.simple_key_allowed) && self.reader.byte(0) == b'\t')
            {
                self.reader.skip();
                self.reader.cache(1)?;
            }
            C::scan_block(self, scan_mark)?;
            if !self.reader.is_break(0) {
                return Ok(());
            }
            self.reader.cache(2)?;
            self.reader.skip_line();
            if self.flow_level == 0 {
                self.simple_key_allowed = true;
            }
        }
    }
}

fn column(mark: Mark) -> isize {
    isize::try_from(mark.column).unwrap_or(isize::MAX)
}

/// The parser asks for no token after the end of the stream; were it to, this is the answer.
fn end_of_tokens() -> Error {
    Error::yaml(None, "attempted to go past the end of stream; corrupted value?")
}
