//! Columns with secrets, encrypted before they reach a statement.
//!
//! ```text
//! magic 1 | format 1 | key id 4 | nonce 12 | AES-256-GCM ciphertext and tag
//! ```
//!
//! The additional data binds a value to its place: table, column, row, key and format, each with its length before
//! it. A value moved to another row or column, cut, changed, or written in plain does not open (DESIGN §6).

use std::collections::BTreeMap;
use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hmac;
use evenkeel_core::Sensitive;
use zeroize::Zeroize as _;

use crate::keys::Purpose;
use crate::{Error, KeyId, Keyring};

/// The first byte of every encrypted value; no JSON or text begins with it.
const MAGIC: u8 = 0xE7;
/// The version of the layout.
const FORMAT: u8 = 1;
/// Bytes before the ciphertext.
const HEADER: usize = 2 + 4 + NONCE_LEN;
/// What check values are made of; not secret.
const CHECK_TEXT: &[u8] = b"evenkeel key check";

/// One encrypted column of the schema. All of them are in [`Column::ALL`]; nothing else can be encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// Its table.
    pub(crate) table: &'static str,
    /// Its name.
    pub(crate) name: &'static str,
}

macro_rules! columns {
    ($($constant:ident = $table:literal . $name:literal,)+) => {
        impl Column {
            $(pub(crate) const $constant: Self = Self { table: $table, name: $name };)+

            /// Every encrypted column: what a rotation has to visit.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$constant),+];
        }
    };
}

columns! {
    KUBECONFIG = "kubeconfigs"."content",
    SPEC = "cluster_configurations"."spec",
    STATUS_REASON = "cluster_status"."reason",
    HISTORY_REASON = "status_history"."reason",
    COMPONENT_REASON = "components"."reason",
    COMPONENT_NOT_READY = "components"."not_ready",
    RECONCILIATION_REASON = "reconciliations"."reason",
    OPERATION_CAUSE = "operations"."cause",
    OPERATION_REASON = "operations"."reason",
    TIMELINE = "operation_reports"."timeline",
    RENDER = "renders"."content",
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.table, self.name)
    }
}

impl Column {
    /// The error of a row whose value in this column cannot be read.
    pub(crate) fn unreadable(self, row: &str, reason: impl Into<String>) -> Error {
        Error::Unreadable {
            table: self.table,
            column: self.name,
            row: row.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Encrypts and hashes under the keys of one ring.
pub(crate) struct Cipher {
    active: KeyId,
    keys: BTreeMap<KeyId, RandomizedNonceKey>,
    content_hash: hmac::Key,
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cipher")
            .field("active", &self.active)
            .field("keys", &self.keys.keys())
            .finish_non_exhaustive()
    }
}

impl Cipher {
    /// A cipher over `ring`.
    ///
    /// # Errors
    /// [`Error::KeyRing`] when the library refuses a key.
    pub(crate) fn new(ring: &Keyring) -> Result<Self, Error> {
        let mut keys = BTreeMap::new();
        for (id, key) in ring.data() {
            let key = RandomizedNonceKey::new(&AES_256_GCM, key).map_err(|_| Error::KeyRing {
                ring: ring.source().to_string(),
                reason: format!("key {id} is not usable"),
            })?;
            keys.insert(id, key);
        }
        let (_, content_hash) = ring.content_hash();
        Ok(Self {
            active: ring.active(),
            keys,
            content_hash: hmac::Key::new(hmac::HMAC_SHA256, content_hash),
        })
    }

    /// Encrypts `plain` for one cell under the active key, with a fresh nonce.
    ///
    /// # Errors
    /// [`Error::KeyRing`] when the library fails, which it does only without random bytes.
    pub(crate) fn seal(&self, column: Column, row: &str, plain: &[u8]) -> Result<Vec<u8>, Error> {
        let failed = || Error::KeyRing {
            ring: "in use".to_owned(),
            reason: format!("key {} could not encrypt", self.active),
        };
        let key = self.keys.get(&self.active).ok_or_else(failed)?;
        let aad = additional_data(column, row, self.active);
        let mut text = plain.to_vec();
        let nonce = key
            .seal_in_place_append_tag(Aad::from(aad), &mut text)
            .map_err(|_| failed())?;
        let mut sealed = Vec::with_capacity(HEADER + text.len());
        sealed.extend_from_slice(&[MAGIC, FORMAT]);
        sealed.extend_from_slice(&self.active.0.to_be_bytes());
        sealed.extend_from_slice(nonce.as_ref());
        sealed.append(&mut text);
        Ok(sealed)
    }

    /// Decrypts the value of one cell.
    ///
    /// # Errors
    /// [`Error::Unreadable`] for anything that this ring did not write into this very cell.
    pub(crate) fn open(&self, column: Column, row: &str, sealed: &[u8]) -> Result<Sensitive<Vec<u8>>, Error> {
        let Some((id, nonce, text)) = split(sealed) else {
            return Err(column.unreadable(row, "it is not an encrypted value"));
        };
        let key = self.keys.get(&id).ok_or_else(|| {
            column.unreadable(
                row,
                format!("it is encrypted under key {id}, which the key ring lacks"),
            )
        })?;
        let aad = additional_data(column, row, id);
        let mut text = text.to_vec();
        let length = match key.open_in_place(nonce, Aad::from(aad), &mut text) {
            Ok(plain) => plain.len(),
            Err(_) => {
                text.zeroize();
                let reason = format!("it was damaged or moved here from another row or column (key {id})");
                return Err(column.unreadable(row, reason));
            }
        };
        text.truncate(length);
        Ok(Sensitive::new(text))
    }

    /// Encrypts an optional text.
    pub(crate) fn seal_text(
        &self,
        column: Column,
        row: &str,
        text: Option<&str>,
    ) -> Result<Option<Vec<u8>>, Error> {
        text.map(|text| self.seal(column, row, text.as_bytes()))
            .transpose()
    }

    /// Decrypts an optional text.
    pub(crate) fn open_text(
        &self,
        column: Column,
        row: &str,
        sealed: Option<&[u8]>,
    ) -> Result<Option<String>, Error> {
        let Some(sealed) = sealed else {
            return Ok(None);
        };
        let plain = self.open(column, row, sealed)?;
        match std::str::from_utf8(plain.expose()) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(column.unreadable(row, "it is not UTF-8 text")),
        }
    }

    /// The keyed hash of some parts, each with its length before it. Equal content is found again, and a reader of the
    /// database cannot try guesses.
    pub(crate) fn content_hash<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.content_hash);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut hash = [0; 32];
        for (to, from) in hash.iter_mut().zip(context.sign().as_ref()) {
            *to = *from;
        }
        hash
    }
}

/// Proves that a ring holds a key, and tells nothing about it: HMAC-SHA-256 of a constant, the purpose and the id.
pub(crate) fn check_value(purpose: Purpose, id: KeyId, key: &[u8]) -> Vec<u8> {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    context.update(CHECK_TEXT);
    context.update(purpose.as_str().as_bytes());
    context.update(&id.0.to_be_bytes());
    context.sign().as_ref().to_vec()
}

fn split(sealed: &[u8]) -> Option<(KeyId, Nonce, &[u8])> {
    let (header, text) = sealed.split_at_checked(HEADER)?;
    let [MAGIC, FORMAT, a, b, c, d, nonce @ ..] = header else {
        return None;
    };
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    Some((KeyId(u32::from_be_bytes([*a, *b, *c, *d])), nonce, text))
}

fn additional_data(column: Column, row: &str, key: KeyId) -> Vec<u8> {
    let key = key.0.to_be_bytes();
    let parts: [&[u8]; 5] = [
        column.table.as_bytes(),
        column.name.as_bytes(),
        row.as_bytes(),
        &key,
        &[FORMAT],
    ];
    let mut data = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        data.extend_from_slice(&(part.len() as u64).to_be_bytes());
        data.extend_from_slice(part);
    }
    data
}

#[cfg(test)]
mod tests {
    use evenkeel_core::Sensitive;
    use jiff::Timestamp;

    use super::*;
    use crate::KeySource;

    fn cipher() -> Cipher {
        Cipher::new(&Keyring::create(&KeySource::Ephemeral, Timestamp::UNIX_EPOCH).unwrap()).unwrap()
    }

    fn reason(result: Result<Sensitive<Vec<u8>>, Error>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn opens_what_it_sealed() {
        let cipher = cipher();
        for plain in [&b""[..], b"x", &[0; 100_000]] {
            let sealed = cipher.seal(Column::SPEC, "c/1", plain).unwrap();
            assert_eq!(cipher.open(Column::SPEC, "c/1", &sealed).unwrap().expose(), plain);
        }
    }

    #[test]
    fn the_same_text_never_looks_the_same() {
        let cipher = cipher();
        let seal = || cipher.seal(Column::SPEC, "c/1", b"secret").unwrap();
        assert_ne!(seal(), seal());
    }

    #[test]
    fn a_moved_value_does_not_open() {
        let cipher = cipher();
        let sealed = cipher.seal(Column::KUBECONFIG, "a/1", b"secret").unwrap();
        assert!(
            reason(cipher.open(Column::KUBECONFIG, "b/1", &sealed))
                .contains("kubeconfigs.content of row \"b/1\"")
        );
        assert!(cipher.open(Column::SPEC, "a/1", &sealed).is_err());
        let long = Column {
            table: "kubeconfigsc",
            name: "ontent",
        };
        assert!(
            cipher.open(long, "a/1", &sealed).is_err(),
            "lengths are part of the additional data"
        );
    }

    #[test]
    fn a_damaged_value_does_not_open_and_does_not_panic() {
        let cipher = cipher();
        let sealed = cipher.seal(Column::SPEC, "c/1", b"secret").unwrap();
        for length in 0..sealed.len() {
            assert!(
                cipher.open(Column::SPEC, "c/1", &sealed[..length]).is_err(),
                "cut to {length}"
            );
        }
        for bit in 0..sealed.len() * 8 {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(cipher.open(Column::SPEC, "c/1", &damaged).is_err(), "bit {bit}");
        }
        assert!(
            reason(cipher.open(Column::SPEC, "c/1", b"{\"plain\": \"text\"}"))
                .contains("not an encrypted value")
        );
    }

    #[test]
    fn another_ring_is_told_by_the_key() {
        let (one, other) = (cipher(), cipher());
        let sealed = one.seal(Column::SPEC, "c/1", b"secret").unwrap();
        let reason = reason(other.open(Column::SPEC, "c/1", &sealed));
        assert!(reason.contains(&format!("key {}", one.active)), "{reason}");
    }

    #[test]
    fn content_hashes_are_keyed_and_do_not_run_together() {
        let (one, other) = (cipher(), cipher());
        let parts = |cipher: &Cipher, parts: &[&'static str]| {
            cipher.content_hash(parts.iter().map(|part| part.as_bytes()))
        };
        assert_eq!(parts(&one, &["ab", "c"]), parts(&one, &["ab", "c"]));
        assert_ne!(parts(&one, &["ab", "c"]), parts(&one, &["a", "bc"]));
        assert_ne!(parts(&one, &["ab"]), parts(&other, &["ab"]));
    }
}
