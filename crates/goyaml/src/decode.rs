//! From nodes to values: `decode.go` of `go.yaml.in/yaml` v2.4.4 and the conversion to JSON of `sigs.k8s.io/yaml` v1.6.0.

use std::collections::BTreeMap;

use crate::document::{Document, NodeId, NodeKind};
use crate::number;
use crate::resolve::{Dialect, Resolved, Tagged, resolve, resolve_tagged};
use crate::{Error, Map, Numbers, Value};

mod base64;
mod go_syntax;

pub(crate) use go_syntax::{push_quoted, push_quoted_char};

/// Deepest nesting of a value that this crate reads or writes. Go stops at 10,000 with the same message; values here
/// are walked by recursion, also by their owners, on threads with small stacks, and no real document comes near.
pub const MAX_DEPTH: usize = 300;

/// What Go says of too deep a value.
pub(crate) const TOO_DEEP: &str = "exceeded max depth";

/// Up to this many decoded nodes, 99 of 100 may come from aliases (`alias_ratio_range_low` of go-yaml).
const ALIAS_RATIO_RANGE_LOW: u32 = 400_000;

/// From this many decoded nodes on, 1 of 10 may come from aliases (`alias_ratio_range_high` of go-yaml).
const ALIAS_RATIO_RANGE_HIGH: u32 = 4_000_000;

/// Below these counts aliases are not looked at.
const ALIAS_MIN_ALIASED: u32 = 100;
const ALIAS_MIN_DECODED: u32 = 1_000;

fn allowed_alias_ratio(decoded: u32) -> f64 {
    if decoded <= ALIAS_RATIO_RANGE_LOW {
        return 0.99;
    }
    if decoded >= ALIAS_RATIO_RANGE_HIGH {
        return 0.10;
    }
    let range = f64::from(ALIAS_RATIO_RANGE_HIGH - ALIAS_RATIO_RANGE_LOW);
    0.99 - 0.89 * (f64::from(decoded - ALIAS_RATIO_RANGE_LOW) / range)
}

/// The value of a document. One without nodes is null.
pub(crate) fn decode(document: &Document<'_>, numbers: Numbers) -> Result<Value, Error> {
    let mut decoder = Decoder {
        document,
        numbers,
        open_aliases: Vec::new(),
        decoded: 0,
        aliased: 0,
        unconvertible: Vec::new(),
        non_finite: false,
    };
    // Go counts the document as a node of its own.
    decoder.count()?;
    let value = if document.nodes.is_empty() {
        Value::Null
    } else {
        decoder.value(0, 0)?
    };
    if let Some(error) = decoder.unconvertible.into_iter().next() {
        return Err(error);
    }
    if decoder.non_finite {
        refuse_non_finite(&value)?;
    }
    Ok(value)
}

/// JSON has no infinities; Go names the first in the order of the keys.
fn refuse_non_finite(value: &Value) -> Result<(), Error> {
    match value {
        Value::Float(f) if !f.is_finite() => Err(Error::conversion(format!(
            "json: unsupported value: {}",
            number::non_finite_name(*f)
        ))),
        Value::List(items) => items.iter().try_for_each(refuse_non_finite),
        Value::Map(map) => map.values().try_for_each(refuse_non_finite),
        _ => Ok(()),
    }
}

struct Decoder<'d, 'a> {
    document: &'d Document<'a>,
    numbers: Numbers,
    /// Alias nodes whose targets are being decoded.
    open_aliases: Vec<NodeId>,
    decoded: u32,
    aliased: u32,
    /// Why a sound YAML document has no form in JSON; errors of the YAML itself come first. A mapping keeps those of
    /// its values with them until it is whole: what a later key replaces is never converted.
    unconvertible: Vec<Error>,
    non_finite: bool,
}

/// An entry of a mapping, before later ones of the same key replace it.
struct Entry {
    /// None where the key has no form in JSON.
    name: Option<String>,
    value: Value,
    unconvertible: Vec<Error>,
}

impl Decoder<'_, '_> {
    /// Counts a node; aliases may not blow a small document up to a huge one.
    fn count(&mut self) -> Result<(), Error> {
        self.decoded = self.decoded.saturating_add(1);
        if !self.open_aliases.is_empty() {
            self.aliased = self.aliased.saturating_add(1);
        }
        if self.aliased > ALIAS_MIN_ALIASED
            && self.decoded > ALIAS_MIN_DECODED
            && f64::from(self.aliased) / f64::from(self.decoded) > allowed_alias_ratio(self.decoded)
        {
            return Err(Error::yaml(None, "document contains excessive aliasing"));
        }
        Ok(())
    }

    fn value(&mut self, id: NodeId, depth: usize) -> Result<Value, Error> {
        self.count()?;
        let document = self.document;
        let Some(node) = document.get(id) else {
            return Ok(Value::Null);
        };
        match &node.kind {
            NodeKind::Scalar { value, tag, implicit } => self.scalar(value, tag, *implicit),
            NodeKind::Alias { name, target } => {
                self.open_alias(id, name)?;
                let value = self.value(*target, depth)?;
                self.open_aliases.pop();
                Ok(value)
            }
            NodeKind::Sequence => self.sequence(id, nested(depth)?),
            NodeKind::Mapping => {
                let mut entries = Vec::new();
                self.mapping(id, &mut entries, nested(depth)?)?;
                Ok(Value::Map(self.last_of_each(entries)))
            }
        }
    }

    /// Of equal keys the last wins, as in Go's map.
    fn last_of_each(&mut self, entries: Vec<Entry>) -> Map {
        if entries.iter().all(|entry| entry.unconvertible.is_empty()) {
            let named = |entry: Entry| entry.name.map(|name| (name, entry.value));
            return entries.into_iter().filter_map(named).collect();
        }
        let mut last: BTreeMap<Option<String>, (Value, Vec<Error>)> = BTreeMap::new();
        for entry in entries {
            last.insert(entry.name, (entry.value, entry.unconvertible));
        }
        let mut map = Map::new();
        for (name, (value, unconvertible)) in last {
            self.unconvertible.extend(unconvertible);
            if let Some(name) = name {
                map.insert(name, value);
            }
        }
        map
    }

    fn open_alias(&mut self, id: NodeId, name: &str) -> Result<(), Error> {
        if self.open_aliases.contains(&id) {
            return Err(Error::yaml(
                None,
                format!("anchor '{name}' value contains itself"),
            ));
        }
        self.open_aliases.push(id);
        Ok(())
    }

    fn sequence(&mut self, id: NodeId, depth: usize) -> Result<Value, Error> {
        let document = self.document;
        let mut items = Vec::new();
        for child in document.children(id) {
            items.push(self.value(child, depth)?);
        }
        Ok(Value::List(items))
    }

    fn mapping(&mut self, id: NodeId, entries: &mut Vec<Entry>, depth: usize) -> Result<(), Error> {
        let document = self.document;
        let mut children = document.children(id);
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            if self.is_merge(key) {
                self.merge(value, entries, depth)?;
                continue;
            }
            let outside = std::mem::take(&mut self.unconvertible);
            let name = self.key(key, value, depth)?;
            let value = self.value(value, depth)?;
            entries.push(Entry {
                name,
                value,
                unconvertible: std::mem::replace(&mut self.unconvertible, outside),
            });
        }
        Ok(())
    }

    fn is_merge(&self, key: NodeId) -> bool {
        matches!(
            self.document.get(key).map(|node| &node.kind),
            Some(NodeKind::Scalar { value, tag, implicit })
                if value == "<<" && (*implicit || tag == "tag:yaml.org,2002:merge")
        )
    }

    fn merge(&mut self, id: NodeId, entries: &mut Vec<Entry>, depth: usize) -> Result<(), Error> {
        let document = self.document;
        match document.get(id).map(|node| &node.kind) {
            Some(NodeKind::Sequence) => {
                let children: Vec<NodeId> = document.children(id).collect();
                // Earlier mappings take precedence, so they come last.
                for child in children.into_iter().rev() {
                    self.merge_one(child, entries, depth)?;
                }
                Ok(())
            }
            _ => self.merge_one(id, entries, depth),
        }
    }

    fn merge_one(&mut self, id: NodeId, entries: &mut Vec<Entry>, depth: usize) -> Result<(), Error> {
        let document = self.document;
        let kind = |id| document.get(id).map(|node| &node.kind);
        match kind(id) {
            Some(NodeKind::Mapping) => {
                self.count()?;
                self.mapping(id, entries, nested(depth)?)
            }
            Some(NodeKind::Alias { name, target }) if matches!(kind(*target), Some(NodeKind::Mapping)) => {
                self.count()?;
                self.open_alias(id, name)?;
                self.count()?;
                self.mapping(*target, entries, nested(depth)?)?;
                self.open_aliases.pop();
                Ok(())
            }
            _ => Err(Error::yaml(
                None,
                "map merge requires map or sequence of maps as the value",
            )),
        }
    }

    fn scalar(&mut self, text: &str, tag: &str, implicit: bool) -> Result<Value, Error> {
        let resolved = if tag.is_empty() {
            if !implicit {
                return Ok(Value::String(text.to_owned()));
            }
            resolve(text, Dialect::V2)
        } else {
            match resolve_tagged(text, tag, Dialect::V2)? {
                Tagged::Value(resolved) => resolved,
                Tagged::Binary => return self.binary(text).map(Value::String),
            }
        };
        Ok(match resolved {
            Resolved::Null => Value::Null,
            Resolved::Bool(b) => Value::Bool(b),
            Resolved::Int(i) => self.int(i),
            Resolved::Uint(u) => self.uint(u),
            Resolved::Float(f) => self.float(f),
            Resolved::Timestamp | Resolved::String => Value::String(text.to_owned()),
        })
    }

    fn binary(&self, text: &str) -> Result<String, Error> {
        let bytes = base64::decode(text)
            .ok_or_else(|| Error::yaml(None, "!!binary value contains invalid base64 data"))?;
        Ok(crate::json::replace_invalid_utf8(&bytes).into_owned())
    }

    #[allow(clippy::cast_precision_loss)]
    fn int(&self, i: i64) -> Value {
        match self.numbers {
            Numbers::Float64 => Value::Float(i as f64),
            Numbers::Exact => Value::Int(i),
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn uint(&self, u: u64) -> Value {
        match self.numbers {
            Numbers::Float64 => Value::Float(u as f64),
            Numbers::Exact => Value::Uint(u),
        }
    }

    /// A float travels as JSON text, where a whole one looks like an integer.
    fn float(&mut self, f: f64) -> Value {
        if !f.is_finite() {
            self.non_finite = true;
            return Value::Float(f);
        }
        match self.numbers {
            Numbers::Float64 => Value::Float(f),
            Numbers::Exact => {
                crate::json::exact_number(&number::format_json_float(f)).unwrap_or(Value::Float(f))
            }
        }
    }

    /// The name of a mapping key in JSON; `None` for one that has none, which is noted.
    fn key(&mut self, id: NodeId, value: NodeId, depth: usize) -> Result<Option<String>, Error> {
        let document = self.document;
        let mut target = id;
        if let Some(NodeKind::Alias {
            name,
            target: aliased,
        }) = document.get(id).map(|node| &node.kind)
        {
            self.count()?;
            self.open_alias(id, name)?;
            target = *aliased;
        }
        let is_alias = target != id;
        let kind = document.get(target).map(|node| &node.kind);
        let Some(NodeKind::Scalar {
            value: text,
            tag,
            implicit,
        }) = kind
        else {
            // Decode it for its own errors first.
            self.value(target, depth)?;
            return Err(Error::yaml(
                None,
                format!("invalid map key: {}", go_syntax::node(document, target)),
            ));
        };
        self.count()?;
        if is_alias {
            self.open_aliases.pop();
        }
        let resolved = if tag.is_empty() {
            if *implicit {
                resolve(text, Dialect::V2)
            } else {
                Resolved::String
            }
        } else {
            match resolve_tagged(text, tag, Dialect::V2)? {
                Tagged::Value(resolved) => resolved,
                Tagged::Binary => return self.binary(text).map(Some),
            }
        };
        Ok(match resolved {
            Resolved::Bool(b) => Some(if b { "true" } else { "false" }.to_owned()),
            Resolved::Int(i) => Some(i.to_string()),
            Resolved::Float(f) => {
                let mut name = String::new();
                number::push_general_f32(&mut name, f);
                Some(name)
            }
            Resolved::Timestamp | Resolved::String => Some(text.as_ref().to_owned()),
            Resolved::Null | Resolved::Uint(_) => {
                let key = if let Resolved::Uint(u) = resolved {
                    format!("uint64, key: {u:#x}")
                } else {
                    "%!s(<nil>), key: <nil>".to_owned()
                };
                let value = go_syntax::node(document, value);
                self.unconvertible.push(Error::conversion(format!(
                    "unsupported map key of type: {key}, value: {value}"
                )));
                None
            }
        })
    }
}

fn nested(depth: usize) -> Result<usize, Error> {
    if depth >= MAX_DEPTH {
        Err(Error::unmarshaling(TOO_DEEP.to_owned()))
    } else {
        Ok(depth + 1)
    }
}
