//! Nodes printed as Go's `%#v` prints them, for go-yaml's messages.

use std::fmt::Write as _;

use super::base64;
use crate::document::{Document, NodeId, NodeKind};
use crate::number;
use crate::resolve::{Dialect, Resolved, Tagged, resolve, resolve_tagged};
use crate::unicode::is_print;

/// Longest message part; go-yaml has no limit, but a message is for people.
const MAX_LENGTH: usize = 4_096;

/// The node as an `interface {}` argument of `%#v`.
pub(super) fn node(document: &Document<'_>, id: NodeId) -> String {
    let mut out = String::new();
    push(&mut out, document, id, false);
    if out.len() > MAX_LENGTH {
        out.truncate(out.floor_char_boundary(MAX_LENGTH));
    }
    out
}

/// Deepest nesting that a message shows.
const MAX_SHOWN_DEPTH: usize = 32;

fn push(out: &mut String, document: &Document<'_>, id: NodeId, nested: bool) {
    push_at(out, document, id, nested, 0);
}

fn push_at(out: &mut String, document: &Document<'_>, id: NodeId, nested: bool, depth: usize) {
    if out.len() > MAX_LENGTH || depth > MAX_SHOWN_DEPTH {
        return;
    }
    match document.get(id).map(|node| &node.kind) {
        None => push_nil(out, nested),
        Some(NodeKind::Alias { target, .. }) => push_at(out, document, *target, nested, depth + 1),
        Some(NodeKind::Scalar { value, tag, implicit }) => push_scalar(out, value, tag, *implicit, nested),
        Some(NodeKind::Sequence) => {
            out.push_str("[]interface {}{");
            for (i, child) in document.children(id).enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                push_at(out, document, child, true, depth + 1);
            }
            out.push('}');
        }
        Some(NodeKind::Mapping) => {
            let mut children = document.children(id);
            let mut entries: Vec<(String, NodeId)> = Vec::new();
            while let (Some(key), Some(value)) = (children.next(), children.next()) {
                let mut name = String::new();
                push_at(&mut name, document, key, true, depth + 1);
                entries.retain(|(known, _)| *known != name);
                entries.push((name, value));
            }
            entries.sort_by(|(a, _), (b, _)| key_order(a).cmp(&key_order(b)).then_with(|| a.cmp(b)));
            out.push_str("map[interface {}]interface {}{");
            for (i, (name, value)) in entries.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                out.push_str(name);
                out.push(':');
                push_at(out, document, *value, true, depth + 1);
            }
            out.push('}');
        }
    }
}

/// Where Go's `fmt` puts a printed key: nil first, then type by type, as the types happen to lie in Helm's binary.
fn key_order(name: &str) -> (u8, i128) {
    let number = |name: &str| name.parse().unwrap_or(0);
    match name.as_bytes().first() {
        _ if name == "interface {}(nil)" => (0, 0),
        Some(b'"') => (1, 0),
        _ if name.starts_with("0x") => (2, 0),
        _ if name == "false" || name == "true" => (5, 0),
        Some(b'-' | b'0'..=b'9') if name.contains(['.', 'e']) => {
            // The bits of floats, turned so that they are in the order of the numbers.
            let bits = name.parse::<f64>().unwrap_or(0.0).to_bits().cast_signed();
            let turned = if bits < 0 { bits ^ i64::MAX } else { bits };
            (4, i128::from(turned))
        }
        Some(b'-' | b'0'..=b'9') => (3, number(name)),
        _ => (6, 0),
    }
}

fn push_nil(out: &mut String, nested: bool) {
    out.push_str(if nested { "interface {}(nil)" } else { "<nil>" });
}

fn push_scalar(out: &mut String, text: &str, tag: &str, implicit: bool, nested: bool) {
    let resolved = if tag.is_empty() {
        if implicit {
            resolve(text, Dialect::V2)
        } else {
            Resolved::String
        }
    } else {
        match resolve_tagged(text, tag, Dialect::V2) {
            Ok(Tagged::Value(resolved)) => resolved,
            Ok(Tagged::Binary) => return push_quoted(out, &base64::decode(text).unwrap_or_default()),
            Err(_) => Resolved::String,
        }
    };
    // Writing into a string cannot fail.
    let _ = match resolved {
        Resolved::Null => {
            push_nil(out, nested);
            Ok(())
        }
        Resolved::Bool(b) => write!(out, "{b}"),
        Resolved::Int(i) => write!(out, "{i}"),
        Resolved::Uint(u) => write!(out, "{u:#x}"),
        Resolved::Float(f) if f.is_finite() => {
            number::push_general(out, f);
            Ok(())
        }
        Resolved::Float(f) => write!(out, "{}", number::non_finite_name(f)),
        Resolved::Timestamp | Resolved::String => {
            push_quoted(out, text.as_bytes());
            Ok(())
        }
    };
}

/// Go's `strconv.Quote`.
pub(crate) fn push_quoted(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            push_quoted_char(out, c, '"');
        }
        for byte in chunk.invalid() {
            // Writing into a string cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
}

/// One character inside Go quotes.
pub(crate) fn push_quoted_char(out: &mut String, c: char, quote: char) {
    let escape = match c {
        '\\' => "\\\\",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        _ if c == quote => {
            out.push('\\');
            out.push(c);
            return;
        }
        _ if is_print(c) => {
            out.push(c);
            return;
        }
        _ => {
            let code = u32::from(c);
            // Writing into a string cannot fail.
            let _ = match code {
                0..0x20 | 0x7f => write!(out, "\\x{code:02x}"),
                0x20..0x1_0000 => write!(out, "\\u{code:04x}"),
                _ => write!(out, "\\U{code:08x}"),
            };
            return;
        }
    };
    out.push_str(escape);
}
