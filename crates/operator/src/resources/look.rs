//! What a look at another system found, as a status keeps it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time::date_time;

/// A look at another system that found all as it is to be. It counts until what it depends on changes, or for so long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Look {
    /// Digest of all that the look depends on.
    pub input: String,
    /// When it was taken.
    #[schemars(schema_with = "date_time")]
    pub at: Timestamp,
    /// What was found, in JSON, if others work on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}
