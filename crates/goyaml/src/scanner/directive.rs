//! Directives, anchors, aliases and tags.

use super::{Comments, Mark, Scanner, TokenKind};
use crate::Error;

/// Most digits of a part of `%YAML 1.1`.
const MAX_VERSION_DIGITS: usize = 2;

impl<'a, C: Comments> Scanner<'a, C> {
    fn is_alpha(&self) -> bool {
        matches!(self.reader.byte(0), b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-')
    }

    fn skip_blanks(&mut self) -> Result<(), Error> {
        self.reader.cache(1)?;
        while self.reader.is_blank(0) {
            self.reader.skip();
            self.reader.cache(1)?;
        }
        Ok(())
    }

    /// Skips letters, digits, `_` and `-`; gives where they begin and end.
    fn scan_word(&mut self) -> Result<(usize, usize), Error> {
        self.reader.cache(1)?;
        let from = self.reader.position();
        while self.is_alpha() {
            self.reader.skip();
            self.reader.cache(1)?;
        }
        Ok((from, self.reader.position()))
    }

    /// Blanks, a comment, which may belong to what began at `start`, the line break.
    pub(super) fn finish_line(&mut self, start: Mark, of_scalar: bool) -> Result<(), Error> {
        self.skip_blanks()?;
        if self.reader.byte(0) == b'#' {
            if C::KEPT && of_scalar {
                C::scan_line(self, start)?;
            }
            self.reader.skip_to_line_end()?;
        }
        if !self.reader.is_breakz(0) {
            return Err(self.error(start, "did not find expected comment or line break"));
        }
        if self.reader.is_break(0) {
            self.reader.cache(2)?;
            self.reader.skip_line();
        }
        Ok(())
    }

    pub(super) fn scan_directive(&mut self, start: Mark) -> Result<TokenKind<'a>, Error> {
        self.reader.skip();
        let (from, to) = self.scan_word()?;
        if from == to {
            return Err(self.error(start, "could not find expected directive name"));
        }
        if !self.reader.is_blankz(0) {
            return Err(self.error(start, "found unexpected non-alphabetical character"));
        }
        let kind = match self.reader.slice(from, to) {
            "YAML" => self.scan_version(start)?,
            "TAG" => self.scan_tag_directive(start)?,
            _ => return Err(self.error(start, "found unknown directive name")),
        };
        self.finish_line(start, false)?;
        Ok(kind)
    }

    fn scan_version(&mut self, start: Mark) -> Result<TokenKind<'a>, Error> {
        self.skip_blanks()?;
        let major = self.scan_version_number(start)?;
        if self.reader.byte(0) != b'.' {
            return Err(self.error(start, "did not find expected digit or '.' character"));
        }
        self.reader.skip();
        let minor = self.scan_version_number(start)?;
        Ok(TokenKind::VersionDirective(major, minor))
    }

    fn scan_version_number(&mut self, start: Mark) -> Result<u8, Error> {
        self.reader.cache(1)?;
        let mut value = 0u8;
        let mut length = 0;
        while self.reader.byte(0).is_ascii_digit() {
            length += 1;
            if length > MAX_VERSION_DIGITS {
                return Err(self.error(start, "found extremely long version number"));
            }
            value = value * 10 + (self.reader.byte(0) - b'0');
            self.reader.skip();
            self.reader.cache(1)?;
        }
        if length == 0 {
            return Err(self.error(start, "did not find expected version number"));
        }
        Ok(value)
    }

    fn scan_tag_directive(&mut self, start: Mark) -> Result<TokenKind<'a>, Error> {
        self.skip_blanks()?;
        let handle = self.scan_tag_handle(start, true)?;
        self.reader.cache(1)?;
        if !self.reader.is_blank(0) {
            return Err(self.error(start, "did not find expected whitespace"));
        }
        self.skip_blanks()?;
        let prefix = self.scan_tag_uri(start, "")?;
        self.reader.cache(1)?;
        if !self.reader.is_blankz(0) {
            return Err(self.error(start, "did not find expected whitespace or line break"));
        }
        Ok(TokenKind::TagDirective(handle, prefix))
    }

    /// The name after `&` or `*`.
    pub(super) fn scan_anchor(&mut self, start: Mark) -> Result<&'a str, Error> {
        self.reader.skip();
        let (from, to) = self.scan_word()?;
        let ends_well = self.reader.is_blankz(0)
            || matches!(
                self.reader.byte(0),
                b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`'
            );
        if from == to || !ends_well {
            return Err(self.error(start, "did not find expected alphabetic or numeric character"));
        }
        Ok(self.reader.slice(from, to))
    }

    pub(super) fn scan_tag(&mut self, start: Mark) -> Result<TokenKind<'a>, Error> {
        self.reader.cache(2)?;
        let (handle, suffix) = if self.reader.byte(1) == b'<' {
            self.reader.skip();
            self.reader.skip();
            let suffix = self.scan_tag_uri(start, "")?;
            if self.reader.byte(0) != b'>' {
                return Err(self.error(start, "did not find the expected '>'"));
            }
            self.reader.skip();
            ("", suffix)
        } else {
            let handle = self.scan_tag_handle(start, false)?;
            if handle.len() > 1 && handle.ends_with('!') {
                let suffix = self.scan_tag_uri(start, "")?;
                (handle, suffix)
            } else {
                // No handle after all: all of it is the suffix of the handle `!`.
                let suffix = self.scan_tag_uri(start, handle)?;
                if suffix.is_empty() {
                    ("", b"!".to_vec())
                } else {
                    ("!", suffix)
                }
            }
        };
        self.reader.cache(1)?;
        if !self.reader.is_blankz(0) {
            return Err(self.error(start, "did not find expected whitespace or line break"));
        }
        Ok(TokenKind::Tag(handle, suffix))
    }

    fn scan_tag_handle(&mut self, start: Mark, directive: bool) -> Result<&'a str, Error> {
        self.reader.cache(1)?;
        if self.reader.byte(0) != b'!' {
            return Err(self.error(start, "did not find expected '!'"));
        }
        let from = self.reader.position();
        self.reader.skip();
        self.scan_word()?;
        if self.reader.byte(0) == b'!' {
            self.reader.skip();
        } else if directive && self.reader.position() > from + 1 {
            return Err(self.error(start, "did not find expected '!'"));
        }
        Ok(self.reader.slice(from, self.reader.position()))
    }

    /// `head` is what was read in the belief that it is a handle; its `!` is left out.
    fn scan_tag_uri(&mut self, start: Mark, head: &str) -> Result<Vec<u8>, Error> {
        let mut uri = head.as_bytes().get(1..).unwrap_or(&[]).to_vec();
        let mut has_tag = !head.is_empty();
        self.reader.cache(1)?;
        loop {
            match self.reader.byte(0) {
                b'%' => self.scan_uri_escape(start, &mut uri)?,
                b';' | b'/' | b'?' | b':' | b'@' | b'&' | b'=' | b'+' | b'$' | b',' | b'.' | b'!' | b'~'
                | b'*' | b'\'' | b'(' | b')' | b'[' | b']' => {
                    uri.push(self.reader.byte(0));
                    self.reader.skip();
                }
                byte if self.is_alpha() => {
                    uri.push(byte);
                    self.reader.skip();
                }
                _ => break,
            }
            self.reader.cache(1)?;
            has_tag = true;
        }
        if !has_tag {
            return Err(self.error(start, "did not find expected tag URI"));
        }
        Ok(uri)
    }

    /// `%C3%A9`: all bytes of one UTF-8 character.
    fn scan_uri_escape(&mut self, start: Mark, uri: &mut Vec<u8>) -> Result<(), Error> {
        let mut remaining = None;
        while remaining != Some(0) {
            self.reader.cache(3)?;
            let hex = |ahead: usize| char::from(self.reader.byte(ahead)).to_digit(16);
            let octet = match (self.reader.byte(0), hex(1), hex(2)) {
                (b'%', Some(high), Some(low)) => u8::try_from(high << 4 | low).unwrap_or(0),
                _ => return Err(self.error(start, "did not find URI escaped octet")),
            };
            remaining = Some(match remaining {
                None => match octet {
                    0..0x80 => 0u8,
                    0xc0..0xe0 => 1,
                    0xe0..0xf0 => 2,
                    0xf0..0xf8 => 3,
                    _ => return Err(self.error(start, "found an incorrect leading UTF-8 octet")),
                },
                Some(_) if octet & 0xc0 != 0x80 => {
                    return Err(self.error(start, "found an incorrect trailing UTF-8 octet"));
                }
                Some(left) => left.saturating_sub(1),
            });
            uri.push(octet);
            for _ in 0..3 {
                self.reader.skip();
            }
        }
        Ok(())
    }
}
