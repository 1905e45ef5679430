//! The store: connections, cipher, time, ids and signals, shared by all subjects.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use evenkeel_core::Clock;
use jiff::Timestamp;
use uuid::{ContextV7, Uuid};

use super::connection::{Pool, Transaction};
use super::failures::repeating;
use super::keys::{self, Agreed};
use super::options::{Location, OpenOptions};
use super::rows::millis;
use crate::cipher::Cipher;
use crate::postgres::Server;
use crate::sqlite::File;
use crate::{Error, KeySource, Signal, Signals, Store, postgres, sqlite};

/// Prepared statements kept per connection; more than the product has.
pub(crate) const STATEMENTS: usize = 256;

/// The inventory in an SQL database: one SQLite file held by one process, or a PostgreSQL server that many share.
pub struct SqlStore {
    pool: Pool,
    pub(super) cipher: Cipher,
    signals: Arc<Signals>,
    clock: Arc<dyn Clock>,
    ids: Mutex<ContextV7>,
    home: Home,
    pub(super) key_source: KeySource,
    /// This process among those that share the database.
    pub(super) process: Uuid,
}

/// What belongs to a database besides its connections.
pub(crate) enum Home {
    Sqlite(File),
    Postgres(Server),
}

/// An open database without its keys.
pub(crate) struct Opened {
    pub(crate) pool: Pool,
    pub(crate) home: Home,
    pub(crate) clock: Arc<dyn Clock>,
}

impl fmt::Debug for SqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SqlStore");
        match &self.home {
            Home::Sqlite(file) => shown.field("path", &file.path()),
            Home::Postgres(server) => shown.field("server", &server.name()),
        };
        shown.field("cipher", &self.cipher).finish_non_exhaustive()
    }
}

impl Store for SqlStore {
    fn signals(&self) -> &Signals {
        &self.signals
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }
}

impl SqlStore {
    /// Opens the database, makes it when it is missing, and brings its schema up to date.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::BinaryTooOld`], [`Error::KeyMissing`], [`Error::KeyWrong`], [`Error::KeyRefused`],
    /// [`Error::KeyRing`], [`Error::Io`], [`Error::Database`].
    pub async fn open(options: OpenOptions, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let signals = Arc::new(Signals::default());
        let Opened { pool, home, clock } = match &options.location {
            Location::File(_) | Location::Temporary => sqlite::open(&options, clock).await?,
            Location::Postgres(server) => postgres::open(server, clock, &signals).await?,
        };
        let process = Uuid::now_v7();
        let Agreed { cipher, .. } =
            repeating(|| keys::agree(&pool, &options.keys, process, clock.now())).await?;
        let store = Self {
            pool,
            cipher,
            signals,
            clock,
            ids: Mutex::new(ContextV7::new()),
            home,
            key_source: options.keys,
            process,
        };
        if matches!(store.home, Home::Sqlite(_)) {
            // A file has one process: those that it knows of have ended.
            store.forget_all_instances().await?;
        }
        Ok(store)
    }

    /// Ends all connections; SQLite folds its write-ahead log into the file. Calls made later fail.
    pub async fn close(&self) {
        if let Home::Postgres(server) = &self.home {
            // One that does not say so is not waited for after a while.
            if let Err(error) = self.let_go_of_keys().await {
                tracing::debug!(%error, "the other processes learn later that this one has ended");
            }
            server.stop().await;
        }
        self.pool.close().await;
    }

    /// The database file, on SQLite.
    pub fn path(&self) -> Option<&Path> {
        match &self.home {
            Home::Sqlite(file) => Some(file.path()),
            Home::Postgres(_) => None,
        }
    }

    /// Begins a transaction that writes; rolled back when dropped.
    pub(super) async fn write(&self, doing: &'static str) -> Result<Transaction, Error> {
        self.pool.write(doing).await
    }

    /// Connections that read.
    pub(super) fn read(&self) -> &Pool {
        &self.pool
    }

    /// A snapshot over several reading statements.
    pub(super) async fn snapshot(&self, doing: &'static str) -> Result<Transaction, Error> {
        self.pool.snapshot(doing).await
    }

    /// Says that something may have happened, here and in every other process on this database.
    pub(super) fn signal(&self, signal: Signal) {
        self.signals.send(signal);
        if let Home::Postgres(server) = &self.home {
            server.tell(signal);
        }
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
