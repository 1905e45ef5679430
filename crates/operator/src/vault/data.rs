//! What a secret holds.

use std::fmt;

use evenkeel_core::Sensitive;
use serde_json::{Map, Value};

/// The keys of a secret with their values. Its `Debug` shows the keys alone.
#[derive(Clone, Default, PartialEq)]
pub struct SecretData(Map<String, Value>);

impl SecretData {
    pub(super) fn from_map(map: Map<String, Value>) -> Self {
        Self(map)
    }

    pub(super) fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// The text under a key. Every call is a place to review.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }

    /// Puts a text under a key.
    pub fn set(&mut self, key: &str, value: &Sensitive<String>) {
        self.0
            .insert(key.to_owned(), Value::String(value.expose().clone()));
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for SecretData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.0.keys().map(|key| (key, "[redacted]")))
            .finish()
    }
}
