//! The value tree that YAML and JSON texts are read into and written from.

use std::collections::BTreeMap;

use crate::Error;
use crate::json::replace_invalid_utf8;

/// A mapping with string keys, in byte order of the keys (the order in which Go's JSON and `range` walk a map).
pub type Map = BTreeMap<String, Value>;

/// One YAML or JSON value, with the number kinds that Go tells apart.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`, Go's nil interface.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer in the range of Go's `int64`.
    Int(i64),
    /// An integer above `i64::MAX` that still fits Go's `uint64`.
    Uint(u64),
    /// Go's `float64`; with [`Numbers::Float64`] every number is one.
    Float(f64),
    /// Text.
    String(String),
    /// A moment as RFC 3339 writes it. No text is read into one; go-yaml v3 writes it without quotes, everything else
    /// takes it for a text.
    Timestamp(String),
    /// A text of Go's that is no UTF-8. Nothing is read into one; go-yaml v3 writes it as `!!binary`, everything else as a
    /// text with U+FFFD for what is none.
    Binary(Vec<u8>),
    /// A sequence.
    List(Vec<Value>),
    /// A mapping.
    Map(Map),
}

/// How numbers arrive in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Every number becomes [`Value::Float`], as Go's decoding into `interface{}` does (values files, `fromYaml`).
    Float64,
    /// Integers stay integers (Kubernetes objects): `int64` where it fits, else `uint64`, else `float64`.
    Exact,
}

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(b) => Value::Bool(b),
            serde_json::Value::Number(n) => {
                if let Some(i) = n.as_i64() {
                    Value::Int(i)
                } else if let Some(u) = n.as_u64() {
                    Value::Uint(u)
                } else {
                    // Without serde_json's `arbitrary_precision` every other number is a finite f64.
                    n.as_f64().map_or(Value::Null, Value::Float)
                }
            }
            serde_json::Value::String(s) => Value::String(s),
            serde_json::Value::Array(items) => Value::List(items.into_iter().map(Value::from).collect()),
            serde_json::Value::Object(map) => {
                Value::Map(map.into_iter().map(|(k, v)| (k, Value::from(v))).collect())
            }
        }
    }
}

/// Fails with Go's text (`json: unsupported value: NaN`) on a number that JSON cannot hold.
impl TryFrom<Value> for serde_json::Value {
    type Error = Error;

    fn try_from(value: Value) -> Result<Self, Error> {
        Ok(match value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(b) => serde_json::Value::Bool(b),
            Value::Int(i) => serde_json::Value::Number(i.into()),
            Value::Uint(u) => serde_json::Value::Number(u.into()),
            Value::Float(f) => match serde_json::Number::from_f64(f) {
                Some(n) => serde_json::Value::Number(n),
                None => return Err(Error::unsupported_float(f)),
            },
            Value::String(s) | Value::Timestamp(s) => serde_json::Value::String(s),
            Value::Binary(bytes) => serde_json::Value::String(replace_invalid_utf8(&bytes).into_owned()),
            Value::List(items) => serde_json::Value::Array(
                items
                    .into_iter()
                    .map(serde_json::Value::try_from)
                    .collect::<Result<_, _>>()?,
            ),
            Value::Map(map) => serde_json::Value::Object(
                map.into_iter()
                    .map(|(k, v)| Ok((k, serde_json::Value::try_from(v)?)))
                    .collect::<Result<_, Error>>()?,
            ),
        })
    }
}
