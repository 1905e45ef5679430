//! Opening the database file: who may, with which keys, in which shape.

use std::fmt;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_core::Clock;
use jiff::Timestamp;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Sqlite, Transaction};
use uuid::{ContextV7, Uuid};

use super::rows::{database, millis};
use super::{keys, migrations};
use crate::cipher::Cipher;
use crate::{Error, KeySource, Signals, Store};

/// How long a statement waits for a lock that another connection holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call waits for a connection: the writer is one, so this is the longest queue of writes.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that read.
const READERS: u32 = 4;
/// Prepared statements kept per connection; more than the product has.
const STATEMENTS: usize = 256;
/// Pages after which the write-ahead log is folded back: 4 MiB.
const CHECKPOINT_PAGES: &str = "1000";
/// What is left of the write-ahead log's file after a burst: 64 MiB.
const LOG_BYTES: &str = "67108864";

/// Where the database is.
#[derive(Clone, Debug)]
pub enum Location {
    /// This file; it and its directories are made, private, when missing.
    File(PathBuf),
    /// A directory of its own that goes with the store: demos and tests.
    Temporary,
}

/// When a commit is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// A crash of the process loses nothing; a loss of power may lose the last commits, never consistency.
    #[default]
    Normal,
    /// Each commit is on the disk before it is answered.
    Full,
}

/// How to open an inventory.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Where the database is.
    pub location: Location,
    /// Where the key ring is.
    pub keys: KeySource,
    /// When a commit is on the disk.
    pub synchronous: Synchronous,
}

impl OpenOptions {
    /// The database at `path`, its keys in the file `keys`.
    pub fn file(path: impl Into<PathBuf>, keys: impl Into<PathBuf>) -> Self {
        Self {
            location: Location::File(path.into()),
            keys: KeySource::File(keys.into()),
            synchronous: Synchronous::default(),
        }
    }

    /// A database and keys that end with the store.
    pub fn temporary() -> Self {
        Self {
            location: Location::Temporary,
            keys: KeySource::Ephemeral,
            synchronous: Synchronous::default(),
        }
    }
}

/// The inventory in one SQLite file, held by one process.
///
/// One connection writes, each transaction `BEGIN IMMEDIATE`; a few read, and never wait for it (WAL).
pub struct SqliteStore {
    writer: SqlitePool,
    readers: SqlitePool,
    pub(super) cipher: Cipher,
    pub(super) signals: Signals,
    clock: Arc<dyn Clock>,
    ids: Mutex<ContextV7>,
    path: PathBuf,
    /// Held as long as the store lives; the system releases it however the process ends.
    _lock: File,
    /// Removed with the store.
    _directory: Option<tempfile::TempDir>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.path)
            .field("cipher", &self.cipher)
            .finish_non_exhaustive()
    }
}

impl Store for SqliteStore {
    fn signals(&self) -> &Signals {
        &self.signals
    }
}

impl SqliteStore {
    /// Opens the database, makes it when it is missing, and brings its schema up to date.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::BinaryTooOld`], [`Error::KeyMissing`], [`Error::KeyWrong`], [`Error::KeyRing`],
    /// [`Error::Io`], [`Error::Database`].
    pub async fn open(options: OpenOptions, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let (path, directory) = match &options.location {
            Location::File(path) => (path.clone(), None),
            Location::Temporary => {
                let directory = tempfile::Builder::new()
                    .prefix("evenkeel-")
                    .permissions(std::fs::Permissions::from_mode(0o700))
                    .tempdir()
                    .map_err(io(&std::env::temp_dir()))?;
                (directory.path().join("inventory.db"), Some(directory))
            }
        };
        create_private(&path)?;
        let lock = lock(&path)?;
        let connect = SqliteConnectOptions::new()
            .filename(&path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(match (&options.location, options.synchronous) {
                (Location::Temporary, _) => SqliteSynchronous::Off,
                (Location::File(_), Synchronous::Normal) => SqliteSynchronous::Normal,
                (Location::File(_), Synchronous::Full) => SqliteSynchronous::Full,
            })
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .statement_cache_capacity(STATEMENTS)
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
            .pragma("journal_size_limit", LOG_BYTES)
            .pragma("trusted_schema", "OFF")
            .disable_statement_logging();
        let pool = SqlitePoolOptions::new()
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None);
        let writer = pool
            .clone()
            .max_connections(1)
            .connect_with(connect.clone().optimize_on_close(true, None))
            .await
            .map_err(database("opening the database"))?;
        migrations::run(&writer, &path, migrations::ALL, clock.now()).await?;
        let ring = keys::agree(&writer, &options.keys, clock.now()).await?;
        let readers = pool
            .max_connections(READERS)
            .connect_with(connect.read_only(true))
            .await
            .map_err(database("opening the database for reading"))?;
        Ok(Self {
            writer,
            readers,
            cipher: Cipher::new(&ring)?,
            signals: Signals::default(),
            clock,
            ids: Mutex::new(ContextV7::new()),
            path,
            _lock: lock,
            _directory: directory,
        })
    }

    /// Ends all connections and folds the write-ahead log into the file. Calls made later fail.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a transaction that writes; rolled back when dropped.
    pub(super) async fn write(&self, doing: &'static str) -> Result<Transaction<'static, Sqlite>, Error> {
        self.writer
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(database(doing))
    }

    /// Connections that read.
    pub(super) fn read(&self) -> &SqlitePool {
        &self.readers
    }

    /// A snapshot over several reading statements.
    pub(super) async fn snapshot(&self, doing: &'static str) -> Result<Transaction<'static, Sqlite>, Error> {
        self.readers.begin().await.map_err(database(doing))
    }

    /// The present moment in the unit of the database.
    pub(super) fn now(&self) -> i64 {
        millis(self.clock.now())
    }

    /// A new UUIDv7; those of one store grow, also within one millisecond.
    pub(super) fn new_uuid(&self) -> Uuid {
        let now: Timestamp = self.clock.now();
        let seconds = u64::try_from(now.as_second()).unwrap_or(0);
        let nanos = u32::try_from(now.subsec_nanosecond()).unwrap_or(0);
        let context = self.ids.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Uuid::new_v7(uuid::Timestamp::from_unix(&*context, seconds, nanos))
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, source }
}

/// Makes the file and its directories for their owner alone; SQLite gives its side files the same mode.
fn create_private(path: &Path) -> Result<(), Error> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(io(parent))?;
    }
    private_file_kept(path).map(drop).map_err(io(path))
}

/// Opens a file for reading and writing, with mode 0600 when it is made.
pub(super) fn private_file(options: &mut std::fs::OpenOptions, path: &Path) -> std::io::Result<File> {
    options.read(true).write(true).mode(0o600).open(path)
}

fn private_file_kept(path: &Path) -> std::io::Result<File> {
    private_file(std::fs::OpenOptions::new().create(true).truncate(false), path)
}

/// Takes the lock file beside the database, or says who has it. The queue assumes one process on SQLite.
fn lock(database: &Path) -> Result<File, Error> {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    let path = PathBuf::from(name);
    let mut file = private_file_kept(&path).map_err(io(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // Only for the message: a holder that cannot be named is still a holder.
            let _ = file.read_to_string(&mut pid);
            let pid = pid.trim();
            return Err(Error::InUse {
                path: database.to_owned(),
                holder: if pid.is_empty() {
                    "another process".to_owned()
                } else {
                    format!("process {pid}")
                },
            });
        }
        Err(TryLockError::Error(source)) => return Err(io(&path)(source)),
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(io(&path))?;
    Ok(file)
}
