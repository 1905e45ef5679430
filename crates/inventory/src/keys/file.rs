//! Changing a key ring file: a key more, another one active, a key less. Each change is one atomic replacement, so a crash
//! leaves the old file or the new one.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use zeroize::Zeroizing;

use super::{KeyEntry, KeyId, KeySource, Keyring, RingFile};
use crate::Error;

/// A key ring file that people change. Motherships that use it take a change up by themselves.
#[derive(Clone, Debug)]
pub struct KeyringFile(PathBuf);

/// A data key of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingKey {
    /// Its id.
    pub id: KeyId,
    /// When it was made.
    pub created: Timestamp,
    /// Whether it is the one that encrypts.
    pub active: bool,
}

impl KeyringFile {
    /// The ring at `path`, which must exist when it is used.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The data keys, oldest first.
    ///
    /// # Errors
    /// [`Error::KeyRing`], [`Error::Io`].
    pub fn keys(&self) -> Result<Vec<RingKey>, Error> {
        self.read().and_then(|(_, file)| self.ring_keys(&file))
    }

    /// Adds a key that encrypts nothing yet. Whoever shares the database has to have it before it may become active.
    ///
    /// # Errors
    /// [`Error::KeyRing`], [`Error::Io`].
    pub fn add(&self, now: Timestamp) -> Result<KeyId, Error> {
        self.change(|ring, file| {
            let newest = file.keys.iter().map(|key| key.created).max();
            // A clock that was turned back must not make the new key the older one.
            let created = newest
                .and_then(|newest| newest.checked_add(SignedDuration::from_millis(1)).ok())
                .map_or(now, |after| after.max(now));
            let entry = KeyEntry::generate(created).map_err(|reason| ring.refused(reason.to_owned()))?;
            let id = entry.id.parse().map_err(|reason| ring.refused(reason))?;
            file.keys.push(entry);
            Ok(id)
        })
    }

    /// Makes a key the one that encrypts: `to`, or the newest. Answers it, also when it is that already.
    ///
    /// # Errors
    /// [`Error::KeyRefused`] for a key that is not there, is not newer than the active one, or when there is none but
    /// the active one; [`Error::KeyRing`], [`Error::Io`].
    pub fn activate(&self, to: Option<KeyId>) -> Result<KeyId, Error> {
        self.change(|ring, file| {
            let keys = ring.ring_keys(file)?;
            let refused = |key: KeyId, reason: &str| Error::KeyRefused {
                key,
                reason: reason.to_owned(),
            };
            let active = keys.iter().find(|key| key.active);
            let wanted = match to {
                Some(id) => keys
                    .iter()
                    .find(|key| key.id == id)
                    .ok_or_else(|| refused(id, "the key ring does not have it"))?,
                None => keys
                    .last()
                    .ok_or_else(|| ring.refused("has no key".to_owned()))?,
            };
            if let Some(active) = active {
                if to.is_none() && keys.len() == 1 {
                    return Err(refused(
                        active.id,
                        "it is the only key: make another one with `evenkeel keys add`",
                    ));
                }
                if (wanted.created, wanted.id) < (active.created, active.id) {
                    return Err(refused(
                        wanted.id,
                        "it is older than the active key; to leave that one, make a new key with `evenkeel keys add`",
                    ));
                }
            }
            file.active = wanted.id.to_string();
            Ok(wanted.id)
        })
    }

    /// Takes a key out. The caller has made sure that nothing is encrypted with it any more.
    ///
    /// # Errors
    /// [`Error::KeyRefused`] for the active key; [`Error::KeyRing`], [`Error::Io`].
    pub fn remove(&self, id: KeyId) -> Result<(), Error> {
        self.change(|_, file| {
            let text = id.to_string();
            if file.active == text {
                return Err(Error::KeyRefused {
                    key: id,
                    reason: "it is the active key: rotate to another one first".to_owned(),
                });
            }
            file.keys.retain(|key| key.id != text);
            Ok(())
        })
    }

    fn refused(&self, reason: String) -> Error {
        Error::KeyRing {
            ring: KeySource::File(self.0.clone()).to_string(),
            reason,
        }
    }

    fn ring_keys(&self, file: &RingFile) -> Result<Vec<RingKey>, Error> {
        let read = |entry: &KeyEntry| {
            Ok(RingKey {
                id: entry.id.parse()?,
                created: entry.created,
                active: entry.id == file.active,
            })
        };
        let keys: Result<Vec<_>, String> = file.keys.iter().map(read).collect();
        let mut keys = keys.map_err(|reason| self.refused(reason))?;
        keys.sort_by_key(|key| (key.created, key.id));
        Ok(keys)
    }

    /// The file behind any links, and what it holds; refused where a mothership would refuse it.
    fn read(&self) -> Result<(PathBuf, RingFile), Error> {
        let io = |source| Error::Io {
            path: self.0.clone(),
            source,
        };
        let path = std::fs::canonicalize(&self.0).map_err(io)?;
        let text = std::fs::read_to_string(&path).map(Zeroizing::new).map_err(io)?;
        Keyring::parse(&text, &KeySource::File(self.0.clone())).map_err(|reason| self.refused(reason))?;
        let file = serde_json::from_str(&text).map_err(|_| self.refused("is not a key ring".to_owned()))?;
        Ok((path, file))
    }

    /// Reads, changes and replaces the file; two that do so at the same time do it one after the other.
    fn change<T>(&self, change: impl FnOnce(&Self, &mut RingFile) -> Result<T, Error>) -> Result<T, Error> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Io { path, source }
        };
        let path = std::fs::canonicalize(&self.0).map_err(io(&self.0))?;
        let mut lock = path.into_os_string();
        lock.push(".lock");
        let lock_path = PathBuf::from(lock);
        let lock = crate::sqlite::private_file(
            std::fs::OpenOptions::new().create(true).truncate(false),
            &lock_path,
        )
        .map_err(io(&lock_path))?;
        lock.lock().map_err(io(&lock_path))?;
        let (path, mut file) = self.read()?;
        let answer = change(self, &mut file)?;
        let text = serde_json::to_string_pretty(&file)
            .map(Zeroizing::new)
            .map_err(|error| self.refused(error.to_string()))?;
        replace(&path, text.as_bytes()).map_err(io(&path))?;
        drop(lock);
        Ok(answer)
    }
}

/// Writes `content` beside `path` and renames it into place.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".keys-")
        .permissions(std::fs::Permissions::from_mode(0o600))
        .tempfile_in(directory)?;
    file.write_all(content)?;
    // Who may read it stays as it was decided: a group of motherships, for example.
    file.as_file()
        .set_permissions(std::fs::metadata(path)?.permissions())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(directory: &tempfile::TempDir) -> KeyringFile {
        let path = directory.path().join("keys");
        Keyring::create(&KeySource::File(path.clone()), Timestamp::UNIX_EPOCH).unwrap();
        KeyringFile::new(path)
    }

    #[test]
    fn a_key_is_added_activated_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let ring = ring(&directory);
        let first = ring.keys().unwrap()[0].clone();
        assert!(first.active);
        let error = ring.activate(None).unwrap_err().to_string();
        assert!(
            error.contains(&first.id.to_string()) && error.contains("keys add"),
            "{error}"
        );
        // Made while the clock stands still, it is the newer one all the same.
        let second = ring.add(Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(ring.keys().unwrap().len(), 2);
        assert!(ring.keys().unwrap()[0].active, "adding activates nothing");
        assert!(matches!(ring.remove(first.id), Err(Error::KeyRefused { .. })));
        assert_eq!(ring.activate(None).unwrap(), second);
        assert_eq!(ring.activate(Some(second)).unwrap(), second, "twice is once");
        let back = ring.activate(Some(first.id)).unwrap_err().to_string();
        assert!(back.contains("older"), "{back}");
        assert!(matches!(
            ring.activate(Some(KeyId(1))),
            Err(Error::KeyRefused { .. })
        ));
        ring.remove(first.id).unwrap();
        ring.remove(first.id).unwrap();
        let left = ring.keys().unwrap();
        assert_eq!((left.len(), left[0].id, left[0].active), (1, second, true));
        let mode = std::fs::metadata(directory.path().join("keys"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn two_that_add_at_once_both_do() {
        let directory = tempfile::tempdir().unwrap();
        let ring = ring(&directory);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| ring.add(Timestamp::UNIX_EPOCH).unwrap());
            }
        });
        assert_eq!(ring.keys().unwrap().len(), 9);
    }

    #[test]
    fn a_ring_that_is_missing_or_damaged_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        let ring = KeyringFile::new(&path);
        assert!(matches!(ring.add(Timestamp::UNIX_EPOCH), Err(Error::Io { .. })));
        assert!(!path.exists());
        std::fs::write(&path, "{\"version\": 1}").unwrap();
        assert!(matches!(
            ring.add(Timestamp::UNIX_EPOCH),
            Err(Error::KeyRing { .. })
        ));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"version\": 1}");
    }
}
