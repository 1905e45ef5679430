//! Splits a template text into tokens. Follows Go's text/template/parse so closely because error texts and
//! line numbers depend on how far it has read.

use crate::unicode::{decode, decode_last, is_digit, is_letter};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Error,
    Bool,
    /// A single printable ASCII character such as a comma.
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    /// `.name`
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    Str,
    Text,
    /// `$` or `$name`
    Variable,
    Dot,
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl TokenKind {
    pub(crate) const fn is_keyword(self) -> bool {
        matches!(
            self,
            Self::Dot
                | Self::Block
                | Self::Break
                | Self::Continue
                | Self::Define
                | Self::Else
                | Self::End
                | Self::If
                | Self::Nil
                | Self::Range
                | Self::Template
                | Self::With
        )
    }
}

/// A token: a range of the text, or an error message.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Line at the start, from 1.
    pub(crate) line: usize,
    /// Text of an error.
    pub(crate) message: Option<Box<str>>,
}

const LEFT_DELIM: &[u8] = b"{{";
const RIGHT_DELIM: &[u8] = b"}}";
const LEFT_COMMENT: &[u8] = b"/*";
const RIGHT_COMMENT: &[u8] = b"*/";
/// The minus sign and the space beside it.
const TRIM_MARKER: usize = 2;

pub(crate) struct Lexer<'a> {
    input: &'a [u8],
    pos: usize,
    start: usize,
    at_eof: bool,
    paren_depth: usize,
    line: usize,
    start_line: usize,
    inside_action: bool,
    /// Whether `break` and `continue` are keywords; they are unless a function has that name.
    break_ok: bool,
    continue_ok: bool,
}

/// The next thing to do, or a token.
enum Step {
    Text,
    LeftDelim,
    Comment,
    Token(Token),
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(input: &'a [u8], break_ok: bool, continue_ok: bool) -> Self {
        Self {
            input,
            pos: 0,
            start: 0,
            at_eof: false,
            paren_depth: 0,
            line: 1,
            start_line: 1,
            inside_action: false,
            break_ok,
            continue_ok,
        }
    }

    fn rest(&self) -> &'a [u8] {
        self.input.get(self.pos..).unwrap_or_default()
    }

    fn pending(&self) -> &'a [u8] {
        self.input.get(self.start..self.pos).unwrap_or_default()
    }

    fn next(&mut self) -> Option<char> {
        if self.pos >= self.input.len() {
            self.at_eof = true;
            return None;
        }
        let (c, width) = decode(self.rest());
        self.pos += width;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn backup(&mut self) {
        if !self.at_eof && self.pos > 0 {
            let (c, width) = decode_last(self.input.get(..self.pos).unwrap_or_default());
            self.pos -= width;
            if c == '\n' {
                self.line -= 1;
            }
        }
    }

    fn peek(&mut self) -> Option<char> {
        let c = self.next();
        self.backup();
        c
    }

    fn token(&mut self, kind: TokenKind) -> Token {
        let token = Token {
            kind,
            start: self.start,
            end: self.pos,
            line: self.start_line,
            message: None,
        };
        self.start = self.pos;
        self.start_line = self.line;
        token
    }

    fn ignore(&mut self) {
        self.line += newlines(self.pending());
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn accept(&mut self, valid: &str) -> bool {
        if self.next().is_some_and(|c| valid.contains(c)) {
            return true;
        }
        self.backup();
        false
    }

    fn accept_run(&mut self, valid: &str) {
        while self.next().is_some_and(|c| valid.contains(c)) {}
        self.backup();
    }

    fn error(&mut self, message: impl Into<String>) -> Token {
        let token = Token {
            kind: TokenKind::Error,
            start: self.start,
            end: self.start,
            line: self.start_line,
            message: Some(message.into().into()),
        };
        self.start = 0;
        self.pos = 0;
        self.input = &[];
        token
    }

    /// The next token; after the end, end tokens for ever.
    pub(crate) fn next_token(&mut self) -> Token {
        if self.inside_action {
            return self.inside_action();
        }
        let mut step = Step::Text;
        loop {
            step = match step {
                Step::Text => self.text(),
                Step::LeftDelim => self.left_delim(),
                Step::Comment => self.comment(),
                Step::Token(token) => return token,
            }
        }
    }

    fn text(&mut self) -> Step {
        let Some(offset) = find(self.rest(), LEFT_DELIM) else {
            self.pos = self.input.len();
            if self.pos > self.start {
                self.line += newlines(self.pending());
                return Step::Token(self.token(TokenKind::Text));
            }
            return Step::Token(self.token(TokenKind::Eof));
        };
        if offset > 0 {
            self.pos += offset;
            let after = self.input.get(self.pos + LEFT_DELIM.len()..).unwrap_or_default();
            let trim = if has_left_trim_marker(after) {
                right_trim_len(self.pending())
            } else {
                0
            };
            self.pos -= trim;
            self.line += newlines(self.pending());
            let token = self.token(TokenKind::Text);
            self.pos += trim;
            self.ignore();
            if token.end > token.start {
                return Step::Token(token);
            }
        }
        Step::LeftDelim
    }

    fn left_delim(&mut self) -> Step {
        self.pos += LEFT_DELIM.len();
        let after_marker = if has_left_trim_marker(self.rest()) {
            TRIM_MARKER
        } else {
            0
        };
        if self
            .rest()
            .get(after_marker..)
            .is_some_and(|rest| rest.starts_with(LEFT_COMMENT))
        {
            self.pos += after_marker;
            self.ignore();
            return Step::Comment;
        }
        let token = self.token(TokenKind::LeftDelim);
        self.inside_action = true;
        self.pos += after_marker;
        self.ignore();
        self.paren_depth = 0;
        Step::Token(token)
    }

    fn comment(&mut self) -> Step {
        self.pos += LEFT_COMMENT.len();
        let Some(offset) = find(self.rest(), RIGHT_COMMENT) else {
            return Step::Token(self.error("unclosed comment"));
        };
        self.pos += offset + RIGHT_COMMENT.len();
        let Some(trim) = self.at_right_delim() else {
            return Step::Token(self.error("comment ends before closing delimiter"));
        };
        self.line += newlines(self.pending());
        self.start = self.pos;
        self.start_line = self.line;
        if trim {
            self.pos += TRIM_MARKER;
        }
        self.pos += RIGHT_DELIM.len();
        if trim {
            self.pos += left_trim_len(self.rest());
        }
        self.ignore();
        Step::Text
    }

    /// Whether the right delimiter is next, and whether it trims.
    fn at_right_delim(&self) -> Option<bool> {
        let rest = self.rest();
        if has_right_trim_marker(rest)
            && rest
                .get(TRIM_MARKER..)
                .is_some_and(|r| r.starts_with(RIGHT_DELIM))
        {
            return Some(true);
        }
        rest.starts_with(RIGHT_DELIM).then_some(false)
    }

    fn right_delim(&mut self) -> Token {
        let trim = self.at_right_delim() == Some(true);
        if trim {
            self.pos += TRIM_MARKER;
            self.ignore();
        }
        self.pos += RIGHT_DELIM.len();
        let token = self.token(TokenKind::RightDelim);
        if trim {
            self.pos += left_trim_len(self.rest());
            self.ignore();
        }
        self.inside_action = false;
        token
    }

    fn inside_action(&mut self) -> Token {
        if self.at_right_delim().is_some() {
            if self.paren_depth == 0 {
                return self.right_delim();
            }
            return self.error("unclosed left paren");
        }
        let Some(c) = self.next() else {
            return self.error("unclosed action");
        };
        match c {
            ' ' | '\t' | '\r' | '\n' => {
                // Put the space back: " -}}" may follow.
                self.backup();
                self.space()
            }
            '=' => self.token(TokenKind::Assign),
            ':' => {
                if self.next() != Some('=') {
                    return self.error("expected :=");
                }
                self.token(TokenKind::Declare)
            }
            '|' => self.token(TokenKind::Pipe),
            '"' => self.quoted(TokenKind::Str, '"', "unterminated quoted string"),
            '`' => self.raw_quoted(),
            '$' => {
                if self.at_terminator() {
                    return self.token(TokenKind::Variable);
                }
                self.field_or_variable(TokenKind::Variable)
            }
            '\'' => self.quoted(TokenKind::CharConstant, '\'', "unterminated character constant"),
            '.' if self.rest().first().is_some_and(|next| !next.is_ascii_digit()) => {
                self.field_or_variable(TokenKind::Field)
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.backup();
                self.number()
            }
            '(' => {
                self.paren_depth += 1;
                self.token(TokenKind::LeftParen)
            }
            ')' => match self.paren_depth.checked_sub(1) {
                Some(depth) => {
                    self.paren_depth = depth;
                    self.token(TokenKind::RightParen)
                }
                None => self.error("unexpected right paren"),
            },
            c if is_alphanumeric(c) => {
                self.backup();
                self.identifier()
            }
            '!'..='~' => self.token(TokenKind::Char),
            c => {
                let shown = crate::fmt::quote::unicode(c);
                self.error(format!("unrecognized character in action: {shown}"))
            }
        }
    }

    fn space(&mut self) -> Token {
        let mut spaces = 0;
        while self.peek().is_some_and(is_space) {
            self.next();
            spaces += 1;
        }
        // A closing delimiter with trim marker begins with the last of these spaces.
        let last = self.input.get(self.pos.saturating_sub(1)..).unwrap_or_default();
        if has_right_trim_marker(last)
            && last
                .get(TRIM_MARKER..)
                .is_some_and(|r| r.starts_with(RIGHT_DELIM))
        {
            self.backup();
            if spaces == 1 {
                return self.right_delim();
            }
        }
        self.token(TokenKind::Space)
    }

    fn identifier(&mut self) -> Token {
        loop {
            let c = self.next();
            if c.is_some_and(is_alphanumeric) {
                continue;
            }
            self.backup();
            if !self.at_terminator() {
                return self.bad_character(c);
            }
            let kind = match self.pending() {
                b"block" => TokenKind::Block,
                b"break" if self.break_ok => TokenKind::Break,
                b"continue" if self.continue_ok => TokenKind::Continue,
                b"define" => TokenKind::Define,
                b"else" => TokenKind::Else,
                b"end" => TokenKind::End,
                b"if" => TokenKind::If,
                b"range" => TokenKind::Range,
                b"nil" => TokenKind::Nil,
                b"template" => TokenKind::Template,
                b"with" => TokenKind::With,
                b"true" | b"false" => TokenKind::Bool,
                _ => TokenKind::Identifier,
            };
            return self.token(kind);
        }
    }

    fn bad_character(&mut self, c: Option<char>) -> Token {
        let shown = c.map_or_else(|| "U+FFFFFFFFFFFFFFFF".to_owned(), crate::fmt::quote::unicode);
        self.error(format!("bad character {shown}"))
    }

    /// The `.` or `$` has been read.
    fn field_or_variable(&mut self, kind: TokenKind) -> Token {
        if self.at_terminator() {
            let kind = if kind == TokenKind::Variable {
                kind
            } else {
                TokenKind::Dot
            };
            return self.token(kind);
        }
        let mut c = self.next();
        while c.is_some_and(is_alphanumeric) {
            c = self.next();
        }
        self.backup();
        if !self.at_terminator() {
            return self.bad_character(c);
        }
        self.token(kind)
    }

    fn at_terminator(&mut self) -> bool {
        match self.peek() {
            None | Some(' ' | '\t' | '\r' | '\n' | '.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(_) => self.rest().starts_with(RIGHT_DELIM),
        }
    }

    fn quoted(&mut self, kind: TokenKind, quote: char, unterminated: &str) -> Token {
        loop {
            match self.next() {
                Some('\\') => {
                    if matches!(self.next(), None | Some('\n')) {
                        return self.error(unterminated);
                    }
                }
                None | Some('\n') => return self.error(unterminated),
                Some(c) if c == quote => return self.token(kind),
                Some(_) => {}
            }
        }
    }

    fn raw_quoted(&mut self) -> Token {
        loop {
            match self.next() {
                None => return self.error("unterminated raw quoted string"),
                Some('`') => return self.token(TokenKind::RawString),
                Some(_) => {}
            }
        }
    }

    fn number(&mut self) -> Token {
        if !self.scan_number() {
            return self.bad_number();
        }
        if matches!(self.peek(), Some('+' | '-')) {
            // A complex number: 1+2i, no spaces.
            if !self.scan_number() || self.pending().last() != Some(&b'i') {
                return self.bad_number();
            }
            return self.token(TokenKind::Complex);
        }
        self.token(TokenKind::Number)
    }

    fn bad_number(&mut self) -> Token {
        let shown = crate::fmt::quote::bytes(self.pending());
        self.error(format!("bad number syntax: {shown}"))
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        if digits.len() == 11 && self.accept("eE") {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        if digits.len() == 23 && self.accept("pP") {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || is_letter(c) || is_digit(c)
}

fn has_left_trim_marker(text: &[u8]) -> bool {
    matches!(text, [b'-', b' ' | b'\t' | b'\r' | b'\n', ..])
}

fn has_right_trim_marker(text: &[u8]) -> bool {
    matches!(text, [b' ' | b'\t' | b'\r' | b'\n', b'-', ..])
}

fn right_trim_len(text: &[u8]) -> usize {
    text.iter()
        .rev()
        .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
        .count()
}

fn left_trim_len(text: &[u8]) -> usize {
    text.iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
        .count()
}

fn newlines(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, needle)
}
