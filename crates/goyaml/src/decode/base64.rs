//! Base64 of `!!binary`, as lenient as Go's `base64.StdEncoding`: line breaks anywhere, any bits after the last byte.

/// The bytes, or nothing when the text is not padded base64.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut symbols = text.bytes().filter(|b| !matches!(b, b'\r' | b'\n')).peekable();
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    while symbols.peek().is_some() {
        let mut group = [0u32; 4];
        let mut padding = 0;
        for slot in &mut group {
            match symbols.next()? {
                b'=' => padding += 1,
                _ if padding > 0 => return None,
                symbol => *slot = digit(symbol)?,
            }
        }
        let bits = group.iter().fold(0, |bits, digit| bits << 6 | digit);
        let [_, bytes @ ..] = bits.to_be_bytes();
        let kept = 3usize.checked_sub(padding).filter(|kept| *kept > 0)?;
        out.extend(bytes.iter().take(kept));
        if padding > 0 {
            return symbols.next().is_none().then_some(out);
        }
    }
    Some(out)
}

fn digit(symbol: u8) -> Option<u32> {
    Some(u32::from(match symbol {
        b'A'..=b'Z' => symbol - b'A',
        b'a'..=b'z' => symbol - b'a' + 26,
        b'0'..=b'9' => symbol - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn as_lenient_as_go() {
        assert_eq!(decode("aGVsbG8=").as_deref(), Some(b"hello".as_slice()));
        assert_eq!(decode("aGVs\nbG8=\r\n").as_deref(), Some(b"hello".as_slice()));
        assert_eq!(
            decode("aGVsbG9="),
            Some(b"hello".to_vec()),
            "bits after the last byte"
        );
        assert_eq!(decode(""), Some(Vec::new()));
        for bad in ["a", "aGVsbG8", "a===", "====", "aGVsbG8=x", "aG=s", "a b=", "!"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
