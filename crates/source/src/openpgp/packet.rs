//! Packets in the order in which they come (RFC 9580, section 4).

use super::Error;
use super::octets::{Body, Extent, Octets, length};
use super::public_key::{KeyPacket, read_key, read_secret_key};
use super::signature::Signature;

const SIGNATURE: u8 = 2;
const SECRET_KEY: u8 = 5;
const PUBLIC_KEY: u8 = 6;
const SECRET_SUBKEY: u8 = 7;
const MARKER: u8 = 10;
const TRUST: u8 = 12;
const USER_ID: u8 = 13;
const PUBLIC_SUBKEY: u8 = 14;
/// Packets that are known and mean nothing here: sessions, messages, pictures, padding.
const OTHERS: [u8; 11] = [1, 3, 4, 8, 9, 11, 17, 18, 20, 21, MARKER];
/// From this type on a packet need not be known.
const NOT_CRITICAL: u8 = 40;

/// One packet.
#[derive(Debug)]
pub(super) enum Packet {
    Signature(Box<Signature>),
    Key(Box<KeyPacket>),
    UserId(Vec<u8>),
    /// One that is passed over in a keyring.
    Other,
}

/// Reads packets; what cannot be used and need not be known is passed over.
#[derive(Debug)]
pub(super) struct Packets<'a> {
    octets: Octets<'a>,
    put_back: Option<Packet>,
}

impl<'a> Packets<'a> {
    pub(super) fn new(octets: Octets<'a>) -> Self {
        Self {
            octets,
            put_back: None,
        }
    }

    /// The next packet; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Packet>, Error> {
        if let Some(packet) = self.put_back.take() {
            return Ok(Some(packet));
        }
        loop {
            match read(&mut self.octets) {
                Ok(Some(packet)) => return Ok(Some(packet)),
                // A marker, or what this reader does not know.
                Ok(None) | Err(Error::UnknownPacket(_) | Error::Unsupported(_)) => {}
                Err(Error::End) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Lets a packet be the next one again.
    pub(super) fn put_back(&mut self, packet: Packet) {
        self.put_back = Some(packet);
    }
}

fn read(octets: &mut Octets<'_>) -> Result<Option<Packet>, Error> {
    let (kind, mut body) = header(octets)?;
    let packet = match kind {
        SIGNATURE => Signature::read(&mut body).map(|signature| Packet::Signature(Box::new(signature))),
        PUBLIC_KEY | PUBLIC_SUBKEY => {
            read_key(&mut body, kind == PUBLIC_SUBKEY).map(|key| Packet::Key(Box::new(key)))
        }
        SECRET_KEY | SECRET_SUBKEY => {
            read_secret_key(&mut body, kind == SECRET_SUBKEY).map(|key| Packet::Key(Box::new(key)))
        }
        USER_ID => body.rest().map(Packet::UserId),
        kind if OTHERS.contains(&kind) => Ok(Packet::Other),
        TRUST | NOT_CRITICAL.. => Err(Error::UnknownPacket(kind)),
        kind => Err(Error::UnknownCriticalPacket(kind)),
    };
    // As in Helm's library, what a key or signature does not take up is read as the next packet.
    if !matches!(packet, Ok(Packet::Key(_) | Packet::Signature(_))) {
        body.skip();
    }
    Ok(Some(packet?).filter(|_| kind != MARKER))
}

fn header<'o, 'a>(octets: &'o mut Octets<'a>) -> Result<(u8, Body<'o, 'a>), Error> {
    let first = octets.octet()?;
    if first & 0x80 == 0 {
        return Err(Error::structural("tag byte does not have MSB set"));
    }
    if first & 0x40 != 0 {
        let extent = length(octets)?;
        return Ok((first & 0x3f, Body::new(octets, extent)));
    }
    // The old format says how many bytes its length takes.
    let extent = match first & 3 {
        3 => Extent::Open,
        size => {
            let bytes = Body::new(octets, Extent::Open).take(1 << size)?;
            Extent::Span(
                bytes
                    .iter()
                    .fold(0, |length, byte| length << 8 | u64::from(*byte)),
            )
        }
    };
    Ok(((first & 0x3f) >> 2, Body::new(octets, extent)))
}
