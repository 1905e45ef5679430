//! Which style a string can be written in, and writing it.

use super::{Emitter, INDENT, V2_WIDTH};
use crate::resolve::Dialect;

/// How a string stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// A block after `|`.
    Literal,
}

/// What the characters of a string allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Analysis {
    multiline: bool,
    plain_allowed: bool,
    single_quoted_allowed: bool,
    block_allowed: bool,
    /// Holds a character that a reader of YAML changes or refuses inside a JSON string.
    pub(super) detour: bool,
}

/// Line breaks of YAML 1.1: CR, LF, NEL, LS, PS.
pub(crate) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

pub(crate) fn has_break(text: &str) -> bool {
    text.contains(is_break)
}

/// What go-yaml writes unescaped. It leaves out everything above U+FFFF.
pub(crate) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// Characters that stand raw in Go's JSON but that a reader of YAML refuses, or folds as a line break (NEL).
fn is_changed_by_json(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Writes what stands for a character between double quotes; tells how many characters that are.
pub(crate) fn push_escape(out: &mut String, c: char) -> usize {
    let letter = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            let code = u32::from(c);
            let escaped = match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            };
            out.push_str(&escaped);
            return escaped.len();
        }
    };
    out.push('\\');
    out.push(letter);
    2
}

impl Analysis {
    pub(super) fn of(text: &str, dialect: Dialect) -> Self {
        if text.is_empty() {
            return Analysis {
                multiline: false,
                plain_allowed: true,
                single_quoted_allowed: true,
                block_allowed: false,
                detour: false,
            };
        }
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut line_breaks, mut special, mut tabs, mut detour) = (false, false, false, false);
        let (mut leading_space, mut leading_break) = (false, false);
        let (mut trailing_space, mut trailing_break) = (false, false);
        let (mut break_space, mut space_break) = (false, false);
        let mut preceded_by_whitespace = true;
        let (mut previous_space, mut previous_break) = (false, false);
        let mut characters = text.chars().peekable();
        let mut first = true;
        while let Some(c) = characters.next() {
            let next = characters.peek().copied();
            let followed_by_whitespace = next.is_none_or(|n| n == ' ' || n == '\t');
            match c {
                '#' if first || preceded_by_whitespace => indicators = true,
                ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`'
                    if first =>
                {
                    indicators = true;
                }
                '?' | '-' if first && followed_by_whitespace => indicators = true,
                ':' if followed_by_whitespace => indicators = true,
                _ => {}
            }
            if c == '\t' && dialect == Dialect::V3 {
                tabs = true;
            } else if !is_printable(c) {
                special = true;
                detour |= is_changed_by_json(c);
            }
            if c == ' ' {
                leading_space |= first;
                trailing_space |= next.is_none();
                break_space |= previous_break;
                previous_space = true;
                previous_break = false;
            } else if is_break(c) {
                line_breaks = true;
                leading_break |= first;
                trailing_break |= next.is_none();
                space_break |= previous_space;
                previous_space = false;
                previous_break = true;
            } else {
                previous_space = false;
                previous_break = false;
            }
            preceded_by_whitespace = c == ' ' || c == '\t' || c == '\0' || is_break(c);
            first = false;
        }
        let edges = leading_space || leading_break || trailing_space || trailing_break;
        let hard = space_break || tabs || special;
        Analysis {
            multiline: line_breaks,
            plain_allowed: !(edges || break_space || hard || line_breaks || indicators),
            single_quoted_allowed: !(break_space || hard),
            block_allowed: !(trailing_space || space_break || special),
            detour,
        }
    }

    /// The wanted style, or the next best that the string allows.
    pub(super) fn style(self, wanted: Style, text: &str, simple_key: bool) -> Style {
        let mut style = wanted;
        if simple_key && self.multiline {
            style = Style::DoubleQuoted;
        }
        if style == Style::Plain && (!self.plain_allowed || text.is_empty() && simple_key) {
            style = Style::SingleQuoted;
        }
        if style == Style::SingleQuoted && !self.single_quoted_allowed {
            style = Style::DoubleQuoted;
        }
        if style == Style::Literal && (!self.block_allowed || simple_key) {
            style = Style::DoubleQuoted;
        }
        style
    }
}

impl Emitter {
    fn is_over_width(&self) -> bool {
        self.column > V2_WIDTH
    }

    /// A break of the text itself: a line feed ends the line as ours do, others stand as they are.
    fn write_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
    }

    pub(super) fn write_plain(&mut self, text: &str, may_fold: bool) {
        self.space();
        self.write_foldable(text, may_fold, None);
        self.whitespace = false;
        self.indention = false;
    }

    pub(super) fn write_single_quoted(&mut self, text: &str, may_fold: bool) {
        self.write_indicator("'", true, false);
        self.write_foldable(text, may_fold, Some('\''));
        self.write_indicator("'", false, false);
    }

    /// Plain or single-quoted content. A blank past the width, if no other blank is next to it, becomes a line break.
    fn write_foldable(&mut self, text: &str, may_fold: bool, quote: Option<char>) {
        // A short text without breaks needs no look at each character.
        if quote.is_none() && (!may_fold || self.column + text.len() <= V2_WIDTH) && !has_break(text) {
            self.out.push_str(text);
            self.column += text.chars().count();
            return;
        }
        let mut characters = text.chars().peekable();
        let (mut first, mut spaces, mut breaks) = (true, false, false);
        while let Some(c) = characters.next() {
            let next = characters.peek().copied();
            if c == ' ' {
                let inside = quote.is_none() || !first && next.is_some();
                if may_fold && !spaces && self.is_over_width() && inside && next != Some(' ') {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if Some(c) == quote {
                    self.put(c);
                }
                self.put(c);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
            first = false;
        }
    }

    pub(super) fn write_double_quoted(&mut self, text: &str, may_fold: bool) {
        self.write_indicator("\"", true, false);
        // go-yaml looks for the byte order mark at the start of the string, whatever character it is at.
        let after_bom = text.starts_with('\u{feff}');
        let mut characters = text.chars().peekable();
        let (mut first, mut spaces) = (true, false);
        while let Some(c) = characters.next() {
            if !is_printable(c) || after_bom || is_break(c) || c == '"' || c == '\\' {
                self.write_escape(c);
                spaces = false;
            } else if c == ' ' {
                let next = characters.peek().copied();
                if may_fold && !spaces && self.is_over_width() && !first && next.is_some() {
                    self.write_indent();
                    if next == Some(' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
            first = false;
        }
        self.write_indicator("\"", false, false);
    }

    fn write_escape(&mut self, c: char) {
        self.column += push_escape(&mut self.out, c);
    }

    pub(super) fn write_literal(&mut self, text: &str) {
        self.write_indicator("|", true, false);
        self.write_block_hints(text);
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
    }

    /// The indentation, if the text begins with white space, and what becomes of the breaks at its end.
    fn write_block_hints(&mut self, text: &str) {
        if text.starts_with([' ']) || text.starts_with(is_break) {
            self.write_indicator(&INDENT.to_string(), false, false);
        }
        let mut from_end = text.chars().rev();
        match from_end.next() {
            Some(last) if is_break(last) => {
                if from_end.next().is_none_or(is_break) {
                    self.write_indicator("+", false, false);
                }
            }
            _ => self.write_indicator("-", false, false),
        }
    }
}
