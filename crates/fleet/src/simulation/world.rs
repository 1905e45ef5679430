//! What all processes of a schedule share: time, chance, rows, clusters, and what was seen to go wrong.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_core::{Clock, ClusterId, ComponentName, Fence, OperationId, OperationStateKind};
use evenkeel_inventory::{ClaimedOperation, MemoryDatabase, MemoryStore, PerfectLink, Reconciliations as _};
use evenkeel_telemetry::Tasks;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::Outcome;
use super::chance::Chance;
use super::clusters::ModelCluster;
use super::trace::{Event, Trace};

/// 2026-03-01T02:00:00Z, when every schedule begins.
const BEGINNING: i64 = 1_772_330_400;

/// The world of one schedule.
pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) database: Arc<MemoryDatabase>,
    /// What people do goes through here; it never fails.
    pub(super) people: MemoryStore,
    /// What is on its way to clusters, whatever becomes of who sent it.
    pub(super) network: Tasks,
    begun: Instant,
    /// Since when nothing fails by chance any more, in milliseconds; the greatest number before that.
    calm_since: AtomicU64,
    clocks_were_wrong: AtomicBool,
    clusters: Mutex<BTreeMap<ClusterId, ModelCluster>>,
    /// Writes that may be under way: until when, by attempt.
    permits: Mutex<BTreeMap<(ClusterId, ComponentName), BTreeMap<Fence, u64>>>,
    trace: Mutex<Trace>,
    fault: Mutex<Option<String>>,
}

/// A clock that may be wrong.
pub(super) struct ProcessClock {
    begun: Instant,
    off_millis: AtomicI64,
}

impl fmt::Debug for ProcessClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProcessClock").field(&self.off_millis).finish()
    }
}

impl ProcessClock {
    pub(super) fn new(begun: Instant) -> Self {
        Self {
            begun,
            off_millis: AtomicI64::new(0),
        }
    }

    /// Jumps to `millis` before or after the right time.
    pub(super) fn be_off_by(&self, millis: i64) {
        self.off_millis.store(millis, Ordering::Relaxed);
    }
}

impl Clock for ProcessClock {
    fn now(&self) -> Timestamp {
        let off = SignedDuration::from_millis(self.off_millis.load(Ordering::Relaxed));
        let since = SignedDuration::try_from(self.begun.elapsed()).unwrap_or(SignedDuration::ZERO);
        let beginning = Timestamp::from_second(BEGINNING).unwrap_or(Timestamp::UNIX_EPOCH);
        beginning.saturating_add(since + off).unwrap_or(beginning)
    }
}

impl World {
    pub(super) fn new(seed: u64, keep_trace: bool) -> Self {
        let begun = Instant::now();
        let database = MemoryDatabase::new();
        let clock = Arc::new(ProcessClock::new(begun));
        Self {
            chance: Chance::new(seed),
            people: MemoryStore::open(&database, clock, Arc::new(PerfectLink)),
            database,
            network: Tasks::new(),
            begun,
            calm_since: AtomicU64::new(u64::MAX),
            clocks_were_wrong: AtomicBool::new(false),
            clusters: Mutex::default(),
            permits: Mutex::default(),
            trace: Mutex::new(Trace::new(keep_trace)),
            fault: Mutex::default(),
        }
    }

    pub(super) fn clock(&self) -> ProcessClock {
        ProcessClock::new(self.begun)
    }

    /// Virtual milliseconds since the beginning.
    pub(super) fn millis(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether nothing fails by chance any more.
    pub(super) fn is_calm(&self) -> bool {
        self.calm_since.load(Ordering::Relaxed) != u64::MAX
    }

    pub(super) fn calm_down(&self) {
        self.calm_since.store(self.millis(), Ordering::Relaxed);
    }

    /// Whether a moment, by a right clock, is from when things still failed.
    pub(super) fn is_from_before_the_calm(&self, moment: Timestamp) -> bool {
        let millis = moment.as_millisecond() - BEGINNING * 1_000;
        u64::try_from(millis).unwrap_or(0) < self.calm_since.load(Ordering::Relaxed)
    }

    /// Whether a fault of `percent` strikes now.
    pub(super) fn strikes(&self, percent: u64) -> bool {
        !self.is_calm() && self.chance.percent(percent)
    }

    /// From now on, what rests on right clocks is not expected.
    pub(super) fn clocks_are_wrong(&self) {
        self.clocks_were_wrong.store(true, Ordering::Relaxed);
    }

    pub(super) fn clocks_were_right(&self) -> bool {
        !self.clocks_were_wrong.load(Ordering::Relaxed)
    }

    pub(super) fn clusters(&self) -> MutexGuard<'_, BTreeMap<ClusterId, ModelCluster>> {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt may write until a moment. That two may at once is a fault, as long as all clocks were right.
    pub(super) fn permitted(&self, operation: &ClaimedOperation, until: u64) {
        let now = self.millis();
        let fence = operation.lease.fence;
        let key = (operation.cluster.clone(), operation.component.clone());
        let mut permits = self.permits.lock().unwrap_or_else(PoisonError::into_inner);
        let attempts = permits.entry(key).or_default();
        attempts.retain(|_, until| *until > now);
        attempts.insert(fence, until);
        let two = attempts.len() > 1 && self.clocks_were_right();
        drop(permits);
        if two {
            self.broken(format!(
                "two attempts at component {} of {} may write at once, one under fence {fence}",
                operation.component, operation.cluster
            ));
        }
    }

    /// What an attempt wrote has been answered.
    pub(super) fn answered(&self, operation: &ClaimedOperation) {
        let key = (operation.cluster.clone(), operation.component.clone());
        let mut permits = self.permits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(attempts) = permits.get_mut(&key) {
            attempts.remove(&operation.lease.fence);
        }
    }

    /// Whether an attempt has its operation.
    pub(super) async fn is_held(&self, operation: &OperationId, fence: Fence) -> bool {
        let operation = self.people.operation(operation).await;
        operation.is_ok_and(|held| held.fence == fence && held.state.kind() == OperationStateKind::Running)
    }

    pub(super) fn note(&self, process: u64, what: &str, about: &str, number: u64) {
        let event = Event {
            at: self.millis(),
            process,
            what,
            about,
            number,
        };
        self.trace
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .note(&event);
    }

    /// Something must not be. The first counts.
    pub(super) fn broken(&self, fault: String) {
        self.note(0, "FAULT", &fault, 0);
        let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(fault);
    }

    pub(super) fn fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn outcome(&self, seed: u64, fault: Option<String>) -> Outcome {
        let mut trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        Outcome {
            seed,
            digest: trace.digest,
            steps: trace.steps,
            fault,
            trace: trace.lines.take().unwrap_or_default(),
        }
    }
}
