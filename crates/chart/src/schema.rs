//! `values.schema.json`: the values a chart accepts.
//!
//! Texts follow Helm's where the fault is a common one. No text holds a value: values may be secret.

mod cycles;
mod faults;
mod formats;

use std::sync::{Arc, OnceLock};

use evenkeel_gotemplate::{Map, Value};
use evenkeel_goyaml as goyaml;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};

use crate::Error;
use crate::convert::map_to_yaml;
use crate::dependencies::Node;

/// The most faults of one chart that are told.
const MAX_FAULTS: usize = 1_000;

/// Reads the schema at an `http` or `https` address that another one refers to.
///
/// # Errors
/// Why there is none.
pub type SchemaReader = Arc<dyn Fn(&str) -> Result<Vec<u8>, String> + Send + Sync>;

/// A chart's schema, compiled at its first use.
pub(crate) struct Schema {
    text: Arc<[u8]>,
    validator: OnceLock<Result<Validator, String>>,
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Schema({} bytes)", self.text.len())
    }
}

impl Schema {
    pub(crate) fn new(text: impl Into<Arc<[u8]>>) -> Self {
        Self {
            text: text.into(),
            validator: OnceLock::new(),
        }
    }

    /// What the values do wrong, one line each.
    fn faults(&self, values: &serde_json::Value, reader: Option<&SchemaReader>) -> Vec<String> {
        match self.validator.get_or_init(|| compile(&self.text, reader)) {
            Err(problem) => vec![problem.clone()],
            Ok(validator) => {
                let found: Vec<_> = validator.iter_errors(values).take(MAX_FAULTS).collect();
                faults::lines(&found.iter().collect::<Vec<_>>(), values, MAX_FAULTS)
            }
        }
    }
}

fn compile(text: &[u8], reader: Option<&SchemaReader>) -> Result<Validator, String> {
    let mut schema: serde_json::Value =
        serde_json::from_slice(text).map_err(|e| format!("values.schema.json: {e}"))?;
    let mut draft = Draft::Draft202012;
    let mut is_checked = true;
    if let Some(object) = schema.as_object_mut()
        && let Some(url) = object.remove("$schema")
    {
        // What nobody can find allows everything.
        is_checked = !url.as_str().is_some_and(|url| url.starts_with(NAME_SCHEME));
        if is_checked {
            draft = read_draft(&url).ok_or_else(|| format!("values.schema.json: unknown $schema {url}"))?;
        }
    }
    if is_checked && let Err(error) = meta_validate(draft, &schema) {
        let lines = faults::lines(&[&error], &schema, MAX_FAULTS).join("\n");
        return Err(format!(
            "\"{SCHEMA_URL}#\" is not valid against metaschema: jsonschema validation failed with '{}#'\n{lines}",
            url_of(draft)
        ));
    }
    cycles::cut(&mut schema, draft, SCHEMA_URL);
    let mut options = jsonschema::options().with_draft(draft);
    if matches!(draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7) {
        for (name, check) in formats::FORMATS {
            options = options.with_format(name, check);
        }
    }
    options
        // What Go's regular expressions cannot say is refused by Helm.
        .with_pattern_options(PatternOptions::regex())
        // Both are remarks to Helm.
        .without_content_encoding_support("base64")
        .without_content_media_type_support("application/json")
        .with_base_uri(SCHEMA_URL)
        .with_retriever(Retriever(reader.cloned()))
        .build(&schema)
        .map_err(|error| unusable(&error))
}

/// Where Helm says that the schema lies.
const SCHEMA_URL: &str = "file:///values.schema.json";

/// Names that say nothing of a place. Helm warns and takes what they stand for to allow everything.
const NAME_SCHEME: &str = "urn:";

/// Schemas that others refer to. Without a reader nothing but the chart is read, and never a file of this machine.
struct Retriever(Option<SchemaReader>);

impl jsonschema::Retrieve for Retriever {
    fn retrieve(
        &self,
        url: &jsonschema::Uri<String>,
    ) -> Result<serde_json::Value, Box<dyn std::error::Error + Send + Sync>> {
        let fails = |problem: String| format!("failing loading \"{url}\": {problem}").into();
        if url.as_str().starts_with(NAME_SCHEME) {
            return Ok(serde_json::Value::Bool(true));
        }
        let is_web = ["http://", "https://"]
            .iter()
            .any(|scheme| url.as_str().starts_with(scheme));
        match self.0.as_ref().filter(|_| is_web) {
            None => Err(fails("a schema may refer to itself only".to_owned())),
            Some(reader) => {
                let text = reader(url.as_str()).map_err(fails)?;
                serde_json::from_slice(&text).map_err(|error| fails(error.to_string()))
            }
        }
    }
}

/// What keeps a schema from being used.
fn unusable(error: &ValidationError<'_>) -> String {
    if let ValidationErrorKind::Referencing(fault) = error.kind() {
        return match fault {
            jsonschema::ReferencingError::Unretrievable { source, .. } => source.to_string(),
            jsonschema::ReferencingError::PointerToNowhere { pointer } => {
                format!("json-pointer in \"{SCHEMA_URL}#{pointer}\" not found")
            }
            other => format!("values.schema.json: {other}"),
        };
    }
    format!("values.schema.json: {}", error.masked_with("the schema"))
}

fn meta_validate(draft: Draft, schema: &serde_json::Value) -> Result<(), ValidationError<'_>> {
    match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validate(schema),
        Draft::Draft6 => jsonschema::draft6::meta::validate(schema),
        Draft::Draft7 => jsonschema::draft7::meta::validate(schema),
        Draft::Draft201909 => jsonschema::draft201909::meta::validate(schema),
        _ => jsonschema::draft202012::meta::validate(schema),
    }
}

fn url_of(draft: Draft) -> &'static str {
    match draft {
        Draft::Draft4 => "http://json-schema.org/draft-04/schema",
        Draft::Draft6 => "http://json-schema.org/draft-06/schema",
        Draft::Draft7 => "http://json-schema.org/draft-07/schema",
        Draft::Draft201909 => "https://json-schema.org/draft/2019-09/schema",
        _ => "https://json-schema.org/draft/2020-12/schema",
    }
}

fn read_draft(url: &serde_json::Value) -> Option<Draft> {
    let url = url.as_str()?.split('#').next()?;
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
pub(crate) fn check(root: &Node, values: &Map, reader: Option<&SchemaReader>) -> Result<(), Error> {
    let mut text = String::new();
    check_node(root, values, reader, &mut text)?;
    if text.is_empty() {
        Ok(())
    } else {
        Err(Error::Schema(text.trim_end().to_owned()))
    }
}

fn check_node(
    node: &Node,
    values: &Map,
    reader: Option<&SchemaReader>,
    text: &mut String,
) -> Result<(), Error> {
    if let Some(schema) = &node.chart.schema {
        let plain = whole_numbers(goyaml::Value::Map(map_to_yaml(values)));
        let plain = serde_json::Value::try_from(plain).map_err(|e| Error::Schema(e.to_string()))?;
        let faults = schema.faults(&plain, reader);
        if !faults.is_empty() {
            text.push_str(&format!("{}:\n{}\n", node.name, faults.join("\n")));
        }
    }
    for child in &node.children {
        match values.get(&child.name) {
            None | Some(Value::Nil) => {}
            Some(Value::Map(inner)) => check_node(child, &inner, reader, text)?,
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
