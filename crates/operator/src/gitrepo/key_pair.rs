//! SSH key pairs that the operator makes.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use aws_lc_rs::rsa::{KeyPair as RsaPair, KeySize};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_core::Sensitive;
use evenkeel_steps::Failure;

use crate::git::PublicKey;

const ED25519: &str = "ssh-ed25519";
const RSA: &str = "ssh-rsa";

/// Size of RSA keys.
const RSA_SIZE: KeySize = KeySize::Rsa4096;

/// Columns of a PEM block.
const PEM_COLUMNS: usize = 64;

/// Size of the blocks into which OpenSSH pads a private key that is not encrypted.
const BLOCK: usize = 8;

/// An algorithm of which keys can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Ed25519,
    Rsa,
}

/// A key pair.
pub(crate) struct KeyPair {
    pub(crate) public: PublicKey,
    /// In PEM.
    pub(crate) private: Sensitive<String>,
}

impl Algorithm {
    /// That of a specification; Ed25519 where it names none.
    pub(crate) fn parse(name: Option<&str>) -> Result<Self, Failure> {
        match name.map(str::trim) {
            None | Some("" | ED25519) => Ok(Self::Ed25519),
            Some(RSA) => Ok(Self::Rsa),
            Some(other) => Err(Failure::invalid(format!(
                "keys of type {other:?} cannot be made: {ED25519} or {RSA}"
            ))),
        }
    }

    /// As an `authorized_keys` file names it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ed25519 => ED25519,
            Self::Rsa => RSA,
        }
    }

    /// Makes a pair. That of RSA takes the processor for a second.
    pub(crate) fn generate(self) -> Result<KeyPair, Failure> {
        match self {
            Self::Ed25519 => ed25519(),
            Self::Rsa => rsa(),
        }
    }
}

fn broken<E>(_: E) -> Failure {
    Failure::bug("a key pair cannot be made")
}

fn ed25519() -> Result<KeyPair, Failure> {
    let random = SystemRandom::new();
    let mut bytes = [0_u8; 32];
    let mut check = [0_u8; 4];
    random.fill(&mut bytes).map_err(broken)?;
    random.fill(&mut check).map_err(broken)?;
    let seed = Sensitive::new(bytes);
    let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose()).map_err(broken)?;
    let public = pair.public_key().as_ref();

    let mut blob = Vec::new();
    string(&mut blob, ED25519.as_bytes());
    string(&mut blob, public);

    // The format of OpenSSH: PROTOCOL.key in its sources.
    let mut secret = Vec::new();
    secret.extend_from_slice(&check);
    secret.extend_from_slice(&check);
    secret.extend_from_slice(&blob);
    string(&mut secret, &[seed.expose().as_slice(), public].concat());
    string(&mut secret, b"");
    let padding = (BLOCK - secret.len() % BLOCK) % BLOCK;
    secret.extend((1..).take(padding));

    let mut whole = b"openssh-key-v1\0".to_vec();
    string(&mut whole, b"none");
    string(&mut whole, b"none");
    string(&mut whole, b"");
    whole.extend_from_slice(&1_u32.to_be_bytes());
    string(&mut whole, &blob);
    string(&mut whole, &secret);
    Ok(KeyPair {
        public: PublicKey::new(ED25519, &STANDARD.encode(&blob))?,
        private: Sensitive::new(pem("OPENSSH PRIVATE KEY", &whole)),
    })
}

fn rsa() -> Result<KeyPair, Failure> {
    let pair = RsaPair::generate(RSA_SIZE).map_err(broken)?;
    let private: Pkcs8V1Der<'_> = pair.as_der().map_err(broken)?;
    // SEQUENCE { modulus INTEGER, publicExponent INTEGER }
    let key = pair.public_key().as_ref();
    let (sequence, _) = element(key, 0x30).ok_or_else(|| broken(()))?;
    let (modulus, rest) = element(sequence, 0x02).ok_or_else(|| broken(()))?;
    let (exponent, _) = element(rest, 0x02).ok_or_else(|| broken(()))?;
    // An INTEGER has its sign as SSH's mpint has it.
    let mut blob = Vec::new();
    string(&mut blob, RSA.as_bytes());
    string(&mut blob, exponent);
    string(&mut blob, modulus);
    Ok(KeyPair {
        public: PublicKey::new(RSA, &STANDARD.encode(&blob))?,
        private: Sensitive::new(pem("PRIVATE KEY", private.as_ref())),
    })
}

/// A string as SSH writes it: with its length before it.
fn string(into: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    into.extend_from_slice(&length.to_be_bytes());
    into.extend_from_slice(bytes);
}

/// Content of the DER element at the start, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let length = digits
            .iter()
            .fold(0_usize, |length, byte| (length << 8) | usize::from(*byte));
        (length, rest)
    };
    (found == tag).then_some(())?;
    rest.split_at_checked(length)
}

fn pem(label: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let mut pem = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(PEM_COLUMNS.min(rest.len()));
        pem.push_str(line);
        pem.push('\n');
        rest = more;
    }
    pem.push_str(&format!("-----END {label}-----\n"));
    pem
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rsa::PublicKeyComponents;
    use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256};

    use super::*;

    fn bytes(pem: &str) -> Vec<u8> {
        let text: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
        STANDARD.decode(text).unwrap()
    }

    /// The strings of an SSH public key.
    fn strings(key: &PublicKey) -> Vec<Vec<u8>> {
        let line = key.to_string();
        let blob = STANDARD.decode(line.split_once(' ').unwrap().1).unwrap();
        let (mut rest, mut strings) = (blob.as_slice(), Vec::new());
        while let Some((length, more)) = rest.split_first_chunk::<4>() {
            let (string, more) = more.split_at(u32::from_be_bytes(*length) as usize);
            strings.push(string.to_vec());
            rest = more;
        }
        strings
    }

    /// What the private half signs, the public half of the same pair takes: RSA, made and signed by a library without the timing
    /// fault of RUSTSEC-2023-0071.
    #[test]
    fn the_halves_of_an_rsa_pair_belong_together() {
        let pair = Algorithm::Rsa.generate().unwrap();
        let [name, exponent, modulus] = strings(&pair.public).try_into().unwrap();
        assert_eq!(
            (name.as_slice(), exponent.as_slice()),
            (RSA.as_bytes(), &[1, 0, 1][..])
        );
        // 4096 bits, and a zero before them that says that it is no negative number.
        assert_eq!((modulus.len(), modulus[0]), (513, 0));
        let private = RsaPair::from_pkcs8(&bytes(pair.private.expose())).unwrap();
        let mut signature = vec![0; private.public_modulus_len()];
        let random = SystemRandom::new();
        private
            .sign(&RSA_PKCS1_SHA256, &random, b"text", &mut signature)
            .unwrap();
        let public = PublicKeyComponents {
            n: &modulus[1..],
            e: &exponent,
        };
        public
            .verify(&RSA_PKCS1_2048_8192_SHA256, b"text", &signature)
            .unwrap();
        assert_ne!(pair.public, Algorithm::Rsa.generate().unwrap().public);
    }

    #[test]
    fn the_halves_of_an_ed25519_pair_belong_together() {
        let pair = Algorithm::Ed25519.generate().unwrap();
        let [name, public] = strings(&pair.public).try_into().unwrap();
        assert_eq!(name, ED25519.as_bytes());
        let whole = bytes(pair.private.expose());
        assert!(whole.starts_with(b"openssh-key-v1\0"));
        // The seed lies before the last of the three copies of the public half.
        let at = whole.windows(32).rposition(|window| window == public).unwrap();
        let seed = &whole[at - 32..at];
        let private = Ed25519KeyPair::from_seed_and_public_key(seed, &public).unwrap();
        assert_eq!(private.public_key().as_ref(), public);
    }
}
