//! Opening the database file: who may, and in which shape.

use std::fs::{DirBuilder, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::Clock;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use crate::Error;
use crate::sql::{Home, Location, OpenOptions, Opened, Pool, STATEMENTS, Synchronous, database, migrations};

/// How long a statement waits for a lock that another connection holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call waits for a connection: the writer is one, so this is the longest queue of writes.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that read.
const READERS: u32 = 4;
/// Pages after which the write-ahead log is folded back: 16 MiB. The same pages of the queue are written again and again; the
/// rarer the log is folded back, the fewer of them go to the disk twice.
const CHECKPOINT_PAGES: &str = "4000";
/// What the writer keeps of the file in memory, in KiB: the queue of a busy fleet with its indexes.
const WRITER_CACHE: &str = "-32768";
/// What is left of the write-ahead log's file after a burst: 64 MiB.
const LOG_BYTES: &str = "67108864";

/// The database file, held by this process.
pub(crate) struct File {
    path: PathBuf,
    /// Held as long as the store lives; the system releases it however the process ends.
    _lock: std::fs::File,
    /// Removed with the store.
    _directory: Option<tempfile::TempDir>,
}

impl File {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Opens the file, makes it when it is missing, and brings its schema up to date.
///
/// # Errors
/// [`Error::InUse`], [`Error::BinaryTooOld`], [`Error::Io`], [`Error::Database`].
pub(crate) async fn open(options: &OpenOptions, clock: Arc<dyn Clock>) -> Result<Opened, Error> {
    let (path, directory) = match &options.location {
        Location::File(path) => (path.clone(), None),
        _ => {
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
            (Location::File(_), Synchronous::Normal) => SqliteSynchronous::Normal,
            (Location::File(_), Synchronous::Full) => SqliteSynchronous::Full,
            _ => SqliteSynchronous::Off,
        })
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(STATEMENTS)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .pragma("journal_size_limit", LOG_BYTES)
        .pragma("trusted_schema", "OFF")
        .disable_statement_logging();
    let connections = SqlitePoolOptions::new()
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // To wait for one's turn is no fault; who waits too long is told so.
        .acquire_slow_threshold(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None);
    let writer = connections
        .clone()
        .max_connections(1)
        .connect_with(
            connect
                .clone()
                .optimize_on_close(true, None)
                .pragma("cache_size", WRITER_CACHE),
        )
        .await
        .map_err(database("opening the database"))?;
    // They open the file when they are first used, which is after its schema is up to date.
    let readers = connections
        .max_connections(READERS)
        .connect_lazy_with(connect.read_only(true));
    let pool = Pool::Sqlite { writer, readers };
    migrations::run(&pool, Some(&path), migrations::ALL, clock.now()).await?;
    let home = Home::Sqlite(File {
        path,
        _lock: lock,
        _directory: directory,
    });
    Ok(Opened { pool, home, clock })
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
pub(crate) fn private_file(
    options: &mut std::fs::OpenOptions,
    path: &Path,
) -> std::io::Result<std::fs::File> {
    options.read(true).write(true).mode(0o600).open(path)
}

fn private_file_kept(path: &Path) -> std::io::Result<std::fs::File> {
    private_file(std::fs::OpenOptions::new().create(true).truncate(false), path)
}

/// Takes the lock file beside the database, or says who has it. The queue assumes one process on SQLite.
fn lock(database: &Path) -> Result<std::fs::File, Error> {
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
