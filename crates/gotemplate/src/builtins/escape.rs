//! `html`, `js` and `urlquery`.

use crate::unicode::{decode, is_print};

const HEX: &[u8; 16] = b"0123456789ABCDEF";

fn hex_digit(nibble: u8) -> u8 {
    HEX.get(usize::from(nibble & 15)).copied().unwrap_or(b'0')
}

pub(super) fn html(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16);
    for byte in text {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            _ => out.push(*byte),
        }
    }
    out
}

pub(super) fn js(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(first) = rest.first() {
        let (c, width) = decode(rest);
        let (head, tail) = rest.split_at(width.min(rest.len()));
        match first {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\'' => out.extend_from_slice(b"\\'"),
            b'"' => out.extend_from_slice(b"\\\""),
            b'<' | b'>' | b'&' | b'=' | 0..=0x1f => {
                out.extend_from_slice(b"\\u00");
                out.push(hex_digit(first >> 4));
                out.push(hex_digit(*first));
            }
            0x80.. if !is_print(c) => out.extend_from_slice(format!("\\u{:04X}", u32::from(c)).as_bytes()),
            _ => out.extend_from_slice(head),
        }
        rest = tail;
    }
    out
}

/// `url.QueryEscape`
pub(super) fn url_query(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16);
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(*byte),
            b' ' => out.push(b'+'),
            _ => out.extend_from_slice(&[b'%', hex_digit(byte >> 4), hex_digit(*byte)]),
        }
    }
    out
}
