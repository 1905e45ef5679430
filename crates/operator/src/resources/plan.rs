//! What a pass would change that may only plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a pass would change: shown while an object is only observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStatus {
    /// Names exactly these changes of exactly this generation.
    #[serde(default)]
    pub digest: String,
    /// How many changes there are.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub count: i64,
    /// The first of them, each with its step. Never a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}
