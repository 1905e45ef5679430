//! Reads request bodies: JSON with duplicate fields noticed, or YAML.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::status::ApiError;

/// A body and the fields that it gives twice.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) value: Value,
    /// Paths such as `data.a`.
    pub(crate) duplicates: Vec<String>,
}

/// Reads JSON, or else YAML, which contains it.
pub(crate) fn parse(bytes: &[u8], kind: &str) -> Result<Body, ApiError> {
    match parse_json(bytes) {
        Ok(body) => Ok(body),
        Err(json_error) => match serde_saphyr::from_slice::<Value>(bytes) {
            Ok(value @ Value::Object(_)) => Ok(Body {
                value,
                duplicates: Vec::new(),
            }),
            _ => {
                let start: String = String::from_utf8_lossy(bytes).chars().take(30).collect();
                Err(ApiError::bad_request(format!(
                    "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json \
                     parse error: {json_error} ({start} ...)"
                )))
            }
        },
    }
}

/// Reads JSON.
pub(crate) fn parse_json(bytes: &[u8]) -> Result<Body, serde_json::Error> {
    let found = Found::default();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Reader {
        found: &found,
        path: String::new(),
    }
    .deserialize(&mut reader)?;
    reader.end()?;
    Ok(Body {
        value,
        duplicates: found.duplicates.into_inner(),
    })
}

/// Paths of all fields in the order of the text.
pub(crate) fn field_order(bytes: &[u8]) -> Vec<String> {
    let found = Found {
        order: Some(RefCell::default()),
        ..Found::default()
    };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    // What cannot be read has no order.
    let _ = Reader {
        found: &found,
        path: String::new(),
    }
    .deserialize(&mut reader);
    found.order.map(RefCell::into_inner).unwrap_or_default()
}

#[derive(Default)]
struct Found {
    duplicates: RefCell<Vec<String>>,
    /// All paths, where somebody wants them.
    order: Option<RefCell<Vec<String>>>,
}

struct Reader<'a> {
    found: &'a Found,
    path: String,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, items.len());
            match access.next_element_seed(Reader {
                found: self.found,
                path,
            })? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let path = if self.path.is_empty() {
                name.clone()
            } else {
                format!("{}.{name}", self.path)
            };
            if let Some(order) = &self.found.order {
                order.borrow_mut().push(path.clone());
            }
            let value = access.next_value_seed(Reader {
                found: self.found,
                path: path.clone(),
            })?;
            if object.insert(name, value).is_some() {
                self.found.duplicates.borrow_mut().push(path);
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicates_are_named_and_the_last_one_counts() {
        let body = parse_json(br#"{"data":{"a":"1","a":"2"},"l":[{"x":1,"x":2}],"f":1.5,"n":null}"#).unwrap();
        assert_eq!(
            body.value,
            json!({"data": {"a": "2"}, "l": [{"x": 2}], "f": 1.5, "n": null})
        );
        assert_eq!(body.duplicates, ["data.a", "l[0].x"]);
    }

    #[test]
    fn yaml_is_read_too() {
        assert_eq!(
            parse(b"kind: A\ndata:\n  a: '1'\n", "A").unwrap().value,
            json!({"kind": "A", "data": {"a": "1"}})
        );
        let error = parse(b"{\"kind\":\"ConfigMap\",\"metadata\":{", "ConfigMap").unwrap_err();
        assert!(
            error
                .message
                .starts_with("the object provided is unrecognized (must be of type ConfigMap)")
        );
    }
}
