//! Private keys for charts that make certificates: aws-lc for all that is in use, RustCrypto for DSA, which aws-lc
//! has given up.

use aws_lc_rs::agreement::{self, ECDH_P256, ECDH_P384, ECDH_P521};
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::error::{KeyRejected, Unspecified};
use aws_lc_rs::rand::{SystemRandom, fill};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use dsa::BoxedUint;
use dsa::signature::rand_core::{TryCryptoRng, TryRng};
use evenkeel_chart::{Curve, KeyAlgorithm, KeyError, KeyMaker, PrivateKey};

/// Makes private keys with the system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemKeys;

/// The two algorithms of a curve; none for one that aws-lc does not use.
fn of_curve(
    curve: Curve,
) -> Result<(&'static EcdsaSigningAlgorithm, &'static agreement::Algorithm), KeyError> {
    match curve {
        Curve::P256 => Ok((&ECDSA_P256_SHA256_ASN1_SIGNING, &ECDH_P256)),
        Curve::P384 => Ok((&ECDSA_P384_SHA384_ASN1_SIGNING, &ECDH_P384)),
        Curve::P521 => Ok((&ECDSA_P521_SHA512_ASN1_SIGNING, &ECDH_P521)),
        Curve::P224 => Err(KeyError::Unsupported(curve.to_string())),
    }
}

fn failed(_: Unspecified) -> KeyError {
    KeyError::Failed("the cryptographic library failed".to_owned())
}

fn rejected(reason: KeyRejected) -> KeyError {
    KeyError::Rejected(reason.to_string())
}

fn rsa(der: &[u8]) -> Result<RsaKeyPair, KeyError> {
    RsaKeyPair::from_der(der).map_err(rejected)
}

/// The uncompressed point of a private number.
fn point(curve: Curve, scalar: &[u8]) -> Result<Vec<u8>, KeyError> {
    let (_, algorithm) = of_curve(curve)?;
    // Deriving the point is the same for signing and for agreeing on keys; only this way has a function for it.
    let key = agreement::PrivateKey::from_private_key(algorithm, scalar).map_err(rejected)?;
    Ok(key.compute_public_key().map_err(failed)?.as_ref().to_vec())
}

impl KeyMaker for SystemKeys {
    fn generate(&mut self, algorithm: KeyAlgorithm) -> Result<PrivateKey, KeyError> {
        let pkcs8 = match algorithm {
            KeyAlgorithm::Rsa { bits } => {
                let size = match bits {
                    2048 => KeySize::Rsa2048,
                    3072 => KeySize::Rsa3072,
                    4096 => KeySize::Rsa4096,
                    8192 => KeySize::Rsa8192,
                    _ => return Err(KeyError::Unsupported(format!("RSA-{bits}"))),
                };
                let key = RsaKeyPair::generate(size).map_err(failed)?;
                key.as_der().map_err(failed)?.as_ref().to_vec()
            }
            KeyAlgorithm::Ecdsa(curve) => {
                let key = EcdsaKeyPair::generate(of_curve(curve)?.0).map_err(failed)?;
                key.to_pkcs8v1().map_err(failed)?.as_ref().to_vec()
            }
            KeyAlgorithm::Ed25519 => {
                let key = Ed25519KeyPair::generate().map_err(failed)?;
                key.to_pkcs8v1().map_err(failed)?.as_ref().to_vec()
            }
            KeyAlgorithm::Dsa => return generate_dsa().map_err(failed),
        };
        PrivateKey::from_pkcs8(&pkcs8).ok_or_else(|| failed(Unspecified))
    }

    fn public_key(&mut self, key: &PrivateKey) -> Result<Vec<u8>, KeyError> {
        match key {
            PrivateKey::Rsa(der) => Ok(rsa(der)?.public_key().as_ref().to_vec()),
            PrivateKey::Ecdsa { curve, scalar } => point(*curve, scalar),
            PrivateKey::Ed25519(seed) => {
                let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(rejected)?;
                Ok(pair.public_key().as_ref().to_vec())
            }
            PrivateKey::Dsa { .. } => Err(KeyError::Unsupported("DSA".to_owned())),
        }
    }

    fn sign(&mut self, key: &PrivateKey, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        match key {
            PrivateKey::Rsa(der) => {
                let pair = rsa(der)?;
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map_err(failed)?;
                Ok(signature)
            }
            PrivateKey::Ecdsa { curve, scalar } => {
                let (algorithm, _) = of_curve(*curve)?;
                let public = point(*curve, scalar)?;
                let pair = EcdsaKeyPair::from_private_key_and_public_key(algorithm, scalar, &public)
                    .map_err(rejected)?;
                Ok(pair.sign(&random, message).map_err(failed)?.as_ref().to_vec())
            }
            PrivateKey::Ed25519(seed) => {
                let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(rejected)?;
                Ok(pair.sign(message).as_ref().to_vec())
            }
            PrivateKey::Dsa { .. } => Err(KeyError::Unsupported("DSA".to_owned())),
        }
    }
}

/// The system's generator as RustCrypto asks it.
struct Entropy;

impl TryRng for Entropy {
    type Error = Unspecified;

    fn try_next_u32(&mut self) -> Result<u32, Unspecified> {
        let mut bytes = [0; 4];
        fill(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Unspecified> {
        let mut bytes = [0; 8];
        fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, buffer: &mut [u8]) -> Result<(), Unspecified> {
        fill(buffer)
    }
}

impl TryCryptoRng for Entropy {}

fn generate_dsa() -> Result<PrivateKey, Unspecified> {
    let components =
        dsa::Components::try_generate_from_rng_with_key_size(&mut Entropy, dsa::KeySize::DSA_2048_256)?;
    let key = dsa::SigningKey::try_generate_from_rng_with_components(&mut Entropy, components)?;
    let public = key.verifying_key();
    let components = public.components();
    let bytes = |number: &BoxedUint| number.to_be_bytes().into_vec();
    Ok(PrivateKey::Dsa {
        p: bytes(components.p()),
        q: bytes(components.q()),
        g: bytes(components.g()),
        y: bytes(public.y()),
        x: bytes(key.x()),
    })
}
