//! Public keys (RFC 9580, section 5.5.2), also those that lie before secret ones.

use aws_lc_rs::digest;
use aws_lc_rs::signature::{self, EcdsaVerificationAlgorithm, UnparsedPublicKey};

use super::Error;
use super::octets::Body;

/// The algorithms of keys, by their numbers.
pub(super) mod algorithm {
    pub(in super::super) const RSA: u8 = 1;
    pub(in super::super) const RSA_ENCRYPT: u8 = 2;
    pub(in super::super) const RSA_SIGN: u8 = 3;
    pub(in super::super) const ELGAMAL: u8 = 16;
    pub(in super::super) const DSA: u8 = 17;
    pub(in super::super) const ECDH: u8 = 18;
    pub(in super::super) const ECDSA: u8 = 19;
    pub(in super::super) const EDDSA: u8 = 22;
    pub(in super::super) const X25519: u8 = 25;
    pub(in super::super) const X448: u8 = 26;
    pub(in super::super) const ED25519: u8 = 27;
    pub(in super::super) const ED448: u8 = 28;
}

/// A packet with a key.
#[derive(Debug)]
pub(super) struct KeyPacket {
    pub(super) key: PublicKey,
    pub(super) is_subkey: bool,
    pub(super) is_secret: bool,
}

/// A public key.
#[derive(Debug)]
pub(super) struct PublicKey {
    pub(super) version: u8,
    /// Seconds since 1970.
    pub(super) created: u32,
    pub(super) algorithm: u8,
    pub(super) material: Material,
    pub(super) fingerprint: Vec<u8>,
    pub(super) id: u64,
    /// Its numbers as they were written.
    encoded: Vec<u8>,
}

/// The numbers of a key; big-endian.
#[derive(Debug)]
pub(super) enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    Dsa {
        p: Vec<u8>,
        q: Vec<u8>,
        g: Vec<u8>,
        y: Vec<u8>,
    },
    /// An uncompressed point.
    Ecdsa {
        curve: Curve,
        point: Vec<u8>,
    },
    Ed25519([u8; 32]),
    /// One that only encrypts.
    Encrypts,
    /// One whose signatures nothing here can check.
    Unchecked(&'static str),
}

/// Curves of ECDSA that can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curve {
    P256,
    P384,
    P521,
    Secp256k1,
}

/// What an object identifier stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Ecdsa(Curve),
    Brainpool(&'static str),
    Ed25519,
    Ed448,
    /// For key agreement.
    Curve25519,
    Curve448,
}

const CURVES: [(&[u8], Named); 11] = [
    (
        &[0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07],
        Named::Ecdsa(Curve::P256),
    ),
    (&[0x2B, 0x81, 0x04, 0x00, 0x22], Named::Ecdsa(Curve::P384)),
    (&[0x2B, 0x81, 0x04, 0x00, 0x23], Named::Ecdsa(Curve::P521)),
    (&[0x2B, 0x81, 0x04, 0x00, 0x0A], Named::Ecdsa(Curve::Secp256k1)),
    (
        &[0x2B, 0x06, 0x01, 0x04, 0x01, 0x97, 0x55, 0x01, 0x05, 0x01],
        Named::Curve25519,
    ),
    (&[0x2B, 0x65, 0x6F], Named::Curve448),
    (
        &[0x2B, 0x06, 0x01, 0x04, 0x01, 0xDA, 0x47, 0x0F, 0x01],
        Named::Ed25519,
    ),
    (&[0x2B, 0x65, 0x71], Named::Ed448),
    (
        &[0x2B, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x07],
        Named::Brainpool("BrainpoolP256"),
    ),
    (
        &[0x2B, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x0B],
        Named::Brainpool("BrainpoolP384"),
    ),
    (
        &[0x2B, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01, 0x0D],
        Named::Brainpool("BrainpoolP512"),
    ),
];

impl PublicKey {
    /// Whether keys of this algorithm sign at all.
    pub(super) fn can_sign(&self) -> bool {
        use algorithm::{DSA, ECDSA, ED448, ED25519, EDDSA, RSA, RSA_SIGN};
        matches!(
            self.algorithm,
            RSA | RSA_SIGN | DSA | ECDSA | EDDSA | ED25519 | ED448
        )
    }

    /// What is hashed of the key when it is signed, or its fingerprint is made.
    pub(super) fn to_hash(&self) -> Vec<u8> {
        hashed(self.version, self.created, self.algorithm, &self.encoded)
    }

    /// Whether a moment lies outside of the key's life, which begins when it was made and lasts so many seconds, or for
    /// ever when there are none.
    pub(super) fn is_expired(&self, lifetime: Option<u32>, now: i64) -> bool {
        let created = i64::from(self.created);
        created > now
            || lifetime
                .filter(|seconds| *seconds != 0)
                .is_some_and(|seconds| now > created + i64::from(seconds))
    }
}

fn hashed(version: u8, created: u32, algorithm: u8, encoded: &[u8]) -> Vec<u8> {
    // Version, time and algorithm take six bytes; newer versions count the numbers as well.
    let length = 6 + encoded.len();
    let mut bytes = Vec::with_capacity(length + 9);
    if version >= 5 {
        bytes.push(0x95 + version);
        bytes.extend_from_slice(&u32::try_from(length + 4).unwrap_or(u32::MAX).to_be_bytes());
    } else {
        bytes.push(0x99);
        // Longer keys wrap, as in Helm's library.
        let [.., high, low] = length.to_be_bytes();
        bytes.extend_from_slice(&[high, low]);
    }
    bytes.push(version);
    bytes.extend_from_slice(&created.to_be_bytes());
    bytes.push(algorithm);
    if version >= 5 {
        bytes.extend_from_slice(&u32::try_from(encoded.len()).unwrap_or(u32::MAX).to_be_bytes());
    }
    bytes.extend_from_slice(encoded);
    bytes
}

/// Reads the numbers of a key and keeps what was read.
struct Numbers<'b, 'o, 'a> {
    body: &'b mut Body<'o, 'a>,
    encoded: Vec<u8>,
}

impl Numbers<'_, '_, '_> {
    fn take(&mut self, count: usize) -> Result<Vec<u8>, Error> {
        let taken = self.body.take(count)?;
        self.encoded.extend_from_slice(&taken);
        Ok(taken)
    }

    fn mpi(&mut self) -> Result<Vec<u8>, Error> {
        let bits = self.take(2)?;
        let bits = bits
            .iter()
            .fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        self.take(bits.div_ceil(8))
    }

    /// An object identifier, or the parameters of a key derivation, which are written alike.
    fn short(&mut self) -> Result<Vec<u8>, Error> {
        let length = self.take(1)?.first().copied().unwrap_or_default();
        if matches!(length, 0 | 0xff) {
            return Err(Error::unsupported("reserved for future extensions"));
        }
        self.take(length.into())
    }

    fn curve(&mut self) -> Result<Named, Error> {
        let identifier = self.short()?;
        CURVES
            .iter()
            .find(|(known, _)| *known == identifier)
            .map(|(_, curve)| *curve)
            .ok_or_else(|| Error::unsupported("unknown oid"))
    }

    fn material(&mut self, version: u8, algorithm: u8) -> Result<Material, Error> {
        use algorithm::{
            DSA, ECDH, ECDSA, ED448, ED25519, EDDSA, ELGAMAL, RSA, RSA_ENCRYPT, RSA_SIGN, X448, X25519,
        };
        let legacy = || Error::structural("cannot generate v6 key with deprecated algorithm: EdDSALegacy");
        Ok(match algorithm {
            RSA | RSA_ENCRYPT | RSA_SIGN => {
                let (modulus, exponent) = (self.mpi()?, self.mpi()?);
                if exponent.len() > 3 {
                    return Err(Error::unsupported("large public exponent"));
                }
                Material::Rsa { modulus, exponent }
            }
            DSA => Material::Dsa {
                p: self.mpi()?,
                q: self.mpi()?,
                g: self.mpi()?,
                y: self.mpi()?,
            },
            ELGAMAL => {
                for _ in 0..3 {
                    self.mpi()?;
                }
                Material::Encrypts
            }
            ECDSA => {
                let curve = self.curve()?;
                let point = self.mpi()?;
                match curve {
                    Named::Ecdsa(curve) if !curve.is_point(&point) => return Err(Error::Point("ecdsa")),
                    Named::Ecdsa(curve) => Material::Ecdsa { curve, point },
                    Named::Brainpool(name) => Material::Unchecked(name),
                    _ => return Err(Error::unsupported("unsupported oid")),
                }
            }
            ECDH => {
                let curve = self.curve()?;
                if version == 6 && curve == Named::Curve25519 {
                    return Err(Error::structural(
                        "cannot read v6 key with deprecated OID: Curve25519Legacy",
                    ));
                }
                self.mpi()?;
                let derivation = self.short()?;
                if derivation.len() < 3 || derivation.first() != Some(&1) {
                    return Err(Error::unsupported("unsupported ECDH KDF"));
                }
                Material::Encrypts
            }
            EDDSA if version == 6 => return Err(legacy()),
            EDDSA => {
                let curve = self.curve()?;
                if !matches!(curve, Named::Ed25519 | Named::Ed448) {
                    return Err(Error::unsupported("unsupported oid"));
                }
                let point = self.mpi()?;
                match (point.split_first(), curve) {
                    (None, _) => return Err(Error::structural("empty EdDSA public key")),
                    (Some((0x40, _)), Named::Ed448) => Material::Unchecked("Ed448"),
                    (Some((0x40, point)), _) => {
                        Material::Ed25519(point.try_into().map_err(|_| Error::Point("eddsa"))?)
                    }
                    (Some((flag, _)), _) => {
                        return Err(Error::unsupported(format!(
                            "unsupported EdDSA compression: {flag}"
                        )));
                    }
                }
            }
            X25519 => {
                self.take(32)?;
                Material::Encrypts
            }
            X448 => {
                self.take(56)?;
                Material::Encrypts
            }
            ED25519 => Material::Ed25519(self.take(32)?.try_into().map_err(|_| Error::Truncated)?),
            ED448 => {
                self.take(57)?;
                Material::Unchecked("Ed448")
            }
            other => return Err(Error::unsupported(format!("public key type: {other}"))),
        })
    }
}

impl Curve {
    /// How many bytes one coordinate takes.
    pub(super) fn width(self) -> usize {
        match self {
            Self::P256 | Self::Secp256k1 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    /// What checks signatures on it.
    pub(super) fn algorithm(self) -> &'static EcdsaVerificationAlgorithm {
        match self {
            Self::P256 => &signature::ECDSA_P256_SHA256_FIXED,
            Self::P384 => &signature::ECDSA_P384_SHA384_FIXED,
            Self::P521 => &signature::ECDSA_P521_SHA512_FIXED,
            Self::Secp256k1 => &signature::ECDSA_P256K1_SHA256_FIXED,
        }
    }

    /// Whether this is a point of the curve, not compressed.
    fn is_point(self, point: &[u8]) -> bool {
        point.len() == 1 + 2 * self.width()
            && point.first() == Some(&4)
            && UnparsedPublicKey::new(self.algorithm(), point).parse().is_ok()
    }
}

/// Reads the content of a packet with a public key.
pub(super) fn read_key(body: &mut Body<'_, '_>, is_subkey: bool) -> Result<KeyPacket, Error> {
    let [version, created @ .., algorithm] = body.array::<6>()?;
    if !matches!(version, 4 | 6) {
        return Err(Error::unsupported(format!("public key version {version}")));
    }
    let created = u32::from_be_bytes(created);
    if version == 6 {
        // The number of bytes that follow, which the numbers say themselves.
        body.array::<4>()?;
    }
    let mut numbers = Numbers {
        body,
        encoded: Vec::new(),
    };
    let material = numbers.material(version, algorithm)?;
    let encoded = numbers.encoded;
    let hashed = hashed(version, created, algorithm, &encoded);
    let (kind, id_at) = if version >= 5 {
        (&digest::SHA256, 0)
    } else {
        (&digest::SHA1_FOR_LEGACY_USE_ONLY, 12)
    };
    let fingerprint = digest::digest(kind, &hashed).as_ref().to_vec();
    let id = fingerprint.iter().skip(id_at).take(8);
    Ok(KeyPacket {
        key: PublicKey {
            version,
            created,
            algorithm,
            material,
            id: id.fold(0, |id, byte| id << 8 | u64::from(*byte)),
            fingerprint,
            encoded,
        },
        is_subkey,
        is_secret: false,
    })
}

/// Reads the content of a packet with a secret key, of which only the public one is kept. Helm's library reads the secret
/// as far as it lies open, so that a damaged one spoils the keyring.
pub(super) fn read_secret_key(body: &mut Body<'_, '_>, is_subkey: bool) -> Result<KeyPacket, Error> {
    let public = read_key(body, is_subkey)?;
    let version = public.key.version;
    let protection = body.octet()?;
    match protection {
        0 => {
            let secret = body.rest()?;
            if version < 6 {
                let Some((secret, sum)) = secret.split_last_chunk::<2>() else {
                    return Err(Error::structural("truncated private key data"));
                };
                let found = secret
                    .iter()
                    .fold(0_u16, |sum, byte| sum.wrapping_add((*byte).into()));
                if found.to_be_bytes() != *sum {
                    return Err(Error::structural("private key checksum failure"));
                }
            }
        }
        255 if version == 6 => {
            return Err(Error::structural(format!(
                "wrong s2k identifier for version {version}"
            )));
        }
        253..=255 => {
            // How it is locked does not matter to who only checks signatures.
        }
        _ => return Err(Error::unsupported("deprecated s2k function in private key")),
    }
    Ok(KeyPacket {
        is_secret: true,
        ..public
    })
}
