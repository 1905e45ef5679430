//! Live watches over a cluster that was found as it should be.
//!
//! ```text
//!   check ──Baseline──▶ DriftWatch ──▶ one metadata watch per kind, over one connection
//!     ▲                     │              event ──▶ Mark: does it depart from what was found?
//!     └──── whoever asked ◀─┴── alarm ◀── yes          no: remembered here, not written anywhere
//! ```
//! A check says what every object of ours looks like and from which version on nothing is known yet; the watches begin
//! right there, so that nothing falls between. What an event shows is judged by the same [`Mark`](crate::mark::Mark)s as
//! what a check lists. An alarm is no verdict: it asks for a check, which reads the records anew and decides. So an alarm
//! too many (our own writes, seen while an operation runs) costs a look, and never an operation.
//!
//! A watch that ends is taken up where it stopped; when the server has forgotten that place (410), the kind is listed and
//! compared. While every watch is open and nothing departs, the watches [vouch](DriftWatch::vouches) for the cluster, and
//! nobody needs to ask it anything.
//!
//! Everything runs in the future that [`DriftWatch::run`] gives; nothing here starts a task. That future always reads all
//! of its watches, also while it waits for an answer: an unread one would fill the window of the connection that all
//! share, and then no answer would ever come.

mod baseline;
mod follow;
mod judge;
mod size;
mod state;
mod table;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};

use crate::connection::HeldOpen;
use crate::{Cluster, Difference, Expected};

pub use baseline::Baseline;
pub(crate) use baseline::{SeenComponent, SeenKind, SeenParent, Sighting};
pub use size::TrackedSize;
use state::State;

/// The most watches over one cluster: all go over one HTTP/2 connection, on which an API server lets 100 requests be under
/// way at a time unless told otherwise.
pub const WATCHES_PER_CLUSTER_MAX: usize = 64;

/// How a cluster is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchOptions {
    /// How long the server keeps one watch; then it is taken up again, which costs one request. Each kind gets up to a
    /// quarter less, so that they do not all end at once.
    pub lifetime: Duration,
    /// The first pause after a watch that could not be opened or broke at once; it doubles with every failure.
    pub pause_first: Duration,
    /// The longest pause.
    pub pause_longest: Duration,
    /// After so long without a watch the cluster is not watched any more, and its place is free for another.
    pub outage_max: Duration,
    /// How long after an event readiness is judged again: a rollout writes its status many times.
    pub judge_after: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(45 * 60),
            pause_first: Duration::from_millis(500),
            pause_longest: Duration::from_secs(30),
            outage_max: Duration::from_secs(5 * 60),
            judge_after: Duration::from_millis(500),
        }
    }
}

/// What made an alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// What departs from what was found; at most [`Alarm::TOLD_MAX`].
    pub departures: Vec<Difference>,
    /// How many depart.
    pub count: usize,
    /// Whether the readiness of an object is not what it was: some are no longer ready, or are again.
    pub readiness: bool,
    /// The number of the check that all this departs from.
    pub check: u64,
}

impl Alarm {
    /// The most departures that one alarm lists.
    pub const TOLD_MAX: usize = 20;
}

/// Live watches over one cluster. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct DriftWatch {
    shared: Arc<Shared>,
}

struct Shared {
    cluster: Cluster,
    options: WatchOptions,
    state: Mutex<State>,
    /// Something is to be told.
    alarm: Notify,
    /// There is another baseline, for whoever follows.
    renewed: Notify,
    /// The same, for whoever waits for a check.
    checked: Notify,
    /// The readiness of some object is in doubt.
    doubts: Notify,
    /// One watch is opened at a time, so that all find the connection that the first one made.
    opening: Semaphore,
    /// Keeps the connection for as long as anybody watches.
    _held: HeldOpen,
}

impl fmt::Debug for DriftWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriftWatch")
            .field("cluster", &self.shared.cluster)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// Watches this cluster from where `baseline` ends. Nothing is asked of it before [`DriftWatch::run`].
    pub fn watch_over(&self, baseline: Baseline, options: WatchOptions) -> DriftWatch {
        self.trust();
        DriftWatch {
            shared: Arc::new(Shared {
                cluster: self.clone(),
                options,
                state: Mutex::new(State::new(baseline)),
                alarm: Notify::new(),
                renewed: Notify::new(),
                checked: Notify::new(),
                doubts: Notify::new(),
                opening: Semaphore::new(1),
                _held: self.hold_open(),
            }),
        }
    }
}

impl DriftWatch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cluster(&self) -> &Cluster {
        &self.shared.cluster
    }

    /// Whether it watches through this very client.
    pub fn is_over(&self, cluster: &Cluster) -> bool {
        self.shared.cluster.is_same(cluster)
    }

    /// Goes on from another check: what it found is right, and what was told before is done with. Watches of kinds that
    /// are still wanted go on where they are.
    pub fn renew(&self, baseline: Baseline) {
        self.shared.cluster.trust();
        self.state().renew(baseline);
        self.shared.renewed.notify_one();
        self.shared.checked.notify_waiters();
        // What was seen after that check is still to be told.
        self.shared.alarm.notify_one();
    }

    /// Whether the cluster is known to be as it was found, with exactly `expected` in it: every watch is open, nothing
    /// departs, and no readiness is in doubt.
    pub fn vouches(&self, expected: &[Expected]) -> bool {
        let state = self.state();
        state.is_calm() && state.table.expects(expected)
    }

    /// Whether every watch is open and nothing is known to depart.
    pub fn is_calm(&self) -> bool {
        self.state().is_calm()
    }

    /// Lets what the cluster serves be read again once it is old: until the next [`DriftWatch::renew`], it is not taken
    /// on trust.
    pub fn distrust(&self) {
        self.shared.cluster.distrust();
    }

    /// How many watches it takes.
    pub fn watches(&self) -> usize {
        self.state().table.kinds.len()
    }

    /// How much it remembers.
    pub fn size(&self) -> TrackedSize {
        let state = self.state();
        TrackedSize {
            objects: state.table.objects(),
            bytes: size_of::<Shared>() + state.bytes() + self.shared.cluster.memory().bytes(),
        }
    }

    /// Waits until something departs that was not told yet. What is put right before anybody asks is not told.
    ///
    /// An object that departs again and again, soon after it was put right, is told later and later: somebody fights over
    /// it, and no speed wins that.
    pub async fn alarmed(&self) -> Alarm {
        loop {
            let notified = self.shared.alarm.notified();
            let next = match self.state().take_alarm() {
                Ok(alarm) => return alarm,
                Err(next) => next,
            };
            match next {
                Some(at) => tokio::select! {
                    () = notified => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => notified.await,
            }
        }
    }

    /// Waits for a check after the one with this number: the next [`DriftWatch::renew`], or one that came already. What
    /// departs from it is told as if nothing had been told before.
    pub async fn checked_after(&self, check: u64) {
        loop {
            let mut checked = std::pin::pin!(self.shared.checked.notified());
            checked.as_mut().enable();
            if self.state().check != check {
                return;
            }
            checked.await;
        }
    }

    /// Tells what departs once more: whoever was told could do nothing about it.
    pub fn tell_again(&self) {
        self.state().untell();
        self.shared.alarm.notify_one();
    }
}
