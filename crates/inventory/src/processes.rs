//! The processes of an installation, and what only one of them does at a time (K29).

use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{Fence, Lease};
use jiff::Timestamp;
use uuid::Uuid;

use crate::Error;

/// A process, as it tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its id: new at each start.
    pub id: Uuid,
    /// Where it runs, for people: a pod's or a machine's name.
    pub host: String,
    /// The version of its binary.
    pub version: String,
    /// Whether it takes no new work because it is about to end.
    pub draining: bool,
}

/// A process that was heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenInstance {
    /// What it told.
    pub instance: Instance,
    /// When it told so first.
    pub started_at: Timestamp,
    /// When it told so last.
    pub last_seen_at: Timestamp,
}

/// What only one process does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chore {
    /// Removes what nobody needs any more.
    Clean,
    /// Compares the inventory with the broker's list.
    Sync,
}

impl Chore {
    /// Its name in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Sync => "sync",
        }
    }
}

/// Processes and chores.
#[async_trait]
pub trait Processes: Send + Sync {
    /// Notes that a process lives.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn note_instance(&self, instance: &Instance) -> Result<(), Error>;

    /// Forgets a process that ends in peace.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn forget_instance(&self, id: Uuid) -> Result<(), Error>;

    /// The processes heard of since a moment, oldest first; of more than [`PAGE_MAX`](crate::PAGE_MAX) those heard of
    /// last.
    ///
    /// # Errors
    /// [`Error::Database`], [`Error::Unreadable`].
    async fn instances(&self, since: Timestamp) -> Result<Vec<SeenInstance>, Error>;

    /// Forgets the processes that were not heard of since a moment.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn forget_instances(&self, before: Timestamp) -> Result<(), Error>;

    /// Takes a chore if nobody is at it and it was not done within `every`. The lease ends by itself when its holder
    /// does; until then the fence proves who holds it.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn take_chore(
        &self,
        chore: Chore,
        owner: Uuid,
        lease: Duration,
        every: Duration,
    ) -> Result<Option<Lease>, Error>;

    /// Keeps a chore that takes long. None when somebody else has it.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn keep_chore(&self, chore: Chore, fence: Fence, lease: Duration) -> Result<Option<Lease>, Error>;

    /// Gives a chore back, as done or to be done again at once by whoever comes. Changes nothing when somebody else has
    /// it.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn end_chore(&self, chore: Chore, fence: Fence, done: bool) -> Result<(), Error>;
}
