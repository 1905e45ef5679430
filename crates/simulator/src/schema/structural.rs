//! Structural schemas of custom resource definitions: pruning, defaulting, validation, and the types for merging.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::{
    Atom, DEDUCED, Field, ListRelation, ListType, MapType, Scalar, Schema, TypeId, TypeRef, builtin,
};
use crate::apply::typed::same_value;
use crate::status::Cause;

/// The type of a value in JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonType {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl JsonType {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// One level of a structural schema. Rules in CEL (`x-kubernetes-validations`) are not evaluated.
#[derive(Debug, Clone, Default)]
pub(crate) struct Structural {
    json_type: Option<JsonType>,
    properties: BTreeMap<String, Structural>,
    /// Schema of undeclared keys.
    additional: Option<Box<Structural>>,
    items: Option<Box<Structural>>,
    required: Vec<String>,
    default: Option<Value>,
    nullable: bool,
    preserve_unknown: bool,
    int_or_string: bool,
    embedded: bool,
    list_type: Option<String>,
    map_keys: Vec<String>,
    atomic_map: bool,
    allowed: Vec<Value>,
    pattern: Option<(String, Option<Regex>)>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    exclusive_minimum: bool,
    exclusive_maximum: bool,
    min_length: Option<u64>,
    max_length: Option<u64>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    min_properties: Option<u64>,
    max_properties: Option<u64>,
}

impl Structural {
    /// Reads an `openAPIV3Schema`. Unknown keywords are ignored, as the API server has refused them before.
    pub(crate) fn parse(schema: &Value) -> Self {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let texts = |key: &str| {
            let list = schema.get(key).and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        Self {
            json_type: text("type").and_then(JsonType::parse),
            properties: properties
                .map(|(name, below)| (name.clone(), Self::parse(below)))
                .collect(),
            additional: match schema.get("additionalProperties") {
                Some(Value::Bool(true)) => Some(Box::new(Self {
                    preserve_unknown: true,
                    ..Self::default()
                })),
                Some(below @ Value::Object(_)) => Some(Box::new(Self::parse(below))),
                _ => None,
            },
            items: schema.get("items").map(|below| Box::new(Self::parse(below))),
            required: texts("required"),
            default: schema.get("default").cloned(),
            nullable: flag("nullable"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            embedded: flag("x-kubernetes-embedded-resource"),
            list_type: text("x-kubernetes-list-type").map(str::to_owned),
            map_keys: texts("x-kubernetes-list-map-keys"),
            atomic_map: text("x-kubernetes-map-type") == Some("atomic"),
            allowed: schema
                .get("enum")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
            pattern: text("pattern").map(|pattern| (pattern.to_owned(), Regex::new(pattern).ok())),
            minimum: schema.get("minimum").and_then(Value::as_f64),
            maximum: schema.get("maximum").and_then(Value::as_f64),
            exclusive_minimum: flag("exclusiveMinimum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
        }
    }

    /// The types for merging objects of this kind, and the type of the object itself.
    pub(crate) fn to_schema(&self) -> (Schema, TypeId) {
        let mut schema = builtin::load_metadata();
        let metadata = schema.named("meta.ObjectMeta");
        let root = self.add_to(&mut schema, false);
        let text = schema.add(Atom {
            scalar: Some(Scalar::String),
            ..Atom::default()
        });
        let mut atom = schema.atom(root.id).clone();
        let map = atom.map.get_or_insert_default();
        for (name, ty) in [("apiVersion", text), ("kind", text), ("metadata", metadata)] {
            map.fields.insert(name.into(), plain_field(ty.into(), None));
        }
        schema.define(root.id, atom);
        (schema, root.id)
    }

    fn add_to(&self, schema: &mut Schema, preserve: bool) -> TypeRef {
        let preserve = preserve || self.preserve_unknown;
        let list = |schema: &mut Schema, own: &Self| {
            let element = match &own.items {
                Some(items) => items.add_to(schema, preserve),
                None => super::UNTYPED.into(),
            };
            let relation = match own.list_type.as_deref() {
                Some("set") => ListRelation::Set,
                Some("map") => {
                    ListRelation::Map(own.map_keys.iter().map(|key| key.as_str().into()).collect())
                }
                _ => ListRelation::Atomic,
            };
            ListType { element, relation }
        };
        let map = |schema: &mut Schema, own: &Self| {
            let mut fields = BTreeMap::new();
            for (name, below) in &own.properties {
                let ty = below.add_to(schema, preserve);
                fields.insert(name.as_str().into(), plain_field(ty, below.default.clone()));
            }
            let element = match &own.additional {
                Some(below) => Some(below.add_to(schema, preserve)),
                None if preserve || own.properties.is_empty() => Some(DEDUCED.into()),
                None => None,
            };
            MapType {
                fields,
                element,
                atomic: own.atomic_map,
                ..MapType::default()
            }
        };
        let atom = match self.json_type {
            Some(JsonType::Object) => Atom {
                map: Some(map(schema, self)),
                ..Atom::default()
            },
            Some(JsonType::Array) => Atom {
                list: Some(list(schema, self)),
                ..Atom::default()
            },
            Some(JsonType::String) => Atom {
                scalar: Some(Scalar::String),
                ..Atom::default()
            },
            Some(JsonType::Integer) => Atom {
                scalar: Some(Scalar::Int64),
                ..Atom::default()
            },
            Some(JsonType::Number) => Atom {
                scalar: Some(Scalar::Number),
                ..Atom::default()
            },
            Some(JsonType::Boolean) => Atom {
                scalar: Some(Scalar::Boolean),
                ..Atom::default()
            },
            None => Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(list(schema, self)),
                map: Some(map(schema, self)),
            },
        };
        schema.add(atom).into()
    }

    /// Removes fields that the schema does not have; gives their paths.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut pruned = Vec::new();
        self.prune_at(object, true, "", &mut pruned);
        pruned
    }

    fn prune_at(&self, value: &mut Value, resource: bool, path: &str, pruned: &mut Vec<String>) {
        match value {
            Value::Array(items) => {
                for (position, item) in items.iter_mut().enumerate() {
                    if let Some(below) = &self.items {
                        below.prune_at(item, below.embedded, &format!("{path}[{position}]"), pruned);
                    }
                }
            }
            Value::Object(object) => {
                let resource = resource || self.embedded;
                let names: Vec<String> = object.keys().cloned().collect();
                for name in names {
                    if resource && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                        continue;
                    }
                    let below_path = if path.is_empty() {
                        name.clone()
                    } else {
                        format!("{path}.{name}")
                    };
                    let below = self.properties.get(&name).or(self.additional.as_deref());
                    match (below, object.get_mut(&name)) {
                        (Some(below), Some(value)) => {
                            below.prune_at(value, below.embedded, &below_path, pruned)
                        }
                        (None, _) if self.preserve_unknown => {}
                        _ => {
                            object.remove(&name);
                            pruned.push(below_path);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Drops nulls where they are not allowed and fills in defaults.
    pub(crate) fn fill(&self, value: &mut Value) {
        match value {
            Value::Object(object) => {
                let nulls: Vec<String> = object
                    .iter()
                    .filter(|(name, value)| {
                        let below = self.properties.get(*name).or(self.additional.as_deref());
                        value.is_null() && below.is_some_and(|below| !below.nullable)
                    })
                    .map(|(name, _)| name.clone())
                    .collect();
                for name in nulls {
                    // Only a default replaces a null in a dictionary; a null property goes.
                    if self.properties.contains_key(&name) {
                        object.remove(&name);
                    }
                }
                for (name, below) in &self.properties {
                    if let (None, Some(default)) = (object.get(name), &below.default) {
                        object.insert(name.clone(), default.clone());
                    }
                    if let Some(value) = object.get_mut(name) {
                        below.fill(value);
                    }
                }
                if let Some(below) = &self.additional {
                    for (name, value) in object.iter_mut() {
                        if !self.properties.contains_key(name) {
                            below.fill(value);
                        }
                    }
                }
            }
            Value::Array(items) => {
                if let Some(below) = &self.items {
                    items.iter_mut().for_each(|item| below.fill(item));
                }
            }
            _ => {}
        }
    }

    /// What is wrong with an object, with the API server's texts.
    pub(crate) fn validate(&self, object: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        self.validate_at(object, true, "", &mut causes);
        self.validate_lists(object, "", &mut causes);
        causes
    }

    fn validate_at(&self, value: &Value, root: bool, path: &str, causes: &mut Vec<Cause>) {
        if value.is_null() && self.nullable {
            return;
        }
        if !self.has_type(value) {
            let wanted = match self.json_type {
                _ if self.int_or_string => "integer,string",
                Some(wanted) => wanted.name(),
                None => return,
            };
            let got = match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(number) if number.is_f64() => "number",
                Value::Number(_) => "integer",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            causes.push(Cause {
                reason: "FieldValueTypeInvalid",
                message: format!("Invalid value: {got:?}: {path} in body must be of type {wanted}: {got:?}"),
                field: path.to_owned(),
            });
            return;
        }
        let mut invalid = |value: &str, detail: String| causes.push(Cause::invalid(path, value, &detail));
        if !self.allowed.is_empty() && !self.allowed.iter().any(|allowed| same_value(allowed, value)) {
            let names: Vec<String> = self.allowed.iter().map(plain).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            causes.push(Cause::not_supported(path, &value.to_string(), &names));
            return;
        }
        match value {
            Value::Number(number) => {
                let n = number.as_f64().unwrap_or_default();
                if let Some(minimum) = self.minimum
                    && (n < minimum || (self.exclusive_minimum && n <= minimum))
                {
                    let relation = if self.exclusive_minimum {
                        "greater than"
                    } else {
                        "greater than or equal to"
                    };
                    invalid(
                        &number.to_string(),
                        format!("{path} in body should be {relation} {minimum}"),
                    );
                }
                if let Some(maximum) = self.maximum
                    && (n > maximum || (self.exclusive_maximum && n >= maximum))
                {
                    let relation = if self.exclusive_maximum {
                        "less than"
                    } else {
                        "less than or equal to"
                    };
                    invalid(
                        &number.to_string(),
                        format!("{path} in body should be {relation} {maximum}"),
                    );
                }
            }
            Value::String(text) => {
                let length = text.chars().count() as u64;
                let quoted = value.to_string();
                // The first rule that is broken is the only one named.
                if let Some(least) = self.min_length.filter(|least| length < *least) {
                    invalid(
                        &quoted,
                        format!("{path} in body should be at least {least} chars long"),
                    );
                } else if let Some(most) = self.max_length.filter(|most| length > *most) {
                    causes.push(Cause {
                        reason: "FieldValueTooLong",
                        message: format!("Too long: may not be more than {most} bytes"),
                        field: path.to_owned(),
                    });
                } else if let Some((pattern, Some(regex))) = &self.pattern
                    && !regex.is_match(text)
                {
                    causes.push(Cause::invalid(
                        path,
                        &quoted,
                        &format!("{path} in body should match '{pattern}'"),
                    ));
                }
            }
            Value::Array(items) => {
                let count = items.len() as u64;
                if let Some(least) = self.min_items.filter(|least| count < *least) {
                    invalid(
                        &count.to_string(),
                        format!("{path} in body should have at least {least} items"),
                    );
                }
                if let Some(most) = self.max_items.filter(|most| count > *most) {
                    causes.push(Cause {
                        reason: "FieldValueTooMany",
                        message: format!("Too many: {count}: must have at most {most} items"),
                        field: path.to_owned(),
                    });
                }
                if let Some(below) = &self.items {
                    for (position, item) in items.iter().enumerate() {
                        below.validate_at(item, false, &format!("{path}[{position}]"), causes);
                    }
                }
            }
            Value::Object(object) => {
                let count = object.len() as u64;
                if let Some(least) = self.min_properties.filter(|least| count < *least) {
                    invalid(
                        &count.to_string(),
                        format!("{path} in body should have at least {least} properties"),
                    );
                }
                if let Some(most) = self.max_properties.filter(|most| count > *most) {
                    causes.push(Cause {
                        reason: "FieldValueTooMany",
                        message: format!("Too many: {count}: must have at most {most} items"),
                        field: path.to_owned(),
                    });
                }
                self.validate_fields(object, root, path, causes);
            }
            _ => {}
        }
    }

    fn validate_fields(&self, object: &Map<String, Value>, root: bool, path: &str, causes: &mut Vec<Cause>) {
        let at = |name: &str| {
            if path.is_empty() {
                name.to_owned()
            } else {
                format!("{path}.{name}")
            }
        };
        for name in &self.required {
            if !object.contains_key(name) {
                causes.push(Cause::required(&at(name), ""));
            }
        }
        for (name, value) in object {
            if root && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                continue;
            }
            if let Some(below) = self.properties.get(name).or(self.additional.as_deref()) {
                below.validate_at(value, false, &at(name), causes);
            }
        }
    }

    /// Items of sets and maps must differ.
    fn validate_lists(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    if let Some(below) = self.properties.get(name).or(self.additional.as_deref()) {
                        let at = if path.is_empty() {
                            name.clone()
                        } else {
                            format!("{path}.{name}")
                        };
                        below.validate_lists(value, &at, causes);
                    }
                }
            }
            Value::Array(items) => {
                let key_of = |item: &Value| match self.list_type.as_deref() {
                    Some("set") => Some(item.clone()),
                    Some("map") => {
                        let keys: Map<String, Value> = self
                            .map_keys
                            .iter()
                            .filter_map(|key| Some((key.clone(), item.get(key)?.clone())))
                            .collect();
                        Some(Value::Object(keys))
                    }
                    _ => None,
                };
                let mut seen = Vec::new();
                for (position, item) in items.iter().enumerate() {
                    if let Some(key) = key_of(item) {
                        if seen.contains(&key) {
                            causes.push(Cause {
                                reason: "FieldValueDuplicate",
                                message: format!("Duplicate value: {key}"),
                                field: format!("{path}[{position}]"),
                            });
                        }
                        seen.push(key);
                    }
                    if let Some(below) = &self.items {
                        below.validate_lists(item, &format!("{path}[{position}]"), causes);
                    }
                }
            }
            _ => {}
        }
    }

    fn has_type(&self, value: &Value) -> bool {
        if self.int_or_string {
            return value.is_string() || value.is_i64() || value.is_u64();
        }
        match (self.json_type, value) {
            (None, _) => true,
            (Some(JsonType::Object), Value::Object(_))
            | (Some(JsonType::Array), Value::Array(_))
            | (Some(JsonType::String), Value::String(_))
            | (Some(JsonType::Number), Value::Number(_))
            | (Some(JsonType::Boolean), Value::Bool(_)) => true,
            (Some(JsonType::Integer), Value::Number(number)) => {
                number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|n| n.fract() == 0.0)
            }
            _ => false,
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn plain_field(ty: TypeRef, default: Option<Value>) -> Field {
    Field {
        ty,
        pointer: true,
        omit_empty: true,
        omit_zero: false,
        default,
        patch: None,
    }
}
