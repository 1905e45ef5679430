//! Conditions as `metav1.Condition` has them.

use jiff::Timestamp;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::time::date_time;

/// One condition of an object. An object has at most one of each type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about: `Ready`, `VaultReady`.
    #[serde(rename = "type")]
    #[schemars(length(max = 316))]
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The generation of the object that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    #[schemars(schema_with = "date_time")]
    pub last_transition_time: Timestamp,
    /// Why, for programs.
    #[schemars(
        length(min = 1, max = 1024),
        regex(pattern = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    )]
    pub reason: String,
    /// Why, for people. Never a secret.
    #[schemars(length(max = 32_768))]
    pub message: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can say.
    Unknown,
}

/// Makes a list of conditions a map by type, so that several writers can each keep their own.
pub(super) fn by_type(schema: &mut Schema) {
    schema.insert("x-kubernetes-list-type".to_owned(), "map".into());
    schema.insert(
        "x-kubernetes-list-map-keys".to_owned(),
        ["type"].as_slice().into(),
    );
}
