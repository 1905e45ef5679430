//! The names that the environment broker knows, and the one table that gives them for our states (`/v1`; DESIGN §6).
//!
//! The native state says how a cluster is; the broker's eleven names also say what operations reported while others still
//! run. Four rules decide (K48), of which the first is K33's: one that failed for good is an error at once; all that
//! succeeded make it ready; one that reported a second failure makes it retryable; and it is reconciling again when all that
//! failed have recovered. A broker takes `error` for the end of its patience, so what is tried again by itself is shown to it
//! as going on ([`BrokerStatus::shown`]).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ClusterState, OperationState, OperationStateKind};

macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $type {
            $($(#[$vdoc])* #[serde(rename = $name)] $variant,)+
        }

        impl $type {
            /// All of them, in the contract's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

names! {
    /// How a cluster is, in the broker's words. The place in the list is the number that metrics show.
    BrokerStatus {
        /// Given up, or a component failed for good.
        Error = "error",
        /// All is as asked for.
        Ready = "ready",
        /// Accepted, not begun.
        ReconcilePending = "reconcile_pending",
        /// Being brought about.
        Reconciling = "reconciling",
        /// Suspended by a person.
        ReconcileDisabled = "reconcile_disabled",
        /// To be deleted, not begun.
        DeletePending = "delete_pending",
        /// Being deleted.
        Deleting = "deleting",
        /// The deletion was given up, or failed for good at a component.
        DeleteError = "delete_error",
        /// Gone.
        Deleted = "deleted",
        /// A component fails and is tried again.
        ReconcileErrorRetryable = "reconcile_error_retryable",
        /// Deleting a component fails and is tried again.
        DeleteErrorRetryable = "delete_error_retryable",
    }
}

names! {
    /// How an operation is, in the broker's words.
    BrokerOperationState {
        /// Made, not claimed.
        New = "new",
        /// Claimed, or running.
        InProgress = "in_progress",
        /// The component reconciler refused the task; it is handed out again.
        ClientError = "client_error",
        /// A try failed; another one follows.
        Failed = "failed",
        /// Nobody was heard of until the lease ended; claimable again.
        Orphan = "orphan",
        /// Done, or stopped by a person.
        Done = "done",
        /// Failed for good, or not done because of one that did.
        Error = "error",
    }
}

impl BrokerStatus {
    /// The number that metrics show (`spec` of the contract: 0 to 10).
    pub fn number(self) -> u8 {
        Self::ALL
            .iter()
            .position(|status| *status == self)
            .and_then(|place| u8::try_from(place).ok())
            .unwrap_or_default()
    }

    /// What the broker is told: what is tried again by itself goes on.
    #[must_use]
    pub fn shown(self) -> Self {
        match self {
            Self::ReconcileErrorRetryable => Self::Reconciling,
            Self::DeleteErrorRetryable => Self::Deleting,
            status => status,
        }
    }
}

/// What an operation's row says, as far as the contract asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationFacts {
    /// How it is.
    pub state: OperationStateKind,
    /// Attempts begun.
    pub attempt: u32,
    /// Whether its component reconciler refused the task instead of trying it.
    pub refused: bool,
}

impl OperationFacts {
    /// Of an operation in `state` whose attempt `attempt` is the newest.
    pub fn new(state: &OperationState, attempt: u32) -> Self {
        Self {
            state: state.kind(),
            attempt,
            refused: false,
        }
    }

    /// The name of its state.
    pub fn name(self) -> BrokerOperationState {
        use BrokerOperationState as Name;
        match self.state {
            // Only an attempt whose lease ended leaves its number behind.
            OperationStateKind::Pending if self.attempt > 0 => Name::Orphan,
            OperationStateKind::Pending | OperationStateKind::Waiting => Name::New,
            OperationStateKind::Running => Name::InProgress,
            OperationStateKind::Retrying if self.refused => Name::ClientError,
            OperationStateKind::Retrying => Name::Failed,
            OperationStateKind::Succeeded
            | OperationStateKind::Superseded
            | OperationStateKind::Cancelled => Name::Done,
            OperationStateKind::Skipped | OperationStateKind::Failed => Name::Error,
        }
    }

    /// Failures reported so far, where it has not recovered from them.
    fn failures(self) -> u32 {
        match self.state {
            OperationStateKind::Retrying => self.attempt,
            OperationStateKind::Running => self.attempt.saturating_sub(1),
            _ => 0,
        }
    }
}

/// How many failures of one component are told; the first may be a hiccup (K48 rule 3).
const FAILURES_TOLD: u32 = 2;

/// What the operations of a live run say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reports {
    /// Nothing worth telling.
    Well,
    /// One has failed twice and has not recovered.
    FailingAgain,
    /// One failed for good.
    FailedForGood,
}

impl Reports {
    /// What `operations` say together: the worst of them.
    pub fn of(operations: impl IntoIterator<Item = OperationFacts>) -> Self {
        let one = |operation: OperationFacts| match operation.state {
            OperationStateKind::Failed => Self::FailedForGood,
            _ if operation.failures() >= FAILURES_TOLD => Self::FailingAgain,
            _ => Self::Well,
        };
        operations.into_iter().map(one).max().unwrap_or(Self::Well)
    }
}

/// What the status of a cluster follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterFacts {
    /// The native state.
    pub state: ClusterState,
    /// Whether it is suspended.
    pub suspended: bool,
    /// Whether a run of the newest version has failed since the last success.
    pub failed_before: bool,
    /// What the operations of the live run say; none without one.
    pub live: Option<Reports>,
}

impl ClusterFacts {
    /// The name of the cluster's status: the one table.
    pub fn status(self) -> BrokerStatus {
        use BrokerStatus as Name;
        use ClusterState as State;
        match (self.state, self.live) {
            // A deletion overrides a suspension (F10).
            (State::Deleted, _) => Name::Deleted,
            (State::DeleteFailed, _) => Name::DeleteError,
            (State::Deleting, Some(Reports::Well)) => Name::Deleting,
            (State::Deleting, Some(Reports::FailingAgain)) => Name::DeleteErrorRetryable,
            (State::Deleting, Some(Reports::FailedForGood)) => Name::DeleteError,
            (State::Deleting, None) if self.failed_before => Name::DeleteErrorRetryable,
            (State::Deleting, None) => Name::DeletePending,
            _ if self.suspended => Name::ReconcileDisabled,
            (State::Pending, _) => Name::ReconcilePending,
            (State::Ready, _) => Name::Ready,
            (State::Failed, _) => Name::Error,
            (State::Reconciling, None | Some(Reports::Well)) | (State::Degraded, Some(Reports::Well)) => {
                Name::Reconciling
            }
            (State::Degraded, None) | (State::Reconciling | State::Degraded, Some(Reports::FailingAgain)) => {
                Name::ReconcileErrorRetryable
            }
            (State::Reconciling | State::Degraded, Some(Reports::FailedForGood)) => Name::Error,
        }
    }
}

#[cfg(test)]
mod tests;
