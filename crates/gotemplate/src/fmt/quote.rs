//! `strconv.Quote` and its relatives.

use crate::unicode::{decode, is_print};

/// Bytes as Go's `%q` prints them, for errors worded as Helm words them: in quotes, with Go's escapes.
///
/// ```
/// assert_eq!(evenkeel_gotemplate::go_quoted("a\u{8}\"b"), r#""a\b\"b""#);
/// assert_eq!(evenkeel_gotemplate::go_quoted(b"\xff"), r#""\xff""#);
/// ```
pub fn go_quoted(text: impl AsRef<[u8]>) -> String {
    bytes(text.as_ref())
}

/// A character as Go's `%q` prints it.
pub fn go_quoted_char(c: char) -> String {
    crate::value::lossy(&quoted_rune(c, false))
}

/// `%q` of a text.
pub(crate) fn text(text: &str) -> String {
    bytes(text.as_bytes())
}

/// `%q` of bytes that need not be UTF-8; the result always is.
pub(crate) fn bytes(text: &[u8]) -> String {
    crate::value::lossy(&quoted(text, b'"', false))
}

/// `strconv.AppendQuote`, or `AppendQuoteToASCII`.
pub(crate) fn quoted(text: &[u8], quote: u8, ascii_only: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(quote);
    let mut rest = text;
    while let Some(first) = rest.first() {
        let (c, width) = decode(rest);
        if width == 1 && !first.is_ascii() {
            push_hex(&mut out, "\\x", u32::from(*first), 2);
        } else {
            push_escaped(&mut out, c, quote, ascii_only);
        }
        rest = rest.get(width..).unwrap_or_default();
    }
    out.push(quote);
    out
}

/// `strconv.AppendQuoteRune`, or `AppendQuoteRuneToASCII`.
pub(crate) fn quoted_rune(c: char, ascii_only: bool) -> Vec<u8> {
    let mut out = vec![b'\''];
    push_escaped(&mut out, c, b'\'', ascii_only);
    out.push(b'\'');
    out
}

fn push_hex(out: &mut Vec<u8>, prefix: &str, code: u32, digits: usize) {
    out.extend_from_slice(prefix.as_bytes());
    out.extend_from_slice(format!("{code:0digits$x}").as_bytes());
}

fn push_escaped(out: &mut Vec<u8>, c: char, quote: u8, ascii_only: bool) {
    if c == char::from(quote) || c == '\\' {
        out.push(b'\\');
        out.push(c as u8);
        return;
    }
    if (c.is_ascii() || !ascii_only) && is_print(c) {
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        return;
    }
    match c {
        '\x07' => out.extend_from_slice(b"\\a"),
        '\x08' => out.extend_from_slice(b"\\b"),
        '\x0c' => out.extend_from_slice(b"\\f"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\x0b' => out.extend_from_slice(b"\\v"),
        c if u32::from(c) < 0x20 || c == '\x7f' => push_hex(out, "\\x", c.into(), 2),
        c if u32::from(c) < 0x1_0000 => push_hex(out, "\\u", c.into(), 4),
        c => push_hex(out, "\\U", c.into(), 8),
    }
}

/// `%#U` of a rune.
pub(crate) fn unicode(c: char) -> String {
    let code = u32::from(c);
    if is_print(c) {
        format!("U+{code:04X} '{c}'")
    } else {
        format!("U+{code:04X}")
    }
}

/// `strconv.CanBackquote`
pub(crate) fn can_backquote(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(first) = rest.first() {
        let (c, width) = decode(rest);
        if width == 1 {
            let control = *first < 0x20 && *first != b'\t';
            if !first.is_ascii() || control || matches!(first, b'`' | 0x7f) {
                return false;
            }
        } else if c == '\u{feff}' {
            return false;
        }
        rest = rest.get(width..).unwrap_or_default();
    }
    true
}
