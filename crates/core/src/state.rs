//! The states of clusters, reconciliations and operations, and the one table of their transitions (DESIGN §6).
//! What is not in the table is refused with the allowed list.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Error;

/// A kind of state with a table of allowed changes.
pub trait Transition: Copy + Eq + 'static {
    /// What the state is of, for messages.
    const WHAT: &'static str;

    /// The name on the wire, in the database and for people.
    fn as_str(self) -> &'static str;

    /// The states that may follow this one.
    fn allowed(self) -> &'static [Self];

    /// Checks one change of state. Staying is always allowed: reports may repeat.
    ///
    /// # Errors
    /// [`Error::Transition`] with the allowed list.
    fn check(self, to: Self) -> Result<(), Error> {
        if self == to || self.allowed().contains(&to) {
            return Ok(());
        }
        let allowed: Vec<_> = self.allowed().iter().map(|state| state.as_str()).collect();
        Err(Error::Transition {
            what: Self::WHAT,
            from: self.as_str(),
            to: to.as_str(),
            allowed: if allowed.is_empty() {
                "none, it is final".to_owned()
            } else {
                allowed.join(", ")
            },
        })
    }

    /// Whether nothing can follow.
    fn is_final(self) -> bool {
        self.allowed().is_empty()
    }
}

macro_rules! states {
    ($(#[$doc:meta])* $type:ident, $what:literal, { $($(#[$vdoc:meta])* $variant:ident = $name:literal => [$($next:ident),*],)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $type {
            $($(#[$vdoc])* #[serde(rename = $name)] $variant,)+
        }

        impl $type {
            /// All states, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on the wire, in the database and for people.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }

        impl Transition for $type {
            const WHAT: &'static str = $what;

            fn as_str(self) -> &'static str {
                self.as_str()
            }

            fn allowed(self) -> &'static [Self] {
                match self { $(Self::$variant => &[$(Self::$next),*],)+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Self::ALL.iter().copied().find(|state| state.as_str() == text).ok_or_else(|| Error::State {
                    what: $what,
                    value: text.to_owned(),
                    allowed: [$($name),+].join(", "),
                })
            }
        }
    };
}

states! {
    /// How a cluster is. Unreachable is a reason, suspension an attribute; neither is a state.
    ClusterState, "cluster state", {
        /// A change was accepted and no reconciliation has begun.
        Pending = "pending" => [Reconciling, Ready, Degraded, Failed, Deleting, Deleted],
        /// A reconciliation runs.
        Reconciling = "reconciling" => [Pending, Ready, Degraded, Failed, Deleting, Deleted],
        /// Everything asked for runs and is ready.
        Ready = "ready" => [Pending, Reconciling, Degraded, Deleting, Deleted],
        /// A component fails and is retried, or stopped being ready.
        Degraded = "degraded" => [Pending, Reconciling, Ready, Failed, Deleting, Deleted],
        /// Attempts or time are used up; only a change or a person starts it again.
        Failed = "failed" => [Pending, Reconciling, Ready, Degraded, Deleting, Deleted],
        /// Its components are being removed.
        Deleting = "deleting" => [DeleteFailed, Deleted],
        /// Removing it failed for good; `forget` or another try ends it.
        DeleteFailed = "delete_failed" => [Deleting, Deleted],
        /// It is gone; the record stays as history.
        Deleted = "deleted" => [],
    }
}

states! {
    /// How one run over one cluster is.
    ReconciliationState, "reconciliation state", {
        /// At least one operation is not final. At most one such run exists per cluster.
        Running = "running" => [Succeeded, Failed, Superseded, Cancelled],
        /// Every operation succeeded.
        Succeeded = "succeeded" => [],
        /// At least one operation failed for good.
        Failed = "failed" => [],
        /// A newer configuration took its place.
        Superseded = "superseded" => [],
        /// A person stopped it.
        Cancelled = "cancelled" => [],
    }
}

states! {
    /// The name of an [`OperationState`].
    OperationStateKind, "operation state", {
        /// Not yet claimed; claimable once its dependencies are done.
        Pending = "pending" => [Waiting, Running, Skipped, Superseded, Cancelled, Failed],
        /// Waits for something named, until a deadline.
        Waiting = "waiting" => [Pending, Running, Skipped, Superseded, Cancelled, Failed],
        /// A worker holds its lease.
        Running = "running" => [Pending, Waiting, Retrying, Succeeded, Failed, Superseded, Cancelled],
        /// A try failed and the next one is due at a known moment.
        Retrying = "retrying" => [Pending, Running, Skipped, Superseded, Cancelled, Failed],
        /// Done.
        Succeeded = "succeeded" => [],
        /// Not done, for a named reason, like a failed dependency.
        Skipped = "skipped" => [],
        /// A newer configuration took its place.
        Superseded = "superseded" => [],
        /// A person stopped it.
        Cancelled = "cancelled" => [],
        /// Failed for good.
        Failed = "failed" => [],
    }
}

/// How one component inside a run is, with what a person needs to know about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum OperationState {
    /// Not yet claimed.
    Pending,
    /// Waits for something named.
    Waiting {
        /// What for.
        reason: String,
        /// When waiting ends as failed.
        deadline: Timestamp,
    },
    /// A worker holds its lease.
    Running,
    /// A try failed.
    Retrying {
        /// Why.
        reason: String,
        /// When the next try is due.
        next_at: Timestamp,
    },
    /// Done.
    Succeeded,
    /// Not done.
    Skipped {
        /// Why, naming the component it waited for when that failed.
        reason: String,
    },
    /// A newer configuration took its place.
    Superseded,
    /// A person stopped it.
    Cancelled,
    /// Failed for good.
    Failed {
        /// Why: what failed, on what, and what to do.
        reason: String,
    },
}

impl OperationState {
    /// The state without its details.
    pub fn kind(&self) -> OperationStateKind {
        match self {
            Self::Pending => OperationStateKind::Pending,
            Self::Waiting { .. } => OperationStateKind::Waiting,
            Self::Running => OperationStateKind::Running,
            Self::Retrying { .. } => OperationStateKind::Retrying,
            Self::Succeeded => OperationStateKind::Succeeded,
            Self::Skipped { .. } => OperationStateKind::Skipped,
            Self::Superseded => OperationStateKind::Superseded,
            Self::Cancelled => OperationStateKind::Cancelled,
            Self::Failed { .. } => OperationStateKind::Failed,
        }
    }

    /// The reason, where the state has one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Waiting { reason, .. }
            | Self::Retrying { reason, .. }
            | Self::Skipped { reason }
            | Self::Failed { reason } => Some(reason),
            Self::Pending | Self::Running | Self::Succeeded | Self::Superseded | Self::Cancelled => None,
        }
    }

    /// The moment at which the state ends by itself: a waiting's deadline, a retry's next try.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Waiting { deadline, .. } => Some(*deadline),
            Self::Retrying { next_at, .. } => Some(*next_at),
            _ => None,
        }
    }
}

/// Why a cluster is due, in order of urgency: the scheduler's lanes (DESIGN §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DueReason {
    /// It is to be deleted.
    Deletion,
    /// Its owner changed it.
    Change,
    /// Someone else changed it.
    Drift,
    /// The last run failed.
    Retry,
    /// It was not looked at for an interval.
    Periodic,
}

impl DueReason {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deletion => "deletion",
            Self::Change => "change",
            Self::Drift => "drift",
            Self::Retry => "retry",
            Self::Periodic => "periodic",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_table<S: Transition + fmt::Debug>(all: &[S]) {
        for from in all {
            assert!(from.check(*from).is_ok());
            for to in all {
                assert_eq!(
                    from.check(*to).is_ok(),
                    from == to || from.allowed().contains(to),
                    "{from:?} {to:?}"
                );
            }
        }
    }

    #[test]
    fn only_the_table_is_allowed() {
        check_table(ClusterState::ALL);
        check_table(ReconciliationState::ALL);
        check_table(OperationStateKind::ALL);
    }

    #[test]
    fn a_refusal_lists_what_is_allowed() {
        let refused = ClusterState::Deleting
            .check(ClusterState::Ready)
            .map_err(|error| error.to_string());
        assert_eq!(
            refused,
            Err(
                "cluster state cannot go from deleting to ready: allowed are delete_failed, deleted"
                    .to_owned()
            )
        );
    }

    #[test]
    fn every_state_reaches_an_end() {
        fn reaches<S: Transition>(from: S, seen: &mut Vec<S>) -> bool {
            if from.is_final() {
                return true;
            }
            seen.push(from);
            from.allowed()
                .iter()
                .any(|next| !seen.contains(next) && reaches(*next, seen))
        }
        assert!(
            ClusterState::ALL
                .iter()
                .all(|state| reaches(*state, &mut Vec::new()))
        );
        assert!(
            OperationStateKind::ALL
                .iter()
                .all(|state| reaches(*state, &mut Vec::new()))
        );
    }

    #[test]
    fn names_read_back() {
        for state in ClusterState::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
        assert!("bogus".parse::<ClusterState>().is_err());
    }
}
