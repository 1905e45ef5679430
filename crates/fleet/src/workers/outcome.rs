//! From how an operation ended to what is reported of it. Pure.

use std::time::Duration;

use evenkeel_cluster::Stop;
use evenkeel_component::End;
use evenkeel_core::{Fence, OperationState};
use evenkeel_inventory::ClaimedOperation;
use jiff::Timestamp;

use super::hold::Why;
use crate::pause;

/// How soon an operation that met a higher fence at its target is claimed again, under a yet higher one.
const FENCED_PAUSE: Duration = Duration::from_millis(100);

/// What is said of an operation that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// This.
    Report(OperationState),
    /// This, once the inventory's counter has been raised.
    Fenced(Fence, OperationState),
    /// This, until somebody has brought what is missing.
    Missing(OperationState),
    /// Nothing: somebody else speaks for it now.
    Silence,
}

/// What is said of `operation` after `end`, when it was told to stop because of `why`.
pub(super) fn verdict(operation: &ClaimedOperation, end: End, why: Option<Why>, now: Timestamp) -> Verdict {
    // Whatever came of it, another attempt has it.
    if why == Some(Why::Lost) {
        return Verdict::Silence;
    }
    Verdict::Report(match end {
        End::Succeeded => OperationState::Succeeded,
        End::Failed { reason } => OperationState::Failed { reason },
        End::Missing { reason } => match why {
            Some(why) => stopped(why),
            None if now >= operation.deadline => OperationState::Failed {
                reason: format!("{reason}; no time is left to wait for it"),
            },
            // Whoever brings it resumes the operation, which costs no attempt.
            None => {
                return Verdict::Missing(OperationState::Waiting {
                    reason: format!("a dependency that is missing: {reason}"),
                    deadline: operation.deadline,
                });
            }
        },
        End::Retry { reason, at } | End::Waiting { reason, until: at } => {
            match why {
                Some(why) => stopped(why),
                // There would be nobody left to try.
                None if at >= operation.deadline => OperationState::Failed {
                    reason: format!("{reason}; no time is left for another try"),
                },
                None => OperationState::Retrying { reason, next_at: at },
            }
        }
        End::Stopped(Stop::LeaseEnded | Stop::Cancelled | Stop::Superseded) => {
            why.map_or(OperationState::Pending, stopped)
        }
        End::Fenced { at_target } => {
            let next = OperationState::Retrying {
                reason: format!(
                    "fence {at_target} is taken at the cluster, ours is {}",
                    operation.lease.fence
                ),
                next_at: pause::after(now, FENCED_PAUSE),
            };
            return Verdict::Fenced(at_target, next);
        }
        // Asked before; whoever forgets to is told.
        End::NeedsConsent(needed) => OperationState::Failed {
            reason: format!("internal: nobody was asked: {needed}"),
        },
        End::Planned => OperationState::Failed {
            reason: "internal: it was planned and not done".to_owned(),
        },
    })
}

/// What is said of an operation that needs consent, and would be in `state` until it has that.
pub(super) fn held(state: OperationState, why: Option<Why>) -> Verdict {
    match why {
        Some(Why::Lost) => Verdict::Silence,
        Some(why) => Verdict::Report(stopped(why)),
        None => Verdict::Report(state),
    }
}

fn stopped(why: Why) -> OperationState {
    match why {
        Why::Superseded => OperationState::Superseded,
        Why::Cancelled => OperationState::Cancelled,
        Why::Ending | Why::Lost => OperationState::Pending,
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{ClusterId, ComponentName, ConfigurationVersion, DueReason, Lease, Strategy};
    use jiff::SignedDuration;

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn operation() -> ClaimedOperation {
        ClaimedOperation {
            id: "c1--00000000-0000-7000-8000-000000000002".parse().expect("an id"),
            reconciliation: "c1--00000000-0000-7000-8000-000000000001".parse().expect("an id"),
            cluster: ClusterId::new("c1").expect("an id"),
            component: ComponentName::new("web").expect("a name"),
            kind: Strategy::Install,
            strategy: Strategy::Install,
            due_reason: DueReason::Change,
            version: ConfigurationVersion(1),
            cause: String::new(),
            attempt: 1,
            lease: Lease {
                fence: Fence(3),
                until: NOW,
            },
            deadline: NOW + SignedDuration::from_secs(100),
            request_id: None,
        }
    }

    fn retry(seconds: i64) -> End {
        End::Retry {
            reason: "no connection".to_owned(),
            at: NOW + SignedDuration::from_secs(seconds),
        }
    }

    fn said(end: End, why: Option<Why>) -> Verdict {
        verdict(&operation(), end, why, NOW)
    }

    #[test]
    fn a_try_is_repeated_while_there_is_time() {
        assert!(matches!(
            said(retry(5), None),
            Verdict::Report(OperationState::Retrying { .. })
        ));
        assert!(
            matches!(said(retry(100), None), Verdict::Report(OperationState::Failed { reason }) if reason.contains("no time"))
        );
    }

    #[test]
    fn what_was_told_to_stop_says_so() {
        for end in [
            retry(5),
            End::Stopped(Stop::Cancelled),
            End::Stopped(Stop::LeaseEnded),
            End::Stopped(Stop::Superseded),
        ] {
            let told = |why| said(end.clone(), Some(why));
            assert_eq!(told(Why::Superseded), Verdict::Report(OperationState::Superseded));
            assert_eq!(told(Why::Cancelled), Verdict::Report(OperationState::Cancelled));
            assert_eq!(told(Why::Ending), Verdict::Report(OperationState::Pending));
        }
        assert_eq!(
            said(End::Stopped(Stop::LeaseEnded), None),
            Verdict::Report(OperationState::Pending)
        );
    }

    #[test]
    fn what_was_done_all_the_same_is_done() {
        assert_eq!(
            said(End::Succeeded, Some(Why::Superseded)),
            Verdict::Report(OperationState::Succeeded)
        );
        assert_eq!(said(End::Succeeded, Some(Why::Lost)), Verdict::Silence);
    }

    #[test]
    fn a_missing_dependency_is_waited_for_until_the_deadline() {
        let missing = End::Missing {
            reason: "the cluster serves no kind Widget".to_owned(),
        };
        let waits = said(missing.clone(), None);
        assert!(
            matches!(&waits, Verdict::Missing(OperationState::Waiting { reason, deadline })
                if reason.contains("Widget") && *deadline == operation().deadline),
            "{waits:?}"
        );
        let late = verdict(&operation(), missing.clone(), None, operation().deadline);
        assert!(matches!(late, Verdict::Report(OperationState::Failed { .. })));
        assert_eq!(
            said(missing, Some(Why::Superseded)),
            Verdict::Report(OperationState::Superseded)
        );
    }

    #[test]
    fn a_higher_fence_is_learned() {
        let fenced = said(End::Fenced { at_target: Fence(9) }, None);
        assert!(
            matches!(fenced, Verdict::Fenced(Fence(9), OperationState::Retrying { reason, .. }) if reason.contains("fence 9"))
        );
    }
}
