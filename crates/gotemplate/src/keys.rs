//! Private keys that templates ask for. Making and using them is the caller's: the engine is pure, and the
//! mathematics of keys belongs to a library that is audited for it.

use std::fmt;

use crate::sprig::private_key_from_pkcs8;

/// Makes private keys and signs with them, for `genCA`, `genPrivateKey` and their like.
///
/// The engine reads and writes all documents around the keys: PEM, PKCS#1, PKCS#8, SEC 1, X.509.
pub trait KeyMaker {
    /// A new key.
    ///
    /// # Errors
    /// When the algorithm is not supported or the generator fails.
    fn generate(&mut self, algorithm: KeyAlgorithm) -> Result<PrivateKey, KeyError>;

    /// The public key as it stands in the bit string of a `SubjectPublicKeyInfo`: `RSAPublicKey` in DER, the
    /// uncompressed point, or the 32 bytes of Ed25519. Not asked for DSA.
    ///
    /// # Errors
    /// [`KeyError::Rejected`] when the private key is not a sound one; templates bring keys of their own.
    fn public_key(&mut self, key: &PrivateKey) -> Result<Vec<u8>, KeyError>;

    /// Signs a message: RSA by PKCS#1 v1.5 with SHA-256; ECDSA in ASN.1 form with SHA-256 on P-224 and P-256,
    /// SHA-384 on P-384, SHA-512 on P-521; Ed25519. Not asked for DSA.
    ///
    /// # Errors
    /// As [`KeyMaker::public_key`], or when the signing fails.
    fn sign(&mut self, key: &PrivateKey, message: &[u8]) -> Result<Vec<u8>, KeyError>;
}

/// What kind of key to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAlgorithm {
    /// RSA with a modulus of this many bits: 2048 for certificates, 4096 for `genPrivateKey`.
    Rsa {
        /// Size of the modulus.
        bits: u16,
    },
    /// DSA with a modulus of 2048 bits and a subgroup of 256.
    Dsa,
    /// ECDSA on this curve.
    Ecdsa(Curve),
    /// Ed25519
    Ed25519,
}

/// The elliptic curves that Go's `crypto/x509` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// NIST P-224, secp224r1
    P224,
    /// NIST P-256, secp256r1
    P256,
    /// NIST P-384, secp384r1
    P384,
    /// NIST P-521, secp521r1
    P521,
}

impl Curve {
    /// Length of a private key in bytes.
    pub const fn scalar_len(self) -> usize {
        match self {
            Self::P224 => 28,
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::P224 => "P-224",
            Self::P256 => "P-256",
            Self::P384 => "P-384",
            Self::P521 => "P-521",
        })
    }
}

/// A private key. `Debug` shows only its kind.
#[derive(Clone, PartialEq, Eq)]
pub enum PrivateKey {
    /// `RSAPrivateKey` of PKCS#1 in DER, with two primes.
    Rsa(Vec<u8>),
    /// The numbers of a DSA key, big-endian.
    Dsa {
        /// Modulus.
        p: Vec<u8>,
        /// Order of the subgroup.
        q: Vec<u8>,
        /// Generator.
        g: Vec<u8>,
        /// Public key.
        y: Vec<u8>,
        /// Private key.
        x: Vec<u8>,
    },
    /// The private number, big-endian, [`Curve::scalar_len`] bytes.
    Ecdsa {
        /// The curve.
        curve: Curve,
        /// The number.
        scalar: Vec<u8>,
    },
    /// The seed.
    Ed25519([u8; 32]),
}

impl PrivateKey {
    /// Reads a key of any kind but DSA out of PKCS#8 (RFC 5208) in DER. None when it is something else.
    pub fn from_pkcs8(der: &[u8]) -> Option<Self> {
        private_key_from_pkcs8(der)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa(_) => f.write_str("Rsa"),
            Self::Dsa { .. } => f.write_str("Dsa"),
            Self::Ecdsa { curve, .. } => f.debug_tuple("Ecdsa").field(curve).finish(),
            Self::Ed25519(_) => f.write_str("Ed25519"),
        }
    }
}

/// Why a key could not be made or used. The texts follow what the function was doing: `parsing private key: …`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Helm can, this program cannot.
    #[error("{0} keys are not supported here")]
    Unsupported(String),
    /// The key is not a sound one.
    #[error("the key is not valid: {0}")]
    Rejected(String),
    /// The library failed.
    #[error("{0}")]
    Failed(String),
}
