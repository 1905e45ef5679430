//! Who may work on an operation, and until when.

use jiff::{SignedDuration, Timestamp};

use crate::Fence;

/// The right to work on one operation: until when, and under which fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The number taken at the target before the first write.
    pub fence: Fence,
    /// The moment the right ends unless a heartbeat renews it.
    pub until: Timestamp,
}

impl Lease {
    /// Whether a request that may take `request_timeout` can still start at `now`: it must end within the lease
    /// (DESIGN §4.4).
    pub fn outlasts(&self, now: Timestamp, request_timeout: SignedDuration) -> bool {
        self.until.duration_since(now) > request_timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_must_end_within_the_lease() {
        let now = Timestamp::UNIX_EPOCH;
        let lease = Lease {
            fence: Fence(1),
            until: now + SignedDuration::from_secs(15),
        };
        assert!(lease.outlasts(now, SignedDuration::from_secs(9)));
        assert!(!lease.outlasts(now + SignedDuration::from_secs(6), SignedDuration::from_secs(9)));
        assert!(!lease.outlasts(now + SignedDuration::from_secs(60), SignedDuration::ZERO));
    }
}
