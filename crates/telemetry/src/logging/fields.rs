//! Fields of spans and events.

use std::error::Error;
use std::fmt;

use tracing::field::{Field, Visit};

use super::MAX_VALUE_BYTES;
use crate::chain;

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
}

/// Fields by name. A later value replaces an earlier one in its place, so a name occurs once.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(pub(super) Vec<(&'static str, Value)>);

impl Fields {
    pub(super) fn set(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, earlier)) => *earlier = value,
            None => self.0.push((name, value)),
        }
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        let position = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(position).1)
    }

    pub(super) fn extend(&mut self, inner: &Self) {
        for (name, value) in &inner.0 {
            self.set(name, value.clone());
        }
    }

    fn text(&mut self, field: &Field, mut text: String) {
        if text.len() > MAX_VALUE_BYTES {
            let kept = text.floor_char_boundary(MAX_VALUE_BYTES);
            let dropped = text.len() - kept;
            text.truncate(kept);
            text.push_str(&format!("… ({dropped} bytes more)"));
        }
        self.set(field.name(), Value::Text(text));
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value.to_owned());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), Value::Bool(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), Value::Signed(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), Value::Unsigned(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), Value::Float(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.text(field, chain(value).to_string());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, format!("{value:?}"));
    }
}
