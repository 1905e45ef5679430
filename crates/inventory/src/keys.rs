//! The key ring: the keys that protect secrets at rest. It never enters the database.

mod file;

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use evenkeel_core::Sensitive;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

use crate::Error;

pub use file::{KeyringFile, RingKey};

/// Bytes of a key, for AES-256 and HMAC-SHA-256 alike.
pub(crate) const KEY_BYTES: usize = 32;
/// The version of the ring's file format.
const RING_VERSION: u32 = 1;

/// Names a key; random, so that keys of two rings are not mistaken for one another. Written as 8 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub u32);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl FromStr for KeyId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        u32::from_str_radix(text, 16)
            .ok()
            .filter(|_| text.len() == 8)
            .map(Self)
            .ok_or_else(|| format!("key id {text:?} is not 8 hexadecimal digits"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Where the key ring is.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// A file; made with mode 0600 when it does not exist and the database is empty.
    File(PathBuf),
    /// The content of such a file, as an environment variable may hold it. Never made.
    Text(Sensitive<String>),
    /// A new ring in memory, for a database that ends with the process.
    Ephemeral,
}

impl fmt::Display for KeySource {
    /// For messages; no content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Text(_) => f.write_str("given as text"),
            Self::Ephemeral => f.write_str("in memory"),
        }
    }
}

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Encrypts columns.
    Data,
    /// Hashes the content of rows that hold secrets. Rotation leaves it alone: equal content must stay equal.
    ContentHash,
}

impl Purpose {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::ContentHash => "content-hash",
        }
    }
}

/// A key that encrypts columns.
struct DataKey {
    created: Timestamp,
    key: Sensitive<[u8; KEY_BYTES]>,
}

/// The keys of one installation. Several data keys may be live at once; the active one encrypts.
pub struct Keyring {
    active: KeyId,
    data: BTreeMap<KeyId, DataKey>,
    content_hash: (KeyId, Sensitive<[u8; KEY_BYTES]>),
    source: KeySource,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring")
            .field("active", &self.active)
            .field("data", &self.data.keys())
            .field("content_hash", &self.content_hash.0)
            .finish_non_exhaustive()
    }
}

/// The file: `{version, active, keys: [{id, created, key}], contentHash: {id, created, key}}`, keys in base64.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RingFile {
    version: u32,
    active: String,
    keys: Vec<KeyEntry>,
    content_hash: KeyEntry,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    id: String,
    created: Timestamp,
    key: String,
}

impl Drop for KeyEntry {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl KeyEntry {
    fn generate(created: Timestamp) -> Result<Self, &'static str> {
        let random = SystemRandom::new();
        let mut id = [0; 4];
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        let failed = |_| "the system gave no random bytes";
        while id == [0; 4] {
            random.fill(&mut id).map_err(failed)?;
        }
        random.fill(key.as_mut_slice()).map_err(failed)?;
        Ok(Self {
            id: KeyId(u32::from_be_bytes(id)).to_string(),
            created,
            key: BASE64.encode(key.as_slice()),
        })
    }

    fn read(&self) -> Result<(KeyId, Sensitive<[u8; KEY_BYTES]>), String> {
        let id: KeyId = self.id.parse()?;
        let bytes = BASE64
            .decode(&self.key)
            .map(Zeroizing::new)
            .map_err(|_| format!("key {id} is not base64"))?;
        let key = <[u8; KEY_BYTES]>::try_from(bytes.as_slice())
            .map_err(|_| format!("key {id} has {} bytes, expected {KEY_BYTES}", bytes.len()))?;
        Ok((id, Sensitive::new(key)))
    }
}

impl Keyring {
    /// Reads the ring; `None` when it is a file that does not exist.
    ///
    /// # Errors
    /// [`Error::KeyRing`], [`Error::Io`].
    pub(crate) fn read(source: &KeySource) -> Result<Option<Self>, Error> {
        let text = match source {
            KeySource::File(path) => match std::fs::read_to_string(path) {
                Ok(text) => {
                    warn_when_readable_by_others(path);
                    Zeroizing::new(text)
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(source) => {
                    return Err(Error::Io {
                        path: path.clone(),
                        source,
                    });
                }
            },
            KeySource::Text(text) => Zeroizing::new(text.expose().clone()),
            KeySource::Ephemeral => return Ok(None),
        };
        Self::parse(&text, source)
            .map(Some)
            .map_err(|reason| Error::KeyRing {
                ring: source.to_string(),
                reason,
            })
    }

    fn parse(text: &str, source: &KeySource) -> Result<Self, String> {
        // serde's message may quote the text around an error, which may be a key: only the place is told.
        let file: RingFile = serde_json::from_str(text).map_err(|error| {
            format!(
                "not a key ring: line {}, column {} is not as expected",
                error.line(),
                error.column()
            )
        })?;
        if file.version != RING_VERSION {
            return Err(format!("has version {}, expected {RING_VERSION}", file.version));
        }
        let mut data = BTreeMap::new();
        let content_hash = file.content_hash.read()?;
        for entry in &file.keys {
            let (id, key) = entry.read()?;
            let created = entry.created;
            if id == content_hash.0 || data.insert(id, DataKey { created, key }).is_some() {
                return Err(format!("key {id} is listed twice"));
            }
        }
        let active: KeyId = file.active.parse()?;
        if !data.contains_key(&active) {
            return Err(format!("the active key {active} is not listed"));
        }
        Ok(Self {
            active,
            data,
            content_hash,
            source: source.clone(),
        })
    }

    /// Makes a ring and, for a file, writes it with mode 0600, durably, without touching one that exists.
    ///
    /// # Errors
    /// [`Error::KeyRing`] without random bytes or for a source that cannot be made; [`Error::Io`].
    pub(crate) fn create(source: &KeySource, now: Timestamp) -> Result<Self, Error> {
        let refused = |reason: String| Error::KeyRing {
            ring: source.to_string(),
            reason,
        };
        let entry = || KeyEntry::generate(now).map_err(|reason| refused(reason.to_owned()));
        let key = entry()?;
        let file = RingFile {
            version: RING_VERSION,
            active: key.id.clone(),
            keys: vec![key],
            content_hash: entry()?,
        };
        let text = serde_json::to_string_pretty(&file)
            .map(Zeroizing::new)
            .map_err(|error| refused(error.to_string()))?;
        match source {
            KeySource::File(path) => write_private(path, text.as_bytes()).map_err(|source| Error::Io {
                path: path.clone(),
                source,
            })?,
            KeySource::Text(_) => return Err(refused("is empty".to_owned())),
            KeySource::Ephemeral => {}
        }
        Self::parse(&text, source).map_err(refused)
    }

    /// The key that encrypts.
    pub fn active(&self) -> KeyId {
        self.active
    }

    /// The ids of all data keys.
    pub fn data_keys(&self) -> impl Iterator<Item = KeyId> {
        self.data.keys().copied()
    }

    pub(crate) fn source(&self) -> &KeySource {
        &self.source
    }

    pub(crate) fn data(&self) -> impl Iterator<Item = (KeyId, &[u8; KEY_BYTES])> {
        self.data.iter().map(|(id, key)| (*id, key.key.expose()))
    }

    /// When a data key was made; that decides which of two is the newer one.
    pub(crate) fn created(&self, id: KeyId) -> Option<Timestamp> {
        self.data.get(&id).map(|key| key.created)
    }

    pub(crate) fn content_hash(&self) -> (KeyId, &[u8; KEY_BYTES]) {
        (self.content_hash.0, self.content_hash.1.expose())
    }
}

/// Writes `content` beside `path` and links it into place, so that a crash leaves all of it or nothing.
fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".keys-")
        .permissions(std::fs::Permissions::from_mode(0o600))
        .tempfile_in(directory)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    std::fs::File::open(directory)?.sync_all()
}

fn warn_when_readable_by_others(path: &Path) {
    if let Ok(metadata) = std::fs::metadata(path) {
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o007 != 0 {
            tracing::warn!(ring = %path.display(), mode = format!("{mode:03o}"), "others can read the key ring: use mode 0600");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(directory: &tempfile::TempDir) -> KeySource {
        KeySource::File(directory.path().join("keys.json"))
    }

    #[test]
    fn a_new_ring_is_private_and_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        let source = source(&directory);
        assert!(Keyring::read(&source).unwrap().is_none());
        let made = Keyring::create(&source, Timestamp::UNIX_EPOCH).unwrap();
        let read = Keyring::read(&source).unwrap().unwrap();
        assert_eq!(made.active(), read.active());
        assert_eq!(made.content_hash.1.expose(), read.content_hash.1.expose());
        let KeySource::File(path) = &source else {
            unreachable!()
        };
        assert_eq!(
            std::fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_existing_ring_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let source = source(&directory);
        let made = Keyring::create(&source, Timestamp::UNIX_EPOCH).unwrap();
        assert!(matches!(
            Keyring::create(&source, Timestamp::UNIX_EPOCH),
            Err(Error::Io { .. })
        ));
        assert_eq!(Keyring::read(&source).unwrap().unwrap().active(), made.active());
    }

    #[test]
    fn a_damaged_ring_is_refused_without_showing_it() {
        let key = |id: &str, key: &str| {
            format!(r#"{{"id":"{id}","created":"2026-01-01T00:00:00Z","key":"{key}"}}"#)
        };
        let good = BASE64.encode([7; 32]);
        let hash = key("0000000f", &good);
        for (ring, expected) in [
            ("{".to_owned(), "line 1"),
            (
                format!(
                    r#"{{"version":2,"active":"00000001","keys":[{}],"contentHash":{hash}}}"#,
                    key("00000001", &good)
                ),
                "version 2",
            ),
            (
                format!(
                    r#"{{"version":1,"active":"00000002","keys":[{}],"contentHash":{hash}}}"#,
                    key("00000001", &good)
                ),
                "active key 00000002",
            ),
            (
                format!(
                    r#"{{"version":1,"active":"00000001","keys":[{}],"contentHash":{hash}}}"#,
                    key("00000001", "c2hvcnQ=")
                ),
                "5 bytes",
            ),
            (
                format!(
                    r#"{{"version":1,"active":"00000001","keys":[{}],"contentHash":{hash}}}"#,
                    key("00000001", "*secret*")
                ),
                "not base64",
            ),
            (
                format!(
                    r#"{{"version":1,"active":"00000001","keys":[{},{}],"contentHash":{hash}}}"#,
                    key("00000001", &good),
                    key("00000001", &good)
                ),
                "twice",
            ),
        ] {
            let source = KeySource::Text(Sensitive::new(ring));
            let error = Keyring::read(&source).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected:?} is missing in {error:?}");
            assert!(!error.contains("secret") && !error.contains(&good), "{error}");
        }
    }
}
