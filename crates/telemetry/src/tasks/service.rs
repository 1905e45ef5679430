//! Tasks that are started again when they fail.

use std::borrow::Cow;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio_util::sync::CancellationToken;

use super::{OnCancel, OnError, Task, TaskError, Tasks, panic_message};
use crate::{BoxError, chain, time};

/// How a service is started again after a failure or panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart {
    /// The pause after the first failure; it doubles with each further one.
    pub first: Duration,
    /// The longest pause.
    pub cap: Duration,
    /// A run that lasted this long counts as healthy: the next pause is the first again.
    pub healthy_after: Duration,
}

impl Default for Restart {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            cap: Duration::from_secs(30),
            healthy_after: Duration::from_secs(60),
        }
    }
}

impl Restart {
    fn pause(&self, failures_in_a_row: u32) -> Duration {
        self.first
            .saturating_mul(1 << failures_in_a_row.saturating_sub(1).min(16))
            .min(self.cap)
    }
}

impl Tasks {
    /// Starts a long-running task and starts it again whenever it fails or panics, after a growing pause, until
    /// everything is cancelled or it ends well.
    pub fn service<F, Fut, E>(
        &self,
        name: impl Into<Cow<'static, str>>,
        restart: Restart,
        mut run: F,
    ) -> Task<()>
    where
        F: FnMut(CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + Send + 'static,
    {
        let name = name.into();
        let service = name.clone();
        self.spawn(name, OnError::Log, OnCancel::Wait, move |token| async move {
            let mut failures = 0u32;
            loop {
                let started = time::elapsed();
                let once = async { run(token.clone()).await };
                let error = match AssertUnwindSafe(once).catch_unwind().await {
                    Ok(Ok(())) => return Ok::<(), Infallible>(()),
                    Ok(Err(error)) => TaskError::Failed {
                        name: service.clone(),
                        source: error.into(),
                    },
                    Err(panic) => TaskError::Panicked {
                        name: service.clone(),
                        message: panic_message(&*panic),
                    },
                };
                if token.is_cancelled() {
                    tracing::debug!("{} while stopping", chain(&error));
                    return Ok(());
                }
                let healthy = time::elapsed().saturating_sub(started) >= restart.healthy_after;
                failures = if healthy { 1 } else { failures.saturating_add(1) };
                let pause = restart.pause(failures);
                tracing::error!(failures, restart_in = ?pause, "{}", chain(&error));
                tokio::select! {
                    biased;
                    () = token.cancelled() => return Ok(()),
                    () = time::sleep(pause) => {}
                }
            }
        })
    }
}
