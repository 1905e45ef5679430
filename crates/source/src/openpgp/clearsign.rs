//! The clear-signed text format (RFC 9580, section 7).

use super::armor::{self, Block};

const START: &[u8] = b"\n-----BEGIN PGP SIGNED MESSAGE-----";
const SIGNATURE: &[u8] = b"-----BEGIN PGP SIGNATURE-----";
const END: &[u8] = b"\n-----END PGP SIGNATURE-----";
/// What may be named as hash; it is not compared with what the signature uses.
const HASHES: [&str; 9] = [
    "MD5",
    "SHA1",
    "RIPEMD160",
    "SHA224",
    "SHA256",
    "SHA384",
    "SHA512",
    "SHA3-256",
    "SHA3-512",
];

/// A text with its signature.
#[derive(Debug)]
pub(crate) struct ClearSigned<'a> {
    /// The text, its lines ended by LF.
    pub(crate) text: Vec<u8>,
    /// What was signed: the text, its lines ended by CR LF and without spaces before that.
    pub(super) signed: Vec<u8>,
    pub(super) signature: Block<'a>,
}

/// The first line without its end, and the rest.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| *byte == b'\n') {
        Some(end) => {
            let (line, rest) = (
                text.get(..end).unwrap_or_default(),
                text.get(end + 1..).unwrap_or_default(),
            );
            (line.strip_suffix(b"\r").unwrap_or(line), rest)
        }
        None => (text, &[]),
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

impl<'a> ClearSigned<'a> {
    /// The first signed text; none when there is none, or none that is well formed.
    pub(crate) fn decode(data: &'a [u8]) -> Option<Self> {
        let marker = START.get(1..).unwrap_or_default();
        let rest = match data.strip_prefix(marker) {
            Some(rest) => rest,
            None => data.get(find(data, START)? + START.len()..)?,
        };
        let (suffix, mut rest) = line(rest);
        if !suffix.is_empty() {
            return None;
        }
        loop {
            if rest.is_empty() {
                return None;
            }
            let (header, after) = line(rest);
            rest = after;
            if header.trim_ascii().is_empty() {
                break;
            }
            if !is_header(header) {
                return None;
            }
        }
        let (mut text, mut signed) = (Vec::new(), Vec::new());
        let armored = loop {
            let start = rest;
            let (one, after) = line(rest);
            rest = after;
            if one.is_empty() && rest.is_empty() {
                return None;
            }
            if one == SIGNATURE {
                break start;
            }
            // The end of the last line is not signed.
            if !text.is_empty() {
                signed.extend_from_slice(b"\r\n");
            }
            let one = one.strip_prefix(b"- ").unwrap_or(one);
            let kept = one
                .iter()
                .rposition(|byte| !matches!(byte, b' ' | b'\t'))
                .map_or(0, |last| last + 1);
            let one = one.get(..kept).unwrap_or_default();
            signed.extend_from_slice(one);
            text.extend_from_slice(one);
            text.push(b'\n');
        };
        // Helm's library fails on a text without a line.
        text.pop()?;
        let end = find(armored, END)? + END.len();
        let signature = armor::decode(armored.get(..end)?)?;
        Some(Self {
            text,
            signed,
            signature,
        })
    }
}

fn is_header(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else {
        return false;
    };
    if !line.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) {
        return false;
    }
    let Some((key, hashes)) = line.split_once(':') else {
        return false;
    };
    key.trim() == "Hash"
        && hashes
            .split(',')
            .all(|hash| HASHES.contains(&hash.trim().to_ascii_uppercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "-----BEGIN PGP SIGNATURE-----\n\nZm9v\n-----END PGP SIGNATURE-----\n";

    fn decode(head: &str, body: &str) -> Option<(String, String)> {
        let text = format!("-----BEGIN PGP SIGNED MESSAGE-----\n{head}\n{body}{BLOCK}");
        let found = ClearSigned::decode(text.as_bytes())?;
        Some((
            String::from_utf8(found.text).unwrap(),
            String::from_utf8(found.signed).unwrap(),
        ))
    }

    #[test]
    fn dashes_and_spaces_are_undone() {
        let found = decode("Hash: sha512, SHA256\n", "a \t\n- - b\r\n- -----BEGIN X\n\nc\n");
        let (text, signed) = found.unwrap();
        assert_eq!(text, "a\n- b\n-----BEGIN X\n\nc");
        assert_eq!(signed, "a\r\n- b\r\n-----BEGIN X\r\n\r\nc");
    }

    #[test]
    fn what_is_malformed_is_no_signed_text() {
        assert!(decode("", "a\n").is_some());
        for head in ["Hash: MD6\n", "Comment: x\n", "Hash\n", "Hash: SHA256\u{7f}\n"] {
            assert!(decode(head, "a\n").is_none(), "{head}");
        }
        assert!(decode("", "").is_none());
        assert!(ClearSigned::decode(b"-----BEGIN PGP SIGNED MESSAGE----- \n\na\n").is_none());
        assert!(ClearSigned::decode(b"-----BEGIN PGP SIGNED MESSAGE-----\n\na\n").is_none());
        let late = format!("prefix\n-----BEGIN PGP SIGNED MESSAGE-----\n\na\n{BLOCK}");
        assert!(ClearSigned::decode(late.as_bytes()).is_some());
        let open = BLOCK.replace("\n-----END", "\n---END");
        let open = format!("-----BEGIN PGP SIGNED MESSAGE-----\n\na\n{open}");
        assert!(ClearSigned::decode(open.as_bytes()).is_none());
    }
}
