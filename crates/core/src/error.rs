//! The one error type of this crate.

use std::fmt;

/// What was wrong with one field of an input: where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Path from the document's root, as a user would write it: `components[2].dependsOn[0]`.
    pub path: String,
    /// What is wrong and what was expected; never the value of a secret.
    pub message: String,
}

impl FieldError {
    /// An error at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Input that the domain refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A name that is no DNS label.
    #[error("{what} {value:?} is not valid: {expected}")]
    Name {
        /// Which kind of name: "cluster name", "component name", "namespace".
        what: &'static str,
        /// The text given.
        value: String,
        /// The rule it breaks.
        expected: &'static str,
    },
    /// An id that does not have its form.
    #[error("{what} {value:?} is not valid: expected {expected}")]
    Id {
        /// Which kind of id.
        what: &'static str,
        /// The text given.
        value: String,
        /// The form it should have.
        expected: &'static str,
    },
    /// A digest that is not `sha256:` and 64 hexadecimal digits.
    #[error("digest {0:?} is not valid: expected sha256: and 64 hexadecimal digits")]
    Digest(String),
    /// A duration that cannot be read.
    #[error("duration {0:?} is not valid: expected a number and a unit, like 30s, 5m, 1h30m")]
    Duration(String),
    /// A state name that does not exist.
    #[error("{what} {value:?} does not exist: expected one of {allowed}")]
    State {
        /// Which kind of state.
        what: &'static str,
        /// The text given.
        value: String,
        /// The names that exist, separated by commas.
        allowed: String,
    },
    /// A change of state that is not in the table.
    #[error("{what} cannot go from {from} to {to}: allowed are {allowed}")]
    Transition {
        /// Which kind of state.
        what: &'static str,
        /// The present state.
        from: &'static str,
        /// The refused one.
        to: &'static str,
        /// The allowed list.
        allowed: String,
    },
    /// An address, name or version of a chart that cannot be used. The text itself is not quoted: it may be secret.
    #[error("the {what} is not valid: {problem}")]
    Address {
        /// Which kind of text.
        what: &'static str,
        /// What is wrong with it, and what was expected.
        problem: String,
    },
    /// A specification with one or more wrong fields.
    #[error("{}", list(.0))]
    Spec(Vec<FieldError>),
}

fn list(fields: &[FieldError]) -> String {
    fields
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
