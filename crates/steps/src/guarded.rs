//! Futures that cannot take the engine down with them: a limit on time, panics caught, polled inside a span.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use futures::future::BoxFuture;

use crate::report::Interruption;
use crate::{Cancel, Runtime, StepSpan};

/// How a guarded future ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Guarded<T> {
    Ended(T),
    TimedOut,
    Panicked(String),
}

/// Runs `future` for at most `limit`, inside `span`. The timer is only made when the future is not ready at once.
pub(crate) async fn guarded<F: Future>(
    future: F,
    limit: Duration,
    runtime: &dyn Runtime,
    span: Option<Box<dyn StepSpan>>,
) -> Guarded<F::Output> {
    let mut future = pin!(Some(future));
    let mut timer: Option<BoxFuture<'static, ()>> = None;
    let ended = poll_fn(|cx| {
        let mut polled = None;
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let mut poll = || polled = future.as_mut().as_pin_mut().map(|future| future.poll(cx));
            match &span {
                Some(span) => span.within(&mut poll),
                None => poll(),
            }
        }));
        match (caught, polled) {
            (Err(panic), _) => Poll::Ready(Guarded::Panicked(panic_message(&*panic))),
            (Ok(()), Some(Poll::Ready(output))) => Poll::Ready(Guarded::Ended(output)),
            (Ok(()), None) => Poll::Ready(Guarded::Panicked("its span did not poll it".to_owned())),
            (Ok(()), Some(Poll::Pending)) => {
                let timer = timer.get_or_insert_with(|| runtime.sleep(limit));
                timer.as_mut().poll(cx).map(|()| Guarded::TimedOut)
            }
        }
    })
    .await;
    // Destructors can panic too.
    match catch_unwind(AssertUnwindSafe(|| future.set(None))) {
        Ok(()) => ended,
        Err(panic) => Guarded::Panicked(panic_message(&*panic)),
    }
}

/// The text of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without text").to_owned()
}

/// Watches for what cuts a pass short: the end of its budget, or cancellation plus grace.
pub(crate) struct Limits {
    runtime: Arc<dyn Runtime>,
    cancel: Arc<dyn Cancel>,
    grace: Duration,
    /// On the runtime's monotonic time.
    work_end: Option<Duration>,
    budget_timer: Option<BoxFuture<'static, ()>>,
    cancelled: Option<BoxFuture<'static, ()>>,
    grace_timer: Option<BoxFuture<'static, ()>>,
}

impl Limits {
    pub(crate) fn new(
        runtime: Arc<dyn Runtime>,
        cancel: Arc<dyn Cancel>,
        grace: Duration,
        work_end: Option<Duration>,
    ) -> Self {
        Self {
            runtime,
            cancel,
            grace,
            work_end,
            budget_timer: None,
            cancelled: None,
            grace_timer: None,
        }
    }

    /// Whether something new may start now.
    pub(crate) fn check(&self) -> Option<Interruption> {
        if self.cancel.is_cancelled() {
            return Some(Interruption::Cancelled);
        }
        let end = self.work_end?;
        (self.runtime.elapsed() >= end).then_some(Interruption::OutOfTime)
    }

    /// Ends when what runs has to be dropped. Not to be polled again after that.
    pub(crate) fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<Interruption> {
        if let Some(end) = self.work_end {
            let timer = self
                .budget_timer
                .get_or_insert_with(|| self.runtime.sleep(end.saturating_sub(self.runtime.elapsed())));
            if timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Interruption::OutOfTime);
            }
        }
        if self.grace_timer.is_none() {
            let cancelled = self.cancelled.get_or_insert_with(|| self.cancel.cancelled());
            if cancelled.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        let timer = self
            .grace_timer
            .get_or_insert_with(|| self.runtime.sleep(self.grace));
        timer.as_mut().poll(cx).map(|()| Interruption::Cancelled)
    }
}
