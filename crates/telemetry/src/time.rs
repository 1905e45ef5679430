//! The real clock and timers. Everything else gets time passed in.

use std::sync::OnceLock;
use std::time::Duration;

use evenkeel_core::Clock;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::time::Instant;

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        now()
    }
}

/// The wall clock of this machine.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Time since a fixed point in this process's life, never going back. Follows tokio's clock, so that tests which
/// pause that one pause this one too.
pub fn elapsed() -> Duration {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed()
}

/// A timer.
pub fn sleep(delay: Duration) -> BoxFuture<'static, ()> {
    Box::pin(tokio::time::sleep(delay))
}
