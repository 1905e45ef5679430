//! Characters of the text: decoding, forbidden ones, and the place where the scanner stands.
//!
//! go-yaml reads its input in pieces of 512 bytes and finds a forbidden character only when it reads the piece that
//! holds it. An error further up the text, or the end of the first document, comes first. Texts without such
//! characters, nearly all, pay nothing for that: [`Reader::pieces`] is `None`.

use std::borrow::Cow;

use super::{Mark, TokenKind};
use crate::Error;

/// Size of the pieces; `input_raw_buffer_size` of go-yaml.
const PIECE: usize = 512;

const BOM: &str = "\u{feff}";

/// The text to scan, decoded as far as it is sound.
pub(crate) struct Input<'i> {
    text: Cow<'i, str>,
    /// Where the sound part ends and why, unless it is all.
    fault: Option<Fault>,
    /// Bytes that were cut off before the text began (a byte order mark).
    cut: usize,
    encoding: Encoding,
}

/// How the input spells characters.
#[derive(Clone, Copy)]
enum Encoding {
    Utf8,
    Utf16,
}

impl<'i> Input<'i> {
    /// Decodes UTF-8, or UTF-16 after a byte order mark.
    pub(crate) fn new(bytes: &'i [u8]) -> Self {
        match bytes {
            [0xff, 0xfe, rest @ ..] => decode_utf16(rest, u16::from_le_bytes),
            [0xfe, 0xff, rest @ ..] => decode_utf16(rest, u16::from_be_bytes),
            [0xef, 0xbb, 0xbf, rest @ ..] => decode_utf8(rest, 3),
            _ => decode_utf8(bytes, 0),
        }
    }
}

pub(super) struct Reader<'a> {
    text: &'a str,
    position: usize,
    pub(super) mark: Mark,
    pieces: Option<Pieces<'a>>,
}

/// What go-yaml's buffer holds, tracked only where it matters.
struct Pieces<'a> {
    fault: Option<&'a Fault>,
    cut: usize,
    encoding: Encoding,
    /// Start of the buffer.
    start: usize,
    /// Everything before this place was decoded.
    decoded: usize,
}

/// Why the text ends before the input does.
struct Fault {
    /// Bytes of it that must be there before Go looks.
    width: usize,
    problem: &'static str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a Input<'_>) -> Self {
        let fault = input.fault.as_ref();
        let pieces = (fault.is_some() || input.text.contains(BOM)).then_some(Pieces {
            fault,
            cut: input.cut,
            encoding: input.encoding,
            start: 0,
            decoded: 0,
        });
        Reader {
            text: &input.text,
            position: 0,
            mark: Mark::default(),
            pieces,
        }
    }

    /// Makes sure that the next characters were looked at; fails if one of them, or of their piece, is forbidden.
    #[inline]
    pub(super) fn cache(&mut self, characters: usize) -> Result<(), Error> {
        match &mut self.pieces {
            None => Ok(()),
            Some(pieces) => pieces.cache(self.text, self.position, characters),
        }
    }

    /// go-yaml looks for a byte order mark at the start of its buffer, wherever it stands in it.
    pub(super) fn buffer_starts_with_bom(&self) -> bool {
        self.pieces
            .as_ref()
            .is_some_and(|p| self.text.get(p.start..).is_some_and(|rest| rest.starts_with(BOM)))
    }

    /// The byte `ahead` of the current place; NUL after the end (the text itself holds none).
    #[inline]
    pub(super) fn byte(&self, ahead: usize) -> u8 {
        self.text
            .as_bytes()
            .get(self.position + ahead)
            .copied()
            .unwrap_or(0)
    }

    #[inline]
    pub(super) fn is_break(&self, ahead: usize) -> bool {
        match self.byte(ahead) {
            b'\r' | b'\n' => true,
            0xc2 => self.byte(ahead + 1) == 0x85,
            0xe2 => self.byte(ahead + 1) == 0x80 && matches!(self.byte(ahead + 2), 0xa8 | 0xa9),
            _ => false,
        }
    }

    #[inline]
    pub(super) fn is_breakz(&self, ahead: usize) -> bool {
        self.byte(ahead) == 0 || self.is_break(ahead)
    }

    #[inline]
    pub(super) fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), b' ' | b'\t')
    }

    #[inline]
    pub(super) fn is_blankz(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_breakz(ahead)
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// The text between two places.
    pub(super) fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or("")
    }

    /// Steps over one character.
    #[inline]
    pub(super) fn skip(&mut self) {
        self.mark.index += 1;
        self.mark.column += 1;
        self.position += width(self.byte(0));
    }

    /// Steps over one line break (CR LF is one).
    pub(super) fn skip_line(&mut self) {
        if self.byte(0) == b'\r' && self.byte(1) == b'\n' {
            self.mark.index += 2;
            self.position += 2;
        } else if self.is_break(0) {
            self.mark.index += 1;
            self.position += width(self.byte(0));
        } else {
            return;
        }
        self.mark.column = 0;
        self.mark.line += 1;
    }

    /// Line breaks since the last character that is neither a blank nor a break.
    pub(super) fn breaks_behind(&self) -> usize {
        let mut breaks = 0;
        let mut rest = self.text.get(..self.position).unwrap_or("");
        while let Some(last) = rest.chars().next_back() {
            let width = match last {
                ' ' | '\t' => last.len_utf8(),
                '\n' if rest.ends_with("\r\n") => 2,
                '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}' => last.len_utf8(),
                _ => break,
            };
            breaks += usize::from(!matches!(last, ' ' | '\t'));
            rest = rest.get(..rest.len() - width).unwrap_or("");
        }
        breaks
    }

    /// Steps over one line break and gives what it stands for: a line feed, or the Unicode separator itself.
    pub(super) fn read_line(&mut self, out: &mut String) {
        if !self.is_break(0) {
            return;
        }
        match (self.byte(0), self.byte(2)) {
            (0xe2, 0xa8) => out.push('\u{2028}'),
            (0xe2, _) => out.push('\u{2029}'),
            _ => out.push('\n'),
        }
        self.skip_line();
    }

    /// Steps over the rest of the line, not its break.
    pub(super) fn skip_to_line_end(&mut self) -> Result<(), Error> {
        if self.pieces.is_none() {
            self.skip_ascii_line();
        }
        while !self.is_breakz(0) {
            self.skip();
            self.cache(1)?;
        }
        Ok(())
    }

    /// Steps over ASCII letters, digits and `-_./`, which end no scalar, whatever its style.
    #[inline]
    pub(super) fn skip_word(&mut self) {
        if self.pieces.is_some() {
            return;
        }
        let rest = self.text.as_bytes().get(self.position..).unwrap_or(&[]);
        let count = rest
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/'))
            .count();
        self.position += count;
        self.mark.index += count;
        self.mark.column += count;
    }

    /// Steps over blanks (not tabs).
    #[inline]
    pub(super) fn skip_spaces(&mut self) {
        if self.pieces.is_some() {
            return;
        }
        let rest = self.text.as_bytes().get(self.position..).unwrap_or(&[]);
        let count = rest.iter().take_while(|b| **b == b' ').count();
        self.position += count;
        self.mark.index += count;
        self.mark.column += count;
    }

    /// Steps over characters of the line as long as they are plain ASCII.
    fn skip_ascii_line(&mut self) {
        let rest = self.text.as_bytes().get(self.position..).unwrap_or(&[]);
        let count = rest
            .iter()
            .take_while(|b| b.is_ascii() && !matches!(b, b'\r' | b'\n'))
            .count();
        self.position += count;
        self.mark.index += count;
        self.mark.column += count;
    }

    /// `---` or `...` at the current place, followed by white space or the end.
    pub(super) fn document_indicator<'t>(&self) -> Option<TokenKind<'t>> {
        let kind = match (self.byte(0), self.byte(1), self.byte(2)) {
            (b'-', b'-', b'-') => TokenKind::DocumentStart,
            (b'.', b'.', b'.') => TokenKind::DocumentEnd,
            _ => return None,
        };
        self.is_blankz(3).then_some(kind)
    }
}

impl Pieces<'_> {
    fn cache(&mut self, text: &str, position: usize, characters: usize) -> Result<(), Error> {
        let enough = |decoded: usize| {
            text.get(position..decoded)
                .is_some_and(|seen| seen.chars().take(characters).count() == characters)
        };
        if enough(self.decoded) {
            return Ok(());
        }
        self.start = position;
        while !enough(self.decoded) {
            let rest = text.get(self.decoded..).unwrap_or("");
            let room = if self.decoded == 0 {
                PIECE - self.cut
            } else {
                PIECE
            };
            let (length, raw_length) = self.encoding.piece(rest, room);
            let at_end = length == rest.len();
            if let Some(fault) = self.fault
                && at_end
                && (raw_length.saturating_add(fault.width) <= room || rest.is_empty())
            {
                return Err(Error::yaml(None, fault.problem));
            }
            self.decoded += length;
            if at_end && self.fault.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Encoding {
    /// How much of the text fits into so many bytes of input: bytes of the text, bytes of the input.
    fn piece(self, text: &str, room: usize) -> (usize, usize) {
        match self {
            Encoding::Utf8 => {
                let length = text.floor_char_boundary(room);
                (length, length)
            }
            Encoding::Utf16 => {
                let (mut length, mut raw_length) = (0, 0);
                for c in text.chars() {
                    let raw = c.len_utf16() * 2;
                    if raw_length + raw > room {
                        break;
                    }
                    length += c.len_utf8();
                    raw_length += raw;
                }
                (length, raw_length)
            }
        }
    }
}

/// Bytes of the character that begins with this one. NUL stands for the end of the text.
#[inline]
fn width(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

/// Characters that YAML allows: no control characters but tab, line feed, carriage return and NEL.
fn is_allowed(c: char) -> bool {
    matches!(c,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn decode_utf8(input: &[u8], cut: usize) -> Input<'_> {
    let (sound, mut fault) = match std::str::from_utf8(input) {
        Ok(text) => (text, None),
        Err(error) => {
            let (sound, rest) = input.split_at_checked(error.valid_up_to()).unwrap_or((&[], &[]));
            (std::str::from_utf8(sound).unwrap_or(""), Some(utf8_fault(rest)))
        }
    };
    let forbidden = if sound
        .bytes()
        .all(|b| matches!(b, b'\t' | b'\n' | b'\r' | 0x20..=0x7e))
    {
        None
    } else {
        sound.char_indices().find(|(_, c)| !is_allowed(*c))
    };
    let mut text = sound;
    if let Some((position, c)) = forbidden {
        fault = Some(Fault {
            width: c.len_utf8(),
            problem: "control characters are not allowed",
        });
        text = sound.get(..position).unwrap_or("");
    }
    Input {
        text: Cow::Borrowed(text),
        fault,
        cut,
        encoding: Encoding::Utf8,
    }
}

/// What go-yaml says of the first bytes that are not UTF-8.
fn utf8_fault(rest: &[u8]) -> Fault {
    let first = rest.first().copied().unwrap_or(0);
    let width = match first {
        0..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf8 => 4,
        _ => {
            return Fault {
                width: 1,
                problem: "invalid leading UTF-8 octet",
            };
        }
    };
    if rest.len() < width {
        // Go waits for more until the text ends.
        return Fault {
            width: usize::MAX,
            problem: "incomplete UTF-8 octet sequence",
        };
    }
    let problem = if rest.iter().take(width).skip(1).any(|b| b & 0xc0 != 0x80) {
        "invalid trailing UTF-8 octet"
    } else {
        let bits = rest
            .iter()
            .take(width)
            .skip(1)
            .fold(u32::from(first) & (0x7f >> width), |v, b| {
                v << 6 | u32::from(b & 0x3f)
            });
        let shortest = match width {
            2 => 0x80,
            3 => 0x800,
            _ => 0x1_0000,
        };
        if bits < shortest {
            "invalid length of a UTF-8 sequence"
        } else {
            "invalid Unicode character"
        }
    };
    Fault { width, problem }
}

fn decode_utf16<'i>(input: &[u8], unit: fn([u8; 2]) -> u16) -> Input<'i> {
    let mut text = String::with_capacity(input.len());
    let mut fault = None;
    let mut pairs = input.chunks_exact(2).map(|pair| match pair {
        [first, second] => unit([*first, *second]),
        _ => 0,
    });
    while let Some(value) = pairs.next() {
        let (width, problem) = match value {
            0xdc00..=0xdfff => (2, "unexpected low surrogate area"),
            0xd800..=0xdbff => match pairs.next() {
                // Go waits for more until the text ends.
                None => (usize::MAX, "incomplete UTF-16 surrogate pair"),
                Some(low @ 0xdc00..=0xdfff) => {
                    let code = 0x1_0000 + ((u32::from(value) & 0x3ff) << 10) + (u32::from(low) & 0x3ff);
                    text.extend(char::from_u32(code));
                    continue;
                }
                Some(_) => (4, "expected low surrogate area"),
            },
            _ => match char::from_u32(u32::from(value)).filter(|c| is_allowed(*c)) {
                Some(c) => {
                    text.push(c);
                    continue;
                }
                None => (2, "control characters are not allowed"),
            },
        };
        fault = Some(Fault { width, problem });
        break;
    }
    if fault.is_none() && !input.len().is_multiple_of(2) {
        fault = Some(Fault {
            width: usize::MAX,
            problem: "incomplete UTF-16 character",
        });
    }
    Input {
        text: Cow::Owned(text),
        fault,
        cut: 2,
        encoding: Encoding::Utf16,
    }
}
