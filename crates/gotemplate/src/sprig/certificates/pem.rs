//! PEM as Go's `encoding/pem` writes and reads it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::sprig::encoding::decode_base64;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"\n-----END ";
const DASHES: &[u8] = b"-----";
/// Base64 characters on one line.
const LINE: usize = 64;

/// A PEM block; headers are skipped.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// What the block says it is: `CERTIFICATE`, `RSA PRIVATE KEY`.
    pub(super) label: Vec<u8>,
    pub(super) bytes: Vec<u8>,
}

/// Writes a block.
pub(super) fn encode(label: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(LINE).unwrap_or((rest, ""));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out.push_str("-----END ");
    out.push_str(label);
    out.push_str("-----\n");
    out
}

/// The first block of a text, as `pem.Decode` finds it: text before it is passed over, and so are blocks that are
/// not well formed.
pub(super) fn decode(text: &[u8]) -> Option<Block> {
    let mut rest = text;
    loop {
        let end = find(rest, END)?;
        let after_end = rest.get(end + END.len()..)?;
        // The last beginning before the end, so that one without an end does not hide the block.
        let block = rest.get(..end).and_then(|before| {
            let begin = rfind(before, BEGIN)?;
            let at_line_start = begin == 0 || before.get(begin - 1) == Some(&b'\n');
            at_line_start.then(|| rest.get(begin + BEGIN.len()..)).flatten()
        });
        if let Some(block) = block.and_then(|block| read(block, after_end)) {
            return Some(block);
        }
        rest = after_end;
    }
}

/// Reads the block whose label begins `block` and whose end label begins `after_end`.
fn read(block: &[u8], after_end: &[u8]) -> Option<Block> {
    let (label, mut body) = line(block);
    let label = label.strip_suffix(DASHES)?;
    let mut has_headers = false;
    loop {
        if body.is_empty() {
            return None;
        }
        let (header, next) = line(body);
        if !header.contains(&b':') {
            break;
        }
        body = next;
        has_headers = true;
    }
    let tail = after_end.strip_prefix(label)?.strip_prefix(DASHES)?;
    if !line(tail).0.is_empty() {
        return None;
    }
    // An empty block has no body: its label line ends with the line break that the end begins with. Headers need a
    // line break of their own.
    let data = match body.len().checked_sub(after_end.len() + END.len()) {
        Some(length) => body.get(..length)?,
        None if has_headers => return None,
        None => &[],
    };
    let data: Vec<u8> = data
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b' ' | b'\t'))
        .collect();
    Some(Block {
        label: label.to_vec(),
        bytes: decode_base64(&data).ok()?,
    })
}

/// A line without its break and trailing blanks, and what follows it.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match memchr::memchr(b'\n', text) {
        Some(at) => {
            let line = text.get(..at).unwrap_or_default();
            (
                line.strip_suffix(b"\r").unwrap_or(line),
                text.get(at + 1..).unwrap_or_default(),
            )
        }
        None => (text, [].as_slice()),
    };
    let blanks = line
        .iter()
        .rev()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    (line.get(..line.len() - blanks).unwrap_or_default(), rest)
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, pattern)
}

fn rfind(text: &[u8], pattern: &[u8]) -> Option<usize> {
    memchr::memmem::rfind(text, pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, String)> {
        let block = decode(text.as_bytes())?;
        Some((
            String::from_utf8(block.label).unwrap(),
            String::from_utf8(block.bytes).unwrap(),
        ))
    }

    fn is(label: &str, bytes: &str) -> Option<(String, String)> {
        Some((label.to_owned(), bytes.to_owned()))
    }

    #[test]
    fn a_block_reads_as_written() {
        for length in [0, 1, 47, 48, 49, 200] {
            let bytes = vec![b'x'; length];
            let text = encode("A B", &bytes);
            assert!(text.lines().all(|line| line.len() <= LINE), "{text}");
            assert_eq!(decode(text.as_bytes()).unwrap().bytes, bytes, "{text}");
        }
        assert_eq!(encode("X", b"abc"), "-----BEGIN X-----\nYWJj\n-----END X-----\n");
    }

    /// Each as Go 1.26 reads it.
    #[test]
    fn reads_what_go_reads() {
        for (text, expected) in [
            ("-----BEGIN X-----\nYWJj\n-----END X-----", is("X", "abc")),
            (
                "hello\n-----BEGIN X-----\nYWJj\n-----END X-----\nbye",
                is("X", "abc"),
            ),
            ("-----BEGIN X-----\r\nYWJj\r\n-----END X-----\r\n", is("X", "abc")),
            (
                "-----BEGIN X-----  \n YW Jj\t\n-----END X-----  \n",
                is("X", "abc"),
            ),
            (
                "-----BEGIN X-----\nA: b\nC: d\n\nYWJj\n-----END X-----\n",
                is("X", "abc"),
            ),
            ("-----BEGIN X-----\n-----END X-----\n", is("X", "")),
            (
                "-----BEGIN Y-----\n-----BEGIN X-----\nYWJj\n-----END X-----\n",
                is("X", "abc"),
            ),
            (
                "-----BEGIN X-----\n!!!\n-----END X-----\n-----BEGIN Y-----\nYWJj\n-----END Y-----\n",
                is("Y", "abc"),
            ),
            ("x-----BEGIN X-----\nYWJj\n-----END X-----\n", None),
            ("  -----BEGIN X-----\n  YWJj\n  -----END X-----\n", None),
            ("-----BEGIN X-----\nA: b\n\n-----END X-----\n", is("X", "")),
            ("-----BEGIN X-----\nA: b\n-----END X-----\n", None),
            ("-----BEGIN X-----\nYWJj\n-----END Y-----\n", None),
            ("-----BEGIN X-----\nYWJj\n-----END X-----junk\n", None),
            ("-----BEGIN X-----YWJj\n-----END X-----\n", None),
            ("-----BEGIN X-----\nYWJj-----END X-----\n", None),
            ("", None),
            ("YWJj", None),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }
}
