//! Encryption keys in use, and their rotation while everything else goes on (K17).
//!
//! ```text
//!   add      ring file     a key more, which encrypts nothing yet; every process takes it up
//!   rotate   ring file     it becomes the active one; once all processes hold it, all encrypt with it,
//!            database      and what older keys encrypted is encrypted again, batch by batch
//!   remove   database      refused while one value is left; then
//!            ring file     a key less
//! ```
//!
//! The database knows each key by its id, a check value and what became of it, never the key. At every moment each value
//! can be read by each process: a key becomes active only when all hold it, and goes only when nothing needs it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::{Error, KeyId, RowFailure};

/// How often a process reads its ring again and tells which keys it holds.
pub const KEYS_REFRESH: Duration = Duration::from_secs(10);
/// A process that told nothing for so long is not waited for.
pub(crate) const HOLDER_LIVE: Duration = Duration::from_secs(60);
/// How long a key must have been replaced before it may go: longer than any call that sealed with it may take.
pub(crate) const REPLACED_GRACE: Duration = Duration::from_secs(60);

/// What a process and its database agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyAgreement {
    /// The key that encrypts.
    pub active: KeyId,
    /// The key that the ring wants to be active, when others are still waited for.
    pub wanted: Option<KeyId>,
    /// The processes on this database that do not hold it yet.
    pub waiting_for: Vec<String>,
    /// Whether values may be left under another key than the active one.
    pub leftovers: bool,
}

/// What became of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyState {
    /// The key.
    pub id: KeyId,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether it is the one that encrypts.
    pub active: bool,
    /// When another one took its place.
    pub replaced_at: Option<Timestamp>,
    /// When it was removed.
    pub removed_at: Option<Timestamp>,
    /// Values that are encrypted with it.
    pub rows: u64,
}

/// All keys of a database and how much each is used.
#[derive(Clone, Debug)]
pub struct KeyStatus {
    /// The keys, oldest first.
    pub keys: Vec<KeyState>,
    /// Values under a key that the database does not know, by key.
    pub unknown: BTreeMap<KeyId, u64>,
    /// Cells that hold no encrypted value at all.
    pub damaged: u64,
}

/// Where a pass over all encrypted values stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RotationPlace {
    pub(crate) column: usize,
    pub(crate) after: Option<Vec<RowPart>>,
}

/// One part of a row's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowPart {
    Text(String),
    Number(i64),
}

impl fmt::Display for RowPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// How many values are under which key.
#[derive(Debug, Default)]
pub(crate) struct KeyUse {
    pub(crate) rows: BTreeMap<KeyId, u64>,
    /// Cells that hold no encrypted value.
    pub(crate) no_value: u64,
    /// One value under the key that was looked for.
    pub(crate) example: Option<String>,
}

/// What a batch, or a whole pass, has done.
#[derive(Debug, Default)]
pub struct Reencrypted {
    /// Values that are now under the active key.
    pub changed: u64,
    /// Values that somebody else was at; the next pass looks at them again.
    pub passed_over: u64,
    /// Values that cannot be opened; they stay as they are.
    pub unreadable: u64,
    /// The first of those.
    pub named: Vec<RowFailure>,
    /// Where the next batch begins; none when all were looked at.
    pub next: Option<RotationPlace>,
}

impl Reencrypted {
    /// Whether everything that was looked at is now under the active key.
    pub fn is_clean(&self) -> bool {
        self.passed_over == 0 && self.unreadable == 0
    }

    /// Adds what the next batch has done.
    fn and(&mut self, batch: Self) {
        self.changed += batch.changed;
        self.passed_over += batch.passed_over;
        self.unreadable += batch.unreadable;
        self.named.extend(batch.named);
        self.named.truncate(NAMED_MAX);
        self.next = batch.next;
    }
}

/// The most unreadable rows that one answer names.
pub(crate) const NAMED_MAX: usize = 20;

/// Encryption keys.
#[async_trait]
pub trait Keys: Send + Sync {
    /// Reads the ring again, takes up what changed in it, and tells the other processes which keys are held here.
    ///
    /// # Errors
    /// As [`SqlStore::open`](crate::SqlStore::open); the keys that were in use stay so.
    async fn refresh_keys(&self) -> Result<KeyAgreement, Error>;

    /// All keys, with the number of values under each: every encrypted value is looked at.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn key_status(&self) -> Result<KeyStatus, Error>;

    /// Encrypts the next batch again under the active key. A cell that was written meanwhile stays as it was written.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn reencrypt(&self, from: Option<RotationPlace>) -> Result<Reencrypted, Error>;

    /// Notes that a pass that began at `since` left nothing under an older key.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn note_reencrypted(&self, since: Timestamp) -> Result<(), Error>;

    /// Says that nothing needs a key any more, so that rings may go without it.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::KeyRefused`] while it is the active one, was replaced just now, or a value is under
    /// it; [`Error::Database`].
    async fn remove_key(&self, id: KeyId) -> Result<(), Error>;
}

/// One pass over all encrypted values, as long as `go_on` says so after each batch.
///
/// # Errors
/// As [`Keys::reencrypt`].
pub async fn reencrypt_all<K: Keys + ?Sized>(
    keys: &K,
    begun: Timestamp,
    mut go_on: impl FnMut(&Reencrypted) -> bool,
) -> Result<Reencrypted, Error> {
    let mut pass = Reencrypted::default();
    loop {
        let batch = keys.reencrypt(pass.next.take()).await?;
        pass.and(batch);
        if pass.next.is_none() {
            break;
        }
        if !go_on(&pass) {
            return Ok(pass);
        }
    }
    if pass.is_clean() {
        keys.note_reencrypted(begun).await?;
    }
    Ok(pass)
}
