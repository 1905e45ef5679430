//! Which processes there are, and which of them looks at which cluster (K29).
//!
//! ```text
//! each tells that it lives ──▶ processes heard of within a lease ──▶ rendezvous hashing ──▶ an order of them per cluster
//! ```
//! The first of a cluster's order looks at it and watches it. When one comes or goes only its own share moves. Nothing
//! rests on everybody seeing the same list: a look writes nothing to its cluster, and of two that find the same thing to
//! do the database lets one begin. So a cluster that is due and that its first leaves alone for a lease is looked at by
//! its second, and so on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use evenkeel_api as api;
use evenkeel_core::{ClusterId, Digest};
use evenkeel_inventory::{DueStamp, Error, Instance, SeenInstance, Signal};
use evenkeel_telemetry::CancellationToken;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::fleet::Inner;
use crate::{Fleet, Settings, pause};

/// The least between two looks at the list, should one that was heard of last just now have gone.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Between two looks at whether operations still run, while the process ends.
const ENDING_PAUSE: Duration = Duration::from_millis(50);
/// How long a process that was not heard of is still told of.
pub(crate) const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);

/// The processes, as this one knows them.
pub(crate) struct Instances {
    own: Mutex<Instance>,
    /// Those that look at clusters, this one among them when it does.
    looking: RwLock<Arc<Vec<Instance>>>,
    /// Told when that list changes.
    pub(crate) changed: Notify,
}

impl Instances {
    pub(crate) fn new(settings: &Settings) -> Self {
        let own = Instance::new(settings.worker.as_str(), settings.role);
        let looking = own.role.looks().then(|| own.clone()).into_iter().collect();
        Self {
            own: Mutex::new(own),
            looking: RwLock::new(Arc::new(looking)),
            changed: Notify::new(),
        }
    }

    /// This process.
    pub(crate) fn own(&self) -> Instance {
        self.own_mut().clone()
    }

    fn own_mut(&self) -> MutexGuard<'_, Instance> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn looking(&self) -> Arc<Vec<Instance>> {
        Arc::clone(&self.looking.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many others are before this process in the order of a cluster.
    fn rank(&self, cluster: &ClusterId) -> usize {
        rank(&self.own(), &self.looking(), cluster)
    }

    /// Whether a cluster is this process's to look at and to watch.
    pub(crate) fn is_ours(&self, cluster: &ClusterId) -> bool {
        self.rank(cluster) == 0
    }

    /// Takes the list up. Answers whether it is another one.
    fn take(&self, seen: Vec<SeenInstance>) -> bool {
        let own = self.own();
        let mut looking: Vec<Instance> = seen
            .into_iter()
            .map(|seen| seen.instance)
            .filter(|other| other.id != own.id && other.role.looks() && !other.draining)
            .collect();
        if own.role.looks() && !own.draining {
            looking.push(own);
        }
        looking.sort_by_key(|instance| instance.id);
        let same = looking
            .iter()
            .map(|one| one.id)
            .eq(self.looking().iter().map(|one| one.id));
        if !same {
            *self.looking.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(looking);
        }
        !same
    }
}

/// How many of `looking` come before `own` in the order of a cluster.
fn rank(own: &Instance, looking: &[Instance], cluster: &ClusterId) -> usize {
    let ours = weight(own, cluster);
    looking
        .iter()
        .filter(|other| other.id != own.id && weight(other, cluster) > ours)
        .count()
}

/// Rendezvous hashing: the heaviest of a cluster comes first.
fn weight(instance: &Instance, cluster: &ClusterId) -> [u8; 32] {
    let mut key = instance.id.as_bytes().to_vec();
    key.extend_from_slice(cluster.as_str().as_bytes());
    *Digest::of(key).as_bytes()
}

/// Due clusters that are others' to look at, and since when they are, by the stamps of their due times.
pub(crate) struct Others<S = DueStamp> {
    seen: HashMap<ClusterId, (S, Instant)>,
    /// When the first of them becomes ours.
    pub(crate) next: Option<Instant>,
}

impl<S> Default for Others<S> {
    fn default() -> Self {
        Self {
            seen: HashMap::new(),
            next: None,
        }
    }
}

impl<S: Copy + PartialEq> Others<S> {
    /// Keeps of the due clusters those that this process looks at: its own, and others' that were left alone for
    /// `patience` by each that comes before it.
    pub(crate) fn ours<T>(
        &mut self,
        instances: &Instances,
        due: Vec<T>,
        of: impl Fn(&T) -> (&ClusterId, S),
        patience: Duration,
        now: Instant,
    ) -> Vec<T> {
        let (own, looking) = (instances.own(), instances.looking());
        let before = std::mem::take(&mut self.seen);
        self.next = None;
        let mut ours = Vec::with_capacity(due.len());
        for due in due {
            let (id, stamp) = of(&due);
            let rank = rank(&own, &looking, id);
            if rank == 0 {
                ours.push(due);
                continue;
            }
            let since = match before.get(id) {
                Some((known, since)) if *known == stamp => *since,
                _ => now,
            };
            let wait = patience.saturating_mul(u32::try_from(rank).unwrap_or(u32::MAX));
            let ours_at = since.checked_add(wait);
            self.seen.insert(id.clone(), (stamp, since));
            match ours_at {
                Some(at) if at <= now => ours.push(due),
                Some(at) => self.next = Some(self.next.map_or(at, |other| other.min(at))),
                None => {}
            }
        }
        ours
    }
}

/// Tells that this process lives, and hears which others do.
///
/// # Errors
/// What the inventory fails with; the service is started again, and the list that is known stays.
pub(crate) async fn serve(inner: Arc<Inner>, stop: CancellationToken) -> Result<(), Error> {
    let instances = &inner.instances;
    let mut changed = inner.store.signals().subscribe(Signal::InstancesChanged);
    let mut tell_at = Instant::now();
    while !stop.is_cancelled() {
        if tell_at <= Instant::now() {
            inner.store.note_instance(&instances.own()).await?;
            tell_at = Instant::now() + inner.settings.heartbeat;
        }
        let again = hear(&inner).await?;
        let wait = again.min(tell_at.saturating_duration_since(Instant::now()));
        tokio::select! {
            () = stop.cancelled() => break,
            more = changed.changed() => if !more { return Ok(()) },
            () = tokio::time::sleep(wait.max(LOOK_AGAIN)) => {}
        }
    }
    // The others take its share at once, and people see why it takes no work.
    instances.own_mut().draining = true;
    inner.store.note_instance(&instances.own()).await?;
    while !inner.workers.is_idle() {
        tokio::time::sleep(ENDING_PAUSE).await;
    }
    inner.store.forget_instance(instances.own().id).await
}

/// Hears who lives. Answers after how long somebody may be gone who is not heard of any more.
async fn hear(inner: &Inner) -> Result<Duration, Error> {
    let now = inner.clock.now();
    let seen = inner.store.instances(living_since(inner, now)).await?;
    let own = inner.instances.own().id;
    let silent = seen
        .iter()
        .filter(|seen| seen.instance.id != own)
        .map(|seen| pause::after(seen.last_seen_at, inner.settings.lease))
        .min();
    if inner.instances.take(seen) {
        let looking = inner.instances.looking().len();
        tracing::info!(looking, "clusters are shared out anew");
        inner
            .watches
            .keep_only(|cluster| inner.instances.is_ours(cluster));
        inner.instances.changed.notify_one();
    }
    Ok(silent.map_or(inner.settings.heartbeat, |at| pause::until(&*inner.clock, at)))
}

/// Since when a process must have been heard of to be living.
fn living_since(inner: &Inner, now: Timestamp) -> Timestamp {
    let lease = SignedDuration::try_from(inner.settings.lease).unwrap_or(SignedDuration::MAX);
    now.saturating_sub(lease).unwrap_or(Timestamp::MIN)
}

impl Fleet {
    /// The processes of the installation that were heard of within a day, longest running first.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn instances(&self) -> Result<Vec<api::Instance>, crate::Error> {
        let inner = self.inner();
        let now = inner.clock.now();
        let since = now.saturating_sub(REMEMBERED).unwrap_or(Timestamp::MIN);
        let living = living_since(inner, now);
        let told = |seen: SeenInstance| {
            let SeenInstance {
                instance,
                started_at,
                last_seen_at,
            } = seen;
            api::Instance {
                id: instance.id.to_string(),
                host: instance.host,
                version: instance.version,
                role: instance.role.as_str().to_owned(),
                state: match (last_seen_at >= living, instance.draining) {
                    (false, _) => api::InstanceState::Silent,
                    (true, true) => api::InstanceState::Draining,
                    (true, false) => api::InstanceState::Running,
                },
                started: started_at,
                last_seen: last_seen_at,
            }
        };
        let seen = self.store().instances(since).await?;
        Ok(seen.into_iter().map(told).collect())
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_inventory::Role;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(15);

    fn id(number: usize) -> ClusterId {
        ClusterId::new(format!("cluster-{number}")).expect("an id")
    }

    fn some(count: usize) -> Vec<Instance> {
        (0..count)
            .map(|number| Instance::new(format!("host-{number}"), Role::All))
            .collect()
    }

    fn first(instances: &[Instance], cluster: &ClusterId) -> usize {
        let firsts: Vec<_> = (0..instances.len())
            .filter(|one| rank(&instances[*one], instances, cluster) == 0)
            .collect();
        assert_eq!(firsts.len(), 1, "one is first");
        firsts[0]
    }

    #[test]
    fn shares_are_even_and_only_those_of_who_goes_move() {
        let three = some(3);
        let mut shares = [0_usize; 3];
        for number in 0..3_000 {
            let before = first(&three, &id(number));
            shares[before] += 1;
            let after = first(&three[..2], &id(number));
            assert!(
                before == 2 || before == after,
                "cluster {number} moved from one that stays"
            );
        }
        assert!(
            shares.iter().all(|share| (850..1_150).contains(share)),
            "{shares:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_its_first_leaves_alone_is_looked_at_by_the_next() {
        let instances = Instances::new(&Settings::default());
        let mut seen = some(2);
        seen.push(instances.own());
        let seen = seen.into_iter().map(|instance| SeenInstance {
            instance,
            started_at: Timestamp::UNIX_EPOCH,
            last_seen_at: Timestamp::UNIX_EPOCH,
        });
        assert!(instances.take(seen.collect()));
        let ranked = |rank: usize| (0..).find(|number| instances.rank(&id(*number)) == rank);
        let [own, second, third] = [0, 1, 2].map(|rank| ranked(rank).expect("some cluster"));
        let mut others = Others::default();
        let begin = Instant::now();
        let mut ours = |seconds: u64, stamp: u32| {
            let all = vec![(id(own), 1), (id(second), stamp), (id(third), 1)];
            let now = begin + Duration::from_secs(seconds);
            let ours = others.ours(&instances, all, |(id, stamp)| (id, *stamp), PATIENCE, now);
            let next = others.next.map(|at| at.duration_since(begin).as_secs());
            (ours.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), next)
        };
        assert_eq!(ours(0, 1), (vec![id(own)], Some(15)));
        assert_eq!(ours(14, 1), (vec![id(own)], Some(15)));
        assert_eq!(ours(15, 1), (vec![id(own), id(second)], Some(30)));
        assert_eq!(
            ours(16, 2),
            (vec![id(own)], Some(30)),
            "its first was there, and it is due anew"
        );
        assert_eq!(ours(30, 2).0, [id(own), id(third)]);
        assert_eq!(ours(31, 2).0, [id(own), id(second), id(third)]);
    }

    #[test]
    fn who_ends_or_only_works_has_no_share() {
        let instances = Instances::new(&Settings::default());
        let mut all = some(2);
        all[0].draining = true;
        all[1].role = Role::Worker;
        let seen = all.into_iter().map(|instance| SeenInstance {
            instance,
            started_at: Timestamp::UNIX_EPOCH,
            last_seen_at: Timestamp::UNIX_EPOCH,
        });
        assert!(
            !instances.take(seen.collect()),
            "this one has everything, as before"
        );
        assert!((0..100).all(|number| instances.is_ours(&id(number))));
    }
}
