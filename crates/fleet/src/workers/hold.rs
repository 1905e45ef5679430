//! The right to work on one operation, as long as it lasts.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use evenkeel_cluster::{Stop, WriteGuard};
use evenkeel_core::{Clock, Fence, Lease, OperationId};
use evenkeel_inventory::{HeartbeatOutcome, StopReason};
use evenkeel_telemetry::CancellationToken;
use jiff::SignedDuration;

use crate::breaker::VersionKey;

/// Why an operation should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A newer configuration took its place.
    Superseded,
    /// A person stopped it, or its reconciliation's time was up.
    Cancelled,
    /// Another attempt took over: not another word about it.
    Lost,
    /// This process ends; somebody else goes on.
    Ending,
}

/// The lease of one operation and whether it should stop; asked before every write.
pub(crate) struct Hold {
    /// What API servers see in their logs: the operation and the fence of this attempt.
    writer: String,
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
    version: OnceLock<VersionKey>,
}

struct State {
    lease: Lease,
    why: Option<Why>,
    /// Whether the process ends, also where something else was said first.
    ending: bool,
    /// Whether the attempt's last word is on its way to the inventory.
    reporting: bool,
}

impl Hold {
    pub(crate) fn new(operation: &OperationId, lease: Lease, clock: Arc<dyn Clock>) -> Self {
        Self {
            writer: format!("operation {operation}; fence {}", lease.fence.0),
            state: Mutex::new(State {
                lease,
                why: None,
                ending: false,
                reporting: false,
            }),
            clock,
            stop: CancellationToken::new(),
            version: OnceLock::new(),
        }
    }

    /// Says which component version the operation applies.
    pub(crate) fn applies(&self, version: VersionKey) {
        let _ = self.version.set(version);
    }

    /// Which component version it applies, if that is known.
    pub(crate) fn version(&self) -> Option<VersionKey> {
        self.version.get().copied()
    }

    pub(crate) fn fence(&self) -> Fence {
        self.with(|state| state.lease.fence)
    }

    /// The attempt hands in its last report now.
    pub(crate) fn reports(&self) {
        self.with(|state| state.reporting = true);
    }

    /// Takes the answer to a heartbeat. Answers whether it says that the lease was lost.
    ///
    /// A heartbeat that meets the operation's last report finds that it no longer runs: nothing was lost then, and had
    /// it been, the report would be told.
    pub(crate) fn heard(&self, outcome: &HeartbeatOutcome) -> bool {
        match outcome {
            HeartbeatOutcome::Renewed(lease) => self.renew(*lease),
            HeartbeatOutcome::Stop(lease, reason) => {
                self.renew(*lease);
                self.stop(match reason {
                    StopReason::Superseded => Why::Superseded,
                    StopReason::Cancelled => Why::Cancelled,
                });
            }
            HeartbeatOutcome::Lost if self.with(|state| state.reporting) => {}
            HeartbeatOutcome::Lost => {
                self.stop(Why::Lost);
                return true;
            }
        }
        false
    }

    /// The end of a lease never moves back.
    fn renew(&self, lease: Lease) {
        self.with(|state| state.lease.until = state.lease.until.max(lease.until));
    }

    /// No further write starts. The first reason counts, but for a lost lease, which silences whatever came before.
    pub(crate) fn stop(&self, why: Why) {
        self.with(|state| {
            if state.why.is_none() || why == Why::Lost {
                state.why = Some(why);
            }
            state.ending |= why == Why::Ending;
        });
        self.stop.cancel();
    }

    /// Why it should stop, if it should.
    pub(crate) fn why(&self) -> Option<Why> {
        self.with(|state| state.why)
    }

    /// Is cancelled when it should stop.
    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.stop
    }

    fn with<T>(&self, call: impl FnOnce(&mut State) -> T) -> T {
        call(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl WriteGuard for Hold {
    fn writer(&self) -> Option<&str> {
        Some(&self.writer)
    }

    fn permit(&self, longest: Duration) -> Result<(), Stop> {
        let longest = SignedDuration::try_from(longest).unwrap_or(SignedDuration::MAX);
        let now = self.clock.now();
        self.with(|state| {
            if state.why == Some(Why::Superseded) && !state.ending {
                Err(Stop::Superseded)
            } else if state.why.is_some() {
                Err(Stop::Cancelled)
            } else if !state.lease.outlasts(now, longest) {
                Err(Stop::LeaseEnded)
            } else {
                Ok(())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::ManualClock;
    use jiff::Timestamp;

    use super::*;

    const WRITE: Duration = Duration::from_secs(9);

    fn operation() -> OperationId {
        "c1--01890000-0000-7000-8000-000000000000".parse().expect("an id")
    }

    fn lease(seconds: i64) -> Lease {
        Lease {
            fence: Fence(3),
            until: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds),
        }
    }

    #[test]
    fn a_write_starts_only_while_the_lease_outlasts_it() {
        let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
        let hold = Hold::new(&operation(), lease(15), clock.clone());
        assert_eq!(hold.permit(WRITE), Ok(()));
        clock.advance(SignedDuration::from_secs(6));
        assert_eq!(hold.permit(WRITE), Err(Stop::LeaseEnded));
        hold.renew(lease(21));
        assert_eq!(hold.permit(WRITE), Ok(()));
        hold.renew(lease(15));
        assert_eq!(
            hold.permit(WRITE),
            Ok(()),
            "an older heartbeat does not shorten it"
        );
    }

    #[test]
    fn a_lease_is_lost_only_to_others_and_not_to_the_own_report() {
        let hold = Hold::new(
            &operation(),
            lease(15),
            Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH)),
        );
        assert!(!hold.heard(&HeartbeatOutcome::Renewed(lease(20))));
        assert!(!hold.heard(&HeartbeatOutcome::Stop(lease(25), StopReason::Superseded)));
        assert_eq!(hold.why(), Some(Why::Superseded));
        assert!(hold.heard(&HeartbeatOutcome::Lost));
        assert_eq!(hold.why(), Some(Why::Lost));

        // The operation ended before the heartbeat that was on its way was answered.
        let hold = Hold::new(
            &operation(),
            lease(15),
            Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH)),
        );
        hold.reports();
        assert!(!hold.heard(&HeartbeatOutcome::Lost));
        assert_eq!((hold.why(), hold.stopped().is_cancelled()), (None, false));
    }

    #[test]
    fn nothing_starts_once_it_should_stop() {
        let hold = Hold::new(
            &operation(),
            lease(15),
            Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH)),
        );
        hold.stop(Why::Superseded);
        // A hook that runs is waited for, until the process ends.
        assert_eq!(hold.permit(WRITE), Err(Stop::Superseded));
        assert!(hold.stopped().is_cancelled());
        hold.stop(Why::Ending);
        assert_eq!(hold.why(), Some(Why::Superseded));
        assert_eq!(hold.permit(WRITE), Err(Stop::Cancelled));
        hold.stop(Why::Lost);
        assert_eq!(hold.why(), Some(Why::Lost));
    }
}
