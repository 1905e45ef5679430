//! What is done before and after any step, and when one fails.

use std::time::Duration;

use futures::future::{BoxFuture, ready};

use crate::{Context, Failure, Outcome, Values};

/// How long [`Hook::on_error`] may take, on top of the step's own timeout.
pub const ON_ERROR_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs around every step of a pipeline that acts (L12): a lock, a trace elsewhere, an alarm. Not in a dry run, which
/// touches nothing; what only watches is an [`Observer`](crate::Observer).
///
/// Several hooks nest: `before` in the order in which they were registered, the other two in reverse. Their time counts
/// as the step's, save for `on_error`, which has [`ON_ERROR_TIMEOUT`].
pub trait Hook<S: Send + Sync + 'static>: Send + Sync {
    /// Before the step looks at anything. A failure keeps the step from running and is the step's.
    fn before<'a>(&'a self, cx: &'a Context<S>) -> BoxFuture<'a, Result<(), Failure>> {
        let _ = cx;
        Box::pin(ready(Ok(())))
    }

    /// After the step ended without a failure. A failure here is the step's, and what it did stays done.
    fn after<'a>(
        &'a self,
        cx: &'a Context<S>,
        outcome: &'a Outcome<Values>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        let _ = (cx, outcome);
        Box::pin(ready(Ok(())))
    }

    /// After the step failed, timed out or panicked. It cannot change that.
    fn on_error<'a>(&'a self, cx: &'a Context<S>, failure: &'a Failure) -> BoxFuture<'a, ()> {
        let _ = (cx, failure);
        Box::pin(ready(()))
    }
}
