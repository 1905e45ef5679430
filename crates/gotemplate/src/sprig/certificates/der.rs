//! DER (X.690) as Go's `encoding/asn1` and `cryptobyte` write and read it.

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OID: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// A context-specific tag around other elements.
pub(super) const fn explicit(number: u8) -> u8 {
    0xa0 | number
}

/// A context-specific tag in place of a primitive one.
pub(super) const fn implicit(number: u8) -> u8 {
    0x80 | number
}

/// Tag, length, content.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 6);
    out.push(tag);
    let length = content.len();
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let skipped = bytes.iter().take_while(|byte| **byte == 0).count();
        out.push(0x80 | (bytes.len() - skipped) as u8);
        out.extend(bytes.iter().skip(skipped));
    }
    out.extend_from_slice(content);
    out
}

/// An element made of others.
pub(super) fn group<P: AsRef<[u8]>>(tag: u8, parts: &[P]) -> Vec<u8> {
    let content: Vec<u8> = parts.iter().flat_map(|part| part.as_ref()).copied().collect();
    element(tag, &content)
}

pub(super) fn sequence<P: AsRef<[u8]>>(parts: &[P]) -> Vec<u8> {
    group(SEQUENCE, parts)
}

/// An INTEGER that is not negative, from its big-endian bytes.
pub(super) fn unsigned(bytes: &[u8]) -> Vec<u8> {
    let skipped = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut content = Vec::with_capacity(bytes.len() + 1);
    if bytes.get(skipped).is_none_or(|first| *first >= 0x80) {
        content.push(0);
    }
    content.extend(bytes.iter().skip(skipped));
    element(INTEGER, &content)
}

/// A BIT STRING of whole bytes.
pub(super) fn bits(bytes: &[u8]) -> Vec<u8> {
    group(BIT_STRING, &[&[0], bytes])
}

/// One element as read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'d> {
    pub(super) tag: u8,
    /// With tag and length.
    pub(super) whole: &'d [u8],
    pub(super) content: &'d [u8],
}

impl<'d> Element<'d> {
    pub(super) fn reader(self) -> Reader<'d> {
        Reader(self.content)
    }
}

/// Reads one element after the other; what is not DER reads as nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'d>(pub(super) &'d [u8]);

impl<'d> Reader<'d> {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next element, whatever it is.
    pub(super) fn any(&mut self) -> Option<Element<'d>> {
        let [tag, length, rest @ ..] = self.0 else {
            return None;
        };
        // Tags of more than one byte do not occur in keys and certificates.
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (length, rest) = if *length < 0x80 {
            (usize::from(*length), rest)
        } else {
            let count = usize::from(length & 0x7f);
            let (digits, rest) = rest.split_at_checked(count)?;
            let is_minimal = digits.first().is_some_and(|first| *first != 0);
            if !is_minimal || count > 4 {
                return None;
            }
            let length = digits
                .iter()
                .fold(0usize, |sum, digit| sum << 8 | usize::from(*digit));
            if length < 0x80 {
                return None;
            }
            (length, rest)
        };
        let (content, after) = rest.split_at_checked(length)?;
        let whole = self.0.get(..self.0.len() - after.len())?;
        self.0 = after;
        Some(Element {
            tag: *tag,
            whole,
            content,
        })
    }

    /// The next element if it has this tag; nothing is taken otherwise.
    pub(super) fn take(&mut self, tag: u8) -> Option<Element<'d>> {
        let mut ahead = *self;
        let element = ahead.any().filter(|element| element.tag == tag)?;
        *self = ahead;
        Some(element)
    }

    pub(super) fn peek(&self, tag: u8) -> bool {
        self.0.first() == Some(&tag)
    }

    /// Content of an INTEGER in its shortest form.
    pub(super) fn integer(&mut self) -> Option<&'d [u8]> {
        let content = self.take(INTEGER)?.content;
        match content {
            [] | [0x00, 0x00..=0x7f, ..] | [0xff, 0x80..=0xff, ..] => None,
            _ => Some(content),
        }
    }

    /// An INTEGER that fits a small number.
    pub(super) fn small(&mut self) -> Option<i64> {
        let content = self.integer()?;
        let (first, rest) = content.split_first()?;
        if content.len() > 8 {
            return None;
        }
        let start = i64::from(first.cast_signed());
        Some(rest.iter().fold(start, |sum, byte| sum << 8 | i64::from(*byte)))
    }

    /// Content of an OBJECT IDENTIFIER.
    pub(super) fn oid(&mut self) -> Option<&'d [u8]> {
        let content = self.take(OID)?.content;
        // The last byte of a number has no continuation bit, and no number begins with a byte of zero bits.
        let is_sound = content.last().is_some_and(|last| last & 0x80 == 0)
            && content.first() != Some(&0x80)
            && !content
                .array_windows()
                .any(|[before, byte]| before & 0x80 == 0 && *byte == 0x80);
        is_sound.then_some(content)
    }

    /// The bytes of a BIT STRING that has no unused bits.
    pub(super) fn whole_bits(&mut self) -> Option<&'d [u8]> {
        let (unused, bytes) = self.take(BIT_STRING)?.content.split_first()?;
        (*unused == 0).then_some(bytes)
    }
}

/// `1.2.840.…` of an OBJECT IDENTIFIER's content.
pub(super) fn oid_text(content: &[u8]) -> String {
    let mut numbers: Vec<u64> = Vec::new();
    let mut number = 0u64;
    for byte in content {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        if numbers.is_empty() {
            let first = (number / 40).min(2);
            numbers.push(first);
            number -= first * 40;
        }
        numbers.push(number);
        number = 0;
    }
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    texts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_as_few_bytes_as_they_can() {
        for (length, head) in [
            (0, vec![4, 0]),
            (127, vec![4, 127]),
            (128, vec![4, 0x81, 128]),
            (256, vec![4, 0x82, 1, 0]),
        ] {
            let out = element(OCTET_STRING, &vec![7; length]);
            assert!(out.starts_with(&head), "{length}");
            let mut reader = Reader(&out);
            assert_eq!(reader.take(OCTET_STRING).unwrap().content.len(), length);
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn integers_are_short_and_not_negative() {
        assert_eq!(unsigned(&[]), [2, 1, 0]);
        assert_eq!(unsigned(&[0, 0, 5]), [2, 1, 5]);
        assert_eq!(unsigned(&[0x80]), [2, 2, 0, 0x80]);
        assert_eq!(Reader(&[2, 1, 0xff]).small(), Some(-1));
        assert_eq!(Reader(&[2, 2, 1, 0]).small(), Some(256));
    }

    #[test]
    fn what_is_not_der_is_not_read() {
        for bytes in [
            &[][..],
            &[0x30],
            &[0x30, 0x01],
            &[0x30, 0x80],
            &[0x30, 0x81, 0x05, 1, 2, 3, 4, 5],
            &[0x30, 0x85, 1, 1, 1, 1, 1],
            &[0x1f, 0x81, 0x01, 0x00],
        ] {
            assert!(Reader(bytes).any().is_none(), "{bytes:?}");
        }
        for bytes in [&[2, 0][..], &[2, 2, 0, 1], &[2, 2, 0xff, 0xff]] {
            assert_eq!(Reader(bytes).integer(), None, "{bytes:?}");
        }
        for bytes in [
            &[6, 0][..],
            &[6, 1, 0x80],
            &[6, 2, 0x2a, 0x86],
            &[6, 3, 0x2a, 0x80, 1],
        ] {
            assert_eq!(Reader(bytes).oid(), None, "{bytes:?}");
        }
    }

    #[test]
    fn identifiers_have_texts() {
        assert_eq!(
            oid_text(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01]),
            "1.2.840.10045.2.1"
        );
        assert_eq!(oid_text(&[0x55, 0x1d, 0x0e]), "2.5.29.14");
        assert_eq!(oid_text(&[0x88, 0x37]), "2.999");
    }
}
