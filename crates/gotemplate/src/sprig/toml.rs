//! TOML as the BurntSushi library writes and reads it.

use ::toml as parser;

use super::args::{ANY, STR, any, text};
use crate::Error;
use crate::env::{Limit, Limits};
use crate::exec::Executor;
use crate::fmt::format_float;
use crate::function::Native;
use crate::value::{Entries, LIST_MAP, List, MAP_ANY, Map, Str, Value};

pub(super) static TABLE: &[Native] = &[
    Native::concrete("toToml", &[ANY], false, to_toml),
    Native::concrete("mustToToml", &[ANY], false, must_to_toml),
    Native::concrete("fromToml", &[STR], false, from_toml),
];

type Result<T = Value> = std::result::Result<T, Error>;

fn to_toml(executor: &mut Executor, args: &[Value]) -> Result {
    given(args)?;
    match encode(any(args, 0), executor.limits()) {
        Ok(text) => Ok(Value::from(text)),
        // A text in place of an error, as Helm does; a passed limit stays an error.
        Err(Refusal::Message(text)) => Ok(Value::from(text)),
        Err(Refusal::Limit(limit)) => Err(Error::limit(limit)),
    }
}

fn must_to_toml(executor: &mut Executor, args: &[Value]) -> Result {
    given(args)?;
    match encode(any(args, 0), executor.limits()) {
        Ok(text) => Ok(Value::from(text)),
        Err(Refusal::Message(text)) => Err(Error::message(text)),
        Err(Refusal::Limit(limit)) => Err(Error::limit(limit)),
    }
}

/// Nil makes the library panic.
fn given(args: &[Value]) -> Result<()> {
    if any(args, 0).is_nil() {
        return Err(Error::message(
            "reflect: call of reflect.Value.Type on zero Value",
        ));
    }
    Ok(())
}

enum Refusal {
    Message(String),
    Limit(Limit),
}

type Encoded<T = ()> = std::result::Result<T, Refusal>;

fn refuse<T>(text: impl Into<String>) -> Encoded<T> {
    Err(Refusal::Message(text.into()))
}

fn encode(value: &Value, limits: &Limits) -> Encoded<Vec<u8>> {
    let mut encoder = Encoder {
        out: Vec::new(),
        limits,
    };
    if matches!(value, Value::Complex(..) | Value::Func(_)) {
        return refuse(format!("unsupported type for key '': {}", value.kind().name()));
    }
    encoder.value(&mut Vec::new(), value)?;
    Ok(encoder.out)
}

struct Encoder<'l> {
    out: Vec<u8>,
    limits: &'l Limits,
}

/// How a value stands in a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Left out.
    Nil,
    Plain,
    Table,
    TableArray,
}

fn shape(value: &Value) -> Encoded<Shape> {
    shape_at(value, 0)
}

/// How deep arrays may nest in arrays.
const MAX_ARRAY_DEPTH: usize = 1_000;

fn shape_at(value: &Value, depth: usize) -> Encoded<Shape> {
    if depth > MAX_ARRAY_DEPTH {
        return Err(Refusal::Limit(Limit::ValueDepth(MAX_ARRAY_DEPTH)));
    }
    Ok(match value {
        Value::Nil => Shape::Nil,
        Value::Map(map) if map.is_nil() => Shape::Nil,
        Value::List(list) if list.is_nil() => Shape::Nil,
        Value::Map(_) => Shape::Table,
        Value::List(list) if !list.is_empty() => {
            let items = list.to_vec();
            let mut tables = true;
            for item in &items {
                match shape_at(item, depth + 1)? {
                    Shape::Nil => return refuse("toml: cannot encode array with nil element"),
                    Shape::Table => {}
                    _ => tables = false,
                }
            }
            if tables { Shape::TableArray } else { Shape::Plain }
        }
        Value::Object(object) if object.string().is_none() => Shape::Table,
        Value::Complex(..) | Value::Func(_) => {
            return refuse(format!("unsupported type: {}", value.kind().name()));
        }
        _ => Shape::Plain,
    })
}

impl Encoder<'_> {
    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// A line break, but none at the very beginning.
    fn newline(&mut self) {
        if !self.out.is_empty() {
            self.out.push(b'\n');
        }
    }

    fn within_limits(&self, depth: usize) -> Encoded {
        if depth > self.limits.value_depth {
            return Err(Refusal::Limit(Limit::ValueDepth(self.limits.value_depth)));
        }
        if self.out.len() > self.limits.output_bytes {
            return Err(Refusal::Limit(Limit::OutputBytes(self.limits.output_bytes)));
        }
        Ok(())
    }

    fn indent(&mut self, key: &[Str]) {
        for _ in 1..key.len() {
            self.put("  ");
        }
    }

    fn quoted(&mut self, text: &[u8]) {
        self.out.push(b'"');
        for byte in text {
            match byte {
                b'"' => self.put("\\\""),
                b'\\' => self.put("\\\\"),
                0x08 => self.put("\\b"),
                b'\t' => self.put("\\t"),
                b'\n' => self.put("\\n"),
                0x0c => self.put("\\f"),
                b'\r' => self.put("\\r"),
                0..=0x1f | 0x7f => self.put(&format!("\\u{byte:04x}")),
                _ => self.out.push(*byte),
            }
        }
        self.out.push(b'"');
    }

    fn key(&mut self, key: &Str) {
        let bare = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !key.is_empty() && key.as_bytes().iter().all(bare) {
            self.out.extend_from_slice(key.as_bytes());
        } else {
            self.quoted(key.as_bytes());
        }
    }

    fn path(&mut self, path: &[Str]) {
        for (index, key) in path.iter().enumerate() {
            if index > 0 {
                self.put(".");
            }
            self.key(key);
        }
    }

    fn value(&mut self, path: &mut Vec<Str>, value: &Value) -> Encoded {
        self.within_limits(path.len())?;
        match shape(value)? {
            Shape::Nil => Ok(()),
            Shape::Plain => {
                let Some(key) = path.last().cloned() else {
                    return self.element(value, 0);
                };
                self.indent(path);
                self.key(&key);
                self.put(" = ");
                self.element(value, path.len())?;
                self.newline();
                Ok(())
            }
            Shape::Table => {
                if path.len() == 1 {
                    self.newline();
                }
                if !path.is_empty() {
                    self.indent(path);
                    self.put("[");
                    self.path(path);
                    self.put("]");
                    self.newline();
                }
                self.entries(path, value)
            }
            Shape::TableArray => {
                if path.is_empty() {
                    return refuse("toml: top-level values must be Go maps or structs");
                }
                for item in value.as_list().map(List::to_vec).unwrap_or_default() {
                    self.newline();
                    self.indent(path);
                    self.put("[[");
                    self.path(path);
                    self.put("]]");
                    self.newline();
                    self.entries(path, &item)?;
                }
                Ok(())
            }
        }
    }

    /// The keys of a table: plain values first, then tables, which would swallow what follows them.
    fn entries(&mut self, path: &mut Vec<Str>, value: &Value) -> Encoded {
        let (plain, tables) = split(value)?;
        for (key, item) in plain.into_iter().chain(tables) {
            path.push(key);
            let result = stacker::maybe_grow(64 << 10, 1 << 20, || self.value(path, &item));
            path.pop();
            result?;
        }
        Ok(())
    }

    /// A value to the right of an equals sign, or inside an array.
    fn element(&mut self, value: &Value, depth: usize) -> Encoded {
        self.within_limits(depth)?;
        match value {
            Value::Str(text) => self.quoted(text.as_bytes()),
            Value::Bool(flag) => self.put(if *flag { "true" } else { "false" }),
            Value::Int(_, int) => self.put(&int.to_string()),
            Value::Uint(_, int) => self.put(&int.to_string()),
            Value::Float(float) if float.is_nan() => self.put("nan"),
            Value::Float(float) if float.is_infinite() => self.put(if *float < 0.0 { "-inf" } else { "inf" }),
            Value::Float(float) => {
                let text = format_float(*float, b'g', None);
                self.put(&text);
                if !text.contains(['.', 'e']) {
                    self.put(".0");
                }
            }
            Value::Bytes(bytes) => {
                let items = bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
                self.put(&format!("[{items}]"));
            }
            Value::List(list) => {
                self.put("[");
                for (index, item) in list.to_vec().iter().enumerate() {
                    if index > 0 {
                        self.put(", ");
                    }
                    stacker::maybe_grow(64 << 10, 1 << 20, || self.element(item, depth + 1))?;
                }
                self.put("]");
            }
            Value::Object(object) if object.string().is_some() => {
                match super::dates::to_toml(object.as_ref()) {
                    Some(moment) => self.out.extend_from_slice(&moment),
                    None => self.quoted(object.string().unwrap_or_default().as_bytes()),
                }
            }
            Value::Map(_) | Value::Object(_) => self.inline_table(value, depth)?,
            other => return refuse(format!("unexpected type: {}", other.type_name())),
        }
        Ok(())
    }

    fn inline_table(&mut self, value: &Value, depth: usize) -> Encoded {
        let (plain, tables) = split(value)?;
        self.put("{");
        let count = plain.len() + tables.len();
        for (index, (key, item)) in plain.into_iter().chain(tables).enumerate() {
            if shape(&item)? == Shape::Nil {
                continue;
            }
            self.key(&key);
            self.put(" = ");
            stacker::maybe_grow(64 << 10, 1 << 20, || self.element(&item, depth + 1))?;
            if index + 1 < count {
                self.put(", ");
            }
        }
        self.put("}");
        Ok(())
    }
}

type Items = Vec<(Str, Value)>;

/// The entries of a table: those written as `key = value`, and those with a header of their own.
fn split(value: &Value) -> Encoded<(Items, Items)> {
    let entries = match value {
        Value::Map(map) => map.to_vec(),
        Value::Object(object) => object
            .fields()
            .into_iter()
            .map(|(name, field)| (Str::from(name), field))
            .collect(),
        _ => Vec::new(),
    };
    let mut plain = Vec::new();
    let mut tables = Vec::new();
    for (key, item) in entries {
        match shape(&item)? {
            Shape::Nil | Shape::Plain => plain.push((key, item)),
            Shape::Table | Shape::TableArray => tables.push((key, item)),
        }
    }
    Ok((plain, tables))
}

fn from_toml(executor: &mut Executor, args: &[Value]) -> Result {
    Ok(match parsed(text(args, 0)) {
        Ok(table) => Value::Map(decode_table(executor, table)),
        Err(problem) => {
            let map = Map::any();
            map.insert("Error", problem);
            Value::Map(map)
        }
    })
}

/// Reads a text; the lines of problems are Go's, the words the reader's own.
fn parsed(source: &[u8]) -> std::result::Result<parser::Table, String> {
    let line = |end: usize| {
        let before = source.get(..end).unwrap_or(source);
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    };
    let source = std::str::from_utf8(source).map_err(|problem| {
        let at = problem.valid_up_to();
        let byte = source.get(at).copied().unwrap_or_default();
        format!("toml: line {}: invalid UTF-8 byte: 0x{byte:02x}", line(at))
    })?;
    source.parse().map_err(|problem: parser::de::Error| {
        let at = problem.span().map_or(0, |span| span.start);
        format!("toml: line {}: {}", line(at), problem.message())
    })
}

fn decode_table(executor: &mut Executor, table: parser::Table) -> Map {
    let entries: Entries = table
        .into_iter()
        .map(|(key, value)| (Str::from(key), decode(executor, value)))
        .collect();
    Map::new(&MAP_ANY, entries)
}

fn decode(executor: &mut Executor, value: parser::Value) -> Value {
    match value {
        parser::Value::String(text) => Value::from(text),
        parser::Value::Integer(int) => Value::int64(int),
        parser::Value::Float(float) => Value::Float(float),
        parser::Value::Boolean(flag) => Value::Bool(flag),
        parser::Value::Datetime(date) => super::dates::from_toml(executor, &date.to_string()),
        parser::Value::Table(table) => Value::Map(decode_table(executor, table)),
        parser::Value::Array(items) => {
            let tables =
                !items.is_empty() && items.iter().all(|item| matches!(item, parser::Value::Table(_)));
            let items: Vec<Value> = items.into_iter().map(|item| decode(executor, item)).collect();
            Value::List(if tables {
                List::new(&LIST_MAP, items)
            } else {
                List::any(items)
            })
        }
    }
}
