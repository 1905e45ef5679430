//! `values.schema.json`: the values a chart accepts.
//!
//! Texts follow Helm's where the fault is a common one. No text holds a value: values may be secret.

use std::sync::OnceLock;

use evenkeel_gotemplate::{Map, Value};
use evenkeel_goyaml as goyaml;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, ValidationError, Validator};

use crate::Error;
use crate::convert::map_to_yaml;
use crate::dependencies::Node;

/// The most faults of one chart that are told.
const MAX_FAULTS: usize = 50;

/// A chart's schema, compiled at its first use.
pub(crate) struct Schema {
    text: Vec<u8>,
    validator: OnceLock<Result<Validator, String>>,
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Schema({} bytes)", self.text.len())
    }
}

impl Schema {
    pub(crate) fn new(text: Vec<u8>) -> Self {
        Self {
            text,
            validator: OnceLock::new(),
        }
    }

    /// What the values do wrong, one line each.
    fn faults(&self, values: &serde_json::Value) -> Vec<String> {
        match self.validator.get_or_init(|| compile(&self.text)) {
            Err(problem) => vec![problem.clone()],
            Ok(validator) => {
                let mut lines = Vec::new();
                for error in validator.iter_errors(values).take(MAX_FAULTS) {
                    describe(&error, 0, &mut lines);
                }
                lines
            }
        }
    }
}

fn compile(text: &[u8]) -> Result<Validator, String> {
    let mut schema: serde_json::Value =
        serde_json::from_slice(text).map_err(|e| format!("values.schema.json: {e}"))?;
    let mut draft = Draft::Draft202012;
    if let Some(object) = schema.as_object_mut()
        && let Some(url) = object.remove("$schema")
    {
        draft = read_draft(&url).ok_or_else(|| format!("values.schema.json: unknown $schema {url}"))?;
    }
    jsonschema::options()
        .with_draft(draft)
        .build(&schema)
        .map_err(|e| format!("values.schema.json: {}", e.masked_with("the schema")))
}

fn read_draft(url: &serde_json::Value) -> Option<Draft> {
    let url = url.as_str()?.trim_end_matches('#');
    let name = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"))?;
    Some(match name.strip_prefix("json-schema.org/")? {
        "draft-04/schema" => Draft::Draft4,
        "draft-06/schema" => Draft::Draft6,
        "draft-07/schema" => Draft::Draft7,
        "draft/2019-09/schema" => Draft::Draft201909,
        "schema" | "draft/2020-12/schema" => Draft::Draft202012,
        _ => return None,
    })
}

/// Checks the values of a chart and its sub-charts, each against its own schema.
pub(crate) fn check(root: &Node, values: &Map) -> Result<(), Error> {
    let mut text = String::new();
    check_node(root, values, &mut text)?;
    if text.is_empty() {
        Ok(())
    } else {
        Err(Error::Schema(text.trim_end().to_owned()))
    }
}

fn check_node(node: &Node, values: &Map, text: &mut String) -> Result<(), Error> {
    if let Some(schema) = &node.chart.schema {
        let plain = whole_numbers(goyaml::Value::Map(map_to_yaml(values)));
        let plain = serde_json::Value::try_from(plain).map_err(|e| Error::Schema(e.to_string()))?;
        let faults = schema.faults(&plain);
        if !faults.is_empty() {
            text.push_str(&format!("{}:\n{}\n", node.name, faults.join("\n")));
        }
    }
    for child in &node.children {
        match values.get(&child.name) {
            None | Some(Value::Nil) => {}
            Some(Value::Map(inner)) => check_node(child, &inner, text)?,
            Some(other) => text.push_str(&format!(
                "{}:\ninvalid type for values: expected object (map), got {}\n",
                child.name,
                other.type_name()
            )),
        }
    }
    Ok(())
}

/// Values files hold floats only; to a schema 1.0 is an integer.
fn whole_numbers(value: goyaml::Value) -> goyaml::Value {
    /// Below this every whole float is an exact `i64`.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        #[allow(clippy::cast_possible_truncation)] // Whole and in range.
        goyaml::Value::Float(f) if f.fract() == 0.0 && f.abs() <= EXACT => goyaml::Value::Int(f as i64),
        goyaml::Value::List(items) => goyaml::Value::List(items.into_iter().map(whole_numbers).collect()),
        goyaml::Value::Map(map) => goyaml::Value::Map(
            map.into_iter()
                .map(|(key, value)| (key, whole_numbers(value)))
                .collect(),
        ),
        other => other,
    }
}

fn describe(error: &ValidationError<'_>, depth: usize, lines: &mut Vec<String>) {
    let instance = error.instance();
    let length = match instance.as_ref() {
        serde_json::Value::String(text) => text.chars().count(),
        serde_json::Value::Array(items) => items.len(),
        serde_json::Value::Object(fields) => fields.len(),
        _ => 0,
    };
    let quoted = |names: &[String]| {
        let mut names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
        names.sort();
        names.join(", ")
    };
    let mut inner: &[Vec<ValidationError<'static>>] = &[];
    let text = match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("missing property '{}'", property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("additional properties {} not allowed", quoted(unexpected))
        }
        ValidationErrorKind::Type { kind } => format!("got {}, want {}", type_of(instance), wanted(kind)),
        ValidationErrorKind::Enum { options } => match options.as_array().map(Vec::as_slice) {
            Some([]) | None => "value must be one of none".to_owned(),
            Some(options) => {
                let options: Vec<String> = options
                    .iter()
                    .map(|option| option.to_string().replace('"', "'"))
                    .collect();
                format!("value must be one of {}", options.join(", "))
            }
        },
        ValidationErrorKind::Constant { expected_value } => {
            format!("value must be {}", expected_value.to_string().replace('"', "'"))
        }
        ValidationErrorKind::MinLength { limit } => format!("minLength: got {length}, want {limit}"),
        ValidationErrorKind::MaxLength { limit } => format!("maxLength: got {length}, want {limit}"),
        ValidationErrorKind::MinItems { limit } => format!("minItems: got {length}, want {limit}"),
        ValidationErrorKind::MaxItems { limit } => format!("maxItems: got {length}, want {limit}"),
        ValidationErrorKind::MinProperties { limit } => format!("minProperties: got {length}, want {limit}"),
        ValidationErrorKind::MaxProperties { limit } => format!("maxProperties: got {length}, want {limit}"),
        ValidationErrorKind::Minimum { limit } => format!("minimum: want {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("maximum: want {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("exclusiveMinimum: want {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("exclusiveMaximum: want {limit}"),
        ValidationErrorKind::Pattern { pattern } => format!("value does not match pattern '{pattern}'"),
        ValidationErrorKind::AnyOf { context } => {
            inner = context;
            "'anyOf' failed".to_owned()
        }
        ValidationErrorKind::OneOfNotValid { context } => {
            inner = context;
            "'oneOf' failed, none matched".to_owned()
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => "'oneOf' failed, several matched".to_owned(),
        ValidationErrorKind::Not { .. } => "'not' failed".to_owned(),
        ValidationErrorKind::FalseSchema => "false schema".to_owned(),
        _ => error.masked().to_string(),
    };
    lines.push(format!(
        "{}- at '{}': {text}",
        "  ".repeat(depth),
        error.instance_path()
    ));
    for error in inner.iter().flatten() {
        if lines.len() < MAX_FAULTS {
            describe(error, depth + 1, lines);
        }
    }
}

fn type_of(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "boolean",
        serde_json::Value::Number(_) => "number",
        serde_json::Value::String(_) => "string",
        serde_json::Value::Array(_) => "array",
        serde_json::Value::Object(_) => "object",
    }
}

fn wanted(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(set) => {
            let mut names: Vec<String> = set.iter().map(|one| one.to_string()).collect();
            names.sort();
            names.join(" or ")
        }
    }
}
