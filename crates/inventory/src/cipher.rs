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
use std::sync::{Arc, PoisonError, RwLock};

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
/// Bytes that say which key a value was encrypted with.
pub(crate) const KEY_HEADER: usize = 2 + 4;
/// Bytes before the ciphertext.
const HEADER: usize = KEY_HEADER + NONCE_LEN;
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

/// Every encrypted column with the primary key of its table, for whoever has to name all of them: `$with!` gets
/// `CONSTANT = "table"."column" by "text" … | "number" …;` each. The parts of the key, joined by `/`, are the row that
/// a value is bound to.
macro_rules! encrypted_columns {
    ($with:ident) => {
        $with! {
            KUBECONFIG = "kubeconfigs"."content" by "cluster_id" | "number";
            SPEC = "cluster_configurations"."spec" by "cluster_id" | "version";
            STATUS_REASON = "cluster_status"."reason" by "cluster_id" |;
            HISTORY_REASON = "status_history"."reason" by "cluster_id" | "seq";
            COMPONENT_REASON = "components"."reason" by "cluster_id" "component" |;
            COMPONENT_NOT_READY = "components"."not_ready" by "cluster_id" "component" |;
            RECONCILIATION_REASON = "reconciliations"."reason" by "id" |;
            OPERATION_CAUSE = "operations"."cause" by "id" |;
            OPERATION_REASON = "operations"."reason" by "id" |;
            TIMELINE = "operation_reports"."timeline" by "operation_id" | "seq";
            RENDER = "renders"."content" by "cluster_id" "component" | "revision";
        }
    };
}
pub(crate) use encrypted_columns;

macro_rules! columns {
    ($($constant:ident = $table:literal . $name:literal by $($text:literal)+ | $($number:literal)?;)+) => {
        impl Column {
            $(pub(crate) const $constant: Self = Self { table: $table, name: $name };)+

            /// Every encrypted column.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$constant),+];
        }
    };
}
encrypted_columns!(columns);

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

/// Encrypts and hashes under the keys of one ring. The keys may be replaced while it is in use; the key of the content
/// hashes never is.
pub(crate) struct Cipher {
    keys: RwLock<Arc<DataKeys>>,
    content_hash: hmac::Key,
}

/// The keys that encrypt columns.
struct DataKeys {
    active: KeyId,
    keys: BTreeMap<KeyId, RandomizedNonceKey>,
}

impl DataKeys {
    fn new(ring: &Keyring, active: KeyId) -> Result<Self, Error> {
        let mut keys = BTreeMap::new();
        for (id, key) in ring.data() {
            let key = RandomizedNonceKey::new(&AES_256_GCM, key).map_err(|_| Error::KeyRing {
                ring: ring.source().to_string(),
                reason: format!("key {id} is not usable"),
            })?;
            keys.insert(id, key);
        }
        Ok(Self { active, keys })
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys();
        f.debug_struct("Cipher")
            .field("active", &keys.active)
            .field("keys", &keys.keys.keys())
            .finish_non_exhaustive()
    }
}

impl Cipher {
    /// A cipher over `ring` that encrypts with `active`.
    ///
    /// # Errors
    /// [`Error::KeyRing`] when the library refuses a key.
    pub(crate) fn new(ring: &Keyring, active: KeyId) -> Result<Self, Error> {
        let (_, content_hash) = ring.content_hash();
        Ok(Self {
            keys: RwLock::new(Arc::new(DataKeys::new(ring, active)?)),
            content_hash: hmac::Key::new(hmac::HMAC_SHA256, content_hash),
        })
    }

    /// Goes on with the data keys of `ring` and encrypts with `active`. What is under way ends as it began.
    ///
    /// # Errors
    /// [`Error::KeyRing`] when the library refuses a key; then everything stays as it was.
    pub(crate) fn replace(&self, ring: &Keyring, active: KeyId) -> Result<(), Error> {
        let keys = Arc::new(DataKeys::new(ring, active)?);
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    /// The key that encrypts.
    pub(crate) fn active(&self) -> KeyId {
        self.keys().active
    }

    /// How every value begins that was encrypted with `key`.
    pub(crate) fn header(key: KeyId) -> [u8; KEY_HEADER] {
        let [a, b, c, d] = key.0.to_be_bytes();
        [MAGIC, FORMAT, a, b, c, d]
    }

    /// The key that a value says it was encrypted with; none for what is no encrypted value.
    pub(crate) fn key_of(sealed: &[u8]) -> Option<KeyId> {
        match sealed.first_chunk::<KEY_HEADER>()? {
            [MAGIC, FORMAT, a, b, c, d] => Some(KeyId(u32::from_be_bytes([*a, *b, *c, *d]))),
            _ => None,
        }
    }

    fn keys(&self) -> Arc<DataKeys> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Encrypts `plain` for one cell under the active key, with a fresh nonce.
    ///
    /// # Errors
    /// [`Error::KeyRing`] when the library fails, which it does only without random bytes.
    pub(crate) fn seal(&self, column: Column, row: &str, plain: &[u8]) -> Result<Vec<u8>, Error> {
        let DataKeys { active, keys } = &*self.keys();
        let failed = || Error::KeyRing {
            ring: "in use".to_owned(),
            reason: format!("key {active} could not encrypt"),
        };
        let key = keys.get(active).ok_or_else(failed)?;
        let aad = additional_data(column, row, *active);
        let mut text = plain.to_vec();
        let nonce = key
            .seal_in_place_append_tag(Aad::from(aad), &mut text)
            .map_err(|_| failed())?;
        let mut sealed = Vec::with_capacity(HEADER + text.len());
        sealed.extend_from_slice(&Self::header(*active));
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
        let keys = self.keys();
        let key = keys.keys.get(&id).ok_or_else(|| {
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
    let key = Cipher::key_of(header)?;
    let nonce = Nonce::try_assume_unique_for_key(header.get(KEY_HEADER..)?).ok()?;
    Some((key, nonce, text))
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
        let ring = Keyring::create(&KeySource::Ephemeral, Timestamp::UNIX_EPOCH).unwrap();
        Cipher::new(&ring, ring.active()).unwrap()
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
        assert!(reason.contains(&format!("key {}", one.active())), "{reason}");
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
