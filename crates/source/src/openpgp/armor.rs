//! ASCII armor: base64 between two lines of dashes (RFC 9580, section 6). As in Helm's library a checksum ends the
//! base64 and is not compared, and what stands before the first line is passed over.

use super::Error;
use super::octets::Octets;

const START: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
/// A line that reaches this many bytes is no line of armor.
const LINE_MAX: usize = 100;
/// The longest line of base64.
const BASE64_LINE_MAX: usize = 96;
/// How many characters of base64 are decoded at once at most.
const CHUNK: usize = 1024;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// An armored block that was found.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// What the first line calls it, `PGP SIGNATURE` for one.
    pub(super) kind: &'a [u8],
    /// What it holds.
    pub(super) body: Armored<'a>,
}

/// Base64 that is decoded while it is read.
#[derive(Debug)]
pub(super) struct Armored<'a> {
    lines: &'a [u8],
    /// What is left of the line that was begun.
    line: &'a [u8],
    is_over: bool,
    /// Characters that make no whole group yet.
    pending: Vec<u8>,
    decoded: Vec<u8>,
    /// What is told when all that was decoded has been read.
    fault: Option<Error>,
}

/// Takes the first line off, with its end.
fn next_line<'a>(text: &mut &'a [u8]) -> Option<&'a [u8]> {
    if text.is_empty() {
        return None;
    }
    let end = text.iter().position(|byte| *byte == b'\n');
    let (line, rest) = text.split_at(end.map_or(text.len(), |end| end + 1));
    *text = rest;
    Some(line.strip_suffix(b"\n").unwrap_or(line))
}

/// The first armored block of a text, with what stands after its headers; none when there is none.
pub(super) fn decode(text: &[u8]) -> Option<Block<'_>> {
    let mut rest = text;
    'blocks: loop {
        let kind = loop {
            let line = next_line(&mut rest)?;
            if line.len() >= LINE_MAX {
                continue;
            }
            let line = line.trim_ascii();
            if line.len() > START.len() + DASHES.len()
                && let Some(kind) = line.strip_prefix(START)
            {
                break kind.get(..kind.len() - DASHES.len()).unwrap_or_default();
            }
        };
        // Headers are read and not used.
        loop {
            let line = next_line(&mut rest)?;
            if line.trim_ascii().is_empty() {
                break;
            }
            if line.len() < LINE_MAX && !line.contains(&b':') {
                continue 'blocks;
            }
        }
        return Some(Block {
            kind,
            body: Armored {
                lines: rest,
                line: &[],
                is_over: false,
                pending: Vec::new(),
                decoded: Vec::new(),
                fault: None,
            },
        });
    }
}

impl<'a> Block<'a> {
    /// The text after its headers, in which the next block is looked for.
    pub(super) fn after(&self) -> &'a [u8] {
        self.body.lines
    }

    /// Its content.
    pub(super) fn octets(self) -> Octets<'a> {
        Octets::Armored(self.body)
    }
}

impl<'a> Armored<'a> {
    /// At most so many characters of the next line.
    fn characters(&mut self, wanted: usize) -> Result<&'a [u8], Error> {
        while self.line.is_empty() {
            if self.is_over {
                return Err(Error::End);
            }
            let line = next_line(&mut self.lines).ok_or(Error::End)?;
            let corrupt = || Error::structural("armor invalid");
            if line.len() >= LINE_MAX {
                return Err(corrupt());
            }
            let line = line.trim_ascii();
            // The end, or a checksum before it.
            if line.starts_with(END) || (line.len() == 5 && line.starts_with(b"=")) {
                self.is_over = true;
                return Err(Error::End);
            }
            if line.len() > BASE64_LINE_MAX {
                return Err(corrupt());
            }
            self.line = line;
        }
        let (taken, rest) = self.line.split_at(wanted.min(self.line.len()));
        self.line = rest;
        Ok(taken)
    }

    /// See [`Octets::read`].
    pub(super) fn read(&mut self, wanted: usize, into: &mut Vec<u8>) -> Result<usize, Error> {
        if self.decoded.is_empty() {
            if let Some(fault) = &self.fault {
                return Err(fault.clone());
            }
            self.refill(wanted)?;
        }
        let count = wanted.min(self.decoded.len());
        into.extend(self.decoded.drain(..count));
        Ok(count)
    }

    fn refill(&mut self, wanted: usize) -> Result<(), Error> {
        let room = (wanted / 3 * 4).clamp(4, CHUNK);
        while self.pending.len() < 4 {
            match self.characters(room - self.pending.len()) {
                Ok(characters) => self.pending.extend_from_slice(characters),
                Err(error) => {
                    // It is told again to whoever goes on reading.
                    let fault = match error {
                        Error::End if !self.pending.is_empty() => Error::Truncated,
                        error => error,
                    };
                    self.fault = Some(fault.clone());
                    return Err(fault);
                }
            }
        }
        let whole = self.pending.len() / 4 * 4;
        let characters: Vec<u8> = self.pending.drain(..whole).collect();
        self.fault = decode_groups(&characters, &mut self.decoded).err();
        match &self.fault {
            Some(fault) if self.decoded.is_empty() => Err(fault.clone()),
            _ => Ok(()),
        }
    }
}

/// Decodes groups of four characters as Go does; what was right before a fault is kept.
fn decode_groups(characters: &[u8], into: &mut Vec<u8>) -> Result<(), Error> {
    let mut at = 0;
    while at < characters.len() {
        let mut group = [0_u8; 4];
        let mut length = 4;
        let mut index = 0;
        while index < 4 {
            let Some(character) = characters.get(at).copied() else {
                // Carriage returns took the place of characters.
                return if index == 0 {
                    Ok(())
                } else {
                    Err(Error::Base64(at - index))
                };
            };
            at += 1;
            if let Some(value) = ALPHABET.iter().position(|known| *known == character) {
                if let (Some(slot), Ok(value)) = (group.get_mut(index), u8::try_from(value)) {
                    *slot = value;
                }
                index += 1;
                continue;
            }
            match (character, index) {
                (b'\r' | b'\n', _) => continue,
                (b'=', 2) => match characters.get(at) {
                    None => return Err(Error::Base64(characters.len())),
                    Some(b'=') => at += 1,
                    Some(_) => return Err(Error::Base64(at - 1)),
                },
                (b'=', 3) => {}
                _ => return Err(Error::Base64(at - 1)),
            }
            length = index;
            break;
        }
        let [a, b, c, d] = group;
        let bytes = [a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d];
        into.extend_from_slice(bytes.get(..length - 1).unwrap_or_default());
        if length < 4 && at < characters.len() {
            return Err(Error::Base64(at));
        }
        if length < 4 {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<u8>, Error> {
        let mut octets = decode(text.as_bytes()).unwrap().octets();
        let mut all = Vec::new();
        loop {
            match octets.read(7, &mut all) {
                Ok(_) => {}
                Err(Error::End) => return Ok(all),
                Err(error) => return Err(error),
            }
        }
    }

    #[test]
    fn base64_between_dashes_is_decoded() {
        let body = "Zm9vYmFy\n  YmF6cXV4 \n\nMQ==\n=AAAA\nrest";
        let text = format!("noise\n-----BEGIN PGP X-----\nVersion: 1\n\n{body}");
        assert_eq!(read(&text).unwrap(), b"foobarbazqux1");
        let block = decode(text.as_bytes()).unwrap();
        assert_eq!(block.kind, b"PGP X");
        assert!(decode(b"nothing\n").is_none());
        assert!(decode(b"-----BEGIN PGP X-----\nA: b\n").is_none());
        // What looks like a block and has no headers is passed over.
        let second = format!("-----BEGIN PGP X-----\nno header\n{text}");
        assert_eq!(read(&second).unwrap(), b"foobarbazqux1");
    }

    #[test]
    fn faults_are_found_where_go_finds_them() {
        let fault = |body: &str| read(&format!("-----BEGIN PGP X-----\n\n{body}\n-----END PGP X-----\n"));
        assert_eq!(fault("Zm9vYmFyYmF6"), Ok(b"foobarbaz".to_vec()));
        assert_eq!(fault("Zm9"), Err(Error::Truncated));
        assert_eq!(fault("Zm9*"), Err(Error::Base64(3)));
        assert_eq!(fault("=m9v"), Err(Error::Base64(0)));
        assert_eq!(fault("Zm==Zm9v"), Err(Error::Base64(4)));
        assert_eq!(fault("Zm=v"), Err(Error::Base64(3 - 1)));
        assert_eq!(fault(&"A".repeat(97)), Err(Error::structural("armor invalid")));
        assert_eq!(fault(&"A".repeat(100)), Err(Error::structural("armor invalid")));
    }
}
