//! One step of a field path and its text forms.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Number, Value};

/// A scalar in a path: the value of a set's item or of a list item's key. Numbers are compared by value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// A number, as JSON writes it.
    Number(Number),
    String(Box<str>),
    Bool(bool),
    Null,
    /// A list or map, which the API server compares by content.
    Other(Box<str>),
}

impl Key {
    pub(crate) fn from_value(value: &Value) -> Self {
        match value {
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::String(text.as_str().into()),
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Null => Self::Null,
            other => Self::Other(other.to_string().into()),
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Number(number) => Value::Number(number.clone()),
            Self::String(text) => Value::String(text.as_ref().into()),
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Null => Value::Null,
            Self::Other(json) => serde_json::from_str(json).unwrap_or(Value::Null),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::String(_) => 1,
            Self::Bool(_) => 2,
            Self::Other(_) => 3,
            Self::Null => 4,
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)),
            },
            (Self::String(a), Self::String(b)) | (Self::Other(a), Self::Other(b)) => a.cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(text) => write!(f, "{text:?}"),
            other => write!(f, "{}", other.to_value()),
        }
    }
}

/// One step: a field, a list item told apart by keys, a set's item, or a position. Ordered as FieldsV1 prints them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathElement {
    Field(Box<str>),
    /// Key fields in alphabetical order.
    Keys(Box<[(Box<str>, Key)]>),
    Item(Key),
    Index(i64),
}

impl PathElement {
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// The key of a FieldsV1 object: `f:name`, `k:{…}`, `v:…`, `i:n`.
    pub(crate) fn to_fields_v1(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Keys(keys) => {
                let object: Map<String, Value> = keys
                    .iter()
                    .map(|(name, key)| (name.to_string(), key.to_value()))
                    .collect();
                format!("k:{}", Value::Object(object))
            }
            Self::Item(key) => format!("v:{}", key.to_value()),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// Reads a key of a FieldsV1 object; the error says what is wrong with it.
    pub(crate) fn from_fields_v1(text: &str) -> Result<Self, String> {
        let bad = || format!("unsupported path element {text:?}");
        let (kind, rest) = text.split_once(':').ok_or_else(bad)?;
        match kind {
            "f" => Ok(Self::field(rest)),
            "k" => {
                let object: Map<String, Value> =
                    serde_json::from_str(rest).map_err(|error| error.to_string())?;
                let mut keys: Vec<(Box<str>, Key)> = object
                    .iter()
                    .map(|(name, value)| (name.as_str().into(), Key::from_value(value)))
                    .collect();
                keys.sort();
                Ok(Self::Keys(keys.into()))
            }
            "v" => {
                let value: Value = serde_json::from_str(rest).map_err(|error| error.to_string())?;
                Ok(Self::Item(Key::from_value(&value)))
            }
            "i" => rest.parse().map(Self::Index).map_err(|_| bad()),
            _ => Err(bad()),
        }
    }
}

/// As the API server writes a step in an error: `.name`, `[name="a"]`, `[="a"]`, `[3]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Keys(keys) => {
                f.write_str("[")?;
                for (position, (name, key)) in keys.iter().enumerate() {
                    if position > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{name}={key}")?;
                }
                f.write_str("]")
            }
            Self::Item(key) => write!(f, "[={key}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A whole path, as written in errors.
pub(crate) fn path_text(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_round_trip_through_their_text() {
        for text in [
            "f:a.b/c",
            r#"k:{"containerPort":80,"protocol":"TCP"}"#,
            r#"v:"x""#,
            "v:3",
            "i:7",
        ] {
            let element = PathElement::from_fields_v1(text).unwrap();
            assert_eq!(element.to_fields_v1(), text);
        }
    }

    #[test]
    fn unknown_prefixes_are_refused() {
        assert!(PathElement::from_fields_v1("q:1").is_err());
        assert!(PathElement::from_fields_v1("name").is_err());
        assert!(PathElement::from_fields_v1("k:[1]").is_err());
    }

    #[test]
    fn paths_read_as_in_conflict_messages() {
        let path = [
            PathElement::field("spec"),
            PathElement::Keys(
                [
                    ("containerPort".into(), Key::Number(80.into())),
                    ("protocol".into(), Key::String("TCP".into())),
                ]
                .into(),
            ),
            PathElement::Item(Key::String("a".into())),
        ];
        assert_eq!(
            path_text(&path),
            r#".spec[containerPort=80,protocol="TCP"][="a"]"#
        );
    }
}
