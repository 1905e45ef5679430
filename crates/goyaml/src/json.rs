//! JSON as Go 1.27's encoding/json writes it.

use std::borrow::Cow;

use crate::{Error, Value, number};

pub(crate) mod read;

/// Indentation of [`JsonStyle::Pretty`].
const INDENT: &str = "  ";

/// Which JSON text to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonStyle {
    /// One line, `<`, `>` and `&` escaped (`toJson`).
    Compact,
    /// Indented by two blanks, escaped like [`JsonStyle::Compact`] (`toPrettyJson`).
    Pretty,
    /// One line, `<`, `>` and `&` as they are (`toRawJson`).
    Raw,
}

/// Writes a value as Go's encoding/json does, without a trailing newline.
/// A value that holds NaN or an infinity gives "", as Helm's `toJson` does.
pub fn to_json(value: &Value, style: JsonStyle) -> String {
    try_to_json(value, style).unwrap_or_default()
}

/// Like [`to_json`], but says what Go says of NaN and infinities (`json: unsupported value: NaN`), for `mustToJson`.
pub fn try_to_json(value: &Value, style: JsonStyle) -> Result<String, Error> {
    let mut writer = Writer {
        out: String::new(),
        style,
    };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer {
    out: String,
    style: JsonStyle,
}

impl Writer {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Int(i) => self.display(i),
            Value::Uint(u) => self.display(u),
            Value::Float(f) if f.is_finite() => number::push_json(&mut self.out, *f),
            Value::Float(f) => return Err(Error::unsupported_float(*f)),
            Value::String(s) | Value::Timestamp(s) => {
                push_string(&mut self.out, s, self.style != JsonStyle::Raw)
            }
            Value::Binary(bytes) => push_string(
                &mut self.out,
                &replace_invalid_utf8(bytes),
                self.style != JsonStyle::Raw,
            ),
            Value::List(items) if items.is_empty() => self.out.push_str("[]"),
            Value::List(items) => {
                self.out.push('[');
                for (i, item) in items.iter().enumerate() {
                    self.separate(i, depth + 1);
                    self.value(item, depth + 1)?;
                }
                self.line(depth);
                self.out.push(']');
            }
            Value::Map(map) if map.is_empty() => self.out.push_str("{}"),
            Value::Map(map) => {
                self.out.push('{');
                for (i, (key, item)) in map.iter().enumerate() {
                    self.separate(i, depth + 1);
                    push_string(&mut self.out, key, self.style != JsonStyle::Raw);
                    self.out.push_str(if self.style == JsonStyle::Pretty {
                        ": "
                    } else {
                        ":"
                    });
                    self.value(item, depth + 1)?;
                }
                self.line(depth);
                self.out.push('}');
            }
        }
        Ok(())
    }

    fn display(&mut self, number: impl std::fmt::Display) {
        use std::fmt::Write as _;
        // Writing into a string cannot fail.
        let _ = write!(self.out, "{number}");
    }

    fn separate(&mut self, index: usize, depth: usize) {
        if index > 0 {
            self.out.push(',');
        }
        self.line(depth);
    }

    fn line(&mut self, depth: usize) {
        if self.style == JsonStyle::Pretty {
            self.out.push('\n');
            for _ in 0..depth {
                self.out.push_str(INDENT);
            }
        }
    }
}

/// A JSON string with Go's choice of escapes.
fn push_string(out: &mut String, text: &str, escape_html: bool) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push('"');
    let mut from = 0;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().copied().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..0x20 => "",
            b'<' if escape_html => "\\u003c",
            b'>' if escape_html => "\\u003e",
            b'&' if escape_html => "\\u0026",
            // JavaScript takes these for line ends inside strings.
            0xe2 if bytes.get(at + 1) == Some(&0x80) => match bytes.get(at + 2) {
                Some(0xa8) => "\\u2028",
                Some(0xa9) => "\\u2029",
                _ => continue,
            },
            _ => continue,
        };
        out.push_str(text.get(from..at).unwrap_or(""));
        from = at + if byte == 0xe2 { 3 } else { 1 };
        if short.is_empty() {
            out.push_str("\\u00");
            for nibble in [byte >> 4, byte & 15] {
                out.push(char::from(HEX.get(usize::from(nibble)).copied().unwrap_or(b'0')));
            }
        } else {
            out.push_str(short);
        }
    }
    out.push_str(text.get(from..).unwrap_or(""));
    out.push('"');
}

/// A JSON number with integers kept: `i64` where it fits, else `u64`, else `f64`; nothing when it is out of range.
pub(crate) fn exact_number(text: &str) -> Option<Value> {
    if !text.contains(['.', 'e', 'E']) {
        if let Ok(i) = text.parse::<i64>() {
            return Some(Value::Int(i));
        }
        if let Ok(u) = text.parse::<u64>() {
            return Some(Value::Uint(u));
        }
    }
    number::parse_float(text).map(Value::Float)
}

/// Text of bytes that need not be UTF-8, as Go's `range` and encoding/json take it: each invalid byte becomes U+FFFD.
/// (Rust's own lossy conversion may put one U+FFFD for several bytes.)
pub fn replace_invalid_utf8(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(out)
}
