//! A cluster that cannot be reached is asked once per interval, not by everybody all the time.
//!
//! ```text
//! closed ──several failures in a row──▶ open ──interval over──▶ one probe ──answered──▶ closed
//!                                        ▲──────────failed, twice the interval──────────┘
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How many requests in a row must fail.
const FAILURES: u32 = 3;
/// The first interval between probes; it doubles with each that fails.
const INTERVAL_MIN: Duration = Duration::from_millis(500);
/// The longest interval between probes.
const INTERVAL_MAX: Duration = Duration::from_secs(15);

/// Whether one cluster is asked at all.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Requests in a row that failed.
    failures: u32,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    reason: String,
    interval: Duration,
    next: Instant,
    /// Whether a probe is under way.
    probing: bool,
}

/// Why a request is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotNow {
    /// What kept the cluster from being reached.
    pub(super) reason: String,
    /// When it is asked again.
    pub(super) retry_in: Duration,
}

/// The right to try one request; what became of it is to be told.
#[derive(Debug)]
pub(super) struct Try<'a> {
    breaker: &'a Breaker,
    is_probe: bool,
}

impl Breaker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request would be tried now.
    pub(super) fn peek(&self) -> Result<(), NotNow> {
        match &self.state().open {
            Some(open) => open.refusal().map_or(Ok(()), Err),
            None => Ok(()),
        }
    }

    /// Whether a request may be tried now.
    pub(super) fn attempt(&self) -> Result<Try<'_>, NotNow> {
        let mut state = self.state();
        let is_probe = match &mut state.open {
            None => false,
            Some(open) => {
                if let Some(not_now) = open.refusal() {
                    return Err(not_now);
                }
                open.probing = true;
                true
            }
        };
        drop(state);
        Ok(Try {
            breaker: self,
            is_probe,
        })
    }
}

impl Open {
    fn refusal(&self) -> Option<NotNow> {
        let now = Instant::now();
        (self.probing || self.next > now).then(|| NotNow {
            reason: self.reason.clone(),
            retry_in: self.next.saturating_duration_since(now),
        })
    }
}

impl Try<'_> {
    /// The cluster answered, whatever it said.
    pub(super) fn answered(self) {
        let mut state = self.breaker.state();
        // An answer to an old request says nothing of now, unless nothing is known that is worse.
        if state.open.is_none() || self.is_probe {
            *state = State::default();
        }
    }

    /// The cluster could not be reached.
    pub(super) fn failed(self, reason: &str) {
        let mut state = self.breaker.state();
        state.failures += 1;
        let interval = match &state.open {
            Some(open) if self.is_probe => (open.interval * 2).min(INTERVAL_MAX),
            Some(_) => return,
            None if state.failures >= FAILURES => INTERVAL_MIN,
            None => return,
        };
        tracing::debug!(reason, ?interval, "the cluster is not asked for a while");
        state.open = Some(Open {
            reason: reason.to_owned(),
            interval,
            next: Instant::now() + interval,
            probing: false,
        });
    }
}

impl Drop for Try<'_> {
    /// A probe that was left without an outcome is for the next one to make.
    fn drop(&mut self) {
        if self.is_probe
            && let Some(open) = &mut self.breaker.state().open
        {
            open.probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_unreachable_cluster_costs_one_probe_per_interval() {
        let breaker = Breaker::default();
        for _ in 0..FAILURES {
            breaker.attempt().expect("closed").failed("refused");
        }
        let mut probes = 0;
        for _ in 0..600 {
            for _ in 0..10 {
                match breaker.attempt() {
                    Ok(probe) => {
                        probes += 1;
                        assert_eq!(
                            breaker.attempt().expect_err("one probe at a time").reason,
                            "refused"
                        );
                        probe.failed("refused");
                    }
                    Err(not_now) => assert!(not_now.retry_in <= INTERVAL_MAX),
                }
            }
            advance(Duration::from_millis(100)).await;
        }
        assert!((5..=9).contains(&probes), "in a minute: {probes}");
        advance(INTERVAL_MAX).await;
        breaker.attempt().expect("a probe").answered();
        breaker.attempt().expect("closed again").failed("once");
        breaker.attempt().expect("one failure is none").answered();
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_was_left_blocks_nobody() {
        let breaker = Breaker::default();
        for _ in 0..FAILURES {
            breaker.attempt().expect("closed").failed("refused");
        }
        advance(INTERVAL_MIN).await;
        drop(breaker.attempt().expect("a probe"));
        breaker.attempt().expect("another probe").answered();
        assert!(breaker.attempt().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn only_failures_in_a_row_count() {
        let breaker = Breaker::default();
        for _ in 0..10 {
            breaker.attempt().expect("closed").failed("refused");
            breaker.attempt().expect("closed").answered();
        }
        assert!(breaker.attempt().is_ok());
    }
}
