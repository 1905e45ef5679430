//! Which class of failure an error is: it decides whether and when there is another try.

use evenkeel_cluster::ErrorClass;
use evenkeel_steps::{Delay, Failure};

use crate::Error;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        // The text names its cause already; a failure with the error as its source would say everything twice.
        match &error {
            Error::Source(source) if source.is_transient() => match source.retry_after() {
                Some(pause) => Self::rate_limited(Delay::After(pause), text),
                None => Self::transient(text),
            },
            // Whoever keeps the credentials can change that, not the component's owner: it is tried again, slowly.
            Error::Source(source) if source.is_forbidden() => Self::forbidden(text),
            Error::Kustomize { transient: true, .. } => Self::transient(text),
            Error::Source(_)
            | Error::Values { .. }
            | Error::Render { .. }
            | Error::Capabilities(_)
            | Error::NoValues { .. }
            | Error::NoKustomize { .. }
            | Error::Kustomize { .. } => Self::invalid(text),
            Error::Ledger(ledger) if ledger.transient => Self::transient(text),
            Error::Ending => Self::transient(text),
            Error::Ledger(_) | Error::Keep { .. } | Error::Pipeline(_) => Self::bug(text),
            Error::Cluster(cluster) => of_class(cluster.class(), text),
        }
    }
}

/// A failure at the target.
pub(crate) fn at_target(error: evenkeel_cluster::Error) -> Failure {
    Error::Cluster(error).into()
}

fn of_class(class: ErrorClass, text: String) -> Failure {
    match class {
        ErrorClass::RateLimited(pause) => Failure::rate_limited(Delay::After(pause), text),
        ErrorClass::Conflict => Failure::conflict(text),
        ErrorClass::Invalid | ErrorClass::Consent => Failure::invalid(text),
        ErrorClass::Forbidden | ErrorClass::Unauthorized => Failure::forbidden(text),
        ErrorClass::Bug => Failure::bug(text),
        // What is not there yet may come: a namespace, a kind, a Secret with values.
        ErrorClass::NotFound
        | ErrorClass::NotReady
        | ErrorClass::Transient
        | ErrorClass::Unreachable
        | ErrorClass::Fenced(_)
        | ErrorClass::Stopped => Failure::transient(text),
        _ => Failure::transient(text),
    }
}
