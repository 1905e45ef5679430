//! Bytes on their way in, in pieces as large as they are asked for: Helm's library counts the place of a fault in
//! base64 from the piece that it was reading.

use super::Error;
use super::armor::Armored;

/// How many bytes are asked for at once when the length is not known, or only claimed.
const PIECE: usize = 512;

/// Where bytes come from.
#[derive(Debug)]
pub(super) enum Octets<'a> {
    /// These.
    Plain(&'a [u8]),
    /// Base64 between two lines of armor.
    Armored(Armored<'a>),
}

impl Octets<'_> {
    /// Reads at least one and at most `wanted` bytes.
    ///
    /// # Errors
    /// [`Error::End`] at the end; what is wrong with the armor.
    pub(super) fn read(&mut self, wanted: usize, into: &mut Vec<u8>) -> Result<usize, Error> {
        match self {
            Self::Plain([]) => Err(Error::End),
            Self::Plain(left) => {
                let (taken, rest) = left.split_at(wanted.min(left.len()));
                into.extend_from_slice(taken);
                *left = rest;
                Ok(taken.len())
            }
            Self::Armored(armored) => armored.read(wanted, into),
        }
    }

    /// The next byte.
    pub(super) fn octet(&mut self) -> Result<u8, Error> {
        let mut one = Vec::with_capacity(1);
        self.read(1, &mut one)?;
        one.first().copied().ok_or(Error::End)
    }
}

/// The content of one packet.
#[derive(Debug)]
pub(super) struct Body<'o, 'a> {
    octets: &'o mut Octets<'a>,
    extent: Extent,
}

/// How far a packet reaches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Extent {
    /// To the end of everything.
    Open,
    /// For so many bytes.
    Span(u64),
    /// For so many bytes, after which the next length follows.
    Partial(u64),
}

impl<'o, 'a> Body<'o, 'a> {
    pub(super) fn new(octets: &'o mut Octets<'a>, extent: Extent) -> Self {
        Self { octets, extent }
    }

    fn read(&mut self, wanted: usize, into: &mut Vec<u8>) -> Result<usize, Error> {
        loop {
            match &mut self.extent {
                Extent::Open => return self.octets.read(wanted, into),
                Extent::Span(0) => return Err(Error::End),
                Extent::Partial(0) => {
                    self.extent = length(self.octets)?;
                }
                Extent::Span(left) | Extent::Partial(left) => {
                    let piece = wanted.min(usize::try_from(*left).unwrap_or(usize::MAX));
                    let read = self.octets.read(piece, into).map_err(cut_off)?;
                    *left -= read as u64;
                    return Ok(read);
                }
            }
        }
    }

    /// Exactly so many bytes.
    ///
    /// # Errors
    /// [`Error::Truncated`] when there are fewer.
    pub(super) fn take(&mut self, count: usize) -> Result<Vec<u8>, Error> {
        let mut taken = Vec::with_capacity(count.min(PIECE));
        while taken.len() < count {
            self.read(count - taken.len(), &mut taken).map_err(cut_off)?;
        }
        Ok(taken)
    }

    /// Exactly so many bytes, as many as the type has.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.take(N)?.try_into().map_err(|_| Error::Truncated)
    }

    /// One byte.
    pub(super) fn octet(&mut self) -> Result<u8, Error> {
        let [octet] = self.array()?;
        Ok(octet)
    }

    /// Everything that is left.
    pub(super) fn rest(&mut self) -> Result<Vec<u8>, Error> {
        let mut rest = Vec::new();
        loop {
            match self.read(PIECE, &mut rest) {
                Ok(_) => {}
                Err(Error::End) => return Ok(rest),
                Err(error) => return Err(error),
            }
        }
    }

    /// Passes over what is left, also when it cannot be read.
    pub(super) fn skip(&mut self) {
        let mut dropped = Vec::new();
        while self.read(PIECE, &mut dropped).is_ok() {
            dropped.clear();
        }
    }
}

fn cut_off(error: Error) -> Error {
    match error {
        Error::End => Error::Truncated,
        other => other,
    }
}

/// The length of a packet of the new format, or of a piece of one (RFC 9580, section 4.2.1).
pub(super) fn length(octets: &mut Octets<'_>) -> Result<Extent, Error> {
    let first = octets.octet().map_err(cut_off)?;
    Ok(match first {
        0..192 => Extent::Span(first.into()),
        192..224 => {
            let second = octets.octet().map_err(cut_off)?;
            Extent::Span((u64::from(first - 192) << 8) + u64::from(second) + 192)
        }
        224..255 => Extent::Partial(1 << (first & 0x1f)),
        255 => Extent::Span(u32::from_be_bytes(Body::new(octets, Extent::Open).array()?).into()),
    })
}
