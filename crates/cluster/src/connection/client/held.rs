//! A cluster that is watched: its one connection stays open, and what was read of it holds.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{Cluster, Inner, WARM};
use crate::connection::Limits;

/// The idle timeout of a connection that is to stay open: as good as none, which the pool cannot be told.
const HELD_OPEN_FOR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Keeps the connection of a cluster open until it is dropped, so that what is asked seldom goes the way of the watches.
pub(crate) struct HeldOpen(Weak<Inner>);

impl Cluster {
    /// Whether both are clones of one client.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Keeps the connection open, whatever others do, until what is given is dropped. It counts among those that are
    /// kept warm.
    pub(crate) fn hold_open(&self) -> HeldOpen {
        if let Some(surplus) = WARM.hold(&self.inner.last_use) {
            close(surplus);
            // The next one opened stays.
            self.inner.close_idle();
        }
        HeldOpen(Arc::downgrade(&self.inner))
    }

    /// What was read of the cluster holds for as long as it is not distrusted.
    pub(crate) fn trust(&self) {
        self.inner.trusted.store(true, Ordering::Relaxed);
    }

    /// What was read of the cluster long ago is to be read again.
    pub(crate) fn distrust(&self) {
        self.inner.trusted.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.inner.trusted.load(Ordering::Relaxed)
    }
}

impl Inner {
    /// The limits that the pool of connections is made with.
    pub(in crate::connection) fn pool_limits(&self) -> Limits {
        let mut limits = self.limits;
        if self.last_use.is_held() {
            limits.idle_timeout = HELD_OPEN_FOR;
        }
        limits
    }
}

impl Drop for HeldOpen {
    fn drop(&mut self) {
        let Some(inner) = self.0.upgrade() else {
            return;
        };
        if WARM.let_go(&inner.last_use) {
            inner.trusted.store(false, Ordering::Relaxed);
            inner.close_idle();
        }
    }
}

/// Closes idle connections of clusters.
pub(super) fn close(surplus: Vec<Weak<Inner>>) {
    for inner in surplus.iter().filter_map(Weak::upgrade) {
        inner.close_idle();
    }
}
