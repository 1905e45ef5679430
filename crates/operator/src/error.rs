//! The one error type of this crate.

use std::time::Duration;

use evenkeel_steps::{Failure, FailureClass};

/// What became of something asked of another system. No text holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No answer, or half of one.
    #[error("cannot {doing}: {system} cannot be reached: {problem}")]
    Unreachable {
        /// Which system.
        system: &'static str,
        /// What was tried, on what.
        doing: String,
        /// What the connection says.
        problem: String,
    },

    /// It answers, and cannot serve: overloaded, sealed, starting.
    #[error("cannot {doing}: {system} answered {status}: {problem}")]
    Unavailable {
        /// Which system.
        system: &'static str,
        /// What was tried, on what.
        doing: String,
        /// Status of the answer.
        status: u16,
        /// Its text.
        problem: String,
    },

    /// It wants to be left alone for a while.
    #[error("cannot {doing}: {system} has had too many requests and wants none for {} s", after.as_secs())]
    RateLimited {
        /// Which system.
        system: &'static str,
        /// What was tried, on what.
        doing: String,
        /// For how long.
        after: Duration,
    },

    /// It is left alone: it was down, or wished it, whoever called it.
    #[error("cannot {doing}: {system} at {host} is left alone for now: {why}")]
    HeldBack {
        /// Which system.
        system: &'static str,
        /// What was not even tried.
        doing: String,
        /// Which host.
        host: String,
        /// What led to it.
        why: String,
        /// For how long.
        after: Duration,
    },

    /// It does not let us.
    #[error("cannot {doing}: {system} does not allow it: {problem}")]
    Forbidden {
        /// Which system.
        system: &'static str,
        /// What was tried, on what.
        doing: String,
        /// Its text, or what to do.
        problem: String,
    },

    /// Somebody else wrote at the same time.
    #[error("cannot {doing}: somebody else has just changed it")]
    Conflict {
        /// What was tried, on what.
        doing: String,
    },

    /// It will not do that, however often it is asked.
    #[error("cannot {doing}: {system} refused it with {status}: {problem}")]
    Refused {
        /// Which system.
        system: &'static str,
        /// What was tried, on what.
        doing: String,
        /// Status of the answer.
        status: u16,
        /// Its text.
        problem: String,
    },

    /// This kind of system cannot do that at all.
    #[error("cannot {doing}: {system} has no {what}")]
    Unsupported {
        /// Which system.
        system: &'static str,
        /// What was tried, on what.
        doing: String,
        /// What it would need.
        what: &'static str,
    },

    /// The answer is not what this system is known to answer.
    #[error("cannot {doing}: {system} gave an answer that is not understood: {problem}")]
    NotUnderstood {
        /// Which system.
        system: &'static str,
        /// What was tried, on what.
        doing: String,
        /// What is wrong with it.
        problem: String,
    },

    /// What was given to us cannot be used.
    #[error("{what} cannot be used: {problem}")]
    Invalid {
        /// What was given: a setting, a field.
        what: String,
        /// What is wrong with it, and what was expected.
        problem: String,
    },

    /// The process cannot begin.
    #[error("cannot {what}: {problem}")]
    Start {
        /// What was tried.
        what: String,
        /// What is in the way.
        problem: String,
    },

    /// A step asks for what it did not declare: a mistake in Evenkeel.
    #[error("{problem}")]
    Undeclared {
        /// Which step, and what.
        problem: String,
    },

    /// The API server does not say how an object is, or would be.
    #[error("{problem}")]
    Unread {
        /// What was tried, and what is in the way.
        problem: String,
    },

    /// Another process may work now.
    #[error("the lease {lease} could not be renewed in time: another operator may hold it")]
    LeaseLost {
        /// Which one.
        lease: &'static str,
    },

    /// A file of our own machine.
    #[error("cannot read {path}: {problem}")]
    File {
        /// Which file.
        path: String,
        /// What the system says.
        problem: String,
    },
}

impl Error {
    /// What is to happen next.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Unreachable { .. }
            | Self::Unavailable { .. }
            | Self::NotUnderstood { .. }
            | Self::Start { .. }
            | Self::Unread { .. }
            | Self::LeaseLost { .. }
            | Self::File { .. } => FailureClass::Transient,
            Self::RateLimited { after, .. } | Self::HeldBack { after, .. } => FailureClass::RateLimited {
                until: (*after).into(),
            },
            Self::Forbidden { .. } => FailureClass::Forbidden,
            Self::Undeclared { .. } => FailureClass::Bug,
            Self::Conflict { .. } => FailureClass::Conflict,
            Self::Refused { .. } | Self::Unsupported { .. } | Self::Invalid { .. } => FailureClass::Invalid,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error.class(), error.to_string())
    }
}
