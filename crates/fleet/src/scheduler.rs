//! Which cluster is looked at when.
//!
//! ```text
//! ClusterDue, or the next moment one becomes due ──▶ due clusters, most urgent first ──▶ a look each, in its own task
//! ```
//! Never two looks at one cluster at a time; a slow or dead cluster holds its own slot and no more, and those that failed
//! before never hold all of them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use evenkeel_core::{ClusterId, ConfigurationVersion, DueReason};
use evenkeel_inventory::{self as inventory, DueCluster, Signal};
use evenkeel_telemetry::{CancellationToken, OnCancel, OnError};
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::fleet::Inner;
use crate::instances::Others;
use crate::look::look;
use crate::{fair, pause};

/// The longest without asking the inventory, should a signal ever be lost.
const BACKSTOP: Duration = Duration::from_secs(30);
/// How many due clusters are fetched at least; more than are looked at together, so that a long queue is not asked for
/// again after every look.
const FETCHED_MIN: usize = 64;
/// Between two questions for the due clusters: on a busy fleet every look that ends changes who is due, and one answer
/// serves all that ended meanwhile.
const FETCH_PAUSE: Duration = Duration::from_millis(10);
/// How long a cluster whose look failed for a reason of ours keeps its slot, so that it is not looked at in a busy loop.
const TROUBLE_PAUSE: Duration = Duration::from_secs(2);
/// How long a look may take before it is dropped for a newer version of its cluster; twice as long after each that was
/// dropped, so that under a steady stream of versions one is looked at to its end.
const OVERTAKEN_AFTER: Duration = Duration::from_millis(300);
/// How often that doubles at most: to a good minute, the time a whole look may take.
const OVERTAKEN_DOUBLED_MAX: u32 = 8;
/// Before the due clusters are asked for again when all of them are other processes'.
const OTHERS_PAUSE: Duration = Duration::from_secs(1);
/// How many rows that cannot be read are remembered, so that each is logged once.
const UNREADABLE_REMEMBERED: usize = 10_000;

/// Looks at clusters as they become due.
///
/// # Errors
/// What the inventory fails with; the service is started again.
pub(crate) async fn serve(inner: Arc<Inner>, stop: CancellationToken) -> Result<(), inventory::Error> {
    // Subscribed before the first question, so that no change falls between the two.
    let mut due = inner.store.signals().subscribe(Signal::ClusterDue);
    let mut scheduler = Scheduler::new(inner);
    let mut fetch = true;
    let mut may_fetch_at = Instant::now();
    while !stop.is_cancelled() {
        if fetch && may_fetch_at <= Instant::now() {
            scheduler.fetch().await?;
            fetch = false;
            may_fetch_at = Instant::now() + FETCH_PAUSE;
        }
        scheduler.start();
        let wait = if fetch {
            may_fetch_at.saturating_duration_since(Instant::now())
        } else {
            scheduler.wait()
        };
        fetch |= tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            more = due.changed() => if more { true } else { return Ok(()) },
            () = scheduler.looks.ended.notified() => scheduler.queue.is_empty(),
            () = scheduler.inner.instances.changed.notified() => true,
            () = tokio::time::sleep(wait) => true,
        };
    }
    Ok(())
}

struct Scheduler {
    inner: Arc<Inner>,
    looks: Arc<Looks>,
    /// Due, fetched, and not looked at yet.
    queue: VecDeque<DueCluster>,
    next_at: Option<jiff::Timestamp>,
    /// Due clusters that other processes look at.
    others: Others,
    /// Rows that cannot be read: they stay due for ever and must not crowd out the others.
    unreadable: HashSet<String>,
    /// When the next look may be dropped for a newer version that waits.
    overtake_at: Option<Instant>,
}

/// The looks that run.
#[derive(Default)]
struct Looks {
    running: Mutex<HashMap<ClusterId, RunningLook>>,
    /// How often the looks at a cluster were dropped in a row, where they were.
    overtaken: Mutex<HashMap<ClusterId, u32>>,
    ended: Notify,
}

/// A look that runs, and what it was begun for.
struct RunningLook {
    tenant: fair::Tenant,
    reason: DueReason,
    version: ConfigurationVersion,
    since: Instant,
    drop: CancellationToken,
}

impl RunningLook {
    /// Whether it looks for something that is no longer wanted.
    fn is_behind(&self, due: &DueCluster) -> bool {
        let is_to_go = due.reason == DueReason::Deletion && self.reason != DueReason::Deletion;
        due.version > self.version || is_to_go
    }
}

/// One look; ends with its task, however that ends.
struct Running {
    looks: Arc<Looks>,
    cluster: ClusterId,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.looks.running().remove(&self.cluster);
        self.looks.ended.notify_one();
    }
}

impl Looks {
    fn running(&self) -> MutexGuard<'_, HashMap<ClusterId, RunningLook>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn overtaken(&self) -> MutexGuard<'_, HashMap<ClusterId, u32>> {
        self.overtaken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the look at a cluster for a newer wish, unless it is too young for that: then it answers when it will not
    /// be.
    fn overtake(&self, look: &RunningLook, due: &DueCluster) -> Option<Instant> {
        let mut overtaken = self.overtaken();
        let before = overtaken.get(&due.id).copied().unwrap_or_default();
        let patience = OVERTAKEN_AFTER * (1 << before.min(OVERTAKEN_DOUBLED_MAX));
        let may_at = look.since + patience;
        if may_at > Instant::now() {
            return Some(may_at);
        }
        if !look.drop.is_cancelled() {
            overtaken.insert(due.id.clone(), before.saturating_add(1));
            look.drop.cancel();
        }
        None
    }
}

impl Scheduler {
    fn new(inner: Arc<Inner>) -> Self {
        Self {
            inner,
            looks: Arc::default(),
            queue: VecDeque::new(),
            next_at: None,
            others: Others::default(),
            unreadable: HashSet::new(),
            overtake_at: None,
        }
    }

    /// Asks who is due.
    async fn fetch(&mut self) -> Result<(), inventory::Error> {
        // Those being looked at are still due, and so are the unreadable: they come on top.
        let parallel = self.inner.settings.parallel_checks;
        let known = self.looks.running().len() + self.unreadable.len();
        // As many as fit a page, so that whoever stands behind one tenant's long queue is seen and gets a turn.
        let limit = (known + FETCHED_MIN.max(2 * parallel)).max(inventory::PAGE_MAX as usize);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX).min(inventory::PAGE_MAX);
        let batch = self.inner.store.due_clusters(limit).await?;
        if self.unreadable.len() > UNREADABLE_REMEMBERED {
            self.unreadable.clear();
        }
        for failure in batch.failed {
            if self.unreadable.insert(failure.row.clone()) {
                tracing::error!(row = failure.row, error = %failure.error, "a due cluster cannot be read and is left alone");
            }
        }
        let mut busy = HashMap::new();
        for look in self.looks.running().values() {
            *busy.entry(look.tenant.clone()).or_insert(0) += 1;
        }
        let patience = self.inner.settings.lease;
        let all = batch.due.len();
        let ours = self.others.ours(
            &self.inner.instances,
            batch.due,
            |due| (&due.id, due.stamp),
            patience,
            Instant::now(),
        );
        // A page that is full of others' clusters has none of ours to start with: they are on their way.
        let hidden = ours.is_empty() && all > 0;
        self.queue = fair::in_turn(ours, |due| (due.reason, due.tenant.clone()), &busy);
        self.next_at = match batch.next_at {
            Some(next) if hidden => Some(next.max(pause::after(self.inner.clock.now(), OTHERS_PAUSE))),
            next => next,
        };
        Ok(())
    }

    /// Starts looks as long as there are slots.
    fn start(&mut self) {
        let slots = self.inner.settings.parallel_checks;
        // Clusters that failed before are often slow to fail again; a share of the slots is not theirs.
        let for_retries = slots.div_ceil(2);
        let mut waiting = VecDeque::new();
        self.overtake_at = None;
        while let Some(due) = self.queue.pop_front() {
            let claimed = {
                let mut running = self.looks.running();
                if let Some(look) = running.get(&due.id) {
                    // It is fetched again when that look has ended, should it still be due then.
                    if look.is_behind(&due)
                        && let Some(at) = self.looks.overtake(look, &due)
                    {
                        self.overtake_at = Some(self.overtake_at.map_or(at, |other| other.min(at)));
                    }
                    continue;
                }
                if running.len() >= slots {
                    waiting.push_back(due);
                    break;
                }
                let retries = running
                    .values()
                    .filter(|look| look.reason == DueReason::Retry)
                    .count();
                let may = due.reason != DueReason::Retry || slots == 1 || retries < for_retries;
                may.then(|| {
                    let drop = CancellationToken::new();
                    let look = RunningLook {
                        tenant: due.tenant.clone(),
                        reason: due.reason,
                        version: due.version,
                        since: Instant::now(),
                        drop: drop.clone(),
                    };
                    running.insert(due.id.clone(), look);
                    drop
                })
            };
            match claimed {
                Some(drop) => self.look(due, drop),
                None => waiting.push_back(due),
            }
        }
        waiting.append(&mut self.queue);
        self.queue = waiting;
    }

    fn look(&self, due: DueCluster, dropped: CancellationToken) {
        let running = Running {
            looks: Arc::clone(&self.looks),
            cluster: due.id.clone(),
        };
        let inner = Arc::clone(&self.inner);
        let task = async move |_| {
            let running = running;
            let span = tracing::info_span!("look", cluster = due.name.as_str(), request_id = due.request_id);
            let looked = async {
                let looked = tokio::select! {
                    biased;
                    looked = look(&inner, due) => looked,
                    () = dropped.cancelled() => {
                        tracing::debug!("the look is dropped for a newer version");
                        return;
                    }
                };
                running.looks.overtaken().remove(&running.cluster);
                if let Err(error) = looked {
                    tracing::error!(%error, "the cluster could not be looked at");
                    tokio::time::sleep(TROUBLE_PAUSE).await;
                }
            };
            looked.instrument(span).await;
            Ok::<_, std::convert::Infallible>(())
        };
        // A look writes nothing to its cluster and the inventory in whole transactions: it can be dropped anywhere.
        drop(
            self.inner
                .tasks
                .spawn("look", OnError::Log, OnCancel::Abort, task),
        );
    }

    /// How long until something is to be done that nothing tells of.
    fn wait(&self) -> Duration {
        // Whoever was fetched and not started waits for a slot; else for the next moment.
        let wait = if self.queue.is_empty() {
            self.until_next()
        } else {
            BACKSTOP
        };
        let overtake = self
            .overtake_at
            .map(|at| at.saturating_duration_since(Instant::now()));
        overtake.map_or(wait, |overtake| overtake.min(wait))
    }

    /// How long until the next cluster becomes due. When those that are due are being looked at already, the end of a look
    /// is what to wait for.
    fn until_next(&self) -> Duration {
        let until_others = self
            .others
            .next
            .map(|at| at.saturating_duration_since(Instant::now()));
        let until_others = until_others.unwrap_or(BACKSTOP).min(BACKSTOP);
        let Some(next) = self.next_at else {
            return until_others;
        };
        let wait = pause::until(&*self.inner.clock, next).min(until_others);
        if wait.is_zero() && !self.looks.running().is_empty() {
            BACKSTOP
        } else {
            wait
        }
    }
}
