//! Live watches over clusters that were found as they should be, as many as the process may have.
//!
//! ```text
//!   look ──found as it should be──▶ a place, if one is free ──▶ DriftWatch in its own task
//!     ▲                                                           │ alarm
//!     └── scheduler ◀── due at once, lane "drift" ◀───────────────┘
//! ```
//! Who has a place keeps it: the choice does not change with every look, and nothing flaps. A cluster without a place is
//! looked at once per interval, as if there were no watches. A place is free again when its cluster is deleted, cannot be
//! watched any more, or is reached in another way.
//!
//! While the watches of a cluster vouch for it, its periodic look asks it nothing; every so often it is looked at all the
//! same.

mod alarms;
mod gauges;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use evenkeel_cluster::{
    Baseline, Cluster, DriftWatch, Expected, TrackedSize, WATCHES_PER_CLUSTER_MAX, WatchOptions,
};
use evenkeel_core::{Clock, ClusterId};
use evenkeel_inventory::Store;
use evenkeel_telemetry::metrics::Collector;
use evenkeel_telemetry::{BoxError, OnCancel, OnError, Task, Tasks};
use jiff::Timestamp;
use tokio::time::Instant;

use self::alarms::Raising;
use crate::Settings;

/// How long a cluster that could not be watched any more is looked at by interval; it doubles each time.
const LOST_PAUSE: Duration = Duration::from_secs(30);
/// The longest such pause.
const LOST_PAUSE_LONGEST: Duration = Duration::from_secs(60 * 60);
/// How many clusters are remembered as lost; when there are more, all are forgotten.
const LOST_MAX: usize = 10_000;

/// The watches of a process.
pub(crate) struct Watches {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
    options: WatchOptions,
    patience: Duration,
    clusters_max: usize,
    watches_max: usize,
    full_check_every: u32,
    places: Arc<Mutex<Places>>,
}

#[derive(Default)]
struct Places {
    by_cluster: HashMap<ClusterId, Place>,
    /// Of all places.
    watches: usize,
    /// Numbers places, so that a task that ends gives up none but its own.
    last: u64,
    /// Clusters that could not be watched any more: how often, and until when that is not tried again.
    lost: HashMap<ClusterId, (u32, Instant)>,
}

/// One watched cluster.
struct Place {
    number: u64,
    watch: DriftWatch,
    /// How many watches it takes.
    watches: usize,
    /// How many looks in a row asked nothing.
    vouched: u32,
    task: Task<()>,
}

/// What is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Clusters with live watches.
    pub clusters: usize,
    /// Watches of all of them.
    pub watches: usize,
    /// Clusters for which nothing is known to depart, and whose watches are all open.
    pub calm: usize,
    /// What is remembered of their objects.
    pub size: TrackedSize,
}

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches")
            .field("clusters_max", &self.clusters_max)
            .field("watches_max", &self.watches_max)
            .finish_non_exhaustive()
    }
}

impl Watches {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        settings: &Settings,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
    ) -> Self {
        Self {
            store,
            clock,
            tasks,
            options: settings.watch_options,
            patience: settings.drift_patience,
            clusters_max: settings.watched_clusters,
            watches_max: settings.watches,
            full_check_every: settings.full_check_every,
            places: Arc::default(),
        }
    }

    /// Whether the next look at a cluster may ask it nothing, should nothing else have changed.
    pub(crate) fn may_vouch(&self, id: &ClusterId, client: &Cluster) -> bool {
        let places = lock(&self.places);
        let Some(place) = places.by_cluster.get(id) else {
            return false;
        };
        let may = place.watch.is_over(client)
            && place.vouched.saturating_add(1) < self.full_check_every
            && place.watch.is_calm();
        if !may {
            place.watch.distrust();
        }
        may
    }

    /// Whether a cluster, with exactly `expected` in it, is known to be as it should be.
    pub(crate) fn vouches(&self, id: &ClusterId, expected: &[Expected]) -> bool {
        let mut places = lock(&self.places);
        let Some(place) = places.by_cluster.get_mut(id) else {
            return false;
        };
        let vouches = place.watch.vouches(expected);
        if vouches {
            place.vouched = place.vouched.saturating_add(1);
        }
        vouches
    }

    /// Whether it is known that everything is as it was found at the last look.
    pub(crate) fn is_calm(&self, id: &ClusterId) -> bool {
        let places = lock(&self.places);
        places
            .by_cluster
            .get(id)
            .is_some_and(|place| place.watch.is_calm())
    }

    /// When a cluster is to be looked at that was worked on, and else would be at `periodic`: at once when it is watched, or
    /// may be, since the watches begin with a look.
    pub(crate) fn after_work(&self, id: &ClusterId, periodic: Timestamp) -> Timestamp {
        if self.wants(id) {
            self.clock.now().min(periodic)
        } else {
            periodic
        }
    }

    /// Whether a cluster is watched, or may be as far as is known before it is looked at.
    pub(crate) fn wants(&self, id: &ClusterId) -> bool {
        let places = lock(&self.places);
        let room = places.by_cluster.len() < self.clusters_max && places.watches < self.watches_max;
        places.by_cluster.contains_key(id) || room && !places.is_lost(id)
    }

    /// Watches a cluster that was found as it should be, if there is a place for it; one that is watched is watched from
    /// here.
    pub(crate) fn watch(&self, id: &ClusterId, client: &Cluster, baseline: Baseline) {
        let wanted = baseline.watches();
        let mut places = lock(&self.places);
        let others = places.watches - places.by_cluster.get(id).map_or(0, |place| place.watches);
        let fits = wanted <= WATCHES_PER_CLUSTER_MAX && others + wanted <= self.watches_max;
        let known = places
            .by_cluster
            .get_mut(id)
            .filter(|place| place.watch.is_over(client) && !place.task.is_finished());
        match known {
            Some(place) if fits => {
                place.watch.renew(baseline);
                place.vouched = 0;
                place.watches = wanted;
                places.watches = others + wanted;
                return;
            }
            _ => places.remove(id),
        }
        if !fits || places.by_cluster.len() >= self.clusters_max || places.is_lost(id) {
            tracing::debug!(watches = wanted, "no place for live watches");
            return;
        }
        places.last += 1;
        let number = places.last;
        let watch = client.watch_over(baseline, self.options);
        let task = self.start(id.clone(), number, watch.clone());
        places.watches += wanted;
        places.by_cluster.insert(
            id.clone(),
            Place {
                number,
                watch,
                watches: wanted,
                vouched: 0,
                task,
            },
        );
    }

    /// Stops watching a cluster.
    pub(crate) fn end(&self, id: &ClusterId) {
        lock(&self.places).remove(id);
    }

    /// Stops watching the clusters that are another process's.
    pub(crate) fn keep_only(&self, is_ours: impl Fn(&ClusterId) -> bool) {
        let mut places = lock(&self.places);
        let others: Vec<ClusterId> = places
            .by_cluster
            .keys()
            .filter(|id| !is_ours(id))
            .cloned()
            .collect();
        for id in &others {
            places.remove(id);
        }
    }

    /// What is watched now.
    pub(crate) fn watched(&self) -> Watched {
        lock(&self.places).watched()
    }

    /// The same as gauges.
    pub(crate) fn gauges(&self) -> impl Collector + use<> {
        gauges::WatchGauges {
            places: Arc::clone(&self.places),
            clusters_max: self.clusters_max,
            watches_max: self.watches_max,
        }
    }

    fn start(&self, id: ClusterId, number: u64, watch: DriftWatch) -> Task<()> {
        let places = Arc::clone(&self.places);
        let span = tracing::info_span!("watch", cluster_id = id.as_str());
        let raising = Raising {
            store: Arc::clone(&self.store),
            clock: Arc::clone(&self.clock),
            id,
            patience: self.patience,
        };
        let task = async move |_| {
            tracing::debug!("live watches begin");
            let told = tokio::select! {
                error = watch.run() => {
                    tracing::info!(%error, "live watches end; the cluster is looked at by interval");
                    lock(&places).lose(&raising.id);
                    // What was missed since, if anything, shows in a look.
                    raising.raise().await
                }
                told = raising.alarms(&watch) => told,
            };
            lock(&places).left(&raising.id, number);
            told.map_err(BoxError::from)
        };
        let _entered = span.enter();
        // It holds nothing that is not read anew.
        self.tasks.spawn("watch", OnError::Log, OnCancel::Abort, task)
    }
}

impl Places {
    fn watched(&self) -> Watched {
        let mut watched = Watched {
            clusters: self.by_cluster.len(),
            watches: self.watches,
            ..Watched::default()
        };
        for place in self.by_cluster.values() {
            let size = place.watch.size();
            watched.calm += usize::from(place.watch.is_calm());
            watched.size.objects += size.objects;
            watched.size.bytes += size.bytes;
        }
        watched
    }

    fn remove(&mut self, id: &ClusterId) {
        if let Some(place) = self.by_cluster.remove(id) {
            self.watches -= place.watches;
            place.task.abort();
        }
    }

    /// The cluster cannot be watched any more, whatever the reason: not at once again, or it would be looked at for ever.
    fn lose(&mut self, id: &ClusterId) {
        if self.lost.len() >= LOST_MAX {
            self.lost.clear();
        }
        let now = Instant::now();
        let (times, until) = self.lost.entry(id.clone()).or_insert((0, now));
        if now.saturating_duration_since(*until) > LOST_PAUSE_LONGEST {
            *times = 0;
        }
        let pause = LOST_PAUSE.saturating_mul(2_u32.saturating_pow(*times));
        *until = now + pause.min(LOST_PAUSE_LONGEST);
        *times = times.saturating_add(1);
    }

    /// How many clusters are left alone for now.
    fn lost_now(&self) -> usize {
        let now = Instant::now();
        self.lost.values().filter(|(_, until)| now < *until).count()
    }

    fn is_lost(&self, id: &ClusterId) -> bool {
        self.lost
            .get(id)
            .is_some_and(|(_, until)| Instant::now() < *until)
    }

    /// A task has ended by itself.
    fn left(&mut self, id: &ClusterId, number: u64) {
        if self
            .by_cluster
            .get(id)
            .is_some_and(|place| place.number == number)
            && let Some(place) = self.by_cluster.remove(id)
        {
            self.watches -= place.watches;
        }
    }
}

fn lock(places: &Mutex<Places>) -> MutexGuard<'_, Places> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_is_lost_again_and_again_is_left_alone_for_longer_and_longer() {
        let id = ClusterId::new("c1").expect("an id");
        let mut places = Places::default();
        assert!(!places.is_lost(&id));
        for seconds in [30, 60, 120] {
            places.lose(&id);
            advance(Duration::from_secs(seconds - 1)).await;
            assert!(places.is_lost(&id), "{seconds}");
            advance(Duration::from_secs(1)).await;
            assert!(!places.is_lost(&id), "{seconds}");
        }
        advance(LOST_PAUSE_LONGEST + Duration::from_secs(1)).await;
        places.lose(&id);
        advance(LOST_PAUSE).await;
        assert!(!places.is_lost(&id), "it went well for long enough");
    }
}
