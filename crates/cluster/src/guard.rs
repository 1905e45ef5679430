//! The caller's say over every write.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::Fence;

use crate::Stop;

/// Asked right before each write, after any waiting for a free slot.
///
/// The implementation knows the lease and whether the work was cancelled or superseded; a refusal stops the work at the
/// object boundary it has reached (DESIGN §4.4, §7).
pub trait WriteGuard: Send + Sync {
    /// Whether a write that may take `longest` can start now.
    ///
    /// # Errors
    /// Why it cannot.
    fn permit(&self, longest: Duration) -> Result<(), Stop>;

    /// For whom it is written, as the server sees it in its log beside our name; none where nobody has to know.
    fn writer(&self) -> Option<&str> {
        None
    }
}

/// Lets every write start: for `evenkeel local`, which holds no lease, and for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unguarded;

impl WriteGuard for Unguarded {
    fn permit(&self, _longest: Duration) -> Result<(), Stop> {
        Ok(())
    }
}

impl<F: Fn(Duration) -> Result<(), Stop> + Send + Sync> WriteGuard for F {
    fn permit(&self, longest: Duration) -> Result<(), Stop> {
        self(longest)
    }
}

/// One attempt at one component: the number it came with and the guard of its lease.
#[derive(Clone)]
pub struct Attempt {
    /// Taken at the target before the first write.
    pub fence: Fence,
    /// Asked before every write.
    pub guard: Arc<dyn WriteGuard>,
}

impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt")
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}
