//! Scalars: block, quoted and plain. A scalar that stands in the text as it is stays borrowed.

use std::borrow::Cow;

use super::{Comments, Mark, Scanner, column};
use crate::Error;

/// What happens to the line breaks at the end of a block scalar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    /// `-`: none stays.
    Strip,
    /// One stays.
    Clip,
    /// `+`: all stay.
    Keep,
}

/// The line breaks between two lines of a scalar.
#[derive(Default)]
struct Breaks {
    leading: String,
    trailing: String,
}

impl Breaks {
    /// Folds: one line feed becomes a blank, more become one fewer; Unicode separators stay.
    fn fold_into(&mut self, out: &mut String) {
        if self.leading.starts_with('\n') {
            if self.trailing.is_empty() {
                out.push(' ');
            } else {
                out.push_str(&self.trailing);
            }
        } else {
            out.push_str(&self.leading);
            out.push_str(&self.trailing);
        }
        self.leading.clear();
        self.trailing.clear();
    }
}

impl<'a, C: Comments> Scanner<'a, C> {
    pub(super) fn scan_block_scalar(&mut self, start: Mark, literal: bool) -> Result<String, Error> {
        self.reader.skip();
        let (chomping, increment) = self.scan_block_header(start)?;
        self.finish_line(start, true)?;
        let mut indent = match increment {
            Some(increment) => self.indent.max(0) + increment,
            None => 0,
        };
        let mut out = String::new();
        let mut breaks = Breaks::default();
        let mut leading_blank = false;
        self.scan_block_breaks(start, &mut indent, &mut breaks.trailing)?;
        self.reader.cache(1)?;
        while column(self.reader.mark) == indent && self.reader.byte(0) != 0 {
            // Lines that begin with white space are not folded.
            let blank = self.reader.is_blank(0);
            if !literal && !leading_blank && !blank && breaks.leading.starts_with('\n') {
                if breaks.trailing.is_empty() {
                    out.push(' ');
                }
            } else {
                out.push_str(&breaks.leading);
            }
            breaks.leading.clear();
            out.push_str(&breaks.trailing);
            breaks.trailing.clear();
            leading_blank = blank;
            let from = self.reader.position();
            self.reader.skip_to_line_end()?;
            out.push_str(self.reader.slice(from, self.reader.position()));
            self.reader.cache(2)?;
            self.reader.read_line(&mut breaks.leading);
            self.scan_block_breaks(start, &mut indent, &mut breaks.trailing)?;
        }
        if chomping != Chomping::Strip {
            out.push_str(&breaks.leading);
        }
        if chomping == Chomping::Keep {
            out.push_str(&breaks.trailing);
        }
        Ok(out)
    }

    /// The chomping and indentation indicators, in either order.
    fn scan_block_header(&mut self, start: Mark) -> Result<(Chomping, Option<isize>), Error> {
        let mut chomping = Chomping::Clip;
        let mut increment = None;
        self.reader.cache(1)?;
        if let Some(found) = self.chomping_indicator() {
            chomping = found;
            self.reader.skip();
            self.reader.cache(1)?;
            increment = self.scan_indentation_indicator(start)?;
        } else if let Some(found) = self.scan_indentation_indicator(start)? {
            increment = Some(found);
            self.reader.cache(1)?;
            if let Some(found) = self.chomping_indicator() {
                chomping = found;
                self.reader.skip();
            }
        }
        Ok((chomping, increment))
    }

    fn chomping_indicator(&self) -> Option<Chomping> {
        match self.reader.byte(0) {
            b'+' => Some(Chomping::Keep),
            b'-' => Some(Chomping::Strip),
            _ => None,
        }
    }

    fn scan_indentation_indicator(&mut self, start: Mark) -> Result<Option<isize>, Error> {
        match self.reader.byte(0) {
            b'0' => Err(self.error(start, "found an indentation indicator equal to 0")),
            digit @ b'1'..=b'9' => {
                self.reader.skip();
                Ok(Some(isize::from(i8::try_from(digit - b'0').unwrap_or(0))))
            }
            _ => Ok(None),
        }
    }

    /// Eats indentation and empty lines. An `indent` of 0 is not known yet and found here.
    fn scan_block_breaks(
        &mut self,
        start: Mark,
        indent: &mut isize,
        breaks: &mut String,
    ) -> Result<(), Error> {
        let mut max_indent = 0;
        loop {
            self.reader.cache(1)?;
            while (*indent == 0 || column(self.reader.mark) < *indent) && self.reader.byte(0) == b' ' {
                self.reader.skip();
                self.reader.cache(1)?;
            }
            let here = column(self.reader.mark);
            max_indent = max_indent.max(here);
            if (*indent == 0 || here < *indent) && self.reader.byte(0) == b'\t' {
                return Err(self.error(
                    start,
                    "found a tab character where an indentation space is expected",
                ));
            }
            if !self.reader.is_break(0) {
                break;
            }
            self.reader.cache(2)?;
            self.reader.read_line(breaks);
        }
        if *indent == 0 {
            *indent = max_indent.max(self.indent + 1).max(1);
        }
        Ok(())
    }

    pub(super) fn scan_flow_scalar(&mut self, start: Mark, single: bool) -> Result<Cow<'a, str>, Error> {
        let quote = if single { b'\'' } else { b'"' };
        self.reader.skip();
        let mut owned: Option<String> = None;
        let mut from = self.reader.position();
        let mut breaks = Breaks::default();
        loop {
            self.reader.cache(4)?;
            if self.reader.mark.column == 0 && self.reader.document_indicator().is_some() {
                return Err(self.error(start, "found unexpected document indicator"));
            }
            if self.reader.byte(0) == 0 {
                return Err(self.error(start, "found unexpected end of stream"));
            }
            let mut leading_blanks = false;
            while !self.reader.is_blankz(0) {
                let byte = self.reader.byte(0);
                if single && byte == b'\'' && self.reader.byte(1) == b'\'' {
                    let out = owned.get_or_insert_default();
                    out.push_str(self.reader.slice(from, self.reader.position()));
                    out.push('\'');
                    self.reader.skip();
                    self.reader.skip();
                    from = self.reader.position();
                } else if byte == quote {
                    break;
                } else if !single && byte == b'\\' {
                    let out = owned.get_or_insert_default();
                    out.push_str(self.reader.slice(from, self.reader.position()));
                    if self.reader.is_break(1) {
                        self.reader.cache(3)?;
                        self.reader.skip();
                        self.reader.skip_line();
                        leading_blanks = true;
                        from = self.reader.position();
                        break;
                    }
                    let character = self.scan_escape(start)?;
                    owned.get_or_insert_default().push(character);
                    from = self.reader.position();
                } else {
                    self.reader.skip();
                    self.reader.skip_word();
                }
                self.reader.cache(2)?;
            }
            self.reader.cache(1)?;
            if self.reader.byte(0) == quote {
                break;
            }
            let content_end = self.reader.position();
            while self.reader.is_blank(0) || self.reader.is_break(0) {
                if self.reader.is_blank(0) {
                    self.reader.skip();
                } else {
                    self.reader.cache(2)?;
                    if leading_blanks {
                        self.reader.read_line(&mut breaks.trailing);
                    } else {
                        owned
                            .get_or_insert_default()
                            .push_str(self.reader.slice(from, content_end));
                        self.reader.read_line(&mut breaks.leading);
                        leading_blanks = true;
                    }
                }
                self.reader.cache(1)?;
            }
            if leading_blanks {
                breaks.fold_into(owned.get_or_insert_default());
                from = self.reader.position();
            }
        }
        let rest = self.reader.slice(from, self.reader.position());
        self.reader.skip();
        Ok(match owned {
            None => Cow::Borrowed(rest),
            Some(mut out) => {
                out.push_str(rest);
                Cow::Owned(out)
            }
        })
    }

    /// One escape sequence of a double-quoted scalar.
    fn scan_escape(&mut self, start: Mark) -> Result<char, Error> {
        let digits = match self.reader.byte(1) {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            letter => {
                let character = simple_escape(letter)
                    .ok_or_else(|| self.error(start, "found unknown escape character"))?;
                self.reader.skip();
                self.reader.skip();
                return Ok(character);
            }
        };
        self.reader.skip();
        self.reader.skip();
        self.reader.cache(digits)?;
        let mut value = 0u32;
        for ahead in 0..digits {
            let digit = char::from(self.reader.byte(ahead))
                .to_digit(16)
                .ok_or_else(|| self.error(start, "did not find expected hexdecimal number"))?;
            value = value << 4 | digit;
        }
        let character = char::from_u32(value)
            .ok_or_else(|| self.error(start, "found invalid Unicode character escape code"))?;
        for _ in 0..digits {
            self.reader.skip();
        }
        Ok(character)
    }

    pub(super) fn scan_plain_scalar(&mut self, start: Mark) -> Result<Cow<'a, str>, Error> {
        let indent = self.indent + 1;
        let mut owned: Option<String> = None;
        let mut from = self.reader.position();
        let mut end = from;
        let mut breaks = Breaks::default();
        let mut leading_blanks = false;
        loop {
            self.reader.cache(4)?;
            if self.reader.mark.column == 0 && self.reader.document_indicator().is_some() {
                break;
            }
            if self.reader.byte(0) == b'#' {
                break;
            }
            while !self.reader.is_blankz(0) {
                if self.ends_plain_scalar() {
                    break;
                }
                if leading_blanks {
                    breaks.fold_into(owned.get_or_insert_default());
                    leading_blanks = false;
                    from = self.reader.position();
                }
                self.reader.skip();
                self.reader.skip_word();
                end = self.reader.position();
                self.reader.cache(2)?;
            }
            if !(self.reader.is_blank(0) || self.reader.is_break(0)) {
                break;
            }
            self.reader.cache(1)?;
            while self.reader.is_blank(0) || self.reader.is_break(0) {
                if self.reader.is_blank(0) {
                    if leading_blanks && column(self.reader.mark) < indent && self.reader.byte(0) == b'\t' {
                        return Err(self.error(start, "found a tab character that violates indentation"));
                    }
                    self.reader.skip();
                } else {
                    self.reader.cache(2)?;
                    if leading_blanks {
                        self.reader.read_line(&mut breaks.trailing);
                    } else {
                        owned
                            .get_or_insert_default()
                            .push_str(self.reader.slice(from, end));
                        from = end;
                        self.reader.read_line(&mut breaks.leading);
                        leading_blanks = true;
                    }
                }
                self.reader.cache(1)?;
            }
            if self.flow_level == 0 && column(self.reader.mark) < indent {
                break;
            }
        }
        if leading_blanks {
            self.simple_key_allowed = true;
        }
        let rest = self.reader.slice(from, end);
        Ok(match owned {
            None => Cow::Borrowed(rest),
            // A single line that a break followed.
            Some(out) if rest.is_empty() => Cow::Owned(out),
            Some(mut out) => {
                out.push_str(rest);
                Cow::Owned(out)
            }
        })
    }

    fn ends_plain_scalar(&self) -> bool {
        match self.reader.byte(0) {
            b':' => self.reader.is_blankz(1),
            b',' | b'?' | b'[' | b']' | b'{' | b'}' => self.flow_level > 0,
            _ => false,
        }
    }
}

fn simple_escape(letter: u8) -> Option<char> {
    Some(match letter {
        b'0' => '\0',
        b'a' => '\u{7}',
        b'b' => '\u{8}',
        b't' | b'\t' => '\t',
        b'n' => '\n',
        b'v' => '\u{b}',
        b'f' => '\u{c}',
        b'r' => '\r',
        b'e' => '\u{1b}',
        b' ' => ' ',
        b'"' => '"',
        b'\'' => '\'',
        b'\\' => '\\',
        b'N' => '\u{85}',
        b'_' => '\u{a0}',
        b'L' => '\u{2028}',
        b'P' => '\u{2029}',
        _ => return None,
    })
}
