//! What is told while work goes on.

use std::sync::Arc;

use evenkeel_core::{ObjectRef, PlanAction};

use crate::error::FieldConflict;
use crate::readiness::ObjectState;

/// Something happened at the target.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A namespace or object was written or deleted.
    Changed {
        /// The object.
        object: ObjectRef,
        /// What was done to it.
        action: PlanAction,
    },
    /// Fields were taken from other field managers, because the object is ours.
    Forced {
        /// The object.
        object: ObjectRef,
        /// The fields and whom they were taken from.
        conflicts: Vec<FieldConflict>,
    },
    /// Fields were left to other field managers, because the object says so.
    Left {
        /// The object.
        object: ObjectRef,
        /// The fields and who owns them.
        conflicts: Vec<FieldConflict>,
    },
    /// The verdict on an object changed.
    Readiness(ObjectState),
    /// An object is gone.
    Gone(ObjectRef),
    /// Something is waited for.
    Waiting(String),
}

/// Who is told. Called from the task that does the work; it must not block.
pub type Observer = Arc<dyn Fn(Event) + Send + Sync>;

/// Tells nobody.
pub fn unobserved() -> Observer {
    Arc::new(|_| {})
}
