//! A bound on the clusters of a process that have open connections: who was used longest ago loses them first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// How many clusters may keep connections open (DESIGN §8).
pub(super) const WARM_MAX: usize = 2_000;
/// A cluster that was noted as used within so many milliseconds is not noted again.
const NOTED_EVERY_MS: u64 = 1_000;

/// Clusters by when they were used last.
#[derive(Debug)]
pub(super) struct Warm<T> {
    most: usize,
    begun: Mutex<Option<Instant>>,
    order: Mutex<Order<T>>,
}

#[derive(Debug)]
struct Order<T> {
    by_use: BTreeMap<u64, T>,
    uses: u64,
    /// How many clusters keep their connections whatever others do.
    held: usize,
}

/// When one cluster was used last.
#[derive(Debug, Default)]
pub(super) struct LastUse {
    /// Its place in the order; 0 when it has none.
    place: AtomicU64,
    noted_at_ms: AtomicU64,
    /// How many want it to keep its connections.
    held: AtomicUsize,
}

impl LastUse {
    /// Whether it keeps its connections.
    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed) > 0
    }
}

impl<T> Warm<T> {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            begun: Mutex::new(None),
            order: Mutex::new(Order {
                by_use: BTreeMap::new(),
                uses: 0,
                held: 0,
            }),
        }
    }

    fn now_ms(&self) -> u64 {
        let now = Instant::now();
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = *begun.get_or_insert(now);
        u64::try_from((now - begun).as_millis())
            .unwrap_or(u64::MAX)
            .saturating_add(1)
    }

    /// Notes that a cluster is used; gives those that are one too many.
    pub(super) fn used(&self, last: &LastUse, cluster: impl FnOnce() -> T) -> Vec<T> {
        let now = self.now_ms();
        let noted = last.noted_at_ms.load(Ordering::Relaxed);
        if noted != 0 && now.saturating_sub(noted) < NOTED_EVERY_MS {
            return Vec::new();
        }
        last.noted_at_ms.store(now, Ordering::Relaxed);
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_held() {
            return Vec::new();
        }
        order.uses += 1;
        let place = order.uses;
        let before = last.place.swap(place, Ordering::Relaxed);
        order.by_use.remove(&before);
        order.by_use.insert(place, cluster());
        self.surplus(&mut order)
    }

    fn surplus(&self, order: &mut Order<T>) -> Vec<T> {
        let most = self.most.saturating_sub(order.held);
        let mut surplus = Vec::new();
        while order.by_use.len() > most {
            surplus.extend(order.by_use.pop_first().map(|(_, cluster)| cluster));
        }
        surplus
    }

    /// Takes a cluster out of the order: it keeps its connections until it is let go. Gives those that are one too many
    /// now; none when it is held already.
    pub(super) fn hold(&self, last: &LastUse) -> Option<Vec<T>> {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        if last.held.fetch_add(1, Ordering::Relaxed) > 0 {
            return None;
        }
        order.by_use.remove(&last.place.load(Ordering::Relaxed));
        order.held += 1;
        Some(self.surplus(&mut order))
    }

    /// Undoes one [`Warm::hold`]; after the last one, which gives `true`, the cluster is among the others again at its
    /// next use.
    pub(super) fn let_go(&self, last: &LastUse) -> bool {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        if last.held.fetch_sub(1, Ordering::Relaxed) != 1 {
            return false;
        }
        order.held = order.held.saturating_sub(1);
        last.noted_at_ms.store(0, Ordering::Relaxed);
        true
    }

    /// Forgets a cluster that is no more.
    pub(super) fn gone(&self, last: &LastUse) {
        let place = last.place.load(Ordering::Relaxed);
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        order.by_use.remove(&place);
        if last.held.swap(0, Ordering::Relaxed) > 0 {
            order.held = order.held.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_one_used_longest_ago_goes_first() {
        let warm = Warm::new(2);
        let uses: Vec<LastUse> = (0..4).map(|_| LastUse::default()).collect();
        assert!(warm.used(&uses[0], || 0).is_empty());
        assert!(warm.used(&uses[1], || 1).is_empty());
        advance(Duration::from_secs(2)).await;
        assert!(warm.used(&uses[0], || 0).is_empty());
        assert_eq!(warm.used(&uses[2], || 2), [1]);
        warm.gone(&uses[0]);
        assert!(warm.used(&uses[3], || 3).is_empty());
        advance(Duration::from_secs(2)).await;
        assert_eq!(warm.used(&uses[1], || 1), [2]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_held_keeps_its_connections_and_counts() {
        let warm = Warm::new(2);
        let uses: Vec<LastUse> = (0..3).map(|_| LastUse::default()).collect();
        assert!(warm.used(&uses[0], || 0).is_empty());
        assert!(warm.used(&uses[1], || 1).is_empty());
        assert_eq!(warm.hold(&uses[0]), Some(Vec::new()));
        assert_eq!(warm.hold(&uses[0]), None, "once is enough");
        advance(Duration::from_secs(2)).await;
        assert!(warm.used(&uses[0], || 0).is_empty());
        assert_eq!(warm.used(&uses[2], || 2), [1], "the held one was used before it");
        assert!(
            !warm.let_go(&uses[0]) && warm.let_go(&uses[0]),
            "whoever held it last lets it go"
        );
        assert!(warm.used(&uses[0], || 0).is_empty(), "two fit again");
        advance(Duration::from_secs(2)).await;
        assert_eq!(warm.used(&uses[1], || 1), [2]);
    }

    #[tokio::test(start_paused = true)]
    async fn many_uses_are_noted_once() {
        let warm = Warm::new(1);
        let last = LastUse::default();
        let mut noted = 0;
        for _ in 0..100 {
            warm.used(&last, || noted += 1);
        }
        assert_eq!(noted, 1);
    }
}
