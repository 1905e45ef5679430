//! What the engine wants from the world: time, and a sign that it should stop. Nothing here is a clock; the
//! caller brings one.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;

/// Time as the engine sees it.
pub trait Runtime: Send + Sync {
    /// The wall clock: for timestamps in reports and for delays that name a moment.
    fn now(&self) -> Timestamp;

    /// Time since any fixed point, never going back: for durations, timeouts and budgets.
    fn elapsed(&self) -> Duration;

    /// A timer. Ends after `delay`.
    fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()>;
}

/// A [`Runtime`] made of three functions, so that a caller needs no type of its own for it.
///
/// With the runtime of `evenkeel-telemetry` this is
/// `RuntimeFns::new(time::now, time::elapsed, time::sleep)`.
pub struct RuntimeFns<N, E, S> {
    now: N,
    elapsed: E,
    sleep: S,
}

/// A sign that the pass should end.
pub trait Cancel: Send + Sync {
    /// Whether it was given. Asked before each step; a step asks it at its own safe points.
    fn is_cancelled(&self) -> bool;

    /// Ends when it is given. The default never ends, which is right for a sign that can only be asked for:
    /// then nothing interrupts a running step.
    fn cancelled(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// A [`Cancel`] made of two functions: one to ask, one to wait. With a cancellation token this is
/// `CancelFns::new(move || asked.is_cancelled(), move || Box::pin(awaited.clone().cancelled_owned()))`, where both
/// are clones of it.
pub struct CancelFns<A, W> {
    ask: A,
    wait: W,
}

/// Is never cancelled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Never;

// === impl RuntimeFns ===

impl<N, E, S> RuntimeFns<N, E, S>
where
    N: Fn() -> Timestamp + Send + Sync,
    E: Fn() -> Duration + Send + Sync,
    S: Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync,
{
    /// A runtime of these functions, in the order of the trait's methods.
    pub fn new(now: N, elapsed: E, sleep: S) -> Self {
        Self { now, elapsed, sleep }
    }
}

impl<N, E, S> Runtime for RuntimeFns<N, E, S>
where
    N: Fn() -> Timestamp + Send + Sync,
    E: Fn() -> Duration + Send + Sync,
    S: Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync,
{
    fn now(&self) -> Timestamp {
        (self.now)()
    }

    fn elapsed(&self) -> Duration {
        (self.elapsed)()
    }

    fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()> {
        (self.sleep)(delay)
    }
}

impl<N, E, S> fmt::Debug for RuntimeFns<N, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeFns").finish_non_exhaustive()
    }
}

// === impl Cancel ===

impl Cancel for Never {
    fn is_cancelled(&self) -> bool {
        false
    }
}

impl<F: Fn() -> bool + Send + Sync> Cancel for F {
    fn is_cancelled(&self) -> bool {
        self()
    }
}

impl<A, W> CancelFns<A, W>
where
    A: Fn() -> bool + Send + Sync,
    W: Fn() -> BoxFuture<'static, ()> + Send + Sync,
{
    /// `ask` says whether the sign was given, `wait` makes a future that ends when it is.
    pub fn new(ask: A, wait: W) -> Self {
        Self { ask, wait }
    }
}

impl<A, W> Cancel for CancelFns<A, W>
where
    A: Fn() -> bool + Send + Sync,
    W: Fn() -> BoxFuture<'static, ()> + Send + Sync,
{
    fn is_cancelled(&self) -> bool {
        (self.ask)()
    }

    fn cancelled(&self) -> BoxFuture<'static, ()> {
        (self.wait)()
    }
}

impl<A, W> fmt::Debug for CancelFns<A, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelFns").finish_non_exhaustive()
    }
}
