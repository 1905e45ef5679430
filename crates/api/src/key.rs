//! Encryption keys, by their ids.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// All keys and how much each is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Keys {
    /// The keys, oldest first.
    pub keys: Vec<Key>,
    /// Values that cannot be read: under a key that nobody knows, or no encrypted value at all.
    pub unreadable: u64,
    /// Processes that do not hold the key that is to become active.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_for: Vec<String>,
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// Its id, 8 hexadecimal digits.
    pub id: String,
    /// What it is: `active`, `replaced`, `new` or `removed`.
    pub state: KeyState,
    /// When it was made.
    pub created: Timestamp,
    /// When another one took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Timestamp>,
    /// Values that are encrypted with it.
    pub values: u64,
}

/// What a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// It encrypts.
    Active,
    /// It encrypts nothing yet.
    New,
    /// Another one took its place; what it encrypted is being encrypted again.
    Replaced,
    /// Nothing needs it any more.
    Removed,
}

impl KeyState {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::New => "new",
            Self::Replaced => "replaced",
            Self::Removed => "removed",
        }
    }
}
