//! Downloads on disk, by content.
//!
//! ```text
//! DIR/blobs/<sha256>       what was downloaded; the name is the digest of the content
//! DIR/notes/<kind>-<key>   small texts: what a range stood for, which index a repository had
//! DIR/partial/…            what is being written; renamed when it is whole and checked
//! DIR/locks/<00..ff>       held by the process that downloads
//! ```
//!
//! Any number of processes may share one directory. A file gets its name when it is whole, and its digest is checked
//! again at every reading: what a crash, a full disk or a bad sector leaves is never used.

use std::fs::{self, DirBuilder, File};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use evenkeel_core::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// The most bytes that are kept unless told otherwise.
pub const CACHE_SIZE_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// The most notes that are kept.
const NOTES_MAX: usize = 10_000;
/// How many bytes remain, in percent of the bound, once it was passed: so that not every download evicts.
const KEPT_PERCENT: u64 = 90;
/// A partial file this old belongs to nobody any more.
const PARTIAL_AGE_MAX: Duration = Duration::from_secs(60 * 60);
/// How often a lock is asked for, and for how long before the work is done without it.
const LOCK_POLL: Duration = Duration::from_millis(25);
const LOCK_PATIENCE: Duration = Duration::from_secs(60);
/// The largest note that is read, in bytes.
const NOTE_SIZE_MAX: u64 = 256 * 1024;

/// A directory of downloads.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    root: PathBuf,
    size_max: u64,
}

/// What a note is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// What a source stood for.
    Resolution,
    /// The index that a repository had.
    Index,
    /// The signature of a chart.
    Provenance,
}

/// The sign of being the one that downloads; given up when dropped.
#[derive(Debug)]
pub(crate) struct Exclusive(#[allow(dead_code)] Option<File>);

impl Store {
    /// A store at `root`, which is made when missing, readable by us alone.
    ///
    /// # Errors
    /// [`Error::Cache`].
    pub(crate) fn open(root: PathBuf, size_max: u64) -> Result<Self, Error> {
        let failed = |source| Error::Cache {
            path: root.clone(),
            source,
        };
        for folder in ["blobs", "notes", "partial", "locks"] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(root.join(folder))
                .map_err(failed)?;
        }
        let store = Self { root, size_max };
        for (path, metadata) in files(&store.root.join("partial")) {
            let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
            if age.is_some_and(|age| age > PARTIAL_AGE_MAX) {
                remove(&path);
            }
        }
        Ok(store)
    }

    /// The content with this digest, if it is here and whole. Blocks.
    pub(crate) fn get(&self, digest: &Digest) -> Option<Bytes> {
        let path = self.blob(digest);
        let content = fs::read(&path).ok()?;
        if Digest::of(&content) != *digest {
            tracing::warn!(file = %path.display(), "a file of the cache is damaged: it is downloaded again");
            remove(&path);
            return None;
        }
        touch(&path);
        Some(content.into())
    }

    /// Whether something with this digest is here; it may turn out to be damaged.
    pub(crate) fn has(&self, digest: &Digest) -> bool {
        self.blob(digest).exists()
    }

    /// Keeps content, and evicts what was not used for longest when there is too much. A failure costs nothing but a
    /// download later. Blocks.
    pub(crate) fn put(&self, digest: &Digest, content: &[u8]) {
        if let Err(error) = self.write(&self.blob(digest), content) {
            tracing::warn!(cache = %self.root.display(), %error, "a download cannot be kept");
        }
        self.evict();
    }

    /// Keeps a note. Blocks.
    pub(crate) fn note(&self, kind: Note, key: &Digest, note: &impl Serialize) {
        let written = serde_json::to_vec(note)
            .map_err(std::io::Error::from)
            .and_then(|text| self.write(&self.note_path(kind, key), &text));
        if let Err(error) = written {
            tracing::warn!(cache = %self.root.display(), %error, "a note cannot be kept");
        }
    }

    /// A note, if there is one that can be read. Blocks.
    pub(crate) fn noted<T: DeserializeOwned>(&self, kind: Note, key: &Digest) -> Option<T> {
        let path = self.note_path(kind, key);
        if fs::metadata(&path).ok()?.len() > NOTE_SIZE_MAX {
            return None;
        }
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Waits until no other process, and no other task, downloads what `key` names. After a while it goes on
    /// regardless: the same thing twice is better than nothing.
    pub(crate) async fn exclusive(&self, key: &Digest) -> Exclusive {
        let name: String = key.hex().chars().take(2).collect();
        let path = self.root.join("locks").join(name);
        let Ok(file) = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
        else {
            return Exclusive(None);
        };
        let begun = evenkeel_telemetry::time::elapsed();
        loop {
            match file.try_lock() {
                Ok(()) => return Exclusive(Some(file)),
                Err(fs::TryLockError::WouldBlock)
                    if evenkeel_telemetry::time::elapsed().saturating_sub(begun) < LOCK_PATIENCE =>
                {
                    evenkeel_telemetry::time::sleep(LOCK_POLL).await;
                }
                Err(_) => return Exclusive(None),
            }
        }
    }

    /// Writes aside, syncs, renames.
    fn write(&self, path: &Path, content: &[u8]) -> std::io::Result<()> {
        let mut partial = tempfile::NamedTempFile::new_in(self.root.join("partial"))?;
        partial.write_all(content)?;
        partial.as_file().sync_data()?;
        partial.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    fn evict(&self) {
        let blobs = files(&self.root.join("blobs"));
        let total: u64 = blobs.iter().map(|(_, metadata)| metadata.len()).sum();
        if total > self.size_max {
            let keep = self.size_max / 100 * KEPT_PERCENT;
            let mut left = total;
            for (path, metadata) in oldest_first(blobs) {
                if left <= keep {
                    break;
                }
                remove(&path);
                left = left.saturating_sub(metadata.len());
            }
        }
        let notes = files(&self.root.join("notes"));
        let surplus = notes.len().saturating_sub(NOTES_MAX);
        for (path, _) in oldest_first(notes).into_iter().take(surplus) {
            remove(&path);
        }
    }

    fn blob(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs").join(digest.hex())
    }

    fn note_path(&self, kind: Note, key: &Digest) -> PathBuf {
        let kind = match kind {
            Note::Resolution => "resolution",
            Note::Index => "index",
            Note::Provenance => "provenance",
        };
        self.root.join("notes").join(format!("{kind}-{}", key.hex()))
    }
}

/// The files of a directory that another process may be changing.
fn files(folder: &Path) -> Vec<(PathBuf, fs::Metadata)> {
    let Ok(items) = fs::read_dir(folder) else {
        return Vec::new();
    };
    items
        .filter_map(|item| {
            let item = item.ok()?;
            Some((item.path(), item.metadata().ok()?))
        })
        .collect()
}

fn oldest_first(mut files: Vec<(PathBuf, fs::Metadata)>) -> Vec<(PathBuf, fs::Metadata)> {
    files.sort_by_key(|(_, metadata)| metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH));
    files
}

/// Another process may have removed it first.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

/// Notes that a file was used.
fn touch(path: &Path) {
    let touched = File::options()
        .write(true)
        .open(path)
        .and_then(|file| file.set_modified(SystemTime::from(evenkeel_telemetry::time::now())));
    if let Err(error) = touched {
        tracing::debug!(file = %path.display(), %error, "the use of a cached file cannot be noted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(size_max: u64) -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("cache"), size_max).unwrap();
        (folder, store)
    }

    #[test]
    fn damaged_content_is_never_returned() {
        let (_folder, store) = store(1024);
        let digest = Digest::of("content");
        store.put(&digest, b"content");
        assert_eq!(store.get(&digest).as_deref(), Some(&b"content"[..]));
        fs::write(store.blob(&digest), "conten").unwrap();
        assert_eq!(store.get(&digest), None);
        assert!(!store.has(&digest), "the damaged file is gone");
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let (_folder, store) = store(100);
        let content = |n: u8| vec![n; 40];
        let digests: Vec<_> = (0..3).map(|n| Digest::of(content(n))).collect();
        for (n, digest) in (0..2).zip(&digests) {
            store.put(digest, &content(n));
            let path = store.blob(digest);
            let time =
                SystemTime::from(evenkeel_telemetry::time::now()) - Duration::from_secs(100 - u64::from(n));
            File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_modified(time)
                .unwrap();
        }
        assert!(store.get(&digests[0]).is_some(), "used just now");
        store.put(&digests[2], &content(2));
        let kept: Vec<_> = digests.iter().map(|digest| store.has(digest)).collect();
        assert_eq!(kept, [true, false, true]);
    }

    #[test]
    fn leftovers_of_a_crash_go_away_and_young_ones_stay() {
        let (_folder, store) = store(100);
        let (old, young) = (store.root.join("partial/old"), store.root.join("partial/young"));
        fs::write(&old, "half").unwrap();
        fs::write(&young, "half").unwrap();
        let time = SystemTime::from(evenkeel_telemetry::time::now()) - PARTIAL_AGE_MAX * 2;
        File::options()
            .write(true)
            .open(&old)
            .unwrap()
            .set_modified(time)
            .unwrap();
        let _again = Store::open(store.root, 100).unwrap();
        assert!(!old.exists() && young.exists());
    }

    #[test]
    fn a_half_written_note_is_no_note() {
        let (_folder, store) = store(100);
        let key = Digest::of("key");
        store.note(Note::Index, &key, &vec![1, 2, 3]);
        assert_eq!(store.noted::<Vec<u8>>(Note::Index, &key), Some(vec![1, 2, 3]));
        assert_eq!(store.noted::<Vec<u8>>(Note::Resolution, &key), None);
        fs::write(store.note_path(Note::Index, &key), "[1, 2").unwrap();
        assert_eq!(store.noted::<Vec<u8>>(Note::Index, &key), None);
    }

    #[tokio::test]
    async fn one_downloads_while_the_other_waits() {
        let (_folder, store) = store(100);
        let key = Digest::of("key");
        let held = store.exclusive(&key).await;
        let mut waiting = Box::pin(store.exclusive(&key));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(held);
        assert!(waiting.await.0.is_some());
    }
}
