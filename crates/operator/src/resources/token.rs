//! A token that a status carries in clear, because Lieutenant's API reads it there.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The text of a token. It is written to the object, and shown nowhere else: its `Debug` says only that it is there.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TokenText(String);

impl TokenText {
    /// Hides `text`.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The token. Every call is a place to review.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
