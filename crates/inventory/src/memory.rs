//! The inventory in memory, for simulations and tests: the same contract as the databases', with virtual time, and a
//! [`Link`] that fails on purpose between each process and its rows.
//!
//! ```text
//!   MemoryStore (a process)   traits, signals, clock, ids
//!        │ Link               delays, partitions, lost answers
//!   MemoryDatabase            typed rows behind one lock: one writer, so a call is a transaction
//! ```
//! No transaction is undone: whatever a call may refuse, it refuses before its first write. Nothing is encrypted, since
//! nothing leaves the memory, and nothing here survives its process.

mod artifacts;
mod audit;
mod change_log;
mod claims;
mod clusters;
mod components;
mod consents;
mod due;
mod operations;
mod processes;
mod promises;
mod reports;
mod retention;
mod rows;
mod runs;
mod settings;
mod status;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use evenkeel_core::Clock;
use uuid::Uuid;

use crate::sql::rows::millis;
use crate::{
    Error, KeyAgreement, KeyId, KeyStatus, Keys, Reencrypted, RotationPlace, Signal, Signals, Store,
};
use rows::Rows;

/// The way between a process and its database, where calls are slow, fail, or lose their answers.
#[async_trait]
pub trait Link: Send + Sync {
    /// A call is on its way. An error keeps it from arriving.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn there(&self, call: &'static str) -> Result<(), Error>;

    /// It was done, and its answer is on its way. An error loses the answer alone.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn back(&self, call: &'static str) -> Result<(), Error>;

    /// Whether signals arrive.
    fn hears(&self) -> bool;

    /// Rows were written. What `broken` says was promised of them and does not hold.
    fn wrote(&self, call: &'static str, broken: Option<String>);
}

/// A link that never fails.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerfectLink;

#[async_trait]
impl Link for PerfectLink {
    async fn there(&self, _: &'static str) -> Result<(), Error> {
        Ok(())
    }

    async fn back(&self, _: &'static str) -> Result<(), Error> {
        Ok(())
    }

    fn hears(&self) -> bool {
        true
    }

    fn wrote(&self, call: &'static str, broken: Option<String>) {
        if let Some(broken) = broken {
            tracing::error!(call, broken, "the rows do not keep their promises");
        }
    }
}

/// Who listens on a database.
type Listener = (Weak<Signals>, Arc<dyn Link>);

/// Rows that any number of stores share.
#[derive(Default)]
pub struct MemoryDatabase {
    rows: Mutex<Rows>,
    listeners: Mutex<Vec<Listener>>,
}

impl fmt::Debug for MemoryDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryDatabase").finish_non_exhaustive()
    }
}

impl MemoryDatabase {
    /// No rows yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }
}

/// Ids of one store: they grow, also when its clock is turned back, and no two stores make the same.
#[derive(Debug)]
struct Ids {
    store: u16,
    last: u64,
    count: u64,
}

/// One process on a [`MemoryDatabase`].
pub struct MemoryStore {
    database: Arc<MemoryDatabase>,
    signals: Arc<Signals>,
    clock: Arc<dyn Clock>,
    link: Arc<dyn Link>,
    ids: Mutex<Ids>,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

/// One call's transaction.
struct Transaction<'a> {
    rows: &'a mut Rows,
    ids: &'a Mutex<Ids>,
    now: i64,
    wrote: bool,
    signals: Vec<Signal>,
}

impl Transaction<'_> {
    /// The rows, to be written.
    fn write(&mut self) -> &mut Rows {
        self.wrote = true;
        self.rows
    }

    /// Is sent once the call is done.
    fn signal(&mut self, signal: Signal) {
        if !self.signals.contains(&signal) {
            self.signals.push(signal);
        }
    }

    /// A new UUIDv7.
    fn new_uuid(&self) -> Uuid {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.last = ids.last.max(u64::try_from(self.now).unwrap_or(0));
        ids.count += 1;
        let [_, _, _, a, b, c, d, e] = ids.count.to_be_bytes();
        let [high, low] = ids.store.to_be_bytes();
        let bytes = [0, 0, 0, a, b, c, d, e, high, low];
        uuid::Builder::from_unix_timestamp_millis(ids.last, &bytes).into_uuid()
    }
}

impl MemoryStore {
    /// Another process on `database`, with a clock of its own.
    pub fn open(database: &Arc<MemoryDatabase>, clock: Arc<dyn Clock>, link: Arc<dyn Link>) -> Self {
        let signals = Arc::new(Signals::default());
        let mut listeners = database.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|(signals, _)| signals.strong_count() > 0);
        listeners.push((Arc::downgrade(&signals), Arc::clone(&link)));
        let mut rows = database.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.stores = rows.stores.wrapping_add(1);
        let ids = Ids {
            store: rows.stores,
            last: 0,
            count: 0,
        };
        Self {
            database: Arc::clone(database),
            signals,
            clock,
            link,
            ids: Mutex::new(ids),
        }
    }

    /// One call: there, done at once, and back.
    async fn call<T: Send>(
        &self,
        call: &'static str,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        self.link.there(call).await?;
        let answer = self.transact(call, work);
        self.link.back(call).await?;
        answer
    }

    fn transact<T>(
        &self,
        call: &'static str,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (answer, signals, written) = {
            let mut rows = self.database.rows.lock().unwrap_or_else(PoisonError::into_inner);
            let mut transaction = Transaction {
                rows: &mut rows,
                ids: &self.ids,
                now: millis(self.clock.now()),
                wrote: false,
                signals: Vec::new(),
            };
            let answer = work(&mut transaction);
            let (signals, wrote) = (transaction.signals, transaction.wrote);
            (answer, signals, wrote.then(|| rows.broken_promise()))
        };
        if let Some(broken) = written {
            self.link.wrote(call, broken);
        }
        if !signals.is_empty() {
            let listeners = self
                .database
                .listeners
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            for (listener, link) in listeners.iter() {
                if let Some(listener) = listener.upgrade()
                    && (link.hears() || Arc::ptr_eq(&listener, &self.signals))
                {
                    for signal in &signals {
                        listener.send(*signal);
                    }
                }
            }
        }
        answer
    }
}

impl Store for MemoryStore {
    fn signals(&self) -> &Signals {
        &self.signals
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }
}

/// Nothing is encrypted, so there is no key and nothing to rotate.
const NO_KEY: KeyId = KeyId(0);

#[async_trait]
impl Keys for MemoryStore {
    async fn refresh_keys(&self) -> Result<KeyAgreement, Error> {
        Ok(KeyAgreement {
            active: NO_KEY,
            wanted: None,
            waiting_for: Vec::new(),
            leftovers: false,
        })
    }

    async fn key_status(&self) -> Result<KeyStatus, Error> {
        Ok(KeyStatus {
            keys: Vec::new(),
            unknown: std::collections::BTreeMap::new(),
            damaged: 0,
        })
    }

    async fn reencrypt(&self, _: Option<RotationPlace>) -> Result<Reencrypted, Error> {
        Ok(Reencrypted::default())
    }

    async fn note_reencrypted(&self, _: jiff::Timestamp) -> Result<(), Error> {
        Ok(())
    }

    async fn remove_key(&self, id: KeyId) -> Result<(), Error> {
        Err(Error::not_found("key", id))
    }
}
