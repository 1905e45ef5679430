//! Which style a text can be written in, and writing it.

pub(super) use crate::emit::scalar::{has_break, is_break};
use crate::emit::scalar::{is_printable, push_escape};

use super::{Emitter, INDENT, Place};
use crate::node::ScalarStyle;

/// What the characters of a text allow.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a style of its own")]
pub(super) struct Analysis {
    multiline: bool,
    flow_plain_allowed: bool,
    block_plain_allowed: bool,
    single_quoted_allowed: bool,
    block_allowed: bool,
}

impl Analysis {
    pub(super) fn of(text: &str) -> Self {
        if text.is_empty() {
            return Analysis {
                multiline: false,
                flow_plain_allowed: false,
                block_plain_allowed: true,
                single_quoted_allowed: true,
                block_allowed: false,
            };
        }
        let mut block_indicators = text.starts_with("---") || text.starts_with("...");
        let mut flow_indicators = block_indicators;
        let (mut line_breaks, mut special, mut tabs) = (false, false, false);
        let (mut break_space, mut space_break) = (false, false);
        let mut preceded_by_whitespace = true;
        let (mut previous_space, mut previous_break) = (false, false);
        let mut characters = text.chars().peekable();
        let mut first = true;
        while let Some(c) = characters.next() {
            let next = characters.peek().copied();
            let followed_by_whitespace = next.is_none_or(|n| n == ' ' || n == '\t');
            match c {
                '#' if first || preceded_by_whitespace => {
                    flow_indicators = true;
                    block_indicators = true;
                }
                ',' | '[' | ']' | '{' | '}' => {
                    flow_indicators = true;
                    block_indicators |= first;
                }
                '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' if first => {
                    flow_indicators = true;
                    block_indicators = true;
                }
                '?' => {
                    flow_indicators = true;
                    block_indicators |= first && followed_by_whitespace;
                }
                ':' => {
                    flow_indicators = true;
                    block_indicators |= followed_by_whitespace;
                }
                '-' if first && followed_by_whitespace => {
                    flow_indicators = true;
                    block_indicators = true;
                }
                _ => {}
            }
            if c == '\t' {
                tabs = true;
            } else if !is_printable(c) {
                special = true;
            }
            if is_break(c) {
                line_breaks = true;
                space_break |= previous_space;
            }
            break_space |= c == ' ' && previous_break;
            previous_space = c == ' ';
            previous_break = is_break(c);
            preceded_by_whitespace = c == ' ' || c == '\t' || c == '\0' || is_break(c);
            first = false;
        }
        let at_edge = |c: char| c == ' ' || is_break(c);
        let edges = text.starts_with(at_edge) || text.ends_with(at_edge);
        let hard = space_break || tabs || special;
        let plain_allowed = !(edges || break_space || hard || line_breaks);
        Analysis {
            multiline: line_breaks,
            flow_plain_allowed: plain_allowed && !flow_indicators,
            block_plain_allowed: plain_allowed && !block_indicators,
            single_quoted_allowed: !(break_space || hard),
            block_allowed: !(text.ends_with(' ') || space_break || special),
        }
    }

    /// The wanted style, or the next best that the text allows. A plain text of several lines (`has_line_feed`) becomes
    /// a literal.
    pub(super) fn style(
        self,
        wanted: ScalarStyle,
        text: &str,
        has_line_feed: bool,
        in_flow: bool,
        place: Place,
    ) -> ScalarStyle {
        let simple_key = place == Place::SimpleKey;
        let mut style = wanted;
        if style == ScalarStyle::Plain && has_line_feed {
            style = ScalarStyle::Literal;
        }
        if simple_key && self.multiline {
            style = ScalarStyle::DoubleQuoted;
        }
        if style == ScalarStyle::Plain {
            let allowed = if in_flow {
                self.flow_plain_allowed
            } else {
                self.block_plain_allowed
            };
            if !allowed || text.is_empty() && (in_flow || simple_key) {
                style = ScalarStyle::SingleQuoted;
            }
        }
        if style == ScalarStyle::SingleQuoted && !self.single_quoted_allowed {
            style = ScalarStyle::DoubleQuoted;
        }
        let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        if block && (!self.block_allowed || in_flow || simple_key) {
            style = ScalarStyle::DoubleQuoted;
        }
        style
    }
}

impl Emitter {
    pub(super) fn write_scalar(&mut self, text: &str, style: ScalarStyle) {
        match style {
            ScalarStyle::Plain => self.write_plain(text),
            ScalarStyle::SingleQuoted => self.write_single_quoted(text),
            ScalarStyle::DoubleQuoted => self.write_double_quoted(text),
            ScalarStyle::Literal => self.write_literal(text),
            ScalarStyle::Folded => self.write_folded(text),
        }
    }

    /// A plain text has no breaks.
    fn write_plain(&mut self, text: &str) {
        if text.is_empty() {
            self.cursor.indention = false;
            return;
        }
        self.cursor.space();
        self.cursor.text(text);
    }

    fn write_single_quoted(&mut self, text: &str) {
        self.cursor.indicator("'", true, false, false);
        let mut breaks = false;
        for c in text.chars() {
            if is_break(c) {
                if !breaks && c == '\n' {
                    self.cursor.put_break();
                }
                self.cursor.write_break(c);
                breaks = true;
                continue;
            }
            if breaks && c != ' ' {
                self.cursor.write_indent();
            }
            if c == '\'' {
                self.cursor.put(c);
            }
            self.cursor.put(c);
            if c != ' ' {
                self.cursor.indention = false;
                breaks = false;
            }
        }
        self.cursor.indicator("'", false, false, false);
        self.cursor.indention = false;
    }

    fn write_double_quoted(&mut self, text: &str) {
        self.cursor.indicator("\"", true, false, false);
        // go-yaml looks for the byte order mark at the start of the string, whatever character it is at.
        let after_bom = text.starts_with('\u{feff}');
        for c in text.chars() {
            if !is_printable(c) || after_bom || is_break(c) || c == '"' || c == '\\' {
                self.cursor.column += push_escape(&mut self.cursor.out, c);
            } else {
                self.cursor.put(c);
            }
        }
        self.cursor.indicator("\"", false, false, false);
        self.cursor.indention = false;
    }

    fn write_literal(&mut self, text: &str) {
        self.cursor.indicator("|", true, false, false);
        self.write_block_hints(text);
        self.write_line_comment(true);
        self.cursor.whitespace = true;
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.cursor.write_break(c);
                breaks = true;
            } else {
                if breaks {
                    self.cursor.write_indent();
                }
                self.cursor.put(c);
                self.cursor.indention = false;
                breaks = false;
            }
        }
    }

    fn write_folded(&mut self, text: &str) {
        self.cursor.indicator(">", true, false, false);
        self.write_block_hints(text);
        self.write_line_comment(true);
        self.cursor.whitespace = true;
        // go-yaml means to look behind the breaks at hand, but looks at the beginning of the text.
        let begins_with_blank = text
            .trim_start_matches(is_break)
            .chars()
            .next()
            .is_none_or(|c| c == ' ' || c == '\t' || c == '\0');
        let (mut breaks, mut leading_spaces) = (true, true);
        for c in text.chars() {
            if is_break(c) {
                if !breaks && !leading_spaces && c == '\n' && !begins_with_blank {
                    self.cursor.put_break();
                }
                self.cursor.write_break(c);
                breaks = true;
            } else {
                if breaks {
                    self.cursor.write_indent();
                    leading_spaces = c == ' ' || c == '\t';
                }
                self.cursor.put(c);
                self.cursor.indention = false;
                breaks = false;
            }
        }
    }

    /// The indentation, if the text begins with white space, and what becomes of the breaks at its end.
    fn write_block_hints(&mut self, text: &str) {
        if text.starts_with(' ') || text.starts_with(is_break) {
            self.cursor.indicator(&INDENT.to_string(), false, false, false);
        }
        let mut from_end = text.chars().rev();
        match from_end.next() {
            Some(last) if is_break(last) => {
                if from_end.next().is_none_or(is_break) {
                    self.cursor.indicator("+", false, false, false);
                }
            }
            _ => self.cursor.indicator("-", false, false, false),
        }
    }
}
