//! Signatures (RFC 9580, section 5.2).

use super::Error;
use super::octets::{Body, Extent, Octets};
use super::public_key::{PublicKey, algorithm};

/// What a signature is about.
pub(super) mod kind {
    pub(in super::super) const BINARY: u8 = 0x00;
    pub(in super::super) const TEXT: u8 = 0x01;
    pub(in super::super) const CERTIFICATIONS: std::ops::RangeInclusive<u8> = 0x10..=0x13;
    pub(in super::super) const SUBKEY_BINDING: u8 = 0x18;
    pub(in super::super) const PRIMARY_KEY_BINDING: u8 = 0x19;
    pub(in super::super) const DIRECT_KEY: u8 = 0x1f;
    pub(in super::super) const KEY_REVOCATION: u8 = 0x20;
    pub(in super::super) const SUBKEY_REVOCATION: u8 = 0x28;
    pub(in super::super) const CERTIFICATION_REVOCATION: u8 = 0x30;
}

/// The types of subpackets that are read.
mod subpacket {
    pub(super) const CREATED: u8 = 2;
    pub(super) const LIFETIME: u8 = 3;
    pub(super) const EXPORTABLE: u8 = 4;
    pub(super) const TRUST: u8 = 5;
    pub(super) const REGULAR_EXPRESSION: u8 = 6;
    pub(super) const KEY_LIFETIME: u8 = 9;
    pub(super) const ISSUER: u8 = 16;
    pub(super) const NOTATION: u8 = 20;
    pub(super) const PRIMARY_USER: u8 = 25;
    pub(super) const KEY_FLAGS: u8 = 27;
    pub(super) const REVOCATION_REASON: u8 = 29;
    pub(super) const EMBEDDED: u8 = 32;
    pub(super) const ISSUER_FINGERPRINT: u8 = 33;
    pub(super) const RECIPIENT: u8 = 35;
    pub(super) const CIPHER_SUITES: u8 = 39;
    /// Preferences, policies and features, which say nothing about who signed.
    pub(super) const OTHERS: [u8; 8] = [11, 21, 22, 23, 24, 26, 28, 30];
}

/// A key may sign.
const FLAG_SIGN: u8 = 0x02;
/// Why a key was revoked: somebody else has it.
const COMPROMISED: u8 = 2;
/// How deep signatures may lie in signatures. One in another is all that is of use.
const DEPTH_MAX: u8 = 4;

/// A hash function that signatures use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Sha3_256,
    Sha3_512,
}

/// A signature.
#[derive(Debug)]
pub(super) struct Signature {
    pub(super) version: u8,
    pub(super) kind: u8,
    pub(super) algorithm: u8,
    pub(super) hash: Hash,
    /// What is hashed before everything else.
    pub(super) salt: Vec<u8>,
    /// What is hashed after everything else.
    pub(super) suffix: Vec<u8>,
    /// How the hash begins.
    pub(super) tag: [u8; 2],
    pub(super) numbers: Numbers,
    /// Seconds since 1970.
    pub(super) created: i64,
    pub(super) lifetime: Option<u32>,
    pub(super) key_lifetime: Option<u32>,
    pub(super) issuer: Option<u64>,
    pub(super) issuer_fingerprint: Option<Vec<u8>>,
    pub(super) is_primary_user: bool,
    /// The names of notations that have to be understood.
    pub(super) critical_notations: Vec<String>,
    /// Whether it says that its key may sign; none when it says nothing of what the key may do.
    pub(super) may_sign: Option<bool>,
    /// Whether it revokes a key because somebody else has it.
    pub(super) is_compromised: bool,
    /// By a subkey over the key that it belongs to.
    pub(super) embedded: Option<Box<Signature>>,
}

/// The numbers of a signature, big-endian as they were written.
#[derive(Debug)]
pub(super) enum Numbers {
    Rsa(Vec<u8>),
    /// Of DSA, ECDSA and EdDSA.
    Pair(Vec<u8>, Vec<u8>),
    Ed25519(Vec<u8>),
    Ed448,
}

/// What the subpackets say.
#[derive(Debug, Default)]
struct Said {
    /// In how many signatures this one lies.
    depth: u8,
    created: Option<i64>,
    lifetime: Option<u32>,
    key_lifetime: Option<u32>,
    issuer: Option<u64>,
    issuer_fingerprint: Option<Vec<u8>>,
    is_primary_user: bool,
    critical_notations: Vec<String>,
    may_sign: Option<bool>,
    is_compromised: bool,
    embedded: Option<Box<Signature>>,
}

impl Hash {
    fn of(number: u8, version: u8) -> Option<Self> {
        Some(match number {
            2 if version < 5 => Self::Sha1,
            8 => Self::Sha256,
            9 => Self::Sha384,
            10 => Self::Sha512,
            11 => Self::Sha224,
            12 => Self::Sha3_256,
            14 => Self::Sha3_512,
            _ => return None,
        })
    }

    /// How long the salt of a version 6 signature is, in bytes.
    fn salt(self) -> Result<usize, Error> {
        match self {
            Self::Sha224 | Self::Sha256 | Self::Sha3_256 => Ok(16),
            Self::Sha384 => Ok(24),
            Self::Sha512 | Self::Sha3_512 => Ok(32),
            Self::Sha1 => Err(Error::unsupported(
                "hash function not supported for V6 signatures",
            )),
        }
    }
}

impl Signature {
    /// Reads the content of a signature's packet.
    pub(super) fn read(body: &mut Body<'_, '_>) -> Result<Self, Error> {
        Self::read_at(body, 0)
    }

    fn read_at(body: &mut Body<'_, '_>, depth: u8) -> Result<Self, Error> {
        use algorithm::{DSA, ECDSA, ED448, ED25519, EDDSA, RSA, RSA_SIGN};
        let version = body.octet()?;
        if !matches!(version, 4 | 6) {
            return Err(Error::unsupported(format!("signature packet version {version}")));
        }
        let head = body.take(if version == 6 { 7 } else { 5 })?;
        let &[kind, algorithm, number, ref length @ ..] = head.as_slice() else {
            return Err(Error::Truncated);
        };
        if !matches!(algorithm, RSA | RSA_SIGN | DSA | ECDSA | EDDSA | ED25519 | ED448) {
            return Err(Error::unsupported(format!("public key algorithm {algorithm}")));
        }
        let hash =
            Hash::of(number, version).ok_or_else(|| Error::unsupported(format!("hash function {number}")))?;
        let hashed = body.take(big_endian(length))?;
        let suffix = suffix(version, &head, &hashed);
        let mut said = Said {
            depth,
            ..Said::default()
        };
        said.read(version, &hashed, true)?;
        let length = body.take(if version == 6 { 4 } else { 2 })?;
        let unhashed = body.take(big_endian(&length))?;
        said.read(version, &unhashed, false)?;
        let created = said.created.ok_or_else(no_time)?;
        let tag = body.array()?;
        let mut salt = Vec::new();
        if version == 6 {
            let length = usize::from(body.octet()?);
            if length != hash.salt()? {
                return Err(Error::structural(
                    "unexpected salt size for the given hash algorithm",
                ));
            }
            salt = body.take(length)?;
        }
        let numbers = match algorithm {
            RSA | RSA_SIGN => Numbers::Rsa(mpi(body)?),
            DSA | ECDSA | EDDSA => Numbers::Pair(mpi(body)?, mpi(body)?),
            ED25519 => Numbers::Ed25519(body.take(64)?),
            _ => {
                body.take(114)?;
                Numbers::Ed448
            }
        };
        Ok(Self {
            version,
            kind,
            algorithm,
            hash,
            salt,
            suffix,
            tag,
            numbers,
            created,
            lifetime: said.lifetime,
            key_lifetime: said.key_lifetime,
            issuer: said.issuer,
            issuer_fingerprint: said.issuer_fingerprint,
            is_primary_user: said.is_primary_user,
            critical_notations: said.critical_notations,
            may_sign: said.may_sign,
            is_compromised: said.is_compromised,
            embedded: said.embedded,
        })
    }

    /// Whether it says that this key made it.
    pub(super) fn names(&self, key: &PublicKey) -> bool {
        match &self.issuer_fingerprint {
            Some(fingerprint) => *fingerprint == key.fingerprint,
            None => self.issuer == Some(key.id),
        }
    }

    /// Whether a moment lies outside of its life.
    pub(super) fn is_expired(&self, now: i64) -> bool {
        self.created > now
            || self
                .lifetime
                .filter(|seconds| *seconds != 0)
                .is_some_and(|seconds| now > self.created + i64::from(seconds))
    }
}

fn no_time() -> Error {
    Error::structural("no creation time in signature")
}

fn big_endian(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}

fn mpi(body: &mut Body<'_, '_>) -> Result<Vec<u8>, Error> {
    let bits = big_endian(&body.take(2)?);
    body.take(bits.div_ceil(8))
}

fn suffix(version: u8, head: &[u8], hashed: &[u8]) -> Vec<u8> {
    let mut suffix = Vec::with_capacity(head.len() + hashed.len() + 7);
    suffix.push(version);
    suffix.extend_from_slice(head);
    suffix.extend_from_slice(hashed);
    let length = u32::try_from(suffix.len()).unwrap_or(u32::MAX);
    suffix.extend_from_slice(&[version, 0xff]);
    suffix.extend_from_slice(&length.to_be_bytes());
    suffix
}

impl Said {
    fn read(&mut self, version: u8, subpackets: &[u8], is_hashed: bool) -> Result<(), Error> {
        let mut rest = subpackets;
        while !rest.is_empty() {
            let (subpacket, after) = split(rest)?;
            rest = after;
            let Some((first, content)) = subpacket.split_first() else {
                return Err(Error::structural("zero length signature subpacket"));
            };
            let (kind, is_critical) = (first & 0x7f, first & 0x80 != 0);
            // Anybody could have added what is not hashed; a wrong issuer only makes a check fail.
            let counts = is_hashed
                || matches!(
                    kind,
                    subpacket::ISSUER | subpacket::ISSUER_FINGERPRINT | subpacket::EMBEDDED
                );
            if counts {
                self.note(version, kind, content, is_critical, is_hashed)?;
            }
        }
        if self.created.is_none() {
            return Err(no_time());
        }
        Ok(())
    }

    fn note(
        &mut self,
        version: u8,
        kind: u8,
        content: &[u8],
        is_critical: bool,
        is_hashed: bool,
    ) -> Result<(), Error> {
        let wrong = |problem: &str| Error::structural(problem);
        let seconds = |problem: &str| {
            let bytes: Result<[u8; 4], _> = content.try_into();
            bytes.map(u32::from_be_bytes).map_err(|_| wrong(problem))
        };
        match kind {
            subpacket::CREATED => {
                self.created = Some(seconds("signature creation time not four bytes")?.into());
            }
            subpacket::LIFETIME => {
                self.lifetime = Some(seconds("expiration subpacket with bad length")?);
            }
            subpacket::EXPORTABLE => match content.first() {
                Some(0) => {
                    return Err(Error::unsupported("signature with non-exportable certification"));
                }
                Some(_) => {}
                None => return Err(wrong("exportable certification subpacket with bad length")),
            },
            subpacket::TRUST if content.len() != 2 => return Err(wrong("trust subpacket with bad length")),
            subpacket::REGULAR_EXPRESSION if content.is_empty() => {
                return Err(wrong("regexp subpacket with bad length"));
            }
            subpacket::REGULAR_EXPRESSION if content.last() != Some(&0) => {
                return Err(wrong("expected regular expression to be null-terminated"));
            }
            subpacket::KEY_LIFETIME => {
                self.key_lifetime = Some(seconds("key expiration subpacket with bad length")?);
            }
            subpacket::ISSUER if version > 4 && is_hashed => {
                return Err(wrong("issuer subpacket found in v6 key"));
            }
            subpacket::ISSUER => {
                let id: [u8; 8] = content
                    .try_into()
                    .map_err(|_| wrong("issuer subpacket with bad length"))?;
                if version <= 4 {
                    self.issuer = Some(u64::from_be_bytes(id));
                }
            }
            subpacket::NOTATION => {
                let bad = || wrong("notation data subpacket with bad length");
                let (head, text) = content.split_first_chunk::<8>().ok_or_else(bad)?;
                let [_, _, _, _, lengths @ ..] = *head;
                let [name, value] = [[lengths[0], lengths[1]], [lengths[2], lengths[3]]]
                    .map(|length| usize::from(u16::from_be_bytes(length)));
                if text.len() != name + value {
                    return Err(bad());
                }
                if is_critical {
                    let name = text.get(..name).unwrap_or_default();
                    self.critical_notations
                        .push(String::from_utf8_lossy(name).into_owned());
                }
            }
            subpacket::PRIMARY_USER => match content {
                [is_primary] => self.is_primary_user = *is_primary > 0,
                _ => return Err(wrong("primary user id subpacket with bad length")),
            },
            subpacket::KEY_FLAGS => {
                let flags = content.first().copied().unwrap_or_default();
                self.may_sign = Some(self.may_sign == Some(true) || flags & FLAG_SIGN != 0);
            }
            subpacket::REVOCATION_REASON => match content.first() {
                Some(reason) => self.is_compromised = *reason == COMPROMISED,
                None => return Err(wrong("empty revocation reason subpacket")),
            },
            subpacket::EMBEDDED => self.embed(content)?,
            subpacket::ISSUER_FINGERPRINT => {
                let Some((version, fingerprint)) = content.split_first() else {
                    return Err(wrong("empty issuer fingerprint subpacket"));
                };
                if !is_fingerprint(*version, fingerprint) {
                    return Err(wrong("bad fingerprint length"));
                }
                let id_at = if *version >= 5 { 0 } else { 12 };
                let id = fingerprint.iter().skip(id_at).take(8);
                self.issuer = Some(id.fold(0, |id, byte| id << 8 | u64::from(*byte)));
                self.issuer_fingerprint = Some(fingerprint.to_vec());
            }
            subpacket::RECIPIENT => match content.split_first() {
                None => return Err(wrong("invalid intended recipient fingerpring length")),
                Some((version, fingerprint)) if !is_fingerprint(*version, fingerprint) => {
                    return Err(wrong("invalid fingerprint length"));
                }
                Some(_) => {}
            },
            subpacket::CIPHER_SUITES if !content.len().is_multiple_of(2) => {
                return Err(wrong("invalid aead cipher suite length"));
            }
            subpacket::TRUST | subpacket::REGULAR_EXPRESSION | subpacket::CIPHER_SUITES => {}
            kind if is_critical && !subpacket::OTHERS.contains(&kind) => {
                return Err(Error::unsupported(format!(
                    "unknown critical signature subpacket type {kind}"
                )));
            }
            _ => {}
        }
        Ok(())
    }

    fn embed(&mut self, content: &[u8]) -> Result<(), Error> {
        if self.embedded.is_some() {
            return Err(Error::structural("Cannot have multiple embedded signatures"));
        }
        let mut octets = Octets::Plain(content);
        if self.depth >= DEPTH_MAX {
            return Err(Error::structural("signatures lie too deep in signatures"));
        }
        let embedded = Signature::read_at(&mut Body::new(&mut octets, Extent::Open), self.depth + 1)?;
        if embedded.kind != kind::PRIMARY_KEY_BINDING {
            return Err(Error::structural(format!(
                "cross-signature has unexpected type {}",
                embedded.kind
            )));
        }
        self.embedded = Some(Box::new(embedded));
        Ok(())
    }
}

fn is_fingerprint(version: u8, fingerprint: &[u8]) -> bool {
    fingerprint.len() == if version >= 5 { 32 } else { 20 }
}

/// Takes the first subpacket off.
fn split(subpackets: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let truncated = || Error::structural("signature subpacket truncated");
    let (length, rest) = match *subpackets {
        [first @ 0..192, ref rest @ ..] => (usize::from(first), rest),
        [first @ 192..=254, second, ref rest @ ..] => {
            (usize::from(first - 192) * 256 + usize::from(second) + 192, rest)
        }
        [255, a, b, c, d, ref rest @ ..] => (big_endian(&[a, b, c, d]), rest),
        _ => return Err(truncated()),
    };
    rest.split_at_checked(length).ok_or_else(truncated)
}
