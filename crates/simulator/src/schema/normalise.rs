//! Brings an object of a built-in kind into the form the API server keeps and prints.
//!
//! A real server decodes JSON into Go structs and prints them again: unknown fields are lost, empty ones left out or
//! filled in, quantities and times rewritten. Whether a change is a change is decided on that form.

use base64::Engine as _;
use serde_json::{Map, Number, Value};

use super::{Field, MapType, Scalar, Schema, TypeRef, View};
use crate::quantity;

/// What was found beside the object itself.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Paths of fields that no such type has, without index text: `spec.containers[0].foo`.
    pub(crate) unknown: Vec<String>,
}

/// Why a value cannot be read as its type; the text follows Go's JSON decoder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mismatch(pub(crate) String);

/// Reads `value` as type `ty` of a built-in kind. Defaults that the schema itself declares are filled in.
pub(crate) fn normalise(
    schema: &Schema,
    ty: TypeRef,
    kind: &str,
    value: &Value,
    report: &mut Report,
) -> Result<Value, Mismatch> {
    let mut walk = Walk {
        schema,
        report,
        struct_name: kind.into(),
        path: Vec::new(),
    };
    walk.value(ty, value)
}

enum Step {
    Field(String),
    Index(usize),
}

struct Walk<'a> {
    schema: &'a Schema,
    report: &'a mut Report,
    /// The Go struct that holds the field being read.
    struct_name: Box<str>,
    path: Vec<Step>,
}

impl Walk<'_> {
    fn path(&self) -> String {
        let mut out = String::new();
        for step in &self.path {
            match step {
                Step::Field(name) if out.is_empty() => out.push_str(name),
                Step::Field(name) => {
                    out.push('.');
                    out.push_str(name);
                }
                Step::Index(index) => out.push_str(&format!("[{index}]")),
            }
        }
        out
    }

    /// `ConfigMap.data`, as Go names the field: positions and map keys are left out.
    fn go_field(&self) -> String {
        let fields: Vec<&str> = self
            .path
            .iter()
            .filter_map(|step| match step {
                Step::Field(name) => Some(name.as_str()),
                Step::Index(_) => None,
            })
            .collect();
        format!("{}.{}", self.struct_name, fields.join("."))
    }

    fn mismatch(&self, value: &Value, wanted: &str) -> Mismatch {
        let got = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if wanted.starts_with("int") => format!("number {number}"),
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        Mismatch(format!(
            "json: cannot unmarshal {got} into Go struct field {} of type {wanted}",
            self.go_field()
        ))
    }

    fn value(&mut self, ty: TypeRef, value: &Value) -> Result<Value, Mismatch> {
        match self.schema.view(ty, Some(value)) {
            View::Scalar(scalar) => self.scalar(scalar, value),
            View::List(list) => {
                let element = list.element;
                let Value::Array(items) = value else {
                    return Err(self.mismatch(value, "[]interface {}"));
                };
                let mut out = Vec::with_capacity(items.len());
                for (position, item) in items.iter().enumerate() {
                    self.path.push(Step::Index(position));
                    out.push(self.element(element, item)?);
                    self.path.pop();
                }
                Ok(Value::Array(out))
            }
            View::Map(map, _) if map.fields.is_empty() => {
                let Value::Object(object) = value else {
                    return if map.element.is_some_and(|element| element.id.0 < 2) && !value.is_object() {
                        Ok(value.clone())
                    } else {
                        Err(self.mismatch(value, "map[string]interface {}"))
                    };
                };
                let Some(element) = map.element else {
                    return Ok(value.clone());
                };
                if element.id == super::DEDUCED || element.id == super::UNTYPED {
                    return Ok(value.clone());
                }
                let mut out = Map::new();
                for (name, item) in object {
                    // Go names only the field for a wrong value in a dictionary.
                    out.insert(name.clone(), self.element(element, item)?);
                }
                Ok(Value::Object(out))
            }
            View::Map(map, _) => {
                let Value::Object(object) = value else {
                    return Err(self.mismatch(value, "struct"));
                };
                self.fields(map, object)
            }
            View::Nothing => Ok(value.clone()),
        }
    }

    /// An item of a list or dictionary: null there is the type's zero value.
    fn element(&mut self, ty: TypeRef, value: &Value) -> Result<Value, Mismatch> {
        if value.is_null() {
            return Ok(match self.schema.view(ty, None) {
                View::Scalar(scalar) => zero(scalar),
                View::Map(map, _) if !map.fields.is_empty() => self.fields(map, &Map::new())?,
                _ => Value::Null,
            });
        }
        self.value(ty, value)
    }

    fn fields(&mut self, map: &MapType, object: &Map<String, Value>) -> Result<Value, Mismatch> {
        for name in object.keys() {
            if !map.fields.contains_key(name.as_str()) {
                self.path.push(Step::Field(name.clone()));
                let path = self.path();
                self.report.unknown.push(path);
                self.path.pop();
            }
        }
        let mut out = Map::new();
        let outer =
            (!map.go_name.is_empty()).then(|| std::mem::replace(&mut self.struct_name, map.go_name.clone()));
        for (name, field) in &map.fields {
            self.path.push(Step::Field(name.to_string()));
            let given = match object.get(name.as_ref()).filter(|value| !value.is_null()) {
                Some(value) => Some(self.value(field.ty, value)?),
                None => None,
            };
            let given = match (given, &field.default) {
                (None, Some(default)) => Some(default.clone()),
                (Some(value), Some(default)) if !field.pointer && is_zero(&value) => Some(default.clone()),
                (given, _) => given,
            };
            if let Some(value) = self.printed(field, given)? {
                out.insert(name.to_string(), value);
            }
            self.path.pop();
        }
        if let Some(outer) = outer {
            self.struct_name = outer;
        }
        Ok(Value::Object(out))
    }

    /// What the server prints of a field, following its JSON tag.
    fn printed(&mut self, field: &Field, given: Option<Value>) -> Result<Option<Value>, Mismatch> {
        let view = self.schema.view(field.ty, given.as_ref());
        let is_struct = matches!(view, View::Map(map, _) if !map.fields.is_empty());
        // These are structs in Go, which omitempty never leaves out.
        let is_value_struct = matches!(
            view,
            View::Scalar(Scalar::Time | Scalar::MicroTime | Scalar::Quantity | Scalar::IntOrString)
        );
        if let Some(value) = given {
            let dropped = !field.pointer
                && ((field.omit_empty && !is_struct && !is_value_struct && is_zero(&value))
                    || (field.omit_zero && is_zero(&value)));
            // A list that is always printed comes back from storage as null when it is empty.
            let value = match &value {
                Value::Array(items) if items.is_empty() && !field.pointer && !field.omit_empty => Value::Null,
                _ => value,
            };
            return Ok((!dropped).then_some(value));
        }
        if field.pointer || field.omit_zero {
            return Ok(None);
        }
        Ok(match view {
            View::Map(map, _) if is_struct => Some(self.fields(map, &Map::new())?),
            View::Scalar(scalar) if is_value_struct => Some(zero(scalar)),
            _ if field.omit_empty => None,
            View::Scalar(scalar) => Some(zero(scalar)),
            View::Map(map, _) if map.element.is_some_and(|element| element.id.0 < 2) => None,
            View::Map(..) | View::List(_) => Some(Value::Null),
            View::Nothing => None,
        })
    }

    fn scalar(&self, scalar: Scalar, value: &Value) -> Result<Value, Mismatch> {
        let fail = |wanted: &str| Err(self.mismatch(value, wanted));
        Ok(match (scalar, value) {
            (Scalar::String, Value::String(_)) | (Scalar::Boolean, Value::Bool(_)) => value.clone(),
            (Scalar::String, _) => return fail("string"),
            (Scalar::Boolean, _) => return fail("bool"),
            (Scalar::Int32, Value::Number(number)) => {
                match number.as_i64().and_then(|n| i32::try_from(n).ok()) {
                    Some(n) => n.into(),
                    None => return fail("int32"),
                }
            }
            (Scalar::Int32, _) => return fail("int32"),
            (Scalar::Int64, Value::Number(number)) => match number.as_i64() {
                Some(n) => n.into(),
                None => return fail("int64"),
            },
            (Scalar::Int64, _) => return fail("int64"),
            (Scalar::Number, Value::Number(_)) => value.clone(),
            (Scalar::Number, _) => return fail("float64"),
            (Scalar::Bytes, Value::String(text)) => {
                let clean: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
                match base64::engine::general_purpose::STANDARD.decode(&clean) {
                    Ok(_) => clean.into(),
                    Err(base64::DecodeError::InvalidByte(at, _)) => {
                        return Err(Mismatch(format!("illegal base64 data at input byte {at}")));
                    }
                    Err(_) => {
                        let at = clean.len().saturating_sub(clean.len() % 4);
                        return Err(Mismatch(format!("illegal base64 data at input byte {at}")));
                    }
                }
            }
            (Scalar::Bytes, _) => return fail("[]uint8"),
            (Scalar::Time, Value::String(text)) => match crate::clock::parse_seconds(text) {
                Some(seconds) => crate::clock::format_seconds(seconds).into(),
                None => {
                    return Err(Mismatch(format!(
                        "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
                    )));
                }
            },
            (Scalar::MicroTime, Value::String(text)) => match text.parse() {
                Ok(time) => crate::clock::format_micros(time).into(),
                Err(_) => {
                    return Err(Mismatch(format!(
                        "parsing time {text:?} as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse {text:?} as \"2006\""
                    )));
                }
            },
            (Scalar::Time | Scalar::MicroTime, _) => return fail("string"),
            (Scalar::Quantity, Value::String(_) | Value::Number(_)) => {
                let text = match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                match quantity::canonical(&text) {
                    Some(canonical) => canonical.into(),
                    None => return Err(Mismatch(quantity::QUANTITY_ERROR.into())),
                }
            }
            (Scalar::Quantity, _) => return Err(Mismatch(quantity::QUANTITY_ERROR.into())),
            (Scalar::IntOrString, Value::String(_)) => value.clone(),
            (Scalar::IntOrString, Value::Number(number)) if number.is_i64() => value.clone(),
            (Scalar::IntOrString, _) => return fail("int32"),
            (Scalar::Untyped, _) => value.clone(),
        })
    }
}

fn zero(scalar: Scalar) -> Value {
    match scalar {
        Scalar::String => "".into(),
        Scalar::Int32 | Scalar::Int64 | Scalar::IntOrString => 0.into(),
        Scalar::Number => Number::from(0).into(),
        Scalar::Boolean => false.into(),
        Scalar::Quantity => "0".into(),
        Scalar::Bytes | Scalar::Time | Scalar::MicroTime | Scalar::Untyped => Value::Null,
    }
}

/// Empty text, zero, false, and lists and maps with nothing in them.
pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(group: &str, version: &str, kind: &str, value: Value) -> (Result<Value, Mismatch>, Vec<String>) {
        let schema = Schema::builtin();
        let mut report = Report::default();
        let ty = schema.kind(group, version, kind).unwrap();
        let out = normalise(&schema, ty.into(), kind, &value, &mut report);
        (out, report.unknown)
    }

    #[test]
    fn empty_fields_are_left_out_and_required_structs_filled_in() {
        let (out, unknown) = run(
            "apps",
            "v1",
            "Deployment",
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "labels": {}},
                "spec": {"replicas": 0, "paused": false, "selector": {}, "bogus": 1,
                    "template": {"spec": {"hostNetwork": false, "containers": [
                        {"name": "c", "image": "", "resources": {"limits": {"cpu": 0.5}}, "command": [], "env": null,
                         "ports": [{"containerPort": 80, "wrong": true}]}]}}}}),
        );
        assert_eq!(
            out.unwrap(),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
                "spec": {"replicas": 0, "selector": {}, "strategy": {},
                    "template": {"metadata": {}, "spec": {"containers": [
                        {"name": "c", "resources": {"limits": {"cpu": "500m"}},
                         "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}}},
                "status": {}})
        );
        assert_eq!(
            unknown,
            ["spec.bogus", "spec.template.spec.containers[0].ports[0].wrong"]
        );
    }

    #[test]
    fn wrong_types_are_named_as_by_a_real_server() {
        let (out, _) = run("", "v1", "ConfigMap", json!({"data": {"x": 1}}));
        let text = "json: cannot unmarshal number into Go struct field ConfigMap.data of type string";
        assert_eq!(out, Err(Mismatch(text.into())));
        let (out, _) = run("", "v1", "Secret", json!({"data": {"x": "?"}}));
        assert_eq!(out, Err(Mismatch("illegal base64 data at input byte 0".into())));
    }

    #[test]
    fn null_in_a_dictionary_is_the_empty_text() {
        let (out, _) = run("", "v1", "ConfigMap", json!({"data": {"x": null}}));
        assert_eq!(out.unwrap()["data"], json!({"x": ""}));
    }

    #[test]
    fn schemas_inside_definitions_keep_their_free_fields() {
        let schema = json!({"type": "object", "default": {"a": [1, null]}, "enum": [{"x": 1}],
            "x-kubernetes-preserve-unknown-fields": true, "additionalProperties": false});
        let (out, unknown) = run(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            json!({"spec": {"group": "g", "scope": "Namespaced", "names": {"plural": "p", "kind": "K"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}}),
        );
        assert_eq!(
            out.unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
            schema
        );
        assert_eq!(unknown, Vec::<String>::new());
    }
}
