//! When objects of a component count as ready, where the rules of their kinds do not say (K38).

use serde::{Deserialize, Serialize};

/// The most rules one component may have.
pub(crate) const RULES_MAX: usize = 50;

/// A rule for the objects of one kind, in CEL (the Common Expression Language that Kubernetes uses for validation).
///
/// Expressions see the object as `self`, and its parts as `metadata`, `spec`, `status` and `data`. A part that the object
/// lacks makes an expression neither true nor an error: the object is not ready yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadinessRule {
    /// API version of the kind, like `eventing.example/v1`; the version is not compared.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// One object's name; every object of the kind when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True when the object is ready.
    pub ready: String,
    /// True when waiting longer is useless; looked at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// A text for people about an object that is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl ReadinessRule {
    /// Its expressions, with the names of the fields that hold them.
    pub fn expressions(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("ready", Some(self.ready.as_str())),
            ("failed", self.failed.as_deref()),
            ("message", self.message.as_deref()),
        ]
        .into_iter()
        .filter_map(|(field, expression)| Some((field, expression?)))
    }
}
