//! Between template values and plain data: what YAML and JSON can hold.

use evenkeel_goyaml as goyaml;

use super::{Entries, Kind, List, Map, Str, Value};
use crate::Error;
use crate::env::{Limit, Limits};

/// Stack to leave and to add when values nest.
const RED_ZONE: usize = 64 << 10;
const STACK: usize = 1 << 20;

impl From<goyaml::Value> for Value {
    /// Objects become `map[string]interface {}`, lists `[]interface {}`, integers `int64`.
    fn from(value: goyaml::Value) -> Self {
        match value {
            goyaml::Value::Null => Self::Nil,
            goyaml::Value::Bool(flag) => Self::Bool(flag),
            goyaml::Value::Int(int) => Self::int64(int),
            goyaml::Value::Uint(uint) => Self::Uint(super::UintKind::Uint64, uint),
            goyaml::Value::Float(float) => Self::Float(float),
            goyaml::Value::String(text) | goyaml::Value::Timestamp(text) => Self::from(text),
            goyaml::Value::Binary(bytes) => Self::Str(Str::new(&bytes)),
            goyaml::Value::List(items) => Self::List(items.into_iter().map(Self::from).collect::<List>()),
            goyaml::Value::Map(entries) => {
                let entries: Entries = entries
                    .into_iter()
                    .map(|(key, value)| (Str::from(key), Self::from(value)))
                    .collect();
                Self::Map(Map::new(&super::MAP_ANY, entries))
            }
        }
    }
}

impl From<&goyaml::Value> for Value {
    fn from(value: &goyaml::Value) -> Self {
        match value {
            goyaml::Value::Null => Self::Nil,
            goyaml::Value::Bool(flag) => Self::Bool(*flag),
            goyaml::Value::Int(int) => Self::int64(*int),
            goyaml::Value::Uint(uint) => Self::Uint(super::UintKind::Uint64, *uint),
            goyaml::Value::Float(float) => Self::Float(*float),
            goyaml::Value::String(text) | goyaml::Value::Timestamp(text) => Self::from(text.as_str()),
            goyaml::Value::Binary(bytes) => Self::Str(Str::new(bytes)),
            goyaml::Value::List(items) => Self::List(items.iter().map(Self::from).collect::<List>()),
            goyaml::Value::Map(entries) => {
                let entries: Entries = entries
                    .iter()
                    .map(|(key, value)| (Str::from(key.as_str()), Self::from(value)))
                    .collect();
                Self::Map(Map::new(&super::MAP_ANY, entries))
            }
        }
    }
}

impl Value {
    /// The value as plain data, as `encoding/json` sees it: a nil slice or map is null, bytes are base64 text,
    /// invalid UTF-8 becomes U+FFFD.
    ///
    /// # Errors
    /// A value that has no JSON form (`json: unsupported type: func()`, NaN), one that nests too deep or holds
    /// itself, or one that unfolds to more than the limits allow.
    pub fn to_data(&self, limits: &Limits) -> Result<goyaml::Value, Error> {
        Converter {
            limits,
            bytes: 0,
            direct: false,
        }
        .convert(self, 0)
    }

    /// The value as go-yaml v3 sees it directly, not by way of JSON: a nil slice or map is empty, a duration is text, bytes are
    /// numbers, what is no UTF-8 is binary (except as a key).
    pub(crate) fn to_direct_data(&self, limits: &Limits) -> Result<goyaml::Value, Error> {
        Converter {
            limits,
            bytes: 0,
            direct: true,
        }
        .convert(self, 0)
    }
}

struct Converter<'l> {
    limits: &'l Limits,
    /// What the data takes so far; sharing makes a small value unfold to a huge one.
    bytes: usize,
    direct: bool,
}

impl Converter<'_> {
    fn charge(&mut self, bytes: usize) -> Result<(), Error> {
        self.bytes += bytes;
        if self.bytes > self.limits.output_bytes {
            return Err(Error::limit(Limit::OutputBytes(self.limits.output_bytes)));
        }
        Ok(())
    }

    fn text(&mut self, text: &Str) -> Result<String, Error> {
        self.charge(text.len())?;
        Ok(text.to_text())
    }

    fn convert(&mut self, value: &Value, depth: usize) -> Result<goyaml::Value, Error> {
        self.charge(1)?;
        Ok(match value {
            Value::Nil => goyaml::Value::Null,
            Value::Bool(flag) => goyaml::Value::Bool(*flag),
            Value::Int(_, int) => goyaml::Value::Int(*int),
            Value::Uint(_, uint) => match i64::try_from(*uint) {
                Ok(int) => goyaml::Value::Int(int),
                Err(_) => goyaml::Value::Uint(*uint),
            },
            Value::Float(float) if !float.is_finite() && !self.direct => {
                let shown = crate::fmt::format_float(*float, b'g', None);
                return Err(Error::message(format!("json: unsupported value: {shown}")));
            }
            Value::Float(float) => goyaml::Value::Float(*float),
            Value::Complex(..) | Value::Func(_) => {
                let problem = if self.direct {
                    "cannot marshal type"
                } else {
                    "json: unsupported type"
                };
                return Err(Error::message(format!("{problem}: {}", value.type_name())));
            }
            Value::Str(text) if self.direct && text.as_str().is_none() => {
                self.charge(text.len())?;
                goyaml::Value::Binary(text.as_bytes().to_vec())
            }
            Value::Str(text) => goyaml::Value::String(self.text(text)?),
            // go-yaml knows nothing of bytes: they are a list of numbers.
            Value::Bytes(bytes) if self.direct => {
                self.charge(bytes.len() * size_of::<goyaml::Value>())?;
                let number = |byte: &u8| goyaml::Value::Int(i64::from(*byte));
                goyaml::Value::List(bytes.iter().map(number).collect())
            }
            Value::Bytes(bytes) => {
                self.charge(bytes.len())?;
                goyaml::Value::String(crate::sprig::base64_text(bytes))
            }
            Value::List(list) if list.is_nil() && self.direct => goyaml::Value::List(Vec::new()),
            Value::Map(map) if map.is_nil() && self.direct => goyaml::Value::Map(goyaml::Map::new()),
            Value::List(list) if list.is_nil() => goyaml::Value::Null,
            Value::Map(map) if map.is_nil() => goyaml::Value::Null,
            Value::List(_) | Value::Map(_) | Value::Object(_) => {
                if depth >= self.limits.value_depth {
                    return Err(Error::limit(Limit::ValueDepth(self.limits.value_depth)));
                }
                stacker::maybe_grow(RED_ZONE, STACK, || self.container(value, depth + 1))?
            }
        })
    }

    fn container(&mut self, value: &Value, depth: usize) -> Result<goyaml::Value, Error> {
        match value {
            Value::List(list) => {
                let items = list.with(|items| {
                    items
                        .iter()
                        .map(|item| self.convert(item, depth))
                        .collect::<Result<_, _>>()
                })?;
                Ok(goyaml::Value::List(items))
            }
            Value::Map(map) => {
                let mut object = goyaml::Map::new();
                if let Some(entries) = map.borrow() {
                    for (key, item) in entries.iter() {
                        object.insert(self.text(key)?, self.convert(item, depth)?);
                    }
                }
                Ok(goyaml::Value::Map(object))
            }
            Value::Object(shared) => {
                if let (true, Kind::Int64, Some(text)) = (self.direct, shared.kind(), shared.string()) {
                    return Ok(goyaml::Value::String(self.text(&text)?));
                }
                let is_moment = shared.type_name() == crate::sprig::TIME_TYPE;
                if let Some(data) = shared.data() {
                    return match self.convert(&data, depth)? {
                        goyaml::Value::String(text) if self.direct && is_moment => {
                            Ok(goyaml::Value::Timestamp(text))
                        }
                        data => Ok(data),
                    };
                }
                if matches!(shared.kind(), Kind::Func) {
                    return Err(Error::message(format!(
                        "json: unsupported type: {}",
                        shared.type_name()
                    )));
                }
                let mut object = goyaml::Map::new();
                for (name, field) in shared.json_fields() {
                    object.insert(name.to_owned(), self.convert(&field, depth)?);
                }
                Ok(goyaml::Value::Map(object))
            }
            other => self.convert(other, depth),
        }
    }
}
