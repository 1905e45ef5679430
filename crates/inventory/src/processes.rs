//! The processes of an installation, and what only one of them does at a time (K29).

use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{Fence, Lease};
use jiff::Timestamp;
use uuid::Uuid;

use crate::Error;

/// What a process does. All of them answer requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Everything.
    #[default]
    All,
    /// Decides what is to be done: looks at clusters, watches them, keeps the books. Works on no operation.
    Control,
    /// Works on operations and decides nothing.
    Worker,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::All, Self::Control, Self::Worker];

    /// Its name on the command line, in the API and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Control => "control",
            Self::Worker => "worker",
        }
    }

    /// Whether it has a share in looking at clusters.
    pub fn looks(self) -> bool {
        self != Self::Worker
    }

    /// Whether it claims operations.
    pub fn works(self) -> bool {
        self != Self::Control
    }
}

/// A role that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no role: expected all, control or worker")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        let role = Self::ALL.into_iter().find(|role| role.as_str() == text);
        role.ok_or_else(|| UnknownRole(text.to_owned()))
    }
}

/// A process, as it tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its id: new at each start.
    pub id: Uuid,
    /// Where it runs, for people: a pod's or a machine's name.
    pub host: String,
    /// The version of its binary.
    pub version: String,
    /// What it does.
    pub role: Role,
    /// Whether it takes no new work because it is about to end.
    pub draining: bool,
}

impl Instance {
    /// This process, which begins.
    pub fn new(host: impl Into<String>, role: Role) -> Self {
        Self {
            id: Uuid::now_v7(),
            host: host.into(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            role,
            draining: false,
        }
    }
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
    /// Notes that a process lives. One that is new, or begins to end, is a
    /// [`Signal::InstancesChanged`](crate::Signal::InstancesChanged).
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn note_instance(&self, instance: &Instance) -> Result<(), Error>;

    /// Forgets a process that ends in peace.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn forget_instance(&self, id: Uuid) -> Result<(), Error>;

    /// The processes heard of since a moment, oldest first, without those that a newer release describes in a way this
    /// one cannot read; of more than [`PAGE_MAX`](crate::PAGE_MAX) those heard of
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
