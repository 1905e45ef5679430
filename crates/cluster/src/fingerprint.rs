//! Short digests of JSON that do not depend on the order of keys.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// 16 hexadecimal digits that tell one content from another: enough to notice a change, which nobody forges here since
/// whoever can write the object can change it anyway.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The fingerprint of `value`.
    pub(crate) fn of(value: &Value) -> Self {
        let mut hasher = Sha256::new();
        feed(value, &mut hasher);
        let digest = hasher.finalize();
        Self(digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
    }

    /// The fingerprint of the same content under another `condition`.
    #[must_use]
    pub(crate) fn with(&self, condition: &str) -> Self {
        Self::of(&Value::from(vec![self.0.as_str(), condition]))
    }

    /// The same in eight bytes.
    pub(crate) fn number(&self) -> u64 {
        // A record may have been written by another version; what is no number of ours still differs from all others.
        u64::from_str_radix(&self.0, 16).unwrap_or_else(|_| crate::mark::short(&self.0))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Every value with its type and length before it, maps in the order of their keys.
fn feed(value: &Value, hasher: &mut Sha256) {
    fn text(text: &str, hasher: &mut Sha256) {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text);
    }
    match value {
        Value::Null => hasher.update(b"n"),
        Value::Bool(true) => hasher.update(b"t"),
        Value::Bool(false) => hasher.update(b"f"),
        Value::Number(number) => {
            hasher.update(b"#");
            text(&number.to_string(), hasher);
        }
        Value::String(string) => {
            hasher.update(b"s");
            text(string, hasher);
        }
        Value::Array(items) => {
            hasher.update(b"[");
            hasher.update((items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| feed(item, hasher));
        }
        Value::Object(map) => {
            hasher.update(b"{");
            hasher.update((map.len() as u64).to_be_bytes());
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            for (key, item) in entries {
                text(key, hasher);
                feed(item, hasher);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn content_counts_and_order_of_keys_does_not() {
        let one: Value = serde_json::from_str(r#"{"a":1,"b":[1,2]}"#).expect("json");
        let same: Value = serde_json::from_str(r#"{"b":[1,2],"a":1}"#).expect("json");
        assert_eq!(Fingerprint::of(&one), Fingerprint::of(&same));
        for other in [
            json!({"a": 1, "b": [2, 1]}),
            json!({"a": "1", "b": [1, 2]}),
            json!({"a": 1}),
            json!({"a": 1, "b": [1, 2, null]}),
        ] {
            assert_ne!(Fingerprint::of(&one), Fingerprint::of(&other));
        }
        assert_ne!(
            Fingerprint::of(&json!(["ab", "c"])),
            Fingerprint::of(&json!(["a", "bc"]))
        );
    }
}
