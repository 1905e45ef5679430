//! Comments as go-yaml v3 finds them and gives them to nodes: `yaml_parser_scan_comments`,
//! `yaml_parser_scan_line_comment` and `yaml_parser_unfold_comments` of `go.yaml.in/yaml` v3.0.5.
//!
//! A comment is the *head* of the node below it, the *line* comment of the node before it, or the *foot* of the node
//! above it; which, is told by empty lines and by indentation.

use super::Comments;
use crate::Error;
use crate::node::NodeComments;
use crate::scanner::{Mark, Scanner, Token, TokenKind, column};

/// How far go-yaml looks for a comment, in bytes, before it gives up.
const LOOK_AHEAD: usize = 512;

/// Comments found so far, and those that are due with the next event.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    found: Vec<Comment>,
    /// So many of them were handed on.
    unfolded: usize,
    due: NodeComments,
    /// The head of an item whose first entry begins next.
    stem: Option<String>,
}

/// A comment and where it belongs.
#[derive(Debug, Default)]
struct Comment {
    /// Where the white space before it began.
    scan: Mark,
    /// The token that it comes with.
    token: Mark,
    start: Mark,
    end: Mark,
    head: String,
    line: String,
    foot: String,
}

impl Comments for Kept {
    const KEPT: bool = true;
    const LOOKAHEAD: usize = 3;
    type Attached = NodeComments;

    fn scan_line(scanner: &mut Scanner<'_, Self>, of: Mark) -> Result<(), Error> {
        if scanner.reader.breaks_behind() > 0 {
            return Ok(());
        }
        let mut ahead = 0;
        scanner.reader.cache(1)?;
        while ahead < LOOK_AHEAD && scanner.reader.is_blank(ahead) {
            ahead += 1;
            scanner.reader.cache(ahead + 1)?;
        }
        if ahead == LOOK_AHEAD || scanner.reader.byte(ahead) != b'#' {
            return Ok(());
        }
        for _ in 0..ahead {
            scanner.reader.skip();
        }
        let start = scanner.reader.mark;
        let mut line = String::new();
        take_line(scanner, &mut line)?;
        scanner.comments.found.push(Comment {
            token: of,
            start,
            line,
            ..Comment::default()
        });
        Ok(())
    }

    fn scan_block(scanner: &mut Scanner<'_, Self>, scan_mark: Mark) -> Result<(), Error> {
        turn_line_into_head(scanner);
        if scanner.reader.byte(0) == b'#' {
            Search::new(scanner, scan_mark).run(scanner)?;
        }
        Ok(())
    }

    fn block_end(&self, mark: &mut Mark, indent: isize) {
        let mut stop = mark.index;
        for comment in self.found.iter().rev() {
            if comment.end.index < stop {
                break;
            }
            // Columns of comments count from 1.
            if column(comment.start) == indent + 1 {
                *mark = comment.start;
            }
            stop = comment.scan.index;
        }
    }

    fn unfold(&mut self, token: &Token<'_>) {
        while let Some(comment) = self.found.get_mut(self.unfolded)
            && token.start.index >= comment.token.index
        {
            if !comment.head.is_empty() && token.kind == TokenKind::BlockEnd {
                // It is the head of what follows the end.
                break;
            }
            for (part, due) in [
                (&comment.head, &mut self.due.head),
                (&comment.foot, &mut self.due.foot),
                (&comment.line, &mut self.due.line),
            ] {
                if !part.is_empty() && !due.is_empty() {
                    due.push('\n');
                }
                due.push_str(part);
            }
            *comment = Comment::default();
            self.unfolded += 1;
        }
    }

    fn head_length(&self) -> usize {
        self.due.head.len()
    }

    fn split_stem(&mut self, length: usize) {
        let head = std::mem::take(&mut self.due.head);
        // A line break stands between the two.
        self.due.head = head.get(length + 1..).unwrap_or("").to_owned();
        self.stem = head.get(..length).map(str::to_owned);
    }

    fn take_stem(&mut self) -> NodeComments {
        NodeComments {
            head: self.stem.take().unwrap_or_default(),
            ..NodeComments::default()
        }
    }

    /// All before the last empty line.
    fn take_document_head(&mut self) -> NodeComments {
        let head = &self.due.head;
        let (of_document, rest) = if let Some(before) = head.strip_suffix('\n') {
            (before, "")
        } else {
            match head.rsplit_once("\n\n") {
                // A break that the text begins with ends no line.
                Some((before, rest)) => (before, rest),
                None => return NodeComments::default(),
            }
        };
        let attached = NodeComments {
            head: of_document.to_owned(),
            ..NodeComments::default()
        };
        self.due.head = rest.to_owned();
        attached
    }

    fn take(&mut self) -> NodeComments {
        self.stem = None;
        std::mem::take(&mut self.due)
    }
}

/// Takes the rest of the line.
fn take_line(scanner: &mut Scanner<'_, Kept>, into: &mut String) -> Result<(), Error> {
    let from = scanner.reader.position();
    scanner.reader.skip_to_line_end()?;
    into.push_str(scanner.reader.slice(from, scanner.reader.position()));
    Ok(())
}

/// What looked like the line comment of a `-` turns out to be the head of the item below it.
fn turn_line_into_head(scanner: &mut Scanner<'_, Kept>) {
    let count = scanner.tokens.len();
    let begins_sequence = |back: usize, kind: &TokenKind<'_>| {
        let token = count.checked_sub(back).and_then(|at| scanner.tokens.get(at));
        token.is_some_and(|token| token.kind == *kind)
    };
    if !begins_sequence(2, &TokenKind::BlockSequenceStart)
        || !begins_sequence(1, &TokenKind::BlockEntry)
        || scanner.reader.is_break(0)
    {
        return;
    }
    let here = scanner.reader.mark;
    if let Some(comment) = scanner.comments.found.last_mut()
        && !comment.line.is_empty()
    {
        comment.head = std::mem::take(&mut comment.line);
        if comment.start.line + 1 == here.line {
            comment.token = here;
        }
    }
}

/// The search for comments between two tokens.
struct Search {
    scan: Mark,
    token: Mark,
    /// Whether the token before is `:`.
    after_value: bool,
    /// Where the comment at hand begins; columns count from 1.
    start: Mark,
    text: String,
    next_indent: isize,
    /// The last line was empty.
    recent_empty: bool,
    /// No line was empty yet.
    first_empty: bool,
    /// The line that a comment must begin in to be the foot of what stands before it.
    foot_line: Option<usize>,
    line: usize,
    column: usize,
    /// Bytes from where the scanner stands to the one looked at.
    ahead: usize,
}

impl Search {
    fn new(scanner: &Scanner<'_, Kept>, scan: Mark) -> Self {
        let mut tokens = scanner.tokens.iter().rev();
        let last = tokens.next();
        let last = match (last, tokens.next()) {
            (Some(last), Some(before)) if last.kind == TokenKind::FlowEntry => Some(before),
            _ => last,
        };
        let here = scanner.reader.mark;
        let breaks = scanner.reader.breaks_behind();
        let on_line_of_content = breaks == 0 && here.column > 1;
        Self {
            scan,
            token: last.map_or(here, |token| token.start),
            after_value: last.is_some_and(|token| token.kind == TokenKind::Value),
            start: Mark::default(),
            text: String::new(),
            next_indent: scanner.indent.max(0),
            recent_empty: false,
            first_empty: breaks <= 1,
            foot_line: (scan.line > 0)
                .then(|| (here.line + 1 + usize::from(on_line_of_content)).saturating_sub(breaks)),
            line: here.line,
            column: here.column,
            ahead: 0,
        }
    }

    fn run(mut self, scanner: &mut Scanner<'_, Kept>) -> Result<(), Error> {
        while self.ahead < LOOK_AHEAD {
            scanner.reader.cache(self.ahead + 1)?;
            self.column += 1;
            if scanner.reader.is_blank(self.ahead) {
                self.ahead += 1;
                continue;
            }
            let byte = scanner.reader.byte(self.ahead);
            let closes_flow = scanner.flow_level > 0 && matches!(byte, b']' | b'}');
            if closes_flow || scanner.reader.is_breakz(self.ahead) {
                self.end_of_line(scanner, closes_flow);
                if !scanner.reader.is_break(self.ahead) {
                    break;
                }
                self.first_empty = false;
                self.recent_empty = true;
                self.column = 0;
                self.line += 1;
                self.ahead += 1;
                continue;
            }
            let moved_left = from_zero(self.column) < self.next_indent && self.column != self.start.column;
            if !self.text.is_empty() && moved_left {
                // At another indentation it is the foot of what stands before, not the head of what comes.
                self.push_foot(scanner);
            }
            if byte != b'#' {
                break;
            }
            self.take_comment(scanner)?;
        }
        if !self.text.is_empty() {
            let mut end = self.here(scanner);
            end.index = end.index.saturating_sub(1);
            scanner.comments.found.push(Comment {
                scan: self.scan,
                token: self.start,
                start: self.start,
                end,
                head: self.text,
                ..Comment::default()
            });
        }
        Ok(())
    }

    /// One line of a comment.
    fn take_comment(&mut self, scanner: &mut Scanner<'_, Kept>) -> Result<(), Error> {
        if self.text.is_empty() {
            self.start = self.here(scanner);
        } else {
            self.text.push('\n');
        }
        self.recent_empty = false;
        let seen = scanner.reader.mark.index + self.ahead;
        while scanner.reader.mark.index < seen {
            scanner.reader.cache(2)?;
            if scanner.reader.is_break(0) {
                scanner.reader.skip_line();
            } else {
                scanner.reader.skip();
            }
        }
        take_line(scanner, &mut self.text)?;
        // The break after it was looked at.
        self.ahead = 1;
        self.column = 0;
        self.line = scanner.reader.mark.line;
        self.next_indent = scanner.indent.max(0);
        Ok(())
    }

    /// The first empty line, or the end of a collection in brackets, tells a foot from a head.
    fn end_of_line(&mut self, scanner: &mut Scanner<'_, Kept>, closes_flow: bool) {
        if self.recent_empty && !closes_flow {
            return;
        }
        let left = from_zero(self.start.column) < self.next_indent;
        let is_foot = self.foot_line == Some(self.start.line) && !self.after_value || left;
        if closes_flow || self.first_empty && is_foot {
            if !self.text.is_empty() {
                if left {
                    // It has nothing to do with the token before.
                    self.token = self.start;
                }
                self.push_foot(scanner);
            }
        } else if !self.text.is_empty() && scanner.reader.byte(self.ahead) != 0 {
            self.text.push('\n');
        }
    }

    fn push_foot(&mut self, scanner: &mut Scanner<'_, Kept>) {
        let end = self.here(scanner);
        scanner.comments.found.push(Comment {
            scan: self.scan,
            token: self.token,
            start: self.start,
            end,
            foot: std::mem::take(&mut self.text),
            ..Comment::default()
        });
        self.scan = end;
        self.token = end;
    }

    /// The place looked at.
    fn here(&self, scanner: &Scanner<'_, Kept>) -> Mark {
        Mark {
            index: scanner.reader.mark.index + self.ahead,
            line: self.line,
            column: self.column,
        }
    }
}

/// A column that counts from 1, counted from 0.
fn from_zero(column: usize) -> isize {
    isize::try_from(column).unwrap_or(isize::MAX) - 1
}
