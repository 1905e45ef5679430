//! Whether a key made a signature: the arithmetic, by aws-lc-rs and, for DSA, which that does not have, by `dsa`.

use aws_lc_rs::digest::{self, Digest};
use aws_lc_rs::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};
use dsa::BoxedUint;
use dsa::signature::hazmat::PrehashVerifier as _;

use super::Error;
use super::public_key::{Curve, Material, PublicKey};
use super::signature::{Hash, Numbers, Signature};

/// The smallest and largest modulus or prime, in bits. Helm's library refuses smaller ones too.
const BITS_MIN: usize = 1024;
const BITS_MAX: usize = 16384;

impl Hash {
    fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha224 => &digest::SHA224,
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
            Self::Sha3_256 => &digest::SHA3_256,
            Self::Sha3_512 => &digest::SHA3_512,
        }
    }
}

impl PublicKey {
    /// Checks that this key made a signature of these parts, one after another.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn verify(&self, signature: &Signature, parts: &[&[u8]]) -> Result<(), Error> {
        if !self.can_sign() {
            return Err(Error::Argument("public key cannot generate signatures"));
        }
        let mut message = signature.salt.clone();
        for part in parts {
            message.extend_from_slice(part);
        }
        message.extend_from_slice(&signature.suffix);
        let hash = digest::digest(signature.hash.algorithm(), &message);
        let hash = hash.as_ref();
        if signature.version >= 5 && !hash.starts_with(&signature.tag) {
            return Err(Error::Signature("hash tag doesn't match".to_owned()));
        }
        if self.algorithm != signature.algorithm {
            return Err(Error::Argument(
                "public key and signature use different algorithms",
            ));
        }
        let (name, is_right) = match (&self.material, &signature.numbers) {
            (Material::Rsa { modulus, exponent }, Numbers::Rsa(number)) => {
                let parameters = rsa_parameters(signature.hash, modulus)?;
                ("RSA", rsa(parameters, modulus, exponent, &message, number))
            }
            (Material::Dsa { p, q, g, y }, Numbers::Pair(r, s)) => {
                ("DSA", dsa([p, q, g, y, r, s], hash).unwrap_or_default())
            }
            (Material::Ecdsa { curve, point }, Numbers::Pair(r, s)) => {
                ("ECDSA", ecdsa(*curve, point, hash, r, s).unwrap_or_default())
            }
            (Material::Ed25519(point), Numbers::Pair(r, s)) => {
                let number = widened(r, 32).zip(widened(s, 32));
                let number = number.map(|(r, s)| [r, s].concat());
                (
                    "EdDSA",
                    number.is_some_and(|number| ed25519(point, hash, &number)),
                )
            }
            (Material::Ed25519(point), Numbers::Ed25519(number)) => ("Ed25519", ed25519(point, hash, number)),
            (Material::Unchecked(name), _) => {
                return Err(Error::unsupported(format!(
                    "signatures by keys of {name} cannot be checked here"
                )));
            }
            _ => {
                return Err(Error::Signature(
                    "Unsupported public key algorithm used in signature".to_owned(),
                ));
            }
        };
        if is_right {
            Ok(())
        } else {
            Err(Error::Signature(format!("{name} verification failure")))
        }
    }
}

fn stripped(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

/// A number of so many bytes; none when it is larger.
fn widened(number: &[u8], width: usize) -> Option<Vec<u8>> {
    let number = stripped(number);
    let mut wide = vec![0; width.checked_sub(number.len())?];
    wide.extend_from_slice(number);
    Some(wide)
}

fn rsa_parameters(hash: Hash, modulus: &[u8]) -> Result<&'static RsaParameters, Error> {
    let is_short = stripped(modulus).len() < 256;
    match hash {
        Hash::Sha1 => Ok(&signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY),
        Hash::Sha256 => Ok(&signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY),
        Hash::Sha384 if !is_short => Ok(&signature::RSA_PKCS1_2048_8192_SHA384),
        Hash::Sha512 => Ok(&signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY),
        other => Err(Error::unsupported(format!(
            "RSA signatures with {other:?} by a key of {} bits cannot be checked here",
            8 * stripped(modulus).len()
        ))),
    }
}

fn rsa(parameters: &RsaParameters, modulus: &[u8], exponent: &[u8], message: &[u8], number: &[u8]) -> bool {
    let (n, e) = (stripped(modulus), stripped(exponent));
    let Some(number) = widened(number, n.len()) else {
        return false;
    };
    RsaPublicKeyComponents { n, e }
        .verify(parameters, message, &number)
        .is_ok()
}

fn ed25519(point: &[u8; 32], hash: &[u8], number: &[u8]) -> bool {
    UnparsedPublicKey::new(&signature::ED25519, point)
        .verify(hash, number)
        .is_ok()
}

/// Of the hash only as many leading bytes count as the curve has, and a shorter one is a smaller number; so each hash can
/// be given as the one that belongs to the curve.
fn ecdsa(curve: Curve, point: &[u8], hash: &[u8], r: &[u8], s: &[u8]) -> Option<bool> {
    let kind = match curve {
        Curve::P256 | Curve::Secp256k1 => &digest::SHA256,
        Curve::P384 => &digest::SHA384,
        Curve::P521 => &digest::SHA512,
    };
    let kept = hash.get(..hash.len().min(kind.output_len()))?;
    let mut wide = vec![0; kind.output_len() - kept.len()];
    wide.extend_from_slice(kept);
    let hash = Digest::import_less_safe(&wide, kind).ok()?;
    let number = [widened(r, curve.width())?, widened(s, curve.width())?].concat();
    let key = UnparsedPublicKey::new(curve.algorithm(), point);
    Some(key.verify_digest(&hash, &number).is_ok())
}

fn dsa([p, q, g, y, r, s]: [&Vec<u8>; 6], hash: &[u8]) -> Option<bool> {
    let bits = 8 * stripped(p).len();
    if !(BITS_MIN..=BITS_MAX).contains(&bits) {
        return Some(false);
    }
    let bits = u32::try_from(bits).ok()?;
    let number = |digits: &[u8], bits: u32| BoxedUint::from_be_slice(stripped(digits), bits).ok();
    let own_bits = |digits: &[u8]| u32::try_from(8 * stripped(digits).len()).ok();
    let components = dsa::Components::from_components_unchecked(
        number(p, bits)?,
        number(q, own_bits(q)?)?,
        number(g, bits)?,
    );
    let key = dsa::VerifyingKey::from_components(components.ok()?, number(y, bits)?).ok()?;
    let signature = dsa::Signature::from_components(number(r, own_bits(q)?)?, number(s, own_bits(q)?)?)?;
    Some(key.verify_prehash(hash, &signature).is_ok())
}
