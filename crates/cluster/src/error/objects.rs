//! The objects that errors speak of, and what is the matter with each.

use std::fmt;

use evenkeel_core::{ComponentName, ObjectRef};

use super::Error;

/// A field that another field manager owns with a different value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    /// The other field manager, as the server names it.
    pub manager: String,
    /// The field, like `.spec.replicas`.
    pub field: String,
}

impl fmt::Display for FieldConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is owned by {}", self.field, self.manager)
    }
}

/// An object of the manifest's name that is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignObject {
    /// The object.
    pub object: ObjectRef,
    /// Who seems to own it, as far as its labels tell.
    pub owner: Option<String>,
}

impl fmt::Display for ForeignObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.owner {
            Some(owner) => write!(f, "{} (of {owner})", self.object),
            None => write!(f, "{}", self.object),
        }
    }
}

/// An object that two components of one configuration render.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedTwice {
    /// The object.
    pub object: ObjectRef,
    /// The component that was looked at.
    pub component: ComponentName,
    /// The other one.
    pub other: ComponentName,
}

impl fmt::Display for RenderedTwice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {} and {}", self.object, self.component, self.other)
    }
}

/// An object of ours whose immutable fields would have to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImmutableChange {
    /// The object.
    pub object: ObjectRef,
    /// The fields that differ; never their values.
    pub fields: Vec<String>,
    /// Why it is not made again, and what can be done.
    pub advice: String,
}

impl fmt::Display for ImmutableChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.object, self.fields.join(", "), self.advice)
    }
}

/// An object that a deletion waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckObject {
    /// The object.
    pub object: ObjectRef,
    /// The finalizers that hold it.
    pub finalizers: Vec<String>,
    /// What the server says about it, like a namespace's deletion conditions.
    pub message: Option<String>,
}

impl fmt::Display for StuckObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.object)?;
        if !self.finalizers.is_empty() {
            write!(f, " held by finalizer {}", self.finalizers.join(", "))?;
        }
        match &self.message {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

/// One object of several that failed.
#[derive(Debug)]
pub struct ObjectError {
    /// The object.
    pub object: ObjectRef,
    /// What failed.
    pub error: Error,
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.error)
    }
}

/// One wrong object of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestProblem {
    /// The file it was rendered from.
    pub source: String,
    /// Which object, as far as it can be told.
    pub object: String,
    /// What is wrong and what was expected; never a value of a Secret.
    pub message: String,
}

impl fmt::Display for ManifestProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.source, self.object, self.message)
    }
}
