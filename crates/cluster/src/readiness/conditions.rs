//! Conditions, as nearly every controller writes them.

use serde_json::Value;

use super::Object;

/// One entry of `status.conditions`.
pub(super) struct Condition<'a>(&'a Value);

impl<'a> Condition<'a> {
    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    pub(super) fn is(&self, status: &str) -> bool {
        self.text("status")
            .is_some_and(|found| found.eq_ignore_ascii_case(status))
    }

    pub(super) fn reason(&self) -> Option<&'a str> {
        self.text("reason")
    }

    /// The generation it speaks of, where it says so.
    pub(super) fn observed_generation(&self) -> Option<i64> {
        self.0.get("observedGeneration")?.as_i64()
    }

    /// What it says, for people.
    pub(super) fn explain(&self) -> String {
        match (self.reason(), self.text("message")) {
            (Some(reason), Some(message)) => format!("{reason}: {message}"),
            (Some(text), None) | (None, Some(text)) => text.to_owned(),
            (None, None) => format!(
                "condition {} is {}",
                self.text("type").unwrap_or_default(),
                self.text("status").unwrap_or("unknown")
            ),
        }
    }
}

impl<'a> Object<'a> {
    pub(super) fn condition(&self, kind: &str) -> Option<Condition<'a>> {
        let entries = self.list("/status/conditions");
        entries
            .iter()
            .find(|entry| entry.get("type").and_then(Value::as_str) == Some(kind))
            .map(Condition)
    }
}
