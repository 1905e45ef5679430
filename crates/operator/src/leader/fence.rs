//! Until when nobody else can hold the Lease, by our own clock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// Asked before each step (E13). A process that stood still, because its machine did, finds its Lease gone before its own timers have
/// told it so: it must not go on where it was. One that competes with nobody has none to lose.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fence(Arc<Mutex<Option<Instant>>>);

impl Fence {
    /// The Lease is ours until then.
    pub(crate) fn hold_until(&self, until: Instant) {
        *self.until() = Some(until);
    }

    /// Whether somebody else may hold the Lease by now.
    pub(crate) fn is_passed(&self) -> bool {
        self.until().is_some_and(|until| until <= Instant::now())
    }

    fn until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_lease_that_was_not_renewed_in_time_is_a_strangers() {
        let fence = Fence::default();
        assert!(!fence.is_passed(), "who competes with nobody has nothing to lose");
        let now = Instant::now();
        fence.hold_until(now + Duration::from_secs(60));
        assert!(!fence.is_passed());
        // Time that passed while nothing ran.
        fence.hold_until(now);
        assert!(fence.is_passed());
        fence.hold_until(now + Duration::from_secs(60));
        assert!(!fence.is_passed());
    }
}
