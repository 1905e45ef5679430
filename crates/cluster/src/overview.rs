//! What the parents of a cluster said when they were last read: one LIST for all that a command does with its components.
//!
//! ```text
//! component a ─┐                       ┌─ what was read, while nobody here has written a parent since
//! component b ─┼─▶ Overview ──▶ parents ┤
//! siblings ────┘                       └─ another LIST
//! ```
//! It may be behind what others write, as any read is. Whoever acts on it writes by compare-and-swap, and is refused then.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use evenkeel_core::ComponentName;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::applyset::parent::Parents;
use crate::applyset::{Owner, Record};
use crate::{Cluster, Error};

/// What was read longer ago than this is read again, though nobody here has written since.
const HOLDS_FOR: Duration = Duration::from_secs(30);

/// The parents of one cluster, read when somebody asks for them. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Overview {
    shared: Arc<Shared>,
}

struct Shared {
    cluster: Cluster,
    owner: Owner,
    take_over: bool,
    seen: RwLock<Arc<OnceCell<Arc<Seen>>>>,
}

/// Counts the writes of parents through one client.
#[derive(Debug, Default)]
pub(crate) struct ParentWrites(AtomicU64);

/// A write of a parent that is under way.
pub(crate) struct ParentWrite<'a>(&'a ParentWrites);

impl ParentWrites {
    /// How many have begun, and ended.
    fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Notes that one begins; it ends when what is given is dropped.
    pub(crate) fn begin(&self) -> ParentWrite<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        ParentWrite(self)
    }
}

impl Drop for ParentWrite<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// What one LIST gave.
struct Seen {
    parents: Arc<Parents>,
    /// How many writes of parents had begun or ended before it.
    writes: u64,
    at: Instant,
    /// Parents that were asked for by name, and do not exist.
    absent: Mutex<BTreeSet<String>>,
}

impl fmt::Debug for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overview")
            .field("cluster", &self.shared.cluster)
            .field("owner", &self.shared.owner)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// The components of `owner` here, of which nothing is read yet; also those of other fleets and clusters, to be taken
    /// over, when `take_over` is set.
    pub fn overview(&self, owner: &Owner, take_over: bool) -> Overview {
        Overview {
            shared: Arc::new(Shared {
                cluster: self.clone(),
                owner: owner.clone(),
                take_over,
                seen: RwLock::default(),
            }),
        }
    }
}

impl Overview {
    /// Reads it now, so that whoever asks next need not wait.
    ///
    /// # Errors
    /// [`Error::OtherOwner`] when the shared parent is another fleet's or cluster's and is not to be taken over; whatever the
    /// request fails with.
    pub async fn read(&self) -> Result<(), Error> {
        self.parents().await.map(drop)
    }

    /// Makes the next who asks read it anew: something went wrong with what was read.
    pub fn forget(&self) {
        let mut seen = self.shared.seen.write().unwrap_or_else(PoisonError::into_inner);
        *seen = Arc::default();
    }

    /// What the target remembers of each component. One that cannot be read is left out.
    ///
    /// # Errors
    /// As [`Overview::read`].
    pub async fn records(&self) -> Result<BTreeMap<ComponentName, Record>, Error> {
        let parents = self.parents().await?;
        let readable = parents.components.values().flatten();
        Ok(readable
            .map(|parent| (parent.record.component.clone(), parent.record.clone()))
            .collect())
    }

    /// Whether it is one of `cluster`, in the name of `owner`, with the same right to take over.
    pub(crate) fn is_of(&self, cluster: &Cluster, owner: &Owner, take_over: bool) -> bool {
        let shared = &self.shared;
        shared.cluster.is_same(cluster) && shared.owner == *owner && shared.take_over == take_over
    }

    /// The parents as they are, as far as this process could know when it was asked.
    pub(crate) async fn parents(&self) -> Result<Arc<Parents>, Error> {
        Ok(Arc::clone(&self.seen().await?.parents))
    }

    /// What the parent `name` remembers. One that is in no list may have lost its label, and one that cannot be read says
    /// why: both are asked for by name.
    pub(crate) async fn record(&self, name: &str) -> Result<Option<Record>, Error> {
        let seen = self.seen().await?;
        match seen.parents.components.get(name) {
            Some(Ok(parent)) => return Ok(Some(parent.record.clone())),
            None if seen.absent().contains(name) => return Ok(None),
            _ => {}
        }
        let Shared {
            cluster,
            owner,
            take_over,
            ..
        } = &*self.shared;
        let parent = cluster.parent::<Record>(name, owner, *take_over).await?;
        if parent.is_none() {
            seen.absent().insert(name.to_owned());
        }
        Ok(parent.map(|parent| parent.record))
    }

    async fn seen(&self) -> Result<Arc<Seen>, Error> {
        let asked = self.shared.cluster.parent_writes().count();
        loop {
            let cell = self.cell();
            let seen = cell.get_or_try_init(|| self.list()).await?;
            if seen.writes >= asked && seen.at.elapsed() < HOLDS_FOR {
                return Ok(Arc::clone(seen));
            }
            self.forget_only(&cell);
        }
    }

    async fn list(&self) -> Result<Arc<Seen>, Error> {
        let Shared {
            cluster,
            owner,
            take_over,
            ..
        } = &*self.shared;
        let writes = cluster.parent_writes().count();
        let parents = cluster.parents(owner, *take_over).await?;
        Ok(Arc::new(Seen {
            parents: Arc::new(parents),
            writes,
            at: Instant::now(),
            absent: Mutex::default(),
        }))
    }

    fn cell(&self) -> Arc<OnceCell<Arc<Seen>>> {
        let seen = self.shared.seen.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&seen)
    }

    /// Forgets what is out of date, unless somebody else has done so already.
    fn forget_only(&self, outdated: &Arc<OnceCell<Arc<Seen>>>) {
        let mut seen = self.shared.seen.write().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&seen, outdated) {
            *seen = Arc::default();
        }
    }
}

impl Seen {
    fn absent(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a target knows what was read of all parents, if it does.
pub(crate) type Known = Option<Overview>;
